//! Reports from a runtime to its owner.

use std::fmt;
use std::time::Duration;

use crate::backtrace::{Backtrace, NoBacktrace};

/// An event that the owner of a runtime should know about.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Report {
    /// A fiber has kept its worker for longer than [`Options::stall`](crate::Options::stall) without a wait or a yield.
    /// The worker's other started fibers wait meanwhile; unstarted ones go to other workers.
    Stalled {
        /// The fiber's name, or its number after a `#`.
        fiber: String,
        /// The number of the work unit that the fiber serves, if the fiber has [set it](crate::Fiber::set_unit).
        unit: Option<u64>,
        /// The worker's index.
        worker: usize,
        /// The minimum time for which the fiber has kept the worker.
        since: Duration,
        /// The frames on the fiber's stack, the innermost first. To get them, the runtime interrupts the worker's thread with
        /// `SIGURG`. The kernel does not restart some system calls after a signal, such as `poll`, or a `read` of a socket with
        /// a time limit. If the fiber is in such a call, the call fails with `EINTR`.
        backtrace: Result<Backtrace, NoBacktrace>,
    },
    /// A fiber never ran because there was no stack for it. Its joiner gets the error as well.
    NotStarted {
        /// The fiber's name, or its number after a `#`.
        fiber: String,
        /// The reason.
        error: String,
    },
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Report::Stalled { fiber, unit, worker, since, backtrace } => {
                write!(
                    f,
                    "fiber `{fiber}`{} has kept worker {worker} for {} ms; call blocking code through `fiber::blocking`, and \
                     `yield_now` in long computations",
                    unit.map_or_else(String::new, |unit| format!(" (unit {unit})")),
                    since.as_millis()
                )?;
                match backtrace {
                    Ok(backtrace) => backtrace.frames().iter().try_for_each(|frame| write!(f, "\n    {frame}")),
                    Err(reason) => write!(f, "\n    no frames: {reason}"),
                }
            }
            Report::NotStarted { fiber, error } => write!(f, "fiber `{fiber}` never ran: {error}"),
        }
    }
}
