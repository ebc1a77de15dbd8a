//! `millstream compare`: decides which of two commands or files is smaller, and by what ratio.
//!
//! | file | contents |
//! | --- | --- |
//! | [`args`] | the command line |
//! | `files` | two files of numbers |
//! | `commands`, `parameters` | commands that are run in rounds, and how they are made |
//! | `times` | the times of runs |
//! | `report`, `export` | the answer and the times, as text, JSON and CSV |

pub(crate) mod args;
mod commands;
mod export;
mod files;
mod parameters;
mod report;
mod times;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::time::SystemTime;

use millstream_csm::compare::Paired;

use self::args::CompareArgs;
use super::ended;
use super::error::EvidenceError;

/// Characters with a meaning to a shell; a line without them consists of words and blanks.
const SHELL: &[u8] = b"|&;<>()$`\\\"'*?[]#~=%{}!\n";

/// Compares the commands or files, and returns the exit status.
pub(crate) fn compare(args: &CompareArgs) -> ExitCode {
    ended(if args.run { commands::compare_commands(args) } else { files::compare_files(args) })
}

/// Begins a comparison of pairs. Their ratio is compared with 1 + `at_most_slower`, or with 1 if there is no such
/// claim.
fn paired(error: f64, at_most_slower: Option<f64>) -> Result<Paired, EvidenceError> {
    Paired::new(error, 1.0 + at_most_slower.unwrap_or(0.0)).map_err(EvidenceError::Question)
}

/// Returns the name of a competitor by its position: A, B, … Z, A1, B1, …
fn letter(place: usize) -> String {
    let letter = char::from(b'A' + (place % 26) as u8);
    if place < 26 { letter.to_string() } else { format!("{letter}{}", place / 26) }
}

/// Returns the line as a program and its arguments, or as a script for a shell.
fn words(line: &OsStr) -> Vec<OsString> {
    let bytes = line.as_bytes();
    if bytes.iter().any(|byte| SHELL.contains(byte)) {
        return vec!["/bin/sh".into(), "-c".into(), line.to_owned()];
    }
    bytes
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map(|word| OsStr::from_bytes(word).to_owned())
        .collect()
}

pub(super) fn fresh_seed() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_asked_only_where_one_is_needed() {
        let split =
            |line: &str| words(OsStr::new(line)).into_iter().map(|w| w.into_string().unwrap()).collect::<Vec<_>>();
        assert_eq!(split("sort  -n file.txt"), ["sort", "-n", "file.txt"]);
        for line in ["a | b", "a > b", "a 'b c'", "a $HOME", "A=1 b", "a *.txt", "a; b"] {
            assert_eq!(split(line), ["/bin/sh", "-c", line]);
        }
    }
}
