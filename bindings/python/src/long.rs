//! Long computations, during which other threads run and an interrupt is handled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How long a computation runs between two checks for an interrupt.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// Computes in a separate thread, without the GIL, and checks for interrupts until the computation ends.
///
/// # Errors
/// The exception of a signal handler, such as KeyboardInterrupt. The computation is then abandoned; its thread ends
/// when it does. RuntimeError if the system refuses a thread, or if the computation panics.
pub(crate) fn compute<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let (send, mut receive) = sync_channel(1);
    let spawned = thread::Builder::new().name("millstream".to_owned()).spawn(move || drop(send.send(work())));
    spawned.map_err(|error| PyRuntimeError::new_err(format!("no thread to compute in: {error}")))?;
    loop {
        let received;
        // The receiver is moved in and out, because it can be sent to the code that runs without the GIL, but not
        // shared with it.
        (receive, received) = py.detach(move || {
            let received = receive.recv_timeout(PATIENCE);
            (receive, received)
        });
        match received {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the computation stopped without a result; please report this"));
            }
        }
    }
}

/// Like [`compute`], with a flag that tells an abandoned computation to end.
///
/// # Errors
/// Those of [`compute`].
pub(crate) fn compute_or_stop<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(Arc<AtomicBool>) -> T + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    // Relaxed: the flag publishes no data.
    compute(py, move || work(flag)).inspect_err(|_| stop.store(true, Ordering::Relaxed))
}
