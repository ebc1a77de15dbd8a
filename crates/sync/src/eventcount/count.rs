//! The event count itself: snapshots, waits, and the slow side of increments.

use std::time::Instant;

use super::kind::{Announced, Kind};
use super::many::Many;
use super::patience::Patience;
use super::place::{Certainty, Local, Place};
use super::quiet::Quiet;
use super::sleep::Sleeping;
use super::word::Width;

/// An event count of some [`Kind`] in some [`Place`]; the [module](super) says which one to choose.
///
/// Waiting is the same for all kinds. A kind with many incrementers is incremented here; any other kind is incremented
/// through its [`Incrementer`](super::Incrementer).
#[repr(C)]
#[derive(Debug)]
pub struct Count<K: Kind, P: Place = Local> {
    pub(super) kind: K,
    pub(super) place: P,
}

/// A count's value at one moment, whose change a waiter awaits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(pub(super) u64);

impl Key {
    /// The value, see [`Count::value`].
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }
}

/// How a wait with a deadline ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Waited {
    /// The count differs from the key.
    Changed,
    /// The deadline passed without a change of the count.
    TimedOut,
}

impl<K: Kind, P: Place> Count<K, P> {
    /// A count of zero.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Count { kind: K::ZERO, place: P::EMPTY }
    }

    /// A count of zero.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(0)
    }

    /// A count of `value`, truncated to the kind's width.
    #[must_use]
    pub fn starting_at(value: u64) -> Self {
        Count { kind: K::starting_at(value), place: P::default() }
    }

    /// The sum of all increments so far, in the kind's width: 31 or 63 bits where the flag shares the word, 32 or 64
    /// bits where it does not. It wraps around.
    ///
    /// Wait-free, one load. Acquire: everything written before the increments it counts is visible.
    ///
    /// ```
    /// use millstream_sync::eventcount::EventCount64;
    ///
    /// let published = EventCount64::new();
    /// published.add(64);
    /// assert_eq!(published.value(), 64);
    /// ```
    #[inline]
    #[must_use]
    pub fn value(&self) -> u64 {
        self.kind.value()
    }

    /// The current count. A waiter takes the snapshot, *then* checks whether there is work, and waits with the snapshot
    /// if not: an increment after the snapshot ends the wait.
    ///
    /// Wait-free, one load, acquire.
    #[inline]
    #[must_use]
    pub fn snapshot(&self) -> Key {
        Key(self.value())
    }

    /// The key of a count with this value, for a caller that has the value from elsewhere.
    #[inline]
    #[must_use]
    pub fn key_of(&self, value: u64) -> Key {
        Key(K::wrap(value))
    }

    /// Whether the count has changed since `key` was taken. Wait-free, one load, acquire.
    #[inline]
    #[must_use]
    pub fn has_changed(&self, key: Key) -> bool {
        self.snapshot() != key
    }

    /// Waits until the count differs from `key`.
    ///
    /// Blocks until the count changes. Everything written before the increment that ended the wait is visible
    /// afterwards (acquire). Spins as [`Patience::DEFAULT`] says, then sleeps without using the CPU. There are no
    /// spurious returns; after an increment that wakes only some waiters, the others may sleep on although the count
    /// changed.
    ///
    /// ```
    /// use millstream_sync::eventcount::EventCount;
    ///
    /// let count = EventCount::new();
    /// let key = count.snapshot();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| count.increment());
    ///     count.wait(key);
    /// });
    /// ```
    pub fn wait(&self, key: Key) {
        let _ = self.wait_patiently(key, None, &Patience::DEFAULT);
    }

    /// Waits until the count differs from `key` or `deadline` has passed; otherwise like [`wait`](Self::wait).
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use millstream_sync::eventcount::{EventCount, Waited};
    ///
    /// let count = EventCount::new();
    /// let key = count.snapshot();
    /// let deadline = Instant::now() + Duration::from_millis(1);
    /// assert_eq!(count.wait_deadline(key, deadline), Waited::TimedOut);
    /// ```
    pub fn wait_deadline(&self, key: Key, deadline: Instant) -> Waited {
        self.wait_patiently(key, Some(deadline), &Patience::DEFAULT)
    }

    /// Waits until the count differs from `key` or the deadline, if there is one, has passed; spins and naps before it
    /// sleeps as `patience` says.
    pub fn wait_patiently(&self, key: Key, deadline: Option<Instant>, patience: &Patience) -> Waited {
        for _ in 0..patience.spins {
            if self.has_changed(key) {
                return Waited::Changed;
            }
            std::hint::spin_loop();
        }
        for nap in patience.nap_lengths() {
            let left = left_until(deadline);
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            std::thread::sleep(left.map_or(nap, |left| left.min(nap)));
            if self.has_changed(key) {
                return Waited::Changed;
            }
        }
        self.sleep(key, deadline)
    }

    /// Waits until `ready` returns a value, and calls it again after each change of the count.
    ///
    /// `ready` runs between a snapshot and the wait, so the change that makes it succeed must happen before an
    /// increment. Blocks; never misses a change.
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use millstream_sync::eventcount::EventCount;
    ///
    /// let (queue, count) = (Mutex::new(Vec::new()), EventCount::new());
    /// let item = std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         queue.lock().unwrap().push("grain");
    ///         count.increment();
    ///     });
    ///     count.wait_for(|| queue.lock().unwrap().pop())
    /// });
    /// assert_eq!(item, "grain");
    /// ```
    pub fn wait_for<T>(&self, ready: impl FnMut() -> Option<T>) -> T {
        self.wait_for_patiently(ready, None, &Patience::DEFAULT).expect("without a deadline only success ends the wait")
    }

    /// Waits until `ready` returns a value or `deadline` has passed; `None` if it was not ready even then.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use millstream_sync::eventcount::EventCount;
    ///
    /// let soon = Instant::now() + Duration::from_millis(1);
    /// assert_eq!(EventCount::new().wait_for_deadline(|| None::<u32>, soon), None);
    /// ```
    pub fn wait_for_deadline<T>(&self, ready: impl FnMut() -> Option<T>, deadline: Instant) -> Option<T> {
        self.wait_for_patiently(ready, Some(deadline), &Patience::DEFAULT)
    }

    /// Waits until `ready` returns a value or the deadline, if there is one, has passed; spins and naps before it
    /// sleeps as `patience` says.
    pub fn wait_for_patiently<T>(
        &self,
        mut ready: impl FnMut() -> Option<T>,
        deadline: Option<Instant>,
        patience: &Patience,
    ) -> Option<T> {
        loop {
            let key = self.snapshot();
            if let Some(found) = ready() {
                return Some(found);
            }
            if self.wait_patiently(key, deadline, patience) == Waited::TimedOut {
                return ready();
            }
        }
    }

    /// Adds `n` and wakes all waiters, for generic code that proves its right to increment by other means.
    ///
    /// # Safety
    /// If `K` is a [`SoleKind`](super::SoleKind):
    ///
    /// - No other thread (or process) increments this count at the same time, and the increments of different threads
    ///   are ordered by happens-before.
    /// - In a [`Shared`](super::Shared) place, this process has made an [`Incrementer`](super::Incrementer) of this
    ///   count, and no other process has made one since. The incrementer tells waiters whether this process has
    ///   registered for heavy fences, for all its counts together. Waiters that do not know it issue no heavy fence,
    ///   while the fence of this increment is free: both may then overlook each other, and a wake-up is lost.
    #[inline]
    pub unsafe fn add_unchecked(&self, n: u64) {
        // SAFETY: this function has the same contract.
        unsafe { self.add_waking_unchecked(n, usize::MAX) }
    }

    /// Adds `n` and wakes at most `most` waiters; see [`add_waking`](Count::add_waking).
    ///
    /// # Safety
    /// As for [`add_unchecked`](Self::add_unchecked).
    #[inline]
    pub unsafe fn add_waking_unchecked(&self, n: u64, most: usize) {
        // SAFETY: this function has the same contract, and it covers both calls.
        unsafe {
            if self.kind.add::<P>(n) {
                self.settle(most);
            }
        }
    }

    /// Wakes waiters after an increment that found the flag set.
    ///
    /// # Safety
    /// As for [`add_unchecked`](Self::add_unchecked).
    #[cold]
    #[inline(never)]
    unsafe fn settle(&self, most: usize) {
        // SAFETY: this function has the same contract.
        unsafe { self.kind.settle(most, |most| self.wake(most)) }
    }

    /// Wakes at most `most` waiters, threads before tasks, and returns how many it woke.
    pub(super) fn wake(&self, most: usize) -> usize {
        if most == 0 {
            // For 0 the kernel would wake one thread.
            return 0;
        }
        let threads = self.kind.wake(most, &self.sleeping(None));
        // This thread may occupy the core that a woken thread needs, so it skips the tasks if threads sufficed.
        if threads == most { threads } else { threads + self.place.wake_tasks(most - threads) }
    }

    /// Sets the flag and sleeps, until the count changes or the deadline passes.
    fn sleep(&self, key: Key, deadline: Option<Instant>) -> Waited {
        let mut quiet = None;
        loop {
            let left = left_until(deadline);
            if left.is_some_and(|left| left.is_zero()) {
                return if self.has_changed(key) { Waited::Changed } else { Waited::TimedOut };
            }
            let announced = self.kind.announce(key.0);
            if announced == Announced::Changed {
                return Waited::Changed;
            }
            // The second look is the kernel's: it compares the word before the thread sleeps.
            let nap = match self.place.confirm(K::OVERLOOKS) {
                Certainty::Now => None,
                Certainty::InTime => quiet.get_or_insert_with(Quiet::new).nap(announced),
            };
            let limit = [left, nap, P::LONGEST_SLEEP].into_iter().flatten().min();
            self.kind.sleep(key.0, &self.sleeping(limit));
            if self.has_changed(key) {
                return Waited::Changed;
            }
        }
    }

    fn sleeping(&self, limit: Option<std::time::Duration>) -> Sleeping<'_> {
        Sleeping { shared: P::SHARED, limit, queue: self.place.queue() }
    }
}

impl<K: Kind, P: Place> Default for Count<K, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Width, P: Place> Count<Many<W>, P> {
    /// Adds one and wakes all waiters.
    ///
    /// Without waiters it is wait-free: on x86-64, one `lock xadd` and a branch. With waiters it takes one system call,
    /// and a short lock for waiting tasks. Release: everything written before is visible to any thread that sees the
    /// new count.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `n` and wakes all waiters; otherwise like [`increment`](Self::increment).
    ///
    /// `n = 0` changes nothing and wakes the sleeping waiters; those whose key is up to date sleep again.
    #[inline]
    pub fn add(&self, n: u64) {
        self.add_waking(n, usize::MAX);
    }

    /// Adds one and wakes one waiter; see [`add_waking`](Self::add_waking).
    #[inline]
    pub fn increment_waking_one(&self) {
        self.add_waking(1, 1);
    }

    /// Adds `n` and wakes at most `most` of the sleeping waiters: threads first, then tasks, the longest waiting first.
    ///
    /// For interchangeable waiters of which `most` can do all the new work: when `n` units arrive for a set of workers,
    /// `add_waking(n, n)`. The others sleep on although the count changed. A wake-up is never wasted: a waiter that
    /// gives up hands it on or returns [`Waited::Changed`], and a waiter that is woken with an up-to-date key has
    /// checked for work after the increment.
    ///
    /// ```
    /// use millstream_sync::eventcount::EventCount;
    ///
    /// let work = EventCount::new();
    /// work.add_waking(3, 3); // three units, at most three workers
    /// assert_eq!(work.value(), 3);
    /// ```
    #[inline]
    pub fn add_waking(&self, n: u64, most: usize) {
        // SAFETY: counts of this kind allow concurrent increments.
        unsafe { self.add_waking_unchecked(n, most) }
    }
}

/// The time left until the deadline; `None` without one.
fn left_until(deadline: Option<Instant>) -> Option<std::time::Duration> {
    deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
}
