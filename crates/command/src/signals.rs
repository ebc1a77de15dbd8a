//! The signals that ask a command to end, and a signal (SIGXFSZ) that must not end it.
//!
//! Before a command ends, it must stop programs and remove files. So SIGINT and SIGQUIT, which come from the terminal's
//! keyboard, and SIGHUP, which comes when the terminal closes, are treated like SIGTERM. A signal that was ignored when the
//! command was started stays ignored: SIGHUP under `nohup`, and SIGINT and SIGQUIT in the background of a script.
//!
//! After a second signal, a command ends even if it is blocked in a write to a pipe without a reader, or by a file
//! system that does not respond (`end_soon`).

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

/// After a second signal, a command has this time to end on its own.
const PATIENCE: Duration = Duration::from_secs(4);

/// After [`PATIENCE`], a command has this time to clean up.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// The signals that ask this command to end: SIGHUP, SIGINT, SIGQUIT and SIGTERM, except those that were ignored when
/// the command was started.
pub fn ending() -> impl Iterator<Item = c_int> {
    ENDING.into_iter().filter(|&signal| !is_ignored(signal))
}

/// Waits five seconds and ends this process with this exit status, unless `over` is set before. In the last second,
/// `clean_up` runs. It may also block, so it runs on a thread of its own.
pub fn end_soon(status: u8, over: &AtomicBool, clean_up: impl FnOnce() + Send + 'static) {
    thread::sleep(PATIENCE);
    // SeqCst, like the store: at the end of a command, a weaker ordering has no advantage.
    if over.load(Ordering::SeqCst) {
        return;
    }
    // If the thread cannot be started, the next run cleans up.
    let _ = thread::Builder::new().name("clean-up".to_owned()).spawn(clean_up);
    thread::sleep(LAST_MOMENT);
    if over.load(Ordering::SeqCst) {
        return;
    }
    last_words(b"interrupted again and still blocked: ended without waiting for the rest\n");
    // SAFETY: the call takes a number and does not return. It skips all other work at the end of a process, such as
    // flushing buffers, which could block.
    unsafe { libc::_exit(status.into()) }
}

/// Writes to standard error, unless the write would block.
fn last_words(words: &[u8]) {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut stderr = [PollFd::from_borrowed_fd(stdio::stderr(), PollFlags::OUT)];
    if poll(&mut stderr, Some(&now)).is_ok() && stderr[0].revents() == PollFlags::OUT {
        let _ = rustix::io::write(stdio::stderr(), words);
    }
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) fail with an error (`EFBIG`). Otherwise such a write
/// would end the command without its report.
///
/// # Errors
/// Returns an error if the system refuses a signal handler.
pub fn outlive_file_size_limit() -> io::Result<()> {
    if !is_ignored(SIGXFSZ) {
        // The signal gets a handler instead of SIG_IGN, because the programs of the stages would inherit SIG_IGN.
        signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// Whether this process ignores the signal. Also returns `true` if the signal's action cannot be read.
pub fn is_ignored(signal: c_int) -> bool {
    // SAFETY: zeros are a valid `sigaction`. The call only reads a signal's action. If there is no such signal, the
    // call fails and writes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action) != 0 || action.sa_sigaction == libc::SIG_IGN
    }
}
