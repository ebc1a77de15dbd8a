//! The part of a worker that only its own thread uses. A fiber reaches its worker through this module.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::alert::Alert;
use super::blocks::{BlockCache, Blocks};
use super::core::{Core, Leave};
use super::core_ref::{Block, CoreRef};
use super::post::Post;
use super::shared::Shared;
use super::timers::Timers;
use crate::io::{Poller, Turn};
use crate::stack::StackCache;

#[cfg(not(loom))]
thread_local! {
    /// The worker of this thread. The initialiser is constant and there is no destructor, so a signal handler may read the
    /// variable.
    static LOCAL: Cell<*const Local> = const { Cell::new(ptr::null()) };
}

#[cfg(loom)]
loom::thread_local! {
    static LOCAL: Cell<*const Local> = Cell::new(ptr::null());
}

/// The number of fiber numbers that a worker reserves at once.
const NUMBERS_AT_ONCE: u64 = 64;

/// Reserves `count` numbers for fibers. No other fiber of the process gets them. The numbers of a process begin at 1.
pub(super) fn take_numbers(count: u64) -> Range<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let first = NEXT.fetch_add(count, Relaxed);
    first..first + count
}

/// The state of a worker that only its own thread uses.
pub(crate) struct Local {
    pub(crate) shared: Arc<Shared>,
    pub(super) post: Arc<Post>,
    /// The running fiber, or null.
    pub(super) current: Cell<*const Core>,
    pub(super) ready: RefCell<VecDeque<CoreRef>>,
    pub(crate) timers: Timers,
    /// The poller, which is created when a fiber of this worker first waits for a descriptor.
    pub(super) poller: RefCell<Option<Poller>>,
    /// The number of operations on descriptors since the fiber was resumed.
    pub(crate) operations: Cell<u32>,
    pub(super) stacks: RefCell<StackCache>,
    pub(super) blocks: RefCell<BlockCache>,
    pub(super) alert: Alert,
    pub(super) tick: Cell<u32>,
    /// The numbers for the next fibers that are spawned on this worker.
    numbers: Cell<Range<u64>>,
    /// Whether the worker serves only one fiber, and ends with it.
    pub(crate) is_sole: bool,
    pub(super) is_done: Cell<bool>,
    /// Whether the worker has seen that the runtime is ending.
    pub(super) sees_end: Cell<bool>,
}

impl Local {
    pub(super) fn new(shared: Arc<Shared>, post: Arc<Post>, is_sole: bool) -> Self {
        Local {
            shared,
            post,
            current: Cell::new(ptr::null()),
            ready: RefCell::default(),
            timers: Timers::default(),
            poller: RefCell::new(None),
            operations: Cell::new(0),
            stacks: RefCell::default(),
            blocks: RefCell::default(),
            sees_end: Cell::new(false),
            alert: Alert::new(),
            tick: Cell::new(0),
            numbers: Cell::default(),
            is_sole,
            is_done: Cell::new(false),
        }
    }

    /// Runs `work` as this thread's worker.
    pub(super) fn install(&self, work: impl FnOnce()) {
        LOCAL.with(|local| local.set(self));
        work();
        LOCAL.with(|local| local.set(ptr::null()));
    }

    #[inline]
    pub(super) fn on_this_thread<'a>() -> Option<&'a Local> {
        // SAFETY: the pointer is set while `install` borrows the worker on this thread. Callers in this module do not
        // keep the reference beyond their own call, which happens inside `install`.
        unsafe { LOCAL.with(Cell::get).as_ref() }
    }

    /// Calls `act` with the calling fiber and its worker. Returns `None` outside a fiber.
    ///
    /// `act` may suspend the fiber: both references stay valid, since the worker outlives its fibers.
    #[inline]
    pub(crate) fn with<R>(act: impl FnOnce(&Local, &CoreRef) -> R) -> Option<R> {
        let local = Self::on_this_thread()?;
        let current = local.current.get();
        if current.is_null() {
            return None;
        }
        // SAFETY: the pointer comes from a reference that exists while the fiber runs or waits. The copy made here is never
        // dropped.
        let fiber = ManuallyDrop::new(unsafe { CoreRef::from_raw(current) });
        Some(act(local, &fiber))
    }

    /// Puts a fiber into the ready queue if this thread is its worker; otherwise returns the fiber.
    #[inline]
    pub(super) fn offer(home: *const Post, fiber: CoreRef) -> Option<CoreRef> {
        match Self::on_this_thread() {
            Some(local) if Arc::as_ptr(&local.post) == home => {
                local.ready.borrow_mut().push_back(fiber);
                None
            }
            _ => Some(fiber),
        }
    }

    /// Returns the number of a new fiber.
    pub(super) fn number(&self) -> u64 {
        let mut numbers = self.numbers.take();
        let number = numbers.next().unwrap_or_else(|| {
            numbers = take_numbers(NUMBERS_AT_ONCE);
            numbers.next().expect("there are some now")
        });
        self.numbers.set(numbers);
        number
    }

    /// Returns whether this thread is the fiber's worker.
    pub(super) fn is_home_of(fiber: &Core) -> bool {
        Self::on_this_thread().is_some_and(|local| Arc::as_ptr(&local.post) == fiber.home())
    }

    /// Stores an empty block for reuse and returns `true`, if this thread is a worker of the block's runtime.
    pub(super) fn keep_block(blocks: NonNull<Blocks>, block: NonNull<Block>) -> bool {
        match Self::on_this_thread() {
            Some(local) if local.shared.fibers.is_of(blocks) => {
                local.blocks.borrow_mut().put(block, &local.shared.fibers);
                true
            }
            _ => false,
        }
    }

    /// Returns the fiber that runs on this thread, and the advice on how to enlarge its stack. Async-signal-safe; the pointer is
    /// valid until the handler returns.
    pub(crate) fn current_for_signal() -> Option<(*const Core, &'static str)> {
        let local = Self::on_this_thread()?;
        let current = local.current.get();
        (!current.is_null()).then_some((current, local.shared.options.stack_setting))
    }

    /// Returns this thread's post, and the fiber that runs, or null. Async-signal-safe; the pointers are valid until the handler
    /// returns.
    pub(crate) fn post_for_signal() -> Option<(*const Post, *const Core)> {
        let local = Self::on_this_thread()?;
        Some((Arc::as_ptr(&local.post), local.current.get()))
    }

    /// Returns whether this thread is a worker of the runtime.
    pub(crate) fn is_worker_of(shared: &Arc<Shared>) -> bool {
        Self::on_this_thread().is_some_and(|local| Arc::ptr_eq(&local.shared, shared))
    }

    /// Calls `act` with the worker's poller.
    ///
    /// # Errors
    /// Returns the kernel's error if there is no poller yet and none can be created.
    pub(crate) fn with_poller<R>(&self, act: impl FnOnce(&mut Poller) -> R) -> std::io::Result<R> {
        let mut poller = self.poller.borrow_mut();
        let poller = match &mut *poller {
            Some(poller) => poller,
            none => none.insert(Poller::new(&self.post.inbox.bell.alarm)?),
        };
        Ok(act(poller))
    }

    /// Returns the latest turn of the worker's poller, if there is a poller.
    pub(crate) fn poller_turn(&self) -> Option<Turn> {
        self.poller.borrow().as_ref().map(Poller::turn)
    }

    /// Suspends the running fiber. Returns when its worker resumes the fiber.
    #[inline]
    pub(crate) fn leave(fiber: &Core, how: Leave) {
        let here = 0_u8;
        // SAFETY: the caller is the fiber, so this is its worker's thread.
        let own = unsafe { fiber.own() };
        own.left_at.set(&raw const here);
        let yielder = own.yielder.get();
        // SAFETY: the yielder was set when the fiber started. It is on the fiber's stack, on which this code runs.
        unsafe { (*yielder).suspend(how) };
    }
}
