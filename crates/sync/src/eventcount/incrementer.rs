//! The right to increment a count that has only one incrementer.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use super::count::Count;
use super::kind::SoleKind;
use super::place::Place;

/// The only one who may increment a count of a [`SoleKind`].
///
/// Neither copied nor cloned, and incrementing takes it mutably, so two threads cannot increment at the same time;
/// it may be sent from one thread to another. `R` is how it holds the count: a reference from
/// [`split`](Count::split), an [`Arc`] from [`pair`](Count::pair).
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
pub struct Incrementer<K: SoleKind, P: Place, R: Deref<Target = Count<K, P>>> {
    count: R,
    of: PhantomData<(K, P)>,
}

impl<K: SoleKind, P: Place> Count<K, P> {
    /// The only incrementer, and the count for everybody else to wait on.
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
    pub fn split(&mut self) -> (Incrementer<K, P, &Self>, &Self) {
        let count = &*self;
        // SAFETY: `self` is borrowed mutably for as long as either reference lives, so there is no other.
        (unsafe { Incrementer::new(count) }, count)
    }

    /// A new count of zero with its only incrementer, both free to go anywhere.
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
    pub fn pair() -> (Incrementer<K, P, Arc<Self>>, Arc<Self>) {
        let count = Arc::new(Self::new());
        // SAFETY: the count is new, and a handle is the only safe way to increment it.
        (unsafe { Incrementer::new(Arc::clone(&count)) }, count)
    }
}

impl<K: SoleKind, P: Place, R: Deref<Target = Count<K, P>>> Incrementer<K, P, R> {
    /// The incrementer of a count that may be in reach of others, such as one in shared memory.
    ///
    /// In a [`Shared`](super::Shared) place it registers this process for heavy fences, tells the waiters
    /// whether that succeeded, and wakes them, in case a former incrementer died between its increment and the
    /// wake.
    ///
    /// # Safety
    /// There is no other incrementer of this count, in this process or another, as long as this one lives; what
    /// a former one did is visible to this thread.
    pub unsafe fn new(count: R) -> Self {
        count.place.attach();
        if P::SHARED {
            count.wake(usize::MAX);
        }
        Incrementer { count, of: PhantomData }
    }

    /// The count.
    #[inline]
    #[must_use]
    pub fn count(&self) -> &Count<K, P> {
        &self.count
    }

    /// Adds one and wakes all waiters.
    ///
    /// Wait-free with nobody waiting: on x86-64 an `add` to memory, a test and a branch; elsewhere two loads, a
    /// store and a light fence. Otherwise one system call, and a short lock for waiting tasks. Release: what
    /// was written before is visible to whoever sees the new count.
    #[inline]
    pub fn increment(&mut self) {
        self.add(1);
    }

    /// Adds `n` and wakes all waiters; otherwise like [`increment`](Self::increment).
    ///
    /// `n = 0` changes nothing and wakes who sleeps; waiters whose key is up to date sleep again.
    #[inline]
    pub fn add(&mut self, n: u64) {
        self.add_waking(n, usize::MAX);
    }

    /// Adds one and wakes one waiter; see [`add_waking`](Self::add_waking).
    #[inline]
    pub fn increment_waking_one(&mut self) {
        self.add_waking(1, 1);
    }

    /// Adds `n` and wakes at most `most` of the waiters that sleep; for which waiters, see [`Count::add_waking`].
    #[inline]
    pub fn add_waking(&mut self, n: u64, most: usize) {
        // SAFETY: there is only this incrementer, borrowed mutably.
        unsafe { self.count.add_waking_unchecked(n, most) }
    }
}
