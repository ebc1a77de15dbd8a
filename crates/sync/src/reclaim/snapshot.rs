//! A value that is read all the time and replaced occasionally.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use super::epoch::{self, Guard};
use crate::primitive::{AtomicPtr, Ordering};

/// A cell whose readers see one whole value, the old or the new one, and never wait.
///
/// For settings, routing tables and the like. A reader pays for two stores; a writer allocates the new value, and the
/// old one is dropped once no reader uses it, possibly on another thread.
///
/// ```
/// use millstream_sync::reclaim::Snapshot;
///
/// struct Caps { units: usize, bytes: usize }
///
/// let caps = Snapshot::new(Caps { units: 1000, bytes: 1 << 20 });
/// assert!(caps.read().bytes >= caps.read().units);
/// caps.update(|old| Caps { units: old.units * 2, ..*old });
/// assert_eq!(caps.read().units, 2000);
/// ```
pub struct Snapshot<T: Send + Sync + 'static> {
    /// A pointer from [`Arc::into_raw`]; the cell owns one reference count.
    current: AtomicPtr<T>,
    owner: PhantomData<Arc<T>>,
}

impl<T: Send + Sync + 'static> Snapshot<T> {
    /// A cell that holds `value`.
    pub fn new(value: T) -> Self {
        Self::from(Arc::new(value))
    }

    /// The current value, for a short time. As long as the result lives, it keeps alive the value, and every object
    /// that is retired in the process's [`epoch`] collector in the meantime. To keep the value longer, use
    /// [`get`](Snapshot::get).
    ///
    /// Wait-free; acquires what the value's writer released. Costs what [`epoch::pin`] costs, and a load.
    #[inline(always)]
    pub fn read(&self) -> Reading<'_, T> {
        let guard = epoch::pin();
        let value = self.current.load(Ordering::Acquire);
        Reading { value, _guard: guard, cell: PhantomData }
    }

    /// The current value, for as long as the caller keeps it.
    ///
    /// Wait-free; costs one locked addition more than [`read`](Snapshot::read).
    #[must_use]
    pub fn get(&self) -> Arc<T> {
        let reading = self.read();
        // SAFETY: the pointer comes from `Arc::into_raw`, and its count is above 0 as long as the guard lives.
        unsafe {
            Arc::increment_strong_count(reading.value);
            Arc::from_raw(reading.value)
        }
    }

    /// Replaces the value.
    ///
    /// Lock-free; releases what the caller wrote before.
    pub fn set(&self, value: impl Into<Arc<T>>) {
        let new = Arc::into_raw(value.into()).cast_mut();
        let guard = epoch::pin();
        let old = self.current.swap(new, Ordering::AcqRel);
        // SAFETY: the cell owned one count of `old`, and the swap passed it to this thread.
        unsafe { retire(&guard, old) };
    }

    /// Replaces the value with the result of `change`, which is called again if another writer was first. Returns the
    /// new value.
    ///
    /// Lock-free, if `change` is.
    pub fn update(&self, mut change: impl FnMut(&T) -> T) -> Arc<T> {
        loop {
            let reading = self.read();
            let new = Arc::new(change(&reading));
            // The guard keeps the old value from being freed and its address from being used again.
            let (old, offered) = (reading.value.cast_mut(), Arc::into_raw(Arc::clone(&new)).cast_mut());
            match self.current.compare_exchange(old, offered, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    // SAFETY: the cell owned one count of `old`, and the exchange passed it to this thread.
                    unsafe { retire(&reading._guard, old) };
                    return new;
                }
                // SAFETY: the pointer comes from `Arc::into_raw` above, and the failed exchange did not publish it.
                Err(_) => drop(unsafe { Arc::from_raw(offered) }),
            }
        }
    }
}

/// Gives up a reference count once all readers of `value` have left.
///
/// # Safety
/// `value` came from [`Arc::into_raw`], and the caller owns one of its counts.
unsafe fn retire<T: Send + Sync + 'static>(guard: &Guard<'_>, value: *mut T) {
    unsafe fn free<T>(value: *mut ()) {
        // SAFETY: `retire` requires that the pointer came from `Arc::into_raw` with a count of its own.
        drop(unsafe { Arc::from_raw(value.cast::<T>()) });
    }
    // SAFETY: the caller owns the count, `free` runs once, and `T: Send + Sync + 'static` may be dropped on any thread.
    unsafe { guard.retire_with(value.cast(), free::<T>) }
}

impl<T: Send + Sync + 'static> From<Arc<T>> for Snapshot<T> {
    fn from(value: Arc<T>) -> Self {
        Snapshot { current: AtomicPtr::new(Arc::into_raw(value).cast_mut()), owner: PhantomData }
    }
}

impl<T: Default + Send + Sync + 'static> Default for Snapshot<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: Send + Sync + 'static> Drop for Snapshot<T> {
    fn drop(&mut self) {
        // SAFETY: the cell owns one count, and there are no readings, because they borrow the cell.
        drop(unsafe { Arc::from_raw(self.current.load(Ordering::Relaxed)) });
    }
}

impl<T: fmt::Debug + Send + Sync + 'static> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&*self.read()).finish()
    }
}

/// A value that is being read, with the guard that keeps it alive.
pub struct Reading<'c, T: Send + Sync + 'static> {
    value: *const T,
    _guard: Guard<'static>,
    cell: PhantomData<&'c Snapshot<T>>,
}

impl<T: Send + Sync + 'static> Deref for Reading<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: if the value was retired, that happened after the guard was made.
        unsafe { &*self.value }
    }
}
