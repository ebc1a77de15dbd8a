//! Waits. All code that suspends a fiber, or blocks a thread outside fibers, goes through this module.
//!
//! Code that waits registers a [`Waiter`] with the side that will wake it, checks its condition, and calls
//! [`block`](Waiter::block). A wake-up before the call ends the wait immediately. Wake-ups may be spurious, so callers loop.

use std::marker::PhantomData;
use std::panic::{Location, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use millstream_sync::eventcount::{EventCount, SpinPolicy};

use crate::backtrace::Backtrace;
use crate::primitive::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use crate::scheduler::core::{Core, Leave};
use crate::scheduler::core_ref::CoreRef;
use crate::scheduler::local::Local;
use crate::scheduler::state::{Reason, Waiting};

/// The policy by which a thread spins before it sleeps. Under loom it does not spin, because a model has no clock.
const POLICY: SpinPolicy = if cfg!(loom) { SpinPolicy::NONE } else { SpinPolicy::DEFAULT };

/// A thread outside fibers that may wait.
// The alignment leaves the low bits of the address free for the tags of a joiner (`scheduler/joiner.rs`).
#[derive(Debug)]
#[repr(align(8))]
pub(crate) struct ThreadWaiter {
    is_woken: AtomicBool,
    bell: EventCount,
    /// Whether an `unpark` has come that no `park` has consumed yet.
    pub(crate) permit: AtomicBool,
    pub(crate) thread: std::thread::Thread,
}

thread_local! {
    static THREAD: Arc<ThreadWaiter> = Arc::new(ThreadWaiter::new());
}

impl ThreadWaiter {
    pub(crate) fn new() -> Self {
        ThreadWaiter {
            is_woken: AtomicBool::new(false),
            bell: EventCount::new(),
            permit: AtomicBool::new(false),
            thread: std::thread::current(),
        }
    }

    /// Returns this thread's waiter. In the destructor of another thread local this may be a new waiter, which works as well.
    pub(crate) fn current() -> Arc<Self> {
        THREAD.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(ThreadWaiter::new()))
    }

    pub(crate) fn end_wait(&self) {
        // Release pairs with the acquire in `block`. This is an exchange rather than a store: a wait may consume several
        // wake-ups, and must see the writes before each of them.
        self.is_woken.swap(true, Release);
        self.bell.increment();
    }

    pub(crate) fn block(&self, deadline: Option<Instant>) {
        let is_woken = || self.is_woken.swap(false, Acquire).then_some(());
        let _ = self.bell.wait_for_with(is_woken, deadline, POLICY);
    }
}

/// A fiber or a thread that may wait.
#[derive(Clone)]
pub(crate) enum Waiter {
    Fiber(CoreRef),
    Thread(Arc<ThreadWaiter>),
}

impl Waiter {
    /// Returns the calling fiber or thread.
    pub(crate) fn current() -> Self {
        let fiber = Local::with(|_, fiber| Waiter::Fiber(CoreRef::clone(fiber)));
        fiber.unwrap_or_else(|| Waiter::Thread(ThreadWaiter::current()))
    }

    /// Ends the waiter's current wait, or its next one.
    pub(crate) fn wake(&self) {
        match self {
            Waiter::Fiber(fiber) => fiber.end_wait(),
            Waiter::Thread(thread) => thread.end_wait(),
        }
    }

    /// Waits for [`wake`](Self::wake) or the deadline; may return spuriously. Only the waiter itself may call it.
    ///
    /// A cancelled fiber unwinds here, before or after the wait, unless it is masked or already unwinding.
    #[track_caller]
    pub(crate) fn block(&self, reason: Reason, deadline: Option<Instant>) {
        self.block_at(reason, deadline, Location::caller());
    }

    /// Like [`block`](Self::block); a dump shows `at` as the location of the wait.
    pub(crate) fn block_at(&self, reason: Reason, deadline: Option<Instant>, at: &'static Location<'static>) {
        match self {
            Waiter::Fiber(_) => suspend(reason, deadline, at),
            Waiter::Thread(thread) => thread.block(deadline),
        }
    }

    /// Returns a [`Seat`], with which the fiber or thread can wait after this value has moved into a wait queue. Only the
    /// waiter itself may call it.
    pub(crate) fn seat(&self) -> Seat {
        match self {
            Waiter::Fiber(_) => Seat { thread: None },
            Waiter::Thread(thread) => Seat { thread: Some(Arc::clone(thread)) },
        }
    }
}

/// The part of a waiter that the calling fiber or thread keeps in order to block. A fiber's seat has no reference to the fiber,
/// so a wait needs only the one reference in the wait queue.
pub(crate) struct Seat {
    thread: Option<Arc<ThreadWaiter>>,
}

impl Seat {
    /// Waits as [`Waiter::block_at`] does.
    pub(crate) fn block_at(&self, reason: Reason, deadline: Option<Instant>, at: &'static Location<'static>) {
        match &self.thread {
            None => suspend(reason, deadline, at),
            Some(thread) => thread.block(deadline),
        }
    }
}

/// The payload with which a cancelled fiber unwinds.
pub(crate) struct Unwound;

/// Unwinds a cancelled fiber. If `is_unwinding`, does nothing, since a second panic would abort the process.
#[inline]
fn check_cancelled(fiber: &Core, is_unwinding: bool) {
    if fiber.is_cancelled() && !is_unwinding && !cfg!(panic = "abort") {
        unwind(fiber);
    }
}

#[cold]
fn unwind(fiber: &Core) {
    // SAFETY: the caller is the fiber.
    if unsafe { fiber.own() }.masks.get() == 0 {
        resume_unwind(Box::new(Unwound));
    }
}

/// Unwinds the running fiber if it is cancelled. Does nothing outside a fiber.
pub(crate) fn unwind_if_cancelled() {
    Local::with(|_, fiber| check_cancelled(fiber, std::thread::panicking()));
}

/// How long a cancelled fiber waits before it checks again whether it can unwind.
const RECHECK: Duration = Duration::from_millis(1);

fn soon(deadline: Option<Instant>) -> Instant {
    let soon = Instant::now() + RECHECK;
    deadline.map_or(soon, |deadline| deadline.min(soon))
}

/// Suspends the running fiber until it is woken or the deadline has passed.
pub(crate) fn suspend(reason: Reason, deadline: Option<Instant>, at: &'static Location<'static>) {
    let inside = Local::with(|local, fiber| {
        // While a fiber waits in a destructor during unwinding, the thread's panic count stays raised, so this is `true` for
        // other fibers of the worker as well. A cancelled fiber therefore waits only briefly; its caller waits in a loop and
        // checks again.
        let is_unwinding = std::thread::panicking();
        check_cancelled(fiber, is_unwinding);
        let deadline = if is_unwinding && fiber.is_cancelled() { Some(soon(deadline)) } else { deadline };
        let timer = deadline.map(|deadline| local.timers.set(deadline, CoreRef::clone(fiber)));
        if fiber.wait.begin() {
            let since_ms = resumed_since(fiber, reason, at).unwrap_or_else(|| local.shared.clock.now_ms());
            fiber.state.set_waiting(Waiting { reason, at, since_ms });
            Local::leave(fiber, Leave::Wait);
            fiber.wait.end();
        }
        if fiber.take_ask_for_trace() {
            local.shared.traces.answer(fiber, Backtrace::take(fiber));
            // SAFETY: the caller is the fiber.
            unsafe { fiber.own() }.was_traced.set(true);
        }
        if let Some(timer) = timer {
            local.timers.clear(timer);
        }
        check_cancelled(fiber, is_unwinding);
    });
    assert!(inside.is_some(), "a fiber waits on its own stack");
}

/// If a dump has interrupted this wait, returns when the wait began.
fn resumed_since(fiber: &Core, reason: Reason, at: &'static Location<'static>) -> Option<u64> {
    // SAFETY: the caller is the fiber.
    let was_traced = unsafe { fiber.own() }.was_traced.take();
    let before = fiber.state.waiting().filter(|before| was_traced && before.reason == reason)?;
    std::ptr::eq(before.at, at).then_some(before.since_ms)
}

/// Lets other fibers run. Unwinds a cancelled fiber. Returns `false` outside a fiber.
///
/// This function and the functions that it calls are inlined: a processor predicts each return from the calls before it, and
/// mispredicts the returns after a switch of stacks.
#[inline]
pub(crate) fn yield_fiber() -> bool {
    let inside = Local::with(|_, fiber| {
        let is_unwinding = std::thread::panicking();
        check_cancelled(fiber, is_unwinding);
        Local::leave(fiber, Leave::Yield);
        check_cancelled(fiber, is_unwinding);
    });
    inside.is_some()
}

/// Returns whether the running fiber would unwind now if it were cancelled. `is_masked` says whether the fiber has a mask in
/// addition to the caller's own.
pub(crate) fn may_unwind(is_masked: bool) -> bool {
    !is_masked && !std::thread::panicking() && !cfg!(panic = "abort")
}

/// As long as a mask exists, a cancellation does not unwind its fiber. Outside a fiber, a mask has no effect.
pub(crate) struct Mask {
    /// Not `Send`: a mask stays in its fiber.
    stays: PhantomData<*mut ()>,
}

impl Mask {
    pub(crate) fn new() -> Self {
        Self::add(1);
        Mask { stays: PhantomData }
    }

    /// Returns whether the fiber has a mask.
    pub(crate) fn is_set() -> bool {
        // SAFETY: this code runs in the fiber.
        Local::with(|_, fiber| unsafe { fiber.own() }.masks.get() > 0) == Some(true)
    }

    fn add(change: u32) {
        Local::with(|_, fiber| {
            // SAFETY: this code runs in the fiber.
            let masks = unsafe { &fiber.own().masks };
            masks.set(masks.get().wrapping_add(change));
        });
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        Self::add(u32::MAX);
    }
}
