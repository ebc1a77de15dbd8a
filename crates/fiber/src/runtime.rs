//! A runtime owns the threads that run fibers, and the fibers' stacks.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::dump::Dump;
use crate::error::StartError;
use crate::join::JoinHandle;
use crate::options::Options;
use crate::overflow;
use crate::scheduler::local::Local;
use crate::scheduler::shared::Shared;
use crate::scope::{self, Scope};
use crate::spawn::Builder;
use crate::stack::StackReport;

/// A set of threads that run fibers.
///
/// Dropping the runtime cancels all fibers and blocks until they have ended. If one of its own fibers drops it, the drop only
/// cancels, because a fiber cannot wait for itself. (A drop in a blocking call of such a fiber would wait forever.)
/// [`finish`](Self::finish) waits without cancelling. A program that exits without a drop or `finish` abandons its fibers, as it
/// abandons its threads.
pub struct Runtime {
    shared: Arc<Shared>,
    /// The workers' threads; `None` once the runtime has been abandoned.
    threads: Option<Vec<thread::JoinHandle<()>>>,
}

impl Runtime {
    /// Starts the workers' threads. The first runtime of the process also installs the handler that names fibers whose
    /// stack overflows.
    ///
    /// # Errors
    /// Returns an error if the kernel cannot create a thread.
    pub fn start(options: Options) -> Result<Self, StartError> {
        overflow::install();
        let shared = Arc::new(Shared::new(options));
        match shared.start() {
            Ok(threads) => Ok(Runtime { shared, threads: Some(threads) }),
            Err(source) => {
                // The workers that did start have nothing to do and exit.
                shared.close();
                Err(StartError { source })
            }
        }
    }

    /// Spawns a fiber. Dropping the handle detaches the fiber, which then lives at most as long as the runtime.
    ///
    /// # Panics
    /// Panics if the fiber [could not be spawned](crate::SpawnError); [`Builder::spawn_on`] returns the error instead.
    #[track_caller]
    pub fn spawn<T: Send + 'static>(&self, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        Builder::new().spawn_on(self, body).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Calls `body` with a scope, waits for all fibers spawned in it, and returns the result of `body`. The wait blocks
    /// a thread and suspends a fiber.
    ///
    /// # Panics
    /// Resumes the panic of `body`, if it panics. Otherwise panics if a fiber of the scope panicked and was not joined.
    ///
    /// ```
    /// use millstream_fiber::{Options, Runtime};
    ///
    /// let runtime = Runtime::start(Options::default())?;
    /// let mut squares = [0; 4];
    /// runtime.scope(|scope| {
    ///     for (n, square) in squares.iter_mut().enumerate() {
    ///         scope.spawn(move || *square = n * n);
    ///     }
    /// });
    /// assert_eq!(squares, [0, 1, 4, 9]);
    /// # Ok::<(), millstream_fiber::StartError>(())
    /// ```
    #[track_caller]
    pub fn scope<'env, T>(&self, body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
        scope::run(Arc::clone(&self.shared), body)
    }

    /// Blocks the thread until all fibers have ended, then stops the workers.
    ///
    /// # Panics
    /// Panics if one of the runtime's own fibers calls it, because that fiber would wait for itself.
    pub fn finish(self) {
        assert!(!Local::is_worker_of(&self.shared), "a fiber cannot wait for the end of its own runtime");
        self.shared.wait_until_empty();
    }

    /// Cancels all fibers that exist now, as [`JoinHandle::cancel`] does, and returns immediately.
    pub fn cancel(&self) {
        self.shared.cancel_all();
    }

    /// Cancels all fibers and returns immediately. The threads end after the last fiber. They never end if a fiber runs forever
    /// without a wait.
    pub fn abandon(mut self) {
        self.shared.close();
        self.threads = None;
    }

    /// Returns the number of fibers that have been spawned and have not ended.
    #[must_use]
    pub fn live_fibers(&self) -> usize {
        self.shared.live()
    }

    /// Reports every live fiber: its name, its state, the reason for its wait, and the depth of its stack.
    ///
    /// Takes about a microsecond for each fiber. The fibers keep running meanwhile, so their states are from different
    /// moments.
    #[must_use]
    pub fn dump(&self) -> Dump {
        Dump::of(&self.shared, None)
    }

    /// Like [`dump`](Self::dump), with the backtraces of up to 10,000 waiting fibers. Waits for the backtraces for at most
    /// `limit`. A fiber has no backtrace in the dump if its worker is busy for longer than `limit`, or if less than 16 KiB of its
    /// stack are free.
    ///
    /// Each fiber is woken, captures its own backtrace, and goes back to its wait. This takes tens of microseconds of its
    /// worker's time. It also uses some KiB more of the fiber's stack, which can commit a page or two. Names are looked up later,
    /// when the dump is shown.
    ///
    /// ```
    /// use std::time::Duration;
    /// use millstream_fiber::{Options, Runtime, Threads, park};
    ///
    /// #[inline(never)]
    /// fn idle() {
    ///     park();
    /// }
    /// let runtime = Runtime::start(Options::new(Threads::One))?;
    /// let fiber = runtime.spawn(|| idle());
    /// # while !runtime.dump().to_string().contains("parked") {}
    /// let dump = runtime.dump_with_backtraces(Duration::from_secs(1));
    /// let backtrace = dump.fibers[0].backtrace.as_ref().unwrap();
    /// assert!(backtrace.frames().iter().any(|frame| frame.function.contains("idle")));
    /// # Ok::<(), millstream_fiber::StartError>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn dump_with_backtraces(&self, limit: Duration) -> Dump {
        Dump::of(&self.shared, Some(limit))
    }

    /// Reports the runtime's stacks, with the greatest depth that any of them has reached. Takes about a microsecond for each
    /// stack. Fibers that need a new stack wait until this call returns.
    #[must_use]
    pub fn stacks(&self) -> StackReport {
        self.shared.pool.report()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let Some(threads) = self.threads.take() else { return };
        self.shared.close();
        if Local::is_worker_of(&self.shared) {
            return;
        }
        self.shared.wait_until_empty();
        for thread in threads {
            // Errors are ignored: if a worker had panicked, the process would have aborted.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("options", &self.shared.options)
            .field("live_fibers", &self.live_fibers())
            .finish_non_exhaustive()
    }
}
