//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Tells every process, through shared memory, when each processor last passed a barrier of its own accord.
///
/// Programs on this machine that use asymmetric fences (`Fence::CHEAP`) then know within milliseconds that all
/// processors have passed, without a system call and without interrupting any processor. The daemon needs root to load
/// its program into the kernel (BPF); without root it uses slower fallbacks and says so. It stays in the foreground until it is
/// stopped.
#[derive(Debug, Clone, Parser)]
#[command(name = "millstream-barrierd", version, max_term_width = 100)]
pub struct Args {
    /// The folder of the page, the socket and the lock; one daemon per folder.
    #[arg(long, value_name = "DIR", default_value = "/run/millstream-barrierd")]
    pub folder: PathBuf,
    /// Run the program on this tracepoint (raw, by its name alone); may be given several times [default: the
    /// tracepoints that fire often enough in a trial].
    #[arg(long = "tracepoint", value_name = "NAME")]
    pub tracepoints: Vec<String>,
    /// Load no program into the kernel: use fallbacks only.
    #[arg(long, conflicts_with = "tracepoints")]
    pub without_bpf: bool,
    /// The user to become after set-up, if started by root.
    #[arg(long, value_name = "USER", default_value = "nobody")]
    pub user: String,
    /// The processor time that the daemon may use, in percent of one processor. Users that make requests have equal
    /// parts of it; a user that has used up its part is served later.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.8, value_parser = share)]
    pub share: f64,
    /// The maximum number of connections of a user; each process that uses the daemon has one. All users together have
    /// at most 1000.
    #[arg(long, value_name = "COUNT", default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub connections: u16,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.01..=100.0).contains(&percent) => Ok(percent),
        _ => Err("expected a percentage from 0.01 to 100".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_share_is_a_percentage() {
        for wrong in ["0", "101", "NaN", "much"] {
            assert!(Args::try_parse_from(["x", "--share", wrong]).is_err(), "{wrong}");
        }
        assert_eq!(Args::try_parse_from(["x", "--share", "2.5"]).unwrap().share, 2.5);
    }
}
