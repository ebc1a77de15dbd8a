//! Blocking calls run on separate threads while the fiber waits.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::contained::AbortOnUnwind;
use crate::handle::is_cancelled;
use crate::scheduler::local::Local;
use crate::scheduler::state::Reason;
use crate::waiter::{Mask, Waiter, may_unwind, yield_fiber};

/// An idle thread exits after this time.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// Runs `call` on a thread for blocking calls and suspends the fiber until it returns. Outside a fiber, calls it directly.
///
/// Use it for calls that block the thread: files, name resolution, locks of other libraries, long computations. The call may
/// borrow from the fiber's stack. A call that has begun cannot be interrupted: if the fiber is cancelled, it waits for the call
/// to end, and unwinds at its next wait. If the call has not begun, the cancelled fiber withdraws it and unwinds immediately.
///
/// Costs two thread switches, about 10 µs. At most [`max_blocking_threads`](crate::Options::max_blocking_threads) calls run at
/// a time; further calls are queued.
///
/// # Panics
/// Panics if `call` panics, with the same payload.
///
/// ```
/// use millstream_fiber::{Options, Runtime, Threads, blocking};
///
/// let runtime = Runtime::start(Options::new(Threads::One))?;
/// let read = runtime.spawn(|| blocking(|| std::fs::read_to_string("/proc/self/stat")));
/// assert!(read.join().unwrap().is_ok());
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
#[track_caller]
pub fn blocking<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    let Some(threads) = Local::with(|local, _| local.shared.blocking.clone()) else { return call() };
    let waiter = Waiter::current();
    let answer = Arc::new(Answer { is_there: AtomicBool::new(false), result: Mutex::new(None) });
    let (theirs, caller) = (Arc::clone(&answer), waiter.clone());
    let job: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
        let result = catch_unwind(AssertUnwindSafe(call));
        *theirs.result.lock() = Some(result);
        // Release pairs with the acquire below. After this store the fiber may resume, so this thread must no longer use
        // anything that it borrows from the fiber.
        theirs.is_there.store(true, Release);
        caller.wake();
    });
    // SAFETY: this extends the lifetime of the call's borrows. This function returns only after the job has set `is_there`, when
    // the call and everything in it have been dropped, and moves the result out here. It unwinds only if it owns the job itself;
    // no thread has then begun the job, and the unwinding drops it.
    let mut job: Job = unsafe { std::mem::transmute(job) };
    let is_masked = Mask::is_set();
    loop {
        let mask = Mask::new();
        let guard = AbortOnUnwind;
        let withdrawn = match threads.submit(job) {
            Ok(ticket) => wait(&waiter, &answer, || {
                if is_cancelled() && may_unwind(is_masked) { threads.withdraw(ticket) } else { None }
            }),
            Err(job) => {
                job();
                None
            }
        };
        std::mem::forget(guard);
        drop(mask);
        let Some(withdrawn) = withdrawn else { break };
        job = withdrawn;
        // The cancelled fiber unwinds here. If another fiber of the worker has begun to unwind meanwhile, this fiber cannot
        // unwind, and its call is submitted again.
        yield_fiber();
    }
    let result = answer.result.lock().take();
    result.expect("the job left its result").unwrap_or_else(|payload| resume_unwind(payload))
}

/// Waits for the result. If the fiber is cancelled and `withdraw` returns the job, returns that job.
#[track_caller]
fn wait<T>(waiter: &Waiter, answer: &Answer<T>, withdraw: impl Fn() -> Option<Job>) -> Option<Job> {
    while !answer.is_there.load(Acquire) {
        if let Some(job) = withdraw() {
            return Some(job);
        }
        waiter.block(Reason::Blocking, None);
    }
    None
}

/// A call's result, once the call has returned.
struct Answer<T> {
    is_there: AtomicBool,
    result: Mutex<Option<thread::Result<T>>>,
}

/// The threads for blocking calls. They are started on demand, and exit after 10 s without work or when the runtime ends.
#[derive(Clone)]
pub(crate) struct BlockingThreads {
    inner: Arc<Inner>,
}

struct Inner {
    max_threads: usize,
    state: Mutex<State>,
    arrival: Condvar,
}

#[derive(Default)]
struct State {
    /// The jobs that no thread has begun, in the order of their tickets.
    jobs: VecDeque<(u64, Job)>,
    tickets: u64,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

impl BlockingThreads {
    pub(crate) fn new(max_threads: usize) -> Self {
        let (state, arrival) = (Mutex::default(), Condvar::new());
        BlockingThreads { inner: Arc::new(Inner { max_threads, state, arrival }) }
    }

    /// Queues the job and returns its ticket. Returns the job if there is no thread and none can be started.
    fn submit(&self, job: Job) -> Result<u64, Job> {
        let mut state = self.inner.state.lock();
        // Each idle thread will take one job from the queue, so another thread is needed if there are at least as many jobs as
        // idle threads.
        let needs_thread = state.idle <= state.jobs.len() && state.threads < self.inner.max_threads;
        if needs_thread {
            let inner = Arc::clone(&self.inner);
            let started = thread::Builder::new().name("fibers-blocking".to_owned()).spawn(move || inner.work());
            match started {
                Ok(_) => state.threads += 1,
                Err(_) if state.threads == 0 => return Err(job),
                // The job waits for one of the existing threads.
                Err(_) => {}
            }
        }
        state.tickets += 1;
        let ticket = state.tickets;
        state.jobs.push_back((ticket, job));
        drop(state);
        self.inner.arrival.notify_one();
        Ok(ticket)
    }

    /// Removes a job from the queue and returns it; `None` if a thread has begun it.
    fn withdraw(&self, ticket: u64) -> Option<Job> {
        let mut state = self.inner.state.lock();
        let place = state.jobs.binary_search_by_key(&ticket, |(ticket, _)| *ticket).ok()?;
        state.jobs.remove(place).map(|(_, job)| job)
    }

    /// Tells the threads to exit once they have no work.
    pub(crate) fn close(&self) {
        self.inner.state.lock().is_closed = true;
        self.inner.arrival.notify_all();
    }
}

impl Inner {
    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some((_, job)) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state.lock();
                continue;
            }
            if state.is_closed {
                break;
            }
            state.idle += 1;
            let waited = self.arrival.wait_for(&mut state, IDLE);
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }
}
