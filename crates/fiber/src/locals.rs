//! Fiber locals: each fiber has its own value, as each thread has its own value of a thread local.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::thread::LocalKey;

use crate::contained::discard;
use crate::scheduler::local::Local;

/// Declares a [`FiberLocal`]: a value for each fiber, created at its first use.
///
/// A fiber stays on its thread, so `thread_local!` is sound in fibers. But all fibers of a thread share that value, and
/// another fiber may change it during any wait. A fiber local belongs to one fiber. Outside fibers, each thread has its
/// own value.
///
/// ```
/// use std::cell::Cell;
/// use millstream_fiber::{Options, Runtime, Threads, fiber_local, yield_now};
///
/// fiber_local! {
///     static STEPS: Cell<u32> = Cell::new(0);
/// }
///
/// let runtime = Runtime::start(Options::new(Threads::One))?;
/// let counters = [(); 2].map(|()| runtime.spawn(|| {
///     for _ in 0..10 {
///         STEPS.with(|steps| steps.set(steps.get() + 1));
///         yield_now();
///     }
///     STEPS.with(Cell::get)
/// }));
/// assert!(counters.into_iter().all(|counter| counter.join().unwrap() == 10));
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
#[macro_export]
macro_rules! fiber_local {
    () => {};
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $init:expr; $($rest:tt)*) => {
        $crate::fiber_local!($(#[$attribute])* $visibility static $name: $type = $init);
        $crate::fiber_local!($($rest)*);
    };
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $init:expr) => {
        $(#[$attribute])*
        $visibility static $name: $crate::FiberLocal<$type> = {
            fn init() -> $type {
                $init
            }
            ::std::thread_local! {
                static OUTSIDE: $type = init();
            }
            $crate::FiberLocal::declared(init, &OUTSIDE)
        };
    };
}

/// A key under which each fiber stores its own value; [`fiber_local!`] declares one.
///
/// The value need not be `Send`: it is created, used and dropped on the fiber's thread. Values are dropped when the fiber's
/// body has ended, in reverse order of their creation, and their destructors may wait. If a destructor panics, the panic hook
/// reports the panic, which is then caught.
pub struct FiberLocal<T: 'static> {
    init: fn() -> T,
    outside: &'static LocalKey<T>,
}

/// A destructor used a fiber local after the fiber had dropped it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the fiber has ended and dropped this local value")]
pub struct AccessError;

impl<T: 'static> FiberLocal<T> {
    /// Used by [`fiber_local!`].
    #[doc(hidden)]
    #[must_use]
    pub const fn declared(init: fn() -> T, outside: &'static LocalKey<T>) -> Self {
        FiberLocal { init, outside }
    }

    /// Calls `read` with the fiber's value, which the first call creates. `read` may wait.
    ///
    /// # Panics
    /// Panics in a destructor after the fiber has dropped the value.
    pub fn with<R>(&'static self, read: impl FnOnce(&T) -> R) -> R {
        self.try_with(read).expect("the fiber has not dropped this local")
    }

    /// Calls `read` with the fiber's value, which the first call creates. `read` may wait. The cost is a search of the
    /// fiber's few values.
    ///
    /// # Errors
    /// Returns an error in a destructor after the fiber (or outside fibers, the thread) has dropped the value.
    pub fn try_with<R>(&'static self, read: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let key = std::ptr::from_ref(self).addr();
        let value = Local::with(|_, fiber| {
            // SAFETY: this code runs in the fiber.
            let locals = unsafe { &fiber.own().locals };
            locals.get_or_make(key, || Rc::new((self.init)()))
        });
        match value {
            Some(value) => {
                let value = value?.downcast::<T>();
                Ok(read(&value.expect("the address of a static belongs to one key, of one type")))
            }
            None => self.outside.try_with(read).map_err(|_| AccessError),
        }
    }
}

impl<T: 'static> fmt::Debug for FiberLocal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FiberLocal").finish_non_exhaustive()
    }
}

/// The values of one fiber, with the addresses of their keys.
#[derive(Default)]
pub(crate) struct Locals {
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    values: Vec<(usize, Rc<dyn Any>)>,
    is_ending: bool,
}

impl Locals {
    /// Returns the value of `key`. The state is not borrowed while `make` runs, so `make` may use other keys and wait.
    fn get_or_make(&self, key: usize, make: impl FnOnce() -> Rc<dyn Any>) -> Result<Rc<dyn Any>, AccessError> {
        let find = |state: &State| state.values.iter().find(|(k, _)| *k == key).map(|(_, value)| Rc::clone(value));
        {
            let state = self.state.borrow();
            if let Some(value) = find(&state) {
                return Ok(value);
            }
            if state.is_ending {
                return Err(AccessError);
            }
        }
        let made = make();
        let mut state = self.state.borrow_mut();
        // If `make` itself used this key, a value exists already. The first value stays.
        if let Some(value) = find(&state) {
            drop(state);
            return Ok(value);
        }
        state.values.push((key, Rc::clone(&made)));
        Ok(made)
    }

    /// Drops the values in reverse order of their creation. Called by the fiber at the end of its body.
    pub(crate) fn end(&self) {
        self.state.borrow_mut().is_ending = true;
        loop {
            let Some((_, value)) = self.state.borrow_mut().values.pop() else { return };
            discard(value);
        }
    }
}
