//! The models of waiting for descriptors.

use std::sync::OnceLock;

/// How fibers wait for descriptors: the four models of Unix. The results are the same under each, and so are time limits
/// and cancellation.
///
/// Chosen for a runtime by [`Options::io`](crate::Options::io), and for a fiber by [`Builder::io`](crate::Builder::io). Code
/// outside of fibers always blocks its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum IoModel {
    /// A thread blocks for each wait, synchronously: the fiber's own under [`Threads::OneEach`](crate::Threads::OneEach),
    /// else one for [blocking calls](crate::blocking()), of which a limited number wait at a time while the others take
    /// turns. A cancellation is noticed within 50 ms.
    Blocking,
    /// The fiber asks again and again, and lets others run in between: a worker is never idle. It is there so that its cost
    /// can be seen, and for waits that are shorter than a sleep.
    NonBlocking,
    /// Each worker asks the kernel which descriptors are ready (epoll), and sleeps in that question. For files, which are
    /// always ready and may block all the same, reads of cached data are done at once, and other calls are
    /// [blocking](crate::blocking()).
    #[default]
    Readiness,
    /// The kernel works on operations and says when they are complete (io_uring): reads and writes of files, and polls of
    /// sockets, handed over in batches. Where the kernel has no io_uring, or the process may not use it, this is
    /// [`Readiness`](Self::Readiness).
    Completion,
}

impl IoModel {
    /// Whether this process can have io_uring. Asks the kernel once.
    #[must_use]
    pub fn has_completion() -> bool {
        static HAS: OnceLock<bool> = OnceLock::new();
        *HAS.get_or_init(super::ring::is_available)
    }

    /// The model that is really used.
    pub(crate) fn offered(self) -> Self {
        if self == Self::Completion && !Self::has_completion() { Self::Readiness } else { self }
    }
}
