//! The signals that end the program.
//!
//! - While the program has unwritten output, a signal is only recorded, and the program ends itself after it has
//!   written its lines.
//! - While the program has no unwritten output, for example in a wait for an input, a signal ends the process at once.
//! - A second signal ends the process anywhere, for example in a write to a pipe that is not read; an alarm does the
//!   same two seconds after the first signal.
//!
//! In each case the signal terminates the process, so its parent sees the usual status.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use libc::SIGALRM;
use millstream_command::signals;
use signal_hook::flag;
use signal_hook::low_level::{emulate_default_handler, register};

/// Added to a signal's number, this gives the exit status with which shells report the signal.
const SHELL_STATUS: i32 = 128;

/// The time that a write or a computation may still take after a signal, in seconds.
const GRACE: libc::c_uint = 2;

/// See the [module](self).
pub(super) struct Ending {
    /// The signal that arrived; 0 if none has.
    came: Arc<AtomicUsize>,
    holds_nothing: Arc<AtomicBool>,
}

impl Ending {
    /// Installs the handlers of the signals.
    pub(super) fn new() -> io::Result<Self> {
        let this = Self { came: Arc::default(), holds_nothing: Arc::default() };
        let is_second = Arc::new(AtomicBool::new(false));
        let came = Arc::clone(&this.came);
        let end = move || {
            // Relaxed: a handler stores the number before it sets the alarm, which comes two seconds later.
            let signal = came.load(Ordering::Relaxed) as i32;
            // An alarm from another source ends the process as it would without this handler.
            let _ = emulate_default_handler(if signal == 0 { SIGALRM } else { signal });
        };
        // SAFETY: the action loads an atomic number and emulates the default handler; both are allowed in a handler.
        unsafe { register(SIGALRM, end) }?;
        for signal in signals::ending() {
            // When a signal comes, its actions run in the order in which they are registered here.
            flag::register_conditional_default(signal, Arc::clone(&is_second))?;
            flag::register(signal, Arc::clone(&is_second))?;
            flag::register_usize(signal, Arc::clone(&this.came), signal.unsigned_abs() as usize)?;
            flag::register_conditional_default(signal, Arc::clone(&this.holds_nothing))?;
            // SAFETY: POSIX allows `alarm` in a handler, and the action does nothing else.
            unsafe { register(signal, || _ = libc::alarm(GRACE)) }?;
        }
        Ok(this)
    }

    /// Lets a signal end the process at once. The caller then checks for a signal that arrived earlier.
    pub(super) fn hold_nothing(&self) {
        // SeqCst: pairs with the handler, which stores `came` and then loads this flag. Either the handler finds the
        // flag and ends the process, or the caller's next check finds the signal.
        self.holds_nothing.store(true, Ordering::SeqCst);
    }

    /// Makes a signal wait until the output is written, from now on.
    pub(super) fn hold_output(&self) {
        // Relaxed: only this thread changes the flag.
        if self.holds_nothing.load(Ordering::Relaxed) {
            // SeqCst: a handler that still finds the flag set ends the process before any output is held.
            self.holds_nothing.store(false, Ordering::SeqCst);
        }
    }

    /// Returns the signal that came.
    pub(super) fn signal(&self) -> Option<i32> {
        // SeqCst: see `hold_nothing`.
        let came = self.came.load(Ordering::SeqCst);
        (came != 0).then_some(came as i32)
    }

    /// Ends the process with the signal, as the signal's default action does.
    pub(super) fn end_by(signal: i32) -> ! {
        // The signals that end a command end it by default, so this call does not return.
        let _ = emulate_default_handler(signal);
        process::exit(SHELL_STATUS + signal)
    }
}
