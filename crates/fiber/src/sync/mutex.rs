//! A mutex whose waiters are fibers or threads.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use super::wait_list::{Place, WaitList};
use crate::scheduler::state::Reason;
use crate::waiter::Waiter;

const FREE: u32 = 0;
/// The mutex is held, and no waiter has tried to lock it since it was locked.
const HELD: u32 = 1;
/// The mutex is held, and there may be waiters in the queue.
const CONTENDED: u32 = 2;

/// A mutex. Waiting for its lock suspends a fiber and blocks a thread.
///
/// The holder may wait for anything while it holds the mutex. Locking a free mutex takes one atomic exchange. A woken waiter
/// competes with newcomers. If a newcomer locks the mutex first, the waiter returns to the front of the queue. There is no
/// poisoning: if a holder panics, the mutex is unlocked, and the value stays as it is. A fiber that locks the mutex a second
/// time waits until it is cancelled.
///
/// ```
/// use millstream_fiber::{Options, Runtime, Threads, yield_now};
/// use millstream_fiber::sync::Mutex;
///
/// let runtime = Runtime::start(Options::new(Threads::Workers(2)))?;
/// let sum = Mutex::new(0);
/// runtime.scope(|scope| {
///     for n in 1..=10 {
///         let sum = &sum;
///         scope.spawn(move || {
///             let mut sum = sum.lock();
///             let before = *sum;
///             yield_now(); // others find the mutex held
///             *sum = before + n;
///         });
///     }
/// });
/// assert_eq!(sum.into_inner(), 55);
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
pub struct Mutex<T: ?Sized> {
    state: AtomicU32,
    waiters: WaitList,
    value: UnsafeCell<T>,
}

// SAFETY: one holder at a time has access to the value. The holder may be on any thread, so the value must be `Send`.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as for `Send`; threads that share the mutex get a `&mut` to the value one after the other.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

/// Exclusive access to a mutex's value. A guard stays in its fiber or on its thread.
#[must_use = "dropping the guard unlocks the mutex"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// Not `Send`, like the guards of the standard library.
    stays: PhantomData<*mut ()>,
}

// SAFETY: a shared guard provides only `&T`.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// Returns a free mutex.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Mutex { state: AtomicU32::new(FREE), waiters: WaitList::new(), value: UnsafeCell::new(value) }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the mutex is free, and locks it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        // This is a `match` rather than a closure, because a closure would change the caller's location that dumps show.
        match self.try_lock() {
            Some(guard) => guard,
            None => self.lock_slowly(),
        }
    }

    /// Locks the mutex if it is free. Wait-free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        // Acquire pairs with the release in the guard's drop.
        self.state.compare_exchange(FREE, HELD, Acquire, Relaxed).ok().map(|_| self.guard())
    }

    /// Returns the value; the exclusive borrow proves that there is no holder.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    fn guard(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, stays: PhantomData }
    }

    /// Waits in line. The state becomes `CONTENDED` under the line's mutex, before the waiter enters the line. A holder that
    /// finds this state when it unlocks must lock the line's mutex to wake a waiter, so it finds this waiter in the line.
    #[cold]
    #[track_caller]
    fn lock_slowly(&self) -> MutexGuard<'_, T> {
        let waiter = Waiter::current();
        let mut place = Place::new(&self.waiters);
        // Acquire pairs with the release in the guard's drop.
        while !place.enter_unless(&waiter, || self.state.swap(CONTENDED, Acquire) == FREE) {
            waiter.block(Reason::Mutex, None);
        }
        self.guard()
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // Release pairs with the acquire of the next holder.
        if self.mutex.state.swap(FREE, Release) == CONTENDED {
            self.mutex.waiters.wake_one();
        }
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one, so no other reference to the value is mutable.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one and mutably borrowed, so there is no other reference to the value.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Mutex");
        match self.try_lock() {
            Some(guard) => text.field("value", &&*guard).finish(),
            None => text.finish_non_exhaustive(),
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
