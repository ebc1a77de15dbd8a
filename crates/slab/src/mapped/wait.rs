//! Waiting for another process, for as long as the wait can help.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::mapped::error::{Error, Work};
use crate::mapped::process::Identity;

/// The time that a process waits for another running process.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The time that a process waits for another process that a signal or a debugger has stopped.
const STOPPED_PATIENCE: Duration = Duration::from_millis(100);
const NAP: Duration = Duration::from_micros(200);

/// A wait that returns an error when it has taken too long.
pub(crate) struct Wait {
    patience: Duration,
    began: Instant,
    /// The moment at which the other process was first found stopped; `None` while it runs.
    stopped: Option<Instant>,
}

impl Wait {
    pub(crate) fn new(patience: Duration) -> Self {
        Wait { patience, began: Instant::now(), stopped: None }
    }

    /// Sleeps briefly while the other process works.
    ///
    /// # Errors
    /// Returns [`Error::Busy`] if the process has taken too long, or has been stopped for too long.
    pub(crate) fn nap(&mut self, other: Identity, work: Work) -> Result<(), Error> {
        let is_stopped = other.is_stopped();
        self.stopped = if is_stopped { self.stopped.or_else(|| Some(Instant::now())) } else { None };
        let stopped_for = self.stopped.map_or(Duration::ZERO, |since| since.elapsed());
        if self.is_over() || stopped_for >= STOPPED_PATIENCE {
            let waited_ms = self.began.elapsed().as_millis() as u64;
            return Err(Error::Busy { pid: other.pid(), waited_ms, work, is_stopped });
        }
        sleep(NAP);
        Ok(())
    }

    /// Sleeps briefly to wait for a process that cannot be watched; returns `false` once the wait has taken too long.
    pub(crate) fn nap_blindly(&self) -> bool {
        if !self.is_over() {
            sleep(NAP);
        }
        !self.is_over()
    }

    fn is_over(&self) -> bool {
        self.began.elapsed() >= self.patience
    }
}
