//! The command line of `millstream tee`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use millstream_command::{size, time};

/// The end of `millstream tee --help`.
const EXAMPLES: &str = "\
Examples:
  zcat log.gz | millstream tee -- grep -c ERROR ::: wc -l
  millstream tee --buffer 1GiB -- sh -c 'awk NR%2 > odd' ::: sha256sum < big.txt
  mkfifo a b; paste a b > pairs & millstream tee --spill /var/tmp -- sh -c 'awk NR%2 > a' ::: sh -c 'cat > b' < lines

Every command gets all of standard input. Commands may read at different paces: what the slowest has not read yet is \
kept in memory, up to --buffer, and beyond that in unnamed files below --spill. Without --spill, the input waits \
while the buffer is full. A command that takes nothing for --patience while it holds up the input, or after the \
input's end, is stuck: the run ends and names it. A command that stops reading early is left out.

Exit status:
  0  every command ended with 0
  1  a command failed or was stuck, or the input or the spill could not be read or written
  2  the arguments are wrong, or a command could not be started: nothing was read";

/// `millstream tee`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TeeArgs {
    /// The maximum number of bytes in memory by which the slowest command may be behind.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = bytes)]
    pub buffer: u64,
    /// Store on disk, in this folder, the data that exceeds the buffer.
    #[arg(long, value_name = "DIR")]
    pub spill: Option<PathBuf>,
    /// How long a command may read nothing while all others wait for it.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = patience)]
    pub patience: Duration,
    /// The commands, with `:::` between them.
    #[arg(last = true, required = true, value_name = "CMD ::: CMD")]
    pub commands: Vec<OsString>,
}

fn bytes(text: &str) -> Result<u64, String> {
    match size::parse(text)? {
        0 => Err("the buffer must be at least 1 byte".to_owned()),
        bytes => Ok(bytes),
    }
}

fn patience(text: &str) -> Result<Duration, String> {
    match time::parse(text)? {
        Duration::ZERO => Err("the time limit must be more than zero".to_owned()),
        time => Ok(time),
    }
}
