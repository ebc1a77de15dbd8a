//! The limit on the descriptors of a process. It is raised for this process and not for its programs.
//!
//! A high limit is bad for a program that uses `select`, or that closes every descriptor up to the limit. So programs start with
//! the soft limit that this process had at first.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit before it was raised. The inner value is `None` if there was no limit.
static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the soft limit on the descriptors of this process to the hard limit. Programs that are started later as
/// [groups](super::Group) get the soft limit that this process had before the call. To start such a program, this
/// process is copied (`fork`), and two more descriptors are needed.
///
/// # Errors
/// The system refuses. The limit is then unchanged.
pub fn raise() -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return Ok(());
    }
    // This is set before the limit is raised, so that a program that another thread starts meanwhile does not get the
    // raised limit.
    BEFORE.get_or_init(|| current);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

/// Lets a program start with the soft limit that this process had at first, or with the hard limit if that is lower by
/// now.
pub(super) fn give_back(command: &mut Command) {
    let Some(&before) = BEFORE.get() else { return };
    let lower = move || {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let current = before.map_or(maximum, |soft| Some(maximum.map_or(soft, |hard| soft.min(hard))));
        Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
    };
    // SAFETY: the closure makes two system calls and allocates nothing, which is allowed in a forked copy of a process
    // with several threads.
    unsafe { command.pre_exec(lower) };
}
