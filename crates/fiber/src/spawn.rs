//! Spawning: turns a function and its future result into the body of a fiber.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::contained::discard;
use crate::error::{JoinError, SpawnError};
use crate::io::IoModel;
use crate::join::JoinHandle;
use crate::outcome::Outcome;
use crate::runtime::Runtime;
use crate::scheduler::core::{Start, Work};
use crate::scheduler::local::Local;
use crate::scheduler::shared::Shared;
use crate::scope::{Scope, ScopeState, ScopedJoinHandle};
use crate::waiter::{Mask, Unwound};

/// Spawns a fiber in the runtime of the calling fiber. Dropping the handle detaches the fiber.
///
/// Costs one allocation, and locks a mutex only if the worker already has an unstarted fiber. [`Builder::spawn`] names the fiber
/// and returns errors.
///
/// # Panics
/// Panics outside a fiber, where [`Runtime::spawn`] works instead, and if the fiber [could not be spawned](SpawnError).
///
/// ```
/// use millstream_fiber::{Options, Runtime, spawn};
///
/// let runtime = Runtime::start(Options::default())?;
/// let sum = runtime.spawn(|| {
///     let parts = [spawn(|| (1..=50).sum::<u32>()), spawn(|| (51..=100).sum())];
///     parts.into_iter().map(|part| part.join().unwrap()).sum::<u32>()
/// });
/// assert_eq!(sum.join().unwrap(), 5050);
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
///
/// A body may start on another thread, so it must be `Send`; values that it creates need not be:
///
/// ```compile_fail,E0277
/// let shared = std::rc::Rc::new(5);
/// millstream_fiber::spawn(move || println!("{shared}"));
/// ```
#[track_caller]
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().spawn(body).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the runtime of the calling fiber.
#[track_caller]
pub(crate) fn current_runtime() -> Arc<Shared> {
    Local::with(|local, _| Arc::clone(&local.shared)).expect(OUTSIDE)
}

const OUTSIDE: &str = "called in a fiber; outside fibers, use the methods of `Runtime`";

/// The properties of a fiber, apart from its body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traits {
    pub(crate) name: Option<Arc<str>>,
    /// How the fiber waits for descriptors; `None` means the model of the runtime.
    pub(crate) io: Option<IoModel>,
}

/// A fiber to be spawned: its name, and how it waits for descriptors.
///
/// ```
/// use millstream_fiber::{Builder, Options, Runtime, current};
///
/// let runtime = Runtime::start(Options::default())?;
/// let fiber = Builder::new().name("get").spawn_on(&runtime, || current().name().map(str::to_owned)).unwrap();
/// assert_eq!(fiber.join().unwrap().as_deref(), Some("get"));
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Builder {
    traits: Traits,
}

impl Builder {
    /// Returns a builder for a fiber without a name; reports identify such a fiber by its number.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the fiber. The name appears in dumps and in reports of overflows and stalls; it need not be unique.
    pub fn name(self, name: impl Into<Arc<str>>) -> Self {
        Builder { traits: Traits { name: Some(name.into()), ..self.traits } }
    }

    /// Sets how the fiber waits for descriptors. This overrides [`Options::io`](crate::Options::io).
    pub fn io(self, io: IoModel) -> Self {
        Builder { traits: Traits { io: Some(io), ..self.traits } }
    }

    /// Spawns the fiber in the runtime of the calling fiber.
    ///
    /// # Errors
    /// Returns an error if the runtime has reached its limit of fibers, or cannot create a thread for this one.
    ///
    /// # Panics
    /// Panics outside a fiber.
    #[track_caller]
    pub fn spawn<T: Send + 'static>(
        self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>, SpawnError> {
        let inside = Local::with(|local, _| self.spawn_in(&local.shared, body));
        inside.expect(OUTSIDE)
    }

    /// Spawns the fiber in a runtime.
    ///
    /// # Errors
    /// Returns an error if the runtime has reached its limit of fibers, or cannot create a thread for this one.
    pub fn spawn_on<T: Send + 'static>(
        self,
        runtime: &Runtime,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>, SpawnError> {
        self.spawn_in(runtime.shared(), body)
    }

    /// Spawns the fiber in a scope.
    ///
    /// # Errors
    /// Returns an error if the runtime has reached its limit of fibers, or cannot create a thread for this one.
    pub fn spawn_scoped<'scope, T: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> Result<ScopedJoinHandle<'scope, T>, SpawnError> {
        let state = scope.state();
        state.enter();
        // SAFETY: the function `scope` returns only after every fiber of the scope has called `leave`, and by then its body and
        // its result are gone. `'scope` lasts until then.
        let spawned = unsafe { spawn_unchecked(scope.shared(), self.traits, body, Some(Arc::clone(state))) };
        match spawned {
            Ok(handle) => {
                handle.fiber().core().into_iter().for_each(|fiber| state.adopt(fiber));
                Ok(ScopedJoinHandle::new(handle))
            }
            Err(error) => {
                state.leave();
                Err(error)
            }
        }
    }

    fn spawn_in<T: Send + 'static>(
        self,
        shared: &Arc<Shared>,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>, SpawnError> {
        // SAFETY: A `'static` body and result borrow nothing that could be dropped.
        unsafe { spawn_unchecked(shared, self.traits, body, None) }
    }
}

/// A fiber's function and its outcome, in one allocation.
struct Packet<F, T> {
    function: UnsafeCell<Option<F>>,
    outcome: Outcome<T>,
}

impl<F: FnOnce() -> T + Send, T: Send> Packet<F, T> {
    /// # Safety
    /// No other code runs or drops the function.
    unsafe fn take(&self) -> F {
        // SAFETY: no other code runs or drops the function.
        unsafe { (*self.function.get()).take() }.expect("a fiber runs its function once")
    }
}

// SAFETY: function and result are `Send`. The fiber and the handle never use the function or the result at the same time.
unsafe impl<F: Send, T: Send> Send for Packet<F, T> {}

impl<F: FnOnce() -> T + Send, T: Send> Work for Packet<F, T> {
    unsafe fn run(&self, start: Start) {
        // SAFETY: the caller calls this once.
        let function = unsafe { self.take() };
        let left = match start {
            Start::Run => catch_unwind(AssertUnwindSafe(function)).map_err(outcome),
            Start::Cancelled => unrun(function, JoinError::Cancelled),
            Start::NoStack(error) => unrun(function, JoinError::NotStarted(error)),
        };
        // SAFETY: this code runs in the fiber, which has not called `leave` yet.
        unsafe { self.outcome.put(left) };
        // A cancellation does not interrupt destructors that run because the fiber ends.
        let mask = Mask::new();
        // SAFETY: this code runs in the fiber. If the fiber got no stack, no fiber runs here, and the call does nothing.
        Local::with(|_, fiber| unsafe { fiber.own() }.locals.end());
        // SAFETY: this code runs in the fiber, once.
        unsafe { self.outcome.leave() };
        drop(mask);
        // From here on, the function and the result are gone or belong to the handle, so the values that they borrow may be
        // dropped.
        if let Some(scope) = self.outcome.scope() {
            scope.leave();
        }
    }

    unsafe fn discard(&self) {
        // SAFETY: the caller calls this once, and never runs the function.
        drop(unsafe { self.take() });
    }
}

/// Spawns a fiber whose body and result may borrow values.
///
/// # Safety
/// Everything that `F` and `T` borrow outlives the fiber's call of `leave` on `scope`, or the fiber's end if there is
/// no scope. On an error, the body has been dropped.
unsafe fn spawn_unchecked<F, T>(
    shared: &Arc<Shared>,
    traits: Traits,
    function: F,
    scope: Option<Arc<ScopeState>>,
) -> Result<JoinHandle<T>, SpawnError>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let packet = Box::new(Packet { function: UnsafeCell::new(Some(function)), outcome: Outcome::new(scope) });
    let packet = NonNull::from(Box::leak(packet));
    // SAFETY: the packet is valid and never moves.
    let outcome = unsafe { NonNull::new_unchecked(&raw mut (*packet.as_ptr()).outcome) };
    let work: NonNull<dyn Work + '_> = packet;
    // SAFETY: this only extends the lifetime of the borrows in the packet, as the caller permits. When the packet is freed, these
    // borrows may have ended, but the function and the result are no longer in the packet.
    let work = unsafe { std::mem::transmute::<NonNull<dyn Work + '_>, NonNull<dyn Work + 'static>>(work) };
    let core = shared.spawn(traits, work)?;
    // SAFETY: the fiber's control block owns the packet, and this is the first handle.
    Ok(unsafe { JoinHandle::new(core, outcome) })
}

/// Returns the error for a panic that has reached the root of the running fiber.
fn outcome(payload: Box<dyn Any + Send>) -> JoinError {
    // If the fiber is not cancelled, the user's code has caught the payload of another fiber's cancellation and rethrown it: an
    // ordinary panic.
    let is_cancelled = || Local::with(|_, fiber| fiber.is_cancelled()) == Some(true);
    if payload.is::<Unwound>() && is_cancelled() { JoinError::Cancelled } else { JoinError::Panicked(payload) }
}

/// Drops a function without running it.
fn unrun<T>(function: impl FnOnce() -> T, error: JoinError) -> Result<T, JoinError> {
    let _mask = Mask::new();
    discard(function);
    Err(error)
}
