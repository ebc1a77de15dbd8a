//! The signals that ask a command to end, and the one that must not end it.
//!
//! A command that is asked to end has programs to stop and files to remove. So the keys and the end of a terminal
//! (SIGINT, SIGQUIT, SIGHUP) are treated like SIGTERM, except for those that the command was started to ignore: SIGHUP
//! under `nohup`, SIGINT and SIGQUIT in the background of a script.
//!
//! A command that is asked again ends, even if it is blocked in a write to a pipe that is not read or in a file system
//! that does not answer (`end_soon`).

use std::io;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use libc::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ, c_int};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::stdio;
use rustix::time::Timespec;

/// The signals that ask a command to end.
const ENDING: [c_int; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// How long a command that was asked again may take to end in its own way.
const PATIENCE: Duration = Duration::from_secs(4);

/// How long it may take after that to clean up.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// The signals that ask this command to end: SIGHUP, SIGINT, SIGQUIT and SIGTERM, except those that it was started to
/// ignore.
pub fn ending() -> impl Iterator<Item = c_int> {
    ENDING.into_iter().filter(|&signal| !is_ignored(signal))
}

/// Ends this process in five seconds, with this exit status, unless it ends by itself or is `over` before. In the last
/// second `clean_up` runs, on a thread of its own since it may block as well.
pub fn end_soon(status: u8, over: &AtomicBool, clean_up: impl FnOnce() + Send + 'static) {
    thread::sleep(PATIENCE);
    // SeqCst: as the store; at the end of the command, a weaker ordering would gain nothing.
    if over.load(Ordering::SeqCst) {
        return;
    }
    // Without a thread there is no cleaning up, which the next run then does.
    let _ = thread::Builder::new().name("clean-up".to_owned()).spawn(clean_up);
    thread::sleep(LAST_MOMENT);
    if over.load(Ordering::SeqCst) {
        return;
    }
    last_words(b"interrupted again and still blocked: ended without waiting for the rest\n");
    // SAFETY: the call takes a number and does not return. It skips the rest of a process's end, such as the writing of
    // buffers, which could block.
    unsafe { libc::_exit(status.into()) }
}

/// Writes to standard error if that takes it at once.
fn last_words(words: &[u8]) {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut stderr = [PollFd::from_borrowed_fd(stdio::stderr(), PollFlags::OUT)];
    if poll(&mut stderr, Some(&now)).is_ok() && stderr[0].revents() == PollFlags::OUT {
        let _ = rustix::io::write(stdio::stderr(), words);
    }
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) an error of that write (`EFBIG`), where it would end the
/// command without its report.
///
/// # Errors
/// The system refuses a handler.
pub fn outlive_file_size_limit() -> io::Result<()> {
    if !is_ignored(SIGXFSZ) {
        // A handler and not SIG_IGN, which the programs of the stages would inherit.
        signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// Whether this process ignores the signal, or cannot ask for its action.
pub fn is_ignored(signal: c_int) -> bool {
    // SAFETY: zeros are a valid `sigaction`. Asking for a signal's action changes nothing; where there is no such
    // signal, the call fails and writes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action) != 0 || action.sa_sigaction == libc::SIG_IGN
    }
}
