//! The models of waiting for descriptors.

use std::sync::OnceLock;

/// How fibers wait for descriptors: the four models of Unix. The results are the same under each, and so are time limits
/// and cancellation.
///
/// [`Options::io`](crate::Options::io) sets the model of a runtime, and [`Builder::io`](crate::Builder::io) sets the model of a
/// fiber. Code outside fibers always blocks its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum IoModel {
    /// A thread blocks for each wait. Under [`Threads::OneEach`](crate::Threads::OneEach) this is the fiber's own thread,
    /// otherwise one of the threads for [blocking calls](crate::blocking()). If there are more waiting fibers than such threads,
    /// the waits take turns, and each gets a thread for a short time. A cancellation is noticed within 50 ms.
    Blocking,
    /// The fiber repeats its call until the call succeeds, and lets other fibers run in between. Its worker is therefore never
    /// idle. This model is for measuring the cost of polling, and for waits that are shorter than a sleep of the worker.
    NonBlocking,
    /// Each worker asks the kernel which descriptors are ready (epoll), and sleeps in that call. Files always count as ready
    /// but may block: reads of cached data return immediately, and other calls are [blocking](crate::blocking()).
    #[default]
    Readiness,
    /// The kernel performs operations and reports when they are complete (io_uring). The operations are reads and writes of
    /// files, and polls of sockets; they are submitted in batches. If the kernel has no io_uring, or the process may not use it,
    /// this model acts as [`Readiness`](Self::Readiness).
    Completion,
}

impl IoModel {
    /// Returns whether this process can use io_uring. Asks the kernel only once.
    #[must_use]
    pub fn has_completion() -> bool {
        static HAS: OnceLock<bool> = OnceLock::new();
        *HAS.get_or_init(super::ring::is_available)
    }

    /// Returns the model in effect: this one, or [`Readiness`](Self::Readiness) if io_uring is not available.
    pub(crate) fn offered(self) -> Self {
        if self == Self::Completion && !Self::has_completion() { Self::Readiness } else { self }
    }
}
