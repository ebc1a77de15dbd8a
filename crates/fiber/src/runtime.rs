//! A runtime: the threads that run fibers, and the fibers' stacks.

use std::fmt;
use std::sync::Arc;
use std::thread;

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
/// Dropping it cancels all fibers and blocks until they have ended; in one of its own fibers it only cancels, since
/// that fiber could not wait for itself. (In a blocking call of such a fiber it would wait forever.)
/// [`finish`](Self::finish) waits without cancelling. A program that ends without either leaves its fibers where they
/// are, as it leaves its threads.
pub struct Runtime {
    shared: Arc<Shared>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Runtime {
    /// Starts the workers' threads. The first runtime of the process also installs the handler that names fibers whose
    /// stack overflows.
    ///
    /// # Errors
    /// If the kernel gives no thread.
    pub fn start(options: Options) -> Result<Self, StartError> {
        overflow::install();
        let shared = Arc::new(Shared::new(options));
        match shared.start() {
            Ok(threads) => Ok(Runtime { shared, threads }),
            Err(source) => {
                // Those that started have nothing to do, and leave.
                shared.close();
                Err(StartError { source })
            }
        }
    }

    /// Spawns a fiber. It goes on if the handle is dropped, until the runtime is.
    ///
    /// # Panics
    /// If the fiber [could not be spawned](crate::SpawnError); [`Builder::spawn_on`] returns the error.
    #[track_caller]
    pub fn spawn<T: Send + 'static>(&self, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        Builder::new().spawn_on(self, body).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Calls `body` with a scope, waits for all fibers that were spawned in it, and returns the result of `body`.
    /// Blocks the thread; in a fiber, suspends it.
    ///
    /// # Panics
    /// If `body` panics, with that panic; else if a fiber of the scope panicked and was not joined.
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

    /// Blocks the thread until all fibers have ended, and stops the workers.
    ///
    /// # Panics
    /// In one of the runtime's own fibers, which would wait for itself.
    pub fn finish(self) {
        assert!(!Local::is_worker_of(&self.shared), "a fiber cannot wait for the end of its own runtime");
        self.shared.wait_until_empty();
    }

    /// The number of fibers that have been spawned and have not ended.
    #[must_use]
    pub fn live_fibers(&self) -> usize {
        self.shared.live()
    }

    /// Every live fiber: its name, what it does or waits for, and how deep its stack has been.
    ///
    /// Costs about a microsecond for each fiber; the fibers go on meanwhile, so their states are of different moments.
    #[must_use]
    pub fn dump(&self) -> Dump {
        Dump::of(&self.shared)
    }

    /// The runtime's stacks, with the greatest depth to which one has been used. Costs about a microsecond for each
    /// stack, and holds up those that need a new one.
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
        self.shared.close();
        if Local::is_worker_of(&self.shared) {
            return;
        }
        self.shared.wait_until_empty();
        for thread in self.threads.drain(..) {
            // A worker that panicked would have ended the process.
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
