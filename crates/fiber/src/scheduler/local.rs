//! A worker as its own thread sees it, and access from a fiber to its worker.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

use super::alert::Alert;
use super::core::{Core, Leave};
use super::post::Post;
use super::shared::Shared;
use super::timers::Timers;
use crate::io::{Poller, Turn};
use crate::stack::StackCache;

thread_local! {
    /// The worker of this thread. The initialiser is constant and there is no destructor, so a signal handler may read
    /// it.
    static LOCAL: Cell<*const Local> = const { Cell::new(ptr::null()) };
}

/// The worker's state that no other thread touches.
pub(crate) struct Local {
    pub(crate) shared: Arc<Shared>,
    pub(super) post: Arc<Post>,
    /// The running fiber, or null.
    pub(super) current: Cell<*const Core>,
    pub(super) ready: RefCell<VecDeque<Arc<Core>>>,
    pub(crate) timers: Timers,
    /// Made when a fiber first waits for a descriptor.
    pub(super) poller: RefCell<Option<Poller>>,
    /// The operations on descriptors since the fiber was resumed.
    pub(crate) operations: Cell<u32>,
    pub(super) stacks: RefCell<StackCache>,
    pub(super) alert: Alert,
    pub(super) tick: Cell<u32>,
    /// The worker serves one fiber and leaves with it.
    pub(crate) is_sole: bool,
    pub(super) is_done: Cell<bool>,
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
            alert: Alert::new(),
            tick: Cell::new(0),
            is_sole,
            is_done: Cell::new(false),
        }
    }

    /// Runs `work` as this thread's worker.
    pub(super) fn install(&self, work: impl FnOnce()) {
        LOCAL.set(self);
        work();
        LOCAL.set(ptr::null());
    }

    fn on_this_thread<'a>() -> Option<&'a Local> {
        // SAFETY: the pointer is set while `install` borrows the worker on this thread. Callers in this module do not
        // keep the reference beyond their own call, which happens inside `install`.
        unsafe { LOCAL.get().as_ref() }
    }

    /// Calls `act` with the calling fiber and its worker. Returns `None` outside a fiber.
    ///
    /// `act` may suspend the fiber: both references stay valid, since the worker outlives its fibers.
    pub(crate) fn with<R>(act: impl FnOnce(&Local, &Arc<Core>) -> R) -> Option<R> {
        let local = Self::on_this_thread()?;
        let current = local.current.get();
        if current.is_null() {
            return None;
        }
        // SAFETY: the pointer is from an `Arc` that the worker holds while the fiber runs or waits; the copy made here
        // is never dropped.
        let fiber = ManuallyDrop::new(unsafe { Arc::from_raw(current) });
        Some(act(local, &fiber))
    }

    /// Puts a fiber into the ready queue if this thread is its worker; otherwise returns the fiber.
    pub(super) fn offer(home: &Arc<Post>, fiber: Arc<Core>) -> Option<Arc<Core>> {
        match Self::on_this_thread() {
            Some(local) if Arc::ptr_eq(&local.post, home) => {
                local.ready.borrow_mut().push_back(fiber);
                None
            }
            _ => Some(fiber),
        }
    }

    /// Returns the fiber that runs on this thread, and the setting that raises its stack. Async-signal-safe; the pointer
    /// is valid until the handler returns.
    pub(crate) fn current_for_signal() -> Option<(*const Core, &'static str)> {
        let local = Self::on_this_thread()?;
        let current = local.current.get();
        (!current.is_null()).then_some((current, local.shared.options.stack_setting))
    }

    /// Returns whether this thread is a worker of the runtime.
    pub(crate) fn is_worker_of(shared: &Arc<Shared>) -> bool {
        Self::on_this_thread().is_some_and(|local| Arc::ptr_eq(&local.shared, shared))
    }

    /// Returns the worker's index.
    pub(super) fn post_index(&self) -> usize {
        self.post.index
    }

    /// Calls `act` with the worker's poller.
    ///
    /// # Errors
    /// If there is none, and none to be had.
    pub(crate) fn with_poller<R>(&self, act: impl FnOnce(&mut Poller) -> R) -> std::io::Result<R> {
        let mut poller = self.poller.borrow_mut();
        let poller = match &mut *poller {
            Some(poller) => poller,
            none => none.insert(Poller::new(&self.post.inbox.bell.alarm)?),
        };
        Ok(act(poller))
    }

    /// The newest question of the worker's poller, if there is a poller.
    pub(crate) fn poller_turn(&self) -> Option<Turn> {
        self.poller.borrow().as_ref().map(Poller::turn)
    }

    /// Leaves the fiber that runs; returns when its worker resumes it.
    pub(crate) fn leave(fiber: &Core, how: Leave) {
        // SAFETY: the caller is the fiber, so this is its worker's thread.
        let yielder = unsafe { fiber.own() }.yielder.get();
        // SAFETY: the yielder was set when the fiber started and lies at the top of its stack, which this call runs on.
        unsafe { (*yielder).suspend(how) };
    }
}
