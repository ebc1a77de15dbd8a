//! Scopes, whose fibers may borrow values from outside. A scope ends after all of its fibers.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use parking_lot::Mutex;

use crate::contained::AbortOnUnwind;
use crate::error::JoinError;
use crate::handle::Fiber;
use crate::join::JoinHandle;
use crate::scheduler::core_ref::CoreRef;
use crate::scheduler::shared::Shared;
use crate::scheduler::state::Reason;
use crate::spawn::{Builder, current_runtime};
use crate::waiter::{Mask, Waiter};

/// A scope whose fibers may borrow values from outside it; [`scope`] creates one.
pub struct Scope<'scope, 'env: 'scope> {
    shared: Arc<Shared>,
    state: Arc<ScopeState>,
    /// Invariant in both lifetimes: a scope must not coerce to a scope of another lifetime.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Calls `body` with a scope, waits for all fibers spawned in it, and returns the result of `body`.
///
/// The wait suspends the calling fiber. The function also waits if `body` panics. Cancellation does not interrupt this wait: if
/// the calling fiber is cancelled meanwhile, the fibers of the scope are cancelled, the scope waits for them, and the calling
/// fiber unwinds at its next wait. If the scope is in a destructor that runs because the calling fiber ends or unwinds, the
/// fibers of the scope are not cancelled.
///
/// # Panics
/// Panics outside a fiber; use [`Runtime::scope`](crate::Runtime::scope) there. Resumes the panic of `body`, if it
/// panics. Otherwise panics if a fiber of the scope panicked and was not joined.
///
/// ```
/// use millstream_fiber::{Options, Runtime, scope};
///
/// let runtime = Runtime::start(Options::default())?;
/// let total = runtime.spawn(|| {
///     let numbers: Vec<u32> = (1..=100).collect();
///     scope(|scope| {
///         let parts: Vec<_> = numbers.chunks(25).map(|part| scope.spawn(|| part.iter().sum::<u32>())).collect();
///         parts.into_iter().map(|part| part.join().unwrap()).sum::<u32>()
///     })
/// });
/// assert_eq!(total.join().unwrap(), 5050);
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
///
/// A value inside the scope is dropped before its fibers end, so they cannot borrow it:
///
/// ```compile_fail,E0373
/// millstream_fiber::scope(|scope| {
///     let inside = 5;
///     scope.spawn(|| println!("{inside}"));
/// });
/// ```
#[track_caller]
pub fn scope<'env, T>(body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
    run(current_runtime(), body)
}

#[track_caller]
pub(crate) fn run<'env, T>(shared: Arc<Shared>, body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
    let state = Arc::new(ScopeState {
        fibers: AtomicUsize::new(0),
        owner: Waiter::current(),
        is_cancelled: AtomicBool::new(false),
        has_panicked: AtomicBool::new(false),
        members: Mutex::default(),
    });
    let scope = Scope { shared, state: Arc::clone(&state), scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    // Unwinding out of this function would free data that the fibers still borrow.
    let guard = AbortOnUnwind;
    state.wait_for_all();
    std::mem::forget(guard);
    match result {
        Err(payload) => resume_unwind(payload),
        Ok(_) if state.has_panicked.load(Relaxed) => panic!("a fiber of the scope panicked"),
        Ok(value) => value,
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a fiber that may borrow values that outlive the scope.
    ///
    /// # Panics
    /// Panics if the fiber [could not be spawned](crate::SpawnError); [`Builder::spawn_scoped`] returns the error
    /// instead.
    #[track_caller]
    pub fn spawn<T: Send + 'scope>(
        &'scope self,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, T> {
        Builder::new().spawn_scoped(self, body).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn state(&self) -> &Arc<ScopeState> {
        &self.state
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("fibers", &self.state.fibers).finish_non_exhaustive()
    }
}

/// An owned permission to join a fiber in a scope and take its result. Dropping the handle detaches the fiber; the scope still
/// waits for it.
pub struct ScopedJoinHandle<'scope, T> {
    inner: JoinHandle<T>,
    scope: PhantomData<&'scope ()>,
}

impl<T> ScopedJoinHandle<'_, T> {
    pub(crate) fn new(inner: JoinHandle<T>) -> Self {
        ScopedJoinHandle { inner, scope: PhantomData }
    }

    /// Waits for the fiber to end and returns its result, like [`JoinHandle::join`].
    ///
    /// # Errors
    /// Returns the same errors as [`JoinHandle::join`].
    #[track_caller]
    pub fn join(self) -> Result<T, JoinError> {
        self.inner.join()
    }

    /// Returns whether the fiber has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.inner.is_finished()
    }

    /// Cancels the fiber and returns immediately. See [the crate's docs](crate#cancellation).
    pub fn cancel(&self) {
        self.inner.cancel();
    }

    /// Returns the fiber.
    #[must_use]
    pub fn fiber(&self) -> &Fiber {
        self.inner.fiber()
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").field("fiber", self.fiber()).finish_non_exhaustive()
    }
}

/// The state that a scope shares with its fibers. It may outlive the scope.
pub(crate) struct ScopeState {
    /// The number of fibers that have entered the scope and not left it.
    fibers: AtomicUsize,
    owner: Waiter,
    is_cancelled: AtomicBool,
    has_panicked: AtomicBool,
    members: Mutex<Members>,
}

/// The fibers to cancel together with the owner.
#[derive(Default)]
struct Members {
    fibers: Vec<CoreRef>,
    /// The length of the list at which ended fibers are removed from it.
    sweep_at: usize,
}

impl ScopeState {
    pub(crate) fn enter(&self) {
        // Relaxed: the caller is in the scope, so the owner cannot have finished waiting for the scope's end.
        self.fibers.fetch_add(1, Relaxed);
    }

    /// Removes a fiber from the count, after it has ended and its body and its result are gone.
    pub(crate) fn leave(&self) {
        // Release pairs with the owner's acquire: the owner sees everything the fiber did.
        if self.fibers.fetch_sub(1, AcqRel) == 1 {
            self.owner.wake();
        }
    }

    pub(crate) fn note_panic(&self) {
        self.has_panicked.store(true, Relaxed);
    }

    /// Adds a fiber, which is cancelled if the owner is cancelled.
    pub(crate) fn adopt(&self, fiber: &CoreRef) {
        let mut members = self.members.lock();
        if members.fibers.len() >= members.sweep_at.max(16) {
            members.fibers.retain(|fiber| !fiber.joiner.has_ended());
            members.sweep_at = members.fibers.len() * 2;
        }
        members.fibers.push(CoreRef::clone(fiber));
        // `cancel_all` sets the flag before it locks the list, so it either finds this fiber in the list or has set the flag by
        // now.
        if self.is_cancelled.load(Relaxed) {
            fiber.cancel();
        }
    }

    fn cancel_all(&self) {
        self.is_cancelled.store(true, Relaxed);
        self.members.lock().fibers.iter().for_each(|fiber| fiber.cancel());
    }

    #[track_caller]
    fn wait_for_all(&self) {
        // A cancellation does not reach the scopes of a destructor that runs because the fiber ends or unwinds.
        // `std::thread::panicking` may be `true` because another fiber of the worker unwinds, so whether this fiber unwinds may
        // become known only later. The function is therefore called after each wait.
        let is_ending = Mask::is_set();
        let _mask = Mask::new();
        let mut has_cancelled = is_ending;
        while self.fibers.load(Acquire) > 0 {
            let is_owner_cancelled = matches!(&self.owner, Waiter::Fiber(owner) if owner.is_cancelled());
            if is_owner_cancelled && !has_cancelled && !std::thread::panicking() {
                has_cancelled = true;
                self.cancel_all();
            }
            self.owner.block(Reason::Scope, None);
        }
    }
}
