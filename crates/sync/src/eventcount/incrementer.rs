//! The right to increment a count that has only one incrementer.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use super::count::Count;
use super::kind::SoleKind;
use super::scope::Scope;

/// The exclusive right to increment a count that has a single incrementer.
///
/// An incrementer is neither copied nor cloned, and incrementing borrows it mutably, so two threads cannot increment at
/// the same time; it may be sent from one thread to another. `R` is how it refers to the count: a reference from
/// [`split`](Count::split), or an [`Arc`] from [`pair`](Count::pair).
///
/// ```compile_fail,E0499
/// use millstream_sync::eventcount::SpEventCount;
///
/// let mut count = SpEventCount::new();
/// let (mut one, _) = count.split();
/// let (mut two, _) = count.split(); // refused: the count is borrowed by the first
/// one.increment();
/// two.increment();
/// ```
///
/// ```compile_fail,E0596
/// use millstream_sync::eventcount::SpEventCount;
///
/// let (incrementer, _) = SpEventCount::pair();
/// let shared = &incrementer;
/// shared.increment(); // refused: incrementing needs the only reference
/// ```
#[derive(Debug)]
pub struct Incrementer<K: SoleKind, S: Scope, R: Deref<Target = Count<K, S>>> {
    count: R,
    cached: K::Cached,
    of: PhantomData<S>,
}

impl<K: SoleKind, S: Scope> Count<K, S> {
    /// The only incrementer, and a shared reference to the count for the waiters. Wait-free.
    ///
    /// ```
    /// use millstream_sync::eventcount::SpEventCount;
    ///
    /// let mut count = SpEventCount::new();
    /// let (mut incrementer, count) = count.split();
    /// std::thread::scope(|scope| {
    ///     let key = count.snapshot();
    ///     scope.spawn(move || count.wait(key));
    ///     incrementer.increment();
    /// });
    /// ```
    pub fn split(&mut self) -> (Incrementer<K, S, &Self>, &Self) {
        let count = &*self;
        // SAFETY: `self` stays mutably borrowed as long as either reference lives, so there is no other incrementer.
        (unsafe { Incrementer::new(count) }, count)
    }

    /// A new count of zero with its only incrementer, both of which may be moved anywhere. Allocates.
    ///
    /// ```
    /// use millstream_sync::eventcount::SpEventCount64;
    ///
    /// let (mut incrementer, count) = SpEventCount64::pair();
    /// let waiter = std::thread::spawn(move || count.wait_for(|| (count.value() >= 3).then_some(())));
    /// incrementer.add(3);
    /// waiter.join().unwrap();
    /// ```
    #[must_use]
    pub fn pair() -> (Incrementer<K, S, Arc<Self>>, Arc<Self>) {
        let count = Arc::new(Self::new());
        // SAFETY: the count is new, and an incrementer is the only safe way to increment it, so there is no other
        // incrementer.
        (unsafe { Incrementer::new(Arc::clone(&count)) }, count)
    }
}

impl<K: SoleKind, S: Scope, R: Deref<Target = Count<K, S>>> Incrementer<K, S, R> {
    /// The incrementer of a count that other threads may already use, such as a count in shared memory
    /// (`examples/shared_count.rs`).
    ///
    /// For a count that processes share, this call registers the process for heavy fences and tells the waiters whether
    /// that succeeded, which takes up to two system calls. It also wakes the waiters, in case the previous incrementer
    /// died between its increment and the wake-up.
    ///
    /// # Safety
    /// As long as this incrementer lives, nothing else increments the count, in this process or another: no other
    /// incrementer, and no [`add_waking_unchecked`](Count::add_waking_unchecked). Everything the previous incrementer did
    /// is visible to this thread.
    pub unsafe fn new(count: R) -> Self {
        count.scope.attach();
        if S::SHARED {
            count.wake(usize::MAX);
        }
        let cached = count.kind.cache();
        Incrementer { count, cached, of: PhantomData }
    }

    /// Adds one and wakes all waiters.
    ///
    /// Without waiters it is wait-free: a store, two loads, and a light fence, which is free where the kernel offers
    /// heavy ones. For an `InPlaceEventCount`, it is an `add` to memory, a test and a branch. With waiters it makes one
    /// system call, and briefly takes a lock if tasks are waiting. Release: everything written before is visible to any
    /// thread that sees the new count. [`pair`](Count::pair) has an example.
    #[inline]
    pub fn increment(&mut self) {
        self.add(1);
    }

    /// Adds `n` and wakes all waiters; otherwise like [`increment`](Self::increment).
    ///
    /// `n = 0` changes nothing and wakes the sleeping waiters; those whose key is up to date sleep again.
    #[inline]
    pub fn add(&mut self, n: u64) {
        self.add_waking(n, usize::MAX);
    }

    /// Adds `n` and wakes at most `most` of the sleeping waiters; [`Count::add_waking`] explains when that is correct.
    #[inline]
    pub fn add_waking(&mut self, n: u64, most: usize) {
        // SAFETY: `new` requires that nothing else increments the count, this incrementer is borrowed mutably, and `new`
        // registered the process for a shared count. `new` has read the cached copy, and only this line changes it.
        unsafe { self.count.add_cached(&mut self.cached, n, most) }
    }
}
