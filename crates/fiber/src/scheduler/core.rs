//! A fiber's control block: a part that any thread may touch, and a part for its worker alone.

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
    /// It is called once, and not after [`discard`](Self::discard).
    unsafe fn run(&self, start: Start);

    /// Drops the user's function, which never runs.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn discard(&self);
}

/// The reason for which a fiber leaves its worker.
pub(crate) enum Leave {
    /// The fiber lets others run, and is ready at once.
    Yield,
    /// The fiber waits until it is woken.
    Wait,
}

/// The coroutine that carries a fiber.
pub(crate) type Carrier = Coroutine<(), Leave, (), Stack>;

/// A fiber.
///
/// The order of the fields minimises the cache lines that a turn touches: if there are many fibers, the next turn finds none of
/// the lines in the caches. A yield touches two: the line of the reference count and the carrier, and the line of the flags.
#[repr(C)]
pub(crate) struct Core {
    own: Own,
    /// The number, unique in the process and at least 1.
    pub(crate) id: u64,
    pub(crate) wait: WaitState,
    cancelled: AtomicBool,
    /// Whether a dump asks for the fiber's backtrace.
    is_asked_for_trace: AtomicBool,
    /// Set by `unpark`, consumed by `park`.
    pub(crate) permit: AtomicBool,
    /// How the fiber waits for descriptors.
    pub(crate) io: IoModel,
    pub(super) link: AtomicPtr<Core>,
    /// The worker; set when the fiber starts. It lives as long as the fiber's [block](super::blocks).
    home: stdatomic::AtomicPtr<Post>,
    pub(crate) state: StateRecord,
    pub(crate) joiner: Joiner,
    /// The function and its result, which live as long as the fiber.
    work: NonNull<dyn Work>,
    /// One more than the number of the work unit that the fiber serves, or 0. Only reports read it, so relaxed is enough.
    unit: AtomicU64,
    pub(crate) name: Option<Arc<str>>,
    /// The worker, if it serves this fiber alone.
    sole: Option<Arc<Post>>,
}

/// The part that only the fiber itself and its worker use, both on the worker's thread.
#[repr(C)]
pub(crate) struct Own {
    /// Set from the start of the fiber to its end. The worker borrows it mutably while the fiber runs, so the fiber
    /// must not touch it.
    pub(super) carrier: UnsafeCell<Option<Carrier>>,
    /// Suspends the fiber when the fiber calls it; set when the fiber starts.
    pub(super) yielder: Cell<*const Yielder<(), Leave>>,
    /// The place on its stack where it was when it last left its worker.
    pub(super) left_at: Cell<*const u8>,
    /// The number of masks that keep a cancellation from unwinding the fiber.
    pub(crate) masks: Cell<u32>,
    /// Whether the last wait ended only because of a dump. The next one may then continue it.
    pub(crate) was_traced: Cell<bool>,
    pub(crate) locals: Locals,
}

// SAFETY: all fields but `own` are `Send` and `Sync`. `own` is reached through `Core::own` alone, whose caller runs on
// the fiber's worker, so no two threads use it; before the start and after the end it is empty, so any thread may drop
// it.
unsafe impl Send for Core {}
// SAFETY: as for `Send`: the shared part is `Sync`, and the rest belongs to one thread.
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
        // Relaxed: only a thread that finds the fiber asleep reads it, and the fiber publishes it as it falls asleep.
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

    /// Ends the fiber's wait, or its next wait if it is awake.
    #[inline]
    pub(crate) fn end_wait(&self) {
        if !self.wait.wake() {
            return;
        }
        // SAFETY: the fiber waits, and a waiting fiber owns a reference to itself. The call that finds it asleep takes
        // over that reference.
        let fiber = unsafe { CoreRef::from_raw(self) };
        let home = self.home();
        if let Some(fiber) = Local::offer(home, fiber) {
            // SAFETY: a fiber that waits has started, and its worker lives as long as the fiber's block, to which the
            // caller has a reference.
            unsafe { &*home }.inbox.send(fiber);
        }
    }

    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        // Acquire pairs with the release in `cancel`.
        self.cancelled.load(Acquire)
    }

    pub(crate) fn cancel(&self) {
        // Release: the fiber sees everything the canceller wrote before. The wake-up follows, so it ends the wait of a
        // fiber that checked the flag too early.
        self.cancelled.store(true, Release);
        self.end_wait();
    }

    /// Asks the fiber for its backtrace, which it takes at the end of its wait.
    pub(crate) fn ask_for_trace(&self) {
        // Relaxed: the wake-up publishes it to the fiber.
        self.is_asked_for_trace.store(true, Relaxed);
        self.end_wait();
    }

    /// Returns whether a dump asks for the fiber's backtrace, and clears that mark. Relaxed, because the backtrace itself is
    /// passed under a lock.
    pub(crate) fn take_ask_for_trace(&self) -> bool {
        self.is_asked_for_trace.load(Relaxed) && self.is_asked_for_trace.swap(false, Relaxed)
    }

    /// Notes the work unit that the fiber serves.
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
        // SAFETY: the work is a leaked box, which nothing uses after the fiber.
        drop(unsafe { Box::from_raw(self.work.as_ptr()) });
    }
}
