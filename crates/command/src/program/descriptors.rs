//! The limit on the descriptors of a process, raised for this one and not for its programs.
//!
//! A program that uses `select`, or that closes each descriptor up to its limit, cannot cope with a high one. So a program gets back
//! the soft limit that this process had.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit before it was raised; the value is `None` if there was no limit.
static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the soft limit on the descriptors of this process to the hard one. Programs that are started from now on as
/// [groups](super::Group) get the soft limit that this process has now. Their start copies this process first (`fork`),
/// and takes two more descriptors.
///
/// # Errors
/// The system refuses; the limit is what it was.
pub fn raise() -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return Ok(());
    }
    // This is set first: a program that another thread starts meanwhile then gets the present limit either way.
    BEFORE.get_or_init(|| current);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

/// Lets a program start with the soft limit that this process had, or with the hard one if that has become lower.
pub(super) fn give_back(command: &mut Command) {
    let Some(&before) = BEFORE.get() else { return };
    let lower = move || {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let current = before.map_or(maximum, |soft| Some(maximum.map_or(soft, |hard| soft.min(hard))));
        Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
    };
    // SAFETY: the closure makes two system calls and allocates nothing, which a copy of a process with several threads may
    // do.
    unsafe { command.pre_exec(lower) };
}
