//! The signals that ask a command to end, and the one that must not end it.
//!
//! A command that is asked to end has programs to stop and files to remove. So the signals of a terminal's keys and of
//! its end (SIGINT, SIGQUIT, SIGHUP) are treated like SIGTERM, except for those that the command was started to ignore:
//! SIGHUP under `nohup`, SIGINT and SIGQUIT in the background of a script.
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

/// The time that a command that was asked again has to end in its own way.
const PATIENCE: Duration = Duration::from_secs(4);

/// The time that it then has to clean up.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// The signals that ask this command to end: SIGHUP, SIGINT, SIGQUIT and SIGTERM, except those that it was started to
/// ignore.
pub fn ending() -> impl Iterator<Item = c_int> {
    ENDING.into_iter().filter(|&signal| !is_ignored(signal))
}

/// Ends this process in five seconds, with this exit status, unless it ends by itself or `over` is set before. In the
/// last second `clean_up` runs, on a thread of its own since it may block as well.
pub fn end_soon(status: u8, over: &AtomicBool, clean_up: impl FnOnce() + Send + 'static) {
    thread::sleep(PATIENCE);
    // SeqCst, like the store: at the end of the command, a weaker ordering would gain nothing.
    if over.load(Ordering::SeqCst) {
        return;
    }
    // If no thread can be started, the next run cleans up.
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

/// Makes a write beyond the limit on file sizes (`ulimit -f`) fail with an error (`EFBIG`); otherwise it would end the
/// command without its report.
///
/// # Errors
/// The system refuses a handler.
pub fn outlive_file_size_limit() -> io::Result<()> {
    if !is_ignored(SIGXFSZ) {
        // This is a handler rather than SIG_IGN, which the programs of the stages would inherit.
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
