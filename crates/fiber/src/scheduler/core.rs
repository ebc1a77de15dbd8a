//! A fiber's control block: what other threads may touch, and what only its worker may.

use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, OnceLock};

use corosensei::{Coroutine, Yielder};
use parking_lot::Mutex;

use super::inbox::Linked;
use super::joiners::Joiners;
use super::local::Local;
use super::post::Post;
use super::state::StateRecord;
use super::wait_state::WaitState;
use crate::error::StackError;
use crate::io::IoModel;
use crate::locals::Locals;
use crate::primitive::AtomicPtr;
use crate::stack::Stack;

/// How a body begins.
pub(crate) enum Start {
    /// It runs.
    Run,
    /// It is only dropped, as it was cancelled before it started.
    Cancelled,
    /// It is only dropped, as there is no stack for it.
    NoStack(StackError),
}

/// A fiber's body: runs or drops the user's function, and stores the result.
pub(crate) type Body = Box<dyn FnOnce(Start) + Send>;

/// Why a fiber leaves its worker.
pub(crate) enum Leave {
    /// To let others run; it is ready at once.
    Yield,
    /// Until it is woken.
    Wait,
}

/// The coroutine that carries a fiber.
pub(crate) type Carrier = Coroutine<(), Leave, (), Stack>;

/// A fiber.
pub(crate) struct Core {
    /// Unique in the process, from 1 on.
    pub(crate) id: u64,
    pub(crate) name: Option<Arc<str>>,
    /// How it waits for descriptors.
    pub(crate) io: IoModel,
    pub(crate) wait: WaitState,
    /// Set by `unpark`, consumed by `park`.
    pub(crate) permit: AtomicBool,
    cancelled: AtomicBool,
    link: AtomicPtr<Core>,
    /// The worker, from the start on.
    home: OnceLock<Arc<Post>>,
    pub(crate) state: StateRecord,
    pub(crate) joiners: Joiners,
    /// The fiber that this one waits to join.
    pub(crate) joining: Mutex<Option<Arc<Core>>>,
    /// Until the start.
    body: Mutex<Option<Body>>,
    own: Own,
}

/// The part that only the fiber itself and its worker use, both on the worker's thread.
pub(crate) struct Own {
    /// From the start to the end. The worker holds it mutably while the fiber runs, so the fiber keeps away from it.
    pub(super) carrier: UnsafeCell<Option<Carrier>>,
    /// The way out of the fiber, from the start on.
    pub(super) yielder: Cell<*const Yielder<(), Leave>>,
    /// The number of reasons not to be unwound by a cancellation.
    pub(crate) masks: Cell<u32>,
    pub(crate) locals: Locals,
}

// SAFETY: all fields but `own` are `Send` and `Sync`. `own` is reached through `Core::own` alone, whose caller runs on
// the fiber's worker, so no two threads use it; before the start and after the end it holds nothing, and may be dropped
// by any thread.
unsafe impl Send for Core {}
// SAFETY: as for `Send`: the shared part is `Sync`, and the rest belongs to one thread.
unsafe impl Sync for Core {}

impl Core {
    pub(crate) fn new(name: Option<Arc<str>>, io: IoModel, body: Body) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Core {
            id: IDS.fetch_add(1, Relaxed),
            name,
            io,
            wait: WaitState::new(),
            permit: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            link: AtomicPtr::new(ptr::null_mut()),
            home: OnceLock::new(),
            state: StateRecord::default(),
            joiners: Joiners::default(),
            joining: Mutex::new(None),
            body: Mutex::new(Some(body)),
            own: Own {
                carrier: UnsafeCell::new(None),
                yielder: Cell::new(ptr::null()),
                masks: Cell::new(0),
                locals: Locals::default(),
            },
        }
    }

    /// The part of the fiber's worker.
    ///
    /// # Safety
    /// The caller runs on the thread of the worker that started the fiber, or is about to start it.
    pub(crate) unsafe fn own(&self) -> &Own {
        &self.own
    }

    pub(super) fn take_body(&self) -> Option<Body> {
        self.body.lock().take()
    }

    /// Binds the fiber to the worker that starts it.
    pub(super) fn settle(&self, post: &Arc<Post>) {
        let settled = self.home.set(Arc::clone(post));
        assert!(settled.is_ok(), "a fiber starts once");
    }

    pub(crate) fn home(&self) -> Option<&Arc<Post>> {
        self.home.get()
    }

    /// Ends the fiber's wait, or its next one if it is awake.
    pub(crate) fn end_wait(self: &Arc<Self>) {
        if !self.wait.wake() {
            return;
        }
        // SAFETY: the fiber waits, and a waiting fiber owns a reference to itself; finding it asleep made that
        // reference this call's.
        let fiber = unsafe { Arc::from_raw(Arc::as_ptr(self)) };
        let home = self.home().expect("a fiber that waits has started");
        if let Some(fiber) = Local::offer(home, fiber) {
            home.inbox.send(fiber);
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        // Acquire pairs with the release in `cancel`.
        self.cancelled.load(Acquire)
    }

    pub(crate) fn cancel(self: &Arc<Self>) {
        // Release: the fiber sees what the canceller wrote before. The wake-up comes afterwards, so a fiber that
        // checked the flag too early has its wait ended.
        self.cancelled.store(true, Release);
        self.end_wait();
    }

    /// The name, or the number if there is none.
    pub(crate) fn label(&self) -> String {
        self.name.as_deref().map_or_else(|| format!("#{}", self.id), str::to_owned)
    }
}

impl Linked for Core {
    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}
