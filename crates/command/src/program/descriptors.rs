//! The limit on the descriptors of a process, raised for this one and not for its programs.
//!
//! A program that uses `select`, or that closes each descriptor up to its limit, cannot cope with a high one. So a program gets back
//! the soft limit that this process had.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limits before they were raised.
static BEFORE: OnceLock<Limits> = OnceLock::new();

/// The soft and the hard limit; `None`: there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits(Option<u64>, Option<u64>);

/// Raises the soft limit on the descriptors of this process to the hard one. Programs that are started from now on as
/// [groups](super::Group) get the soft limit that it has now. Their start copies this process first (`fork`), and takes two descriptors
/// more.
///
/// # Errors
/// The system refuses; the limit is what it was.
pub fn raise() -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return Ok(());
    }
    // Set first: a program that another thread starts meanwhile gets the limit that there is anyway.
    BEFORE.get_or_init(|| Limits(current, maximum));
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

/// Lets a program start with the soft limit that this process had.
pub(super) fn give_back(command: &mut Command) {
    let Some(&Limits(current, maximum)) = BEFORE.get() else { return };
    let lower = move || Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?);
    // SAFETY: the closure makes one system call and allocates nothing, which a copy of a process with several threads may do.
    unsafe { command.pre_exec(lower) };
}
