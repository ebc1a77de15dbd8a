//! The configuration of a runtime.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::io::IoModel;
use crate::report::Report;
use crate::stack::Guards;

/// The threads that run the fibers. The body of a fiber is the same under all three models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Threads {
    /// A thread for each fiber (1:1): fibers run in parallel and may block, at the cost of a thread.
    OneEach,
    /// One thread for all fibers (1:N): fibers never run at the same time.
    One,
    /// This number of threads for all fibers (M:N), clamped to the range from 1 to 4096.
    Workers(usize),
}

/// The maximum number of workers.
const MAX_WORKERS: usize = 4096;

impl Threads {
    /// Returns the number of workers that all fibers share; 0 if each fiber has its own worker.
    pub(crate) fn workers(self) -> usize {
        match self {
            Threads::OneEach => 0,
            Threads::One => 1,
            Threads::Workers(workers) => workers.clamp(1, MAX_WORKERS),
        }
    }
}

/// The configuration of a [`Runtime`](crate::Runtime).
///
/// ```
/// use millstream_fiber::{Options, Runtime, Threads};
///
/// let options = Options::new(Threads::Workers(2)).stack_bytes(128 << 10).max_fibers(10_000);
/// let runtime = Runtime::start(options)?;
/// # runtime.finish();
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) threads: Threads,
    pub(crate) stack_bytes: usize,
    pub(crate) guard_bytes: usize,
    pub(crate) guards: Option<Guards>,
    pub(crate) idle_stacks: usize,
    pub(crate) max_fibers: usize,
    pub(crate) max_blocking_threads: usize,
    pub(crate) stall: Duration,
    pub(crate) io: IoModel,
    pub(crate) stack_setting: &'static str,
    on_report: Arc<dyn Fn(&Report) + Send + Sync>,
}

impl Options {
    /// Returns the defaults, which the setters document.
    #[must_use]
    pub fn new(threads: Threads) -> Self {
        Options {
            threads,
            stack_bytes: 64 << 10,
            guard_bytes: 16 << 10,
            guards: None,
            idle_stacks: 1024,
            max_fibers: 1 << 20,
            max_blocking_threads: 64,
            stall: Duration::from_millis(10),
            io: IoModel::default(),
            stack_setting: "raise `Options::stack_bytes` to {bytes}",
            on_report: Arc::new(|report| eprintln!("millstream-fiber: {report}")),
        }
    }

    /// Sets the size of each fiber's stack in bytes; 64 KiB by default. The size is rounded up to whole pages and
    /// clamped to the range from 16 KiB to 1 GiB. This is address space: memory is committed page by page as a fiber
    /// touches it.
    #[must_use]
    pub fn stack_bytes(self, stack_bytes: usize) -> Self {
        Options { stack_bytes, ..self }
    }

    /// Sets the size of the guard below each stack in bytes; 16 KiB by default. The size is rounded up to whole pages,
    /// at least one, and is at most 1 MiB.
    ///
    /// Rust code touches each page of a large frame in order and cannot jump over a guard of one page. C code compiled
    /// without `-fstack-clash-protection` can jump over a guard that is smaller than its largest frame.
    #[must_use]
    pub fn guard_bytes(self, guard_bytes: usize) -> Self {
        Options { guard_bytes, ..self }
    }

    /// Sets the kind of guards; by default, [the best kind that the kernel supports](Guards::best).
    ///
    /// # Errors
    /// With [`Guards::Marks`] on a kernel that does not support them, every fiber ends with
    /// [`NotStarted`](crate::JoinError::NotStarted).
    #[must_use]
    pub fn guards(self, guards: Guards) -> Self {
        Options { guards: Some(guards), ..self }
    }

    /// Sets the number of idle stacks that keep their memory; 1024 by default. Further idle stacks return their memory
    /// to the kernel. Each worker keeps up to 64 more.
    #[must_use]
    pub fn idle_stacks(self, idle_stacks: usize) -> Self {
        Options { idle_stacks, ..self }
    }

    /// Sets the maximum number of live fibers; 2²⁰ by default. Spawning more is an error.
    #[must_use]
    pub fn max_fibers(self, max_fibers: usize) -> Self {
        Options { max_fibers, ..self }
    }

    /// Sets the maximum number of threads for [`blocking`](crate::blocking) calls, at least one; 64 by default. Further
    /// calls wait for a thread.
    #[must_use]
    pub fn max_blocking_threads(self, max_blocking_threads: usize) -> Self {
        Options { max_blocking_threads: max_blocking_threads.max(1), ..self }
    }

    /// Sets the time after which a fiber that keeps its worker is reported; 10 ms by default. Under [`Threads::OneEach`] nothing
    /// is reported, because no other fiber waits for the worker.
    #[must_use]
    pub fn stall(self, stall: Duration) -> Self {
        Options { stall, ..self }
    }

    /// Sets how fibers wait for descriptors; [`IoModel::Readiness`] by default.
    #[must_use]
    pub fn io(self, io: IoModel) -> Self {
        Options { io, ..self }
    }

    /// Sets the advice in the report of an overflow, which says how to enlarge the stack. In the text, `{bytes}` is replaced by
    /// the size to set, and `{KiB}` by the same size in KiB. By default the advice names the setter of these options. A program
    /// that has its own setting for the size should name that setting instead.
    #[must_use]
    pub fn stack_setting(self, stack_setting: &'static str) -> Self {
        Options { stack_setting, ..self }
    }

    /// Sets the function that gets the runtime's [reports](Report). By default, each report becomes a line on standard
    /// error. The runtime's own threads call the function and wait until it returns. A panic of the function is caught.
    #[must_use]
    pub fn on_report(self, on_report: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        Options { on_report: Arc::new(on_report), ..self }
    }

    pub(crate) fn report(&self, report: &Report) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (self.on_report)(report))) {
            crate::contained::discard(payload);
        }
    }
}

impl Default for Options {
    /// Returns options with [`Threads::Workers`], one for each processor that the process may use.
    fn default() -> Self {
        Options::new(Threads::Workers(std::thread::available_parallelism().map_or(1, Into::into)))
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("threads", &self.threads)
            .field("stack_bytes", &self.stack_bytes)
            .field("guard_bytes", &self.guard_bytes)
            .field("guards", &self.guards)
            .field("idle_stacks", &self.idle_stacks)
            .field("max_fibers", &self.max_fibers)
            .field("max_blocking_threads", &self.max_blocking_threads)
            .field("stall", &self.stall)
            .field("io", &self.io)
            .finish_non_exhaustive()
    }
}
