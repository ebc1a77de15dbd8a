//! A fiber's control block. Any thread may use one part of it; only the fiber's worker may use the other part.

use std::cell::{Cell, UnsafeCell};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{self as stdatomic, AtomicU64};

use corosensei::{Coroutine, Yielder};

use super::core_ref::CoreRef;
use super::joiner::Joiner;
use super::local::Local;
use super::post::Post;
use super::state::StateRecord;
use super::wait_state::WaitState;
use crate::error::StackError;
use crate::io::IoModel;
use crate::locals::Locals;
use crate::primitive::{
    AtomicBool, AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::stack::Stack;

/// How a body begins.
pub(crate) enum Start {
    /// The body runs.
    Run,
    /// The body is dropped because the fiber was cancelled before it started.
    Cancelled,
    /// The body is dropped because there is no stack for the fiber.
    NoStack(StackError),
}

/// A fiber's function and its result, of any type.
pub(crate) trait Work: Send {
    /// Runs or drops the user's function and stores the result.
    ///
    /// # Safety
    /// Called at most once, and not after [`discard`](Self::discard).
    unsafe fn run(&self, start: Start);

    /// Drops the user's function, which never runs.
    ///
    /// # Safety
    /// Called at most once, and not after [`run`](Self::run).
    unsafe fn discard(&self);
}

/// The reason why a fiber leaves its worker.
pub(crate) enum Leave {
    /// The fiber lets others run, and is ready immediately.
    Yield,
    /// The fiber waits until it is woken.
    Wait,
}

/// The coroutine that runs a fiber.
pub(crate) type Carrier = Coroutine<(), Leave, (), Stack>;

/// A fiber.
///
/// The order of the fields minimises the number of cache lines that a turn uses: if there are many fibers, none of the lines is
/// still in the caches at the fiber's next turn. A yield uses two lines: one with the reference count and the carrier, and one
/// with the flags.
#[repr(C)]
pub(crate) struct Core {
    own: Own,
    /// The number, unique in the process and at least 1.
    pub(crate) id: u64,
    pub(crate) wait: WaitState,
    cancelled: AtomicBool,
    /// Whether a dump requests the fiber's backtrace.
    is_asked_for_trace: AtomicBool,
    /// Whether an `unpark` has come that no `park` has consumed yet.
    pub(crate) permit: AtomicBool,
    /// How the fiber waits for descriptors.
    pub(crate) io: IoModel,
    pub(super) link: AtomicPtr<Core>,
    /// The worker's post; set when the fiber starts. The post exists at least as long as the fiber's [block](super::blocks).
    home: stdatomic::AtomicPtr<Post>,
    pub(crate) state: StateRecord,
    pub(crate) joiner: Joiner,
    /// The function and its result; valid as long as the fiber.
    work: NonNull<dyn Work>,
    /// The number of the work unit that the fiber serves, plus 1; 0 if there is none. Relaxed, because only reports read it.
    unit: AtomicU64,
    pub(crate) name: Option<Arc<str>>,
    /// The worker's post, if the worker serves this fiber alone.
    sole: Option<Arc<Post>>,
}

/// The part of a fiber that only the fiber itself and its worker use. Both run on the worker's thread.
#[repr(C)]
pub(crate) struct Own {
    /// The coroutine that runs the fiber: `Some` from the start of the fiber to its end. The worker borrows it mutably while the
    /// fiber runs, so the fiber must not touch it.
    pub(super) carrier: UnsafeCell<Option<Carrier>>,
    /// The handle that the fiber uses to suspend itself; set when the fiber starts.
    pub(super) yielder: Cell<*const Yielder<(), Leave>>,
    /// The fiber's stack pointer when the fiber last left its worker.
    pub(super) left_at: Cell<*const u8>,
    /// The number of masks that keep a cancellation from unwinding the fiber.
    pub(crate) masks: Cell<u32>,
    /// Whether the last wait ended only because of a dump. The next wait may then be its continuation.
    pub(crate) was_traced: Cell<bool>,
    pub(crate) locals: Locals,
}

// SAFETY: all fields but `own` are `Send` and `Sync`. `own` is accessible only through `Core::own`, whose caller runs on the
// fiber's worker, so no two threads use it. Before the start and after the end it is empty, so any thread may drop it.
unsafe impl Send for Core {}
// SAFETY: as for `Send`: the shared fields are `Sync`, and `own` is used by one thread.
unsafe impl Sync for Core {}

impl Core {
    pub(crate) fn new(
        id: u64,
        name: Option<Arc<str>>,
        io: IoModel,
        sole: Option<Arc<Post>>,
        work: NonNull<dyn Work>,
    ) -> Self {
        Core {
            id,
            wait: WaitState::new(),
            cancelled: AtomicBool::new(false),
            is_asked_for_trace: AtomicBool::new(false),
            permit: AtomicBool::new(false),
            io,
            link: AtomicPtr::new(ptr::null_mut()),
            home: stdatomic::AtomicPtr::new(ptr::null_mut()),
            state: StateRecord::default(),
            joiner: Joiner::default(),
            work,
            unit: AtomicU64::new(0),
            name,
            sole,
            own: Own {
                carrier: UnsafeCell::new(None),
                yielder: Cell::new(ptr::null()),
                left_at: Cell::new(ptr::null()),
                masks: Cell::new(0),
                was_traced: Cell::new(false),
                locals: Locals::default(),
            },
        }
    }

    /// Returns the part that only the fiber's worker may use.
    ///
    /// # Safety
    /// The caller runs on the thread of the worker that started the fiber, or is about to start it.
    #[inline]
    pub(crate) unsafe fn own(&self) -> &Own {
        &self.own
    }

    pub(super) fn work(&self) -> &dyn Work {
        // SAFETY: the work lives as long as the fiber.
        unsafe { self.work.as_ref() }
    }

    /// Binds the fiber to the worker that starts it.
    pub(super) fn settle(&self, post: &Arc<Post>) {
        // Relaxed: only a thread that finds the fiber asleep reads this field, and the fiber publishes it when it falls asleep.
        self.home.store(Arc::as_ptr(post).cast_mut(), Relaxed);
    }

    /// Returns the worker; null before the start.
    pub(super) fn home(&self) -> *const Post {
        self.home.load(Relaxed)
    }

    /// Returns the worker that serves this fiber alone.
    pub(super) fn sole(&self) -> Option<&Arc<Post>> {
        self.sole.as_ref()
    }

    /// Wakes the fiber. If it is awake, makes its next wait end immediately.
    #[inline]
    pub(crate) fn end_wait(&self) {
        if !self.wait.wake() {
            return;
        }
        // SAFETY: a waiting fiber owns a reference to itself. This call has found the fiber asleep, so it takes over that
        // reference.
        let fiber = unsafe { CoreRef::from_raw(self) };
        let home = self.home();
        if let Some(fiber) = Local::offer(home, fiber) {
            // SAFETY: a fiber that waits has started, so `home` is set. The post exists as long as the fiber's block, to which
            // the caller has a reference.
            unsafe { &*home }.inbox.send(fiber);
        }
    }

    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        // Acquire pairs with the release in `cancel`.
        self.cancelled.load(Acquire)
    }

    pub(crate) fn cancel(&self) {
        // Release: the fiber sees everything the canceller wrote before. The wake-up comes after the store: if the fiber has
        // checked the flag before the store, the wake-up ends its wait.
        self.cancelled.store(true, Release);
        self.end_wait();
    }

    /// Requests the fiber's backtrace and wakes the fiber, which then captures it.
    pub(crate) fn ask_for_trace(&self) {
        // Relaxed: the wake-up publishes the flag to the fiber.
        self.is_asked_for_trace.store(true, Relaxed);
        self.end_wait();
    }

    /// Returns whether a dump requests the fiber's backtrace, and clears the request. Relaxed, because the backtrace itself is
    /// passed under a lock.
    pub(crate) fn take_ask_for_trace(&self) -> bool {
        self.is_asked_for_trace.load(Relaxed) && self.is_asked_for_trace.swap(false, Relaxed)
    }

    /// Sets the work unit that the fiber serves.
    pub(crate) fn set_unit(&self, unit: Option<u64>) {
        self.unit.store(unit.map_or(0, |unit| unit.saturating_add(1)), Relaxed);
    }

    /// Returns the work unit that the fiber serves. Async-signal-safe.
    pub(crate) fn unit(&self) -> Option<u64> {
        self.unit.load(Relaxed).checked_sub(1)
    }

    /// Returns the name, or the number if there is no name.
    pub(crate) fn label(&self) -> String {
        self.name.as_deref().map_or_else(|| format!("#{}", self.id), str::to_owned)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: the work is a leaked box that the fiber owns.
        drop(unsafe { Box::from_raw(self.work.as_ptr()) });
    }
}
