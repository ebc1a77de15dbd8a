//! Runs a competitor alone in a child process, because peak memory can only be measured for a whole process.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::machine::peak_rss_kib;

/// The report of a competitor that ran alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The seconds that the work took.
    pub seconds: f64,
    /// The highest resident set size in KiB, if the system reports it.
    pub peak_rss_kib: Option<u64>,
}

/// Runs this program again as the archive competitor `name`, which stores into `scratch/out`.
///
/// # Errors
/// Fails when the child cannot be started, exits with an error, or prints something other than its figures.
pub fn measure(name: &str, files: &Path, scratch: &Path) -> Result<Measured, Error> {
    let program = std::env::current_exe().map_err(|e| Error::new(format!("own path: {e}")))?;
    let output = Command::new(&program)
        .args(["archive", "--one", name, "--files"])
        .arg(files)
        .arg("--scratch")
        .arg(scratch)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(Error::at(&program))?;
    if !output.status.success() {
        return Err(Error::new(format!("{name}: the child ended with {}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).ok_or_else(|| Error::new(format!("{name}: the child printed `{}`", text.trim())))
}

/// Prints, in the child, the line that [`measure`] parses in the parent.
pub fn print(seconds: f64) {
    let peak = peak_rss_kib().map_or("unknown".to_owned(), |kib| kib.to_string());
    println!("seconds={seconds} peak_rss_kib={peak}");
}

fn parse(text: &str) -> Option<Measured> {
    let (seconds, peak) = text.trim().strip_prefix("seconds=")?.split_once(" peak_rss_kib=")?;
    let peak_rss_kib = match peak {
        "unknown" => None,
        number => Some(number.parse().ok()?),
    };
    Some(Measured { seconds: seconds.parse().ok()?, peak_rss_kib })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_reads_what_the_child_prints() {
        let measured = Measured { seconds: 1.25, peak_rss_kib: Some(4096) };
        assert_eq!(parse("seconds=1.25 peak_rss_kib=4096\n"), Some(measured));
        let without = Measured { peak_rss_kib: None, ..measured };
        assert_eq!(parse("seconds=1.25 peak_rss_kib=unknown\n"), Some(without));
        assert_eq!(parse("seconds=1.25\n"), None);
        assert_eq!(parse("error"), None);
    }
}
