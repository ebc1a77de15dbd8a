//! A watchdog, which makes a test that hangs fail.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Longer than any test here takes, however busy the machine is.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// Runs a test's body on another thread, and fails if the body hangs.
pub(crate) fn in_time<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let (over, is_over) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = body();
        let _ = over.send(());
        result
    });
    if is_over.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout) {
        panic!("the test hangs: it is not over after {LONG:?}");
    }
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
