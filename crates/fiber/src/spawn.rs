//! Spawning turns a function into a body, and its result into a packet for the joiner.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::contained::discard;
use crate::error::{JoinError, SpawnError};
use crate::io::IoModel;
use crate::join::JoinHandle;
use crate::runtime::Runtime;
use crate::scheduler::core::{Body, Core, Start};
use crate::scheduler::local::Local;
use crate::scheduler::shared::Shared;
use crate::scope::{Scope, ScopeState, ScopedJoinHandle};
use crate::waiter::{Mask, Unwound};

/// Holds a fiber's result. The packet and the result in it are dropped before the fiber's scope ends.
pub(crate) struct Packet<T> {
    result: Mutex<Option<Result<T, JoinError>>>,
    scope: Option<Arc<ScopeState>>,
}

impl<T> Packet<T> {
    pub(crate) fn take(&self) -> Result<T, JoinError> {
        self.result.lock().take().expect("a fiber that has ended has left a result")
    }
}

impl<T> Drop for Packet<T> {
    fn drop(&mut self) {
        if let (Some(scope), Some(Err(JoinError::Panicked(_)))) = (&self.scope, self.result.get_mut()) {
            scope.note_panic();
        }
    }
}

/// Spawns a fiber in the runtime of the calling fiber. Dropping the handle detaches the fiber.
///
/// Costs three allocations and two short locks; [`Builder::spawn`] names the fiber and returns errors.
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
    let shared = Local::with(|local, _| Arc::clone(&local.shared));
    shared.expect("called in a fiber; outside fibers, use the methods of `Runtime`")
}

/// The properties of a fiber, apart from its body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traits {
    pub(crate) name: Option<Arc<str>>,
    /// How it waits for descriptors, if not as the runtime's options say.
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

    /// Has the fiber wait for descriptors in this way, whatever [`Options::io`](crate::Options::io) says.
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
        self.spawn_in(&current_runtime(), body)
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
        // SAFETY: the scope's function returns only when every fiber that entered has left, which a fiber does after
        // its body and its result are gone; and it holds on to `'scope` until then.
        let spawned = unsafe { spawn_unchecked(scope.shared(), self.traits, body, Some(Arc::clone(state))) };
        match spawned {
            Ok((core, packet)) => {
                state.adopt(&core);
                Ok(ScopedJoinHandle::new(core, packet))
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
        // SAFETY: body and result borrow nothing that ends.
        let (core, packet) = unsafe { spawn_unchecked(shared, self.traits, body, None) }?;
        Ok(JoinHandle::new(core, packet))
    }
}

/// A fiber and the packet for its result.
type Spawned<T> = (Arc<Core>, Arc<Packet<T>>);

/// Spawns a fiber whose body and result may borrow.
///
/// # Safety
/// Everything that `F` and `T` borrow outlives the fiber's call of `leave` on `scope`, or the fiber's end if there is
/// no scope. On an error, the body has been dropped.
unsafe fn spawn_unchecked<F, T>(
    shared: &Arc<Shared>,
    traits: Traits,
    function: F,
    scope: Option<Arc<ScopeState>>,
) -> Result<Spawned<T>, SpawnError>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let packet = Arc::new(Packet { result: Mutex::new(None), scope: scope.clone() });
    let own = Arc::clone(&packet);
    let body = move |start: Start| {
        let result = match start {
            Start::Run => catch_unwind(AssertUnwindSafe(function)).map_err(outcome),
            Start::Cancelled => unrun(function, JoinError::Cancelled),
            Start::NoStack(error) => unrun(function, JoinError::NotStarted(error)),
        };
        // A cancellation does not interrupt destructors that run because the fiber ends.
        let mask = Mask::new();
        // SAFETY: this code runs in the fiber; without a stack, there is none, and it has no locals.
        Local::with(|_, fiber| unsafe { fiber.own() }.locals.end());
        *own.result.lock() = Some(result);
        // If the handle is gone, this drops the result, whose destructor may panic.
        discard(own);
        drop(mask);
        if let Some(scope) = scope {
            scope.leave();
        }
    };
    let body: Box<dyn FnOnce(Start) + Send + '_> = Box::new(body);
    // SAFETY: this only extends the lifetime of the borrows in the body, as the caller permits.
    let body: Body = unsafe { std::mem::transmute(body) };
    Ok((shared.spawn(traits, body)?, packet))
}

/// Interprets a panic that reaches the root of the running fiber.
fn outcome(payload: Box<dyn Any + Send>) -> JoinError {
    // If the user kept the payload of a cancellation and rethrew it elsewhere, it is an ordinary panic.
    let is_cancelled = || Local::with(|_, fiber| fiber.is_cancelled()) == Some(true);
    if payload.is::<Unwound>() && is_cancelled() { JoinError::Cancelled } else { JoinError::Panicked(payload) }
}

/// Drops a function without running it.
fn unrun<T>(function: impl FnOnce() -> T, error: JoinError) -> Result<T, JoinError> {
    let _mask = Mask::new();
    discard(function);
    Err(error)
}
