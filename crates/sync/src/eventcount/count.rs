//! The event count itself: snapshots, waits, and the slow side of increments.

use std::time::Instant;

use super::kind::{Announced, Kind, SoleKind};
use super::many::Many;
use super::quiet::Quiet;
use super::scope::{Certainty, Private, Scope};
use super::sleep::Sleeping;
use super::spin_policy::SpinPolicy;
use super::word::Width;

/// The type behind all event counts. Its parameters say how the count is incremented and which threads may wait; the
/// [module](super) names each useful combination.
///
/// Waiting is the same for all of them. A count with many incrementers has methods to increment it. A count with a
/// single incrementer is incremented through its [`Incrementer`](super::Incrementer).
#[repr(C)]
#[derive(Debug)]
pub struct Count<K: Kind, S: Scope = Private> {
    pub(super) kind: K,
    pub(super) scope: S,
}

/// A count's value at one moment; a waiter waits until the count differs from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(pub(super) u64);

/// How a wait with a deadline ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Waited {
    /// The count differs from the key.
    Changed,
    /// The deadline passed without a change of the count.
    TimedOut,
}

impl<K: Kind, S: Scope> Count<K, S> {
    /// A count of zero.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Count { kind: K::ZERO, scope: S::EMPTY }
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
        Count { kind: K::starting_at(value), scope: S::default() }
    }

    /// The sum of all increments so far, in the kind's width: 31 or 63 bits where the flag shares the word, 32 or 64
    /// bits where it does not. It wraps around.
    ///
    /// Wait-free, one load. Acquire: everything written before the counted increments is visible.
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
    /// Wait-free; one acquire load. [`wait`](Self::wait) has an example.
    #[inline]
    #[must_use]
    pub fn snapshot(&self) -> Key {
        Key(self.value())
    }

    /// The key of a count with this value, for a caller that has the value from elsewhere. Makes no memory access.
    ///
    /// ```
    /// use millstream_sync::eventcount::EventCount;
    ///
    /// let count = EventCount::new();
    /// count.add(5);
    /// assert_eq!(count.key_of(5), count.snapshot());
    /// ```
    #[inline]
    #[must_use]
    pub fn key_of(&self, value: u64) -> Key {
        Key(K::wrap(value))
    }

    /// Whether the count has changed since `key` was taken. Wait-free; one acquire load.
    #[inline]
    #[must_use]
    pub fn has_changed(&self, key: Key) -> bool {
        self.snapshot() != key
    }

    /// Waits until the count differs from `key`.
    ///
    /// Blocks until the count changes. Everything written before the increment that ended the wait is visible
    /// afterwards (acquire). Spins as [`SpinPolicy::DEFAULT`] says, then sleeps without using the CPU. There are no
    /// spurious returns; after an increment that wakes only some waiters, the others may stay asleep even though the
    /// count has changed. Falling asleep takes a system call and, if the count has a single incrementer, also a heavy
    /// fence (some 10 µs).
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
        let _ = self.wait_with(key, None, SpinPolicy::DEFAULT);
    }

    /// Waits until the count differs from `key` or the deadline, if there is one, has passed; spins and naps as
    /// `policy` says, then sleeps. Otherwise like [`wait`](Self::wait).
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use millstream_sync::eventcount::{EventCount, SpinPolicy, Waited};
    ///
    /// let count = EventCount::new();
    /// let deadline = Instant::now() + Duration::from_millis(1);
    /// assert_eq!(count.wait_with(count.snapshot(), Some(deadline), SpinPolicy::NONE), Waited::TimedOut);
    /// ```
    pub fn wait_with(&self, key: Key, deadline: Option<Instant>, policy: SpinPolicy) -> Waited {
        for _ in 0..policy.spins {
            if self.has_changed(key) {
                return Waited::Changed;
            }
            std::hint::spin_loop();
        }
        for nap in policy.nap_lengths() {
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
        self.wait_for_with(ready, None, SpinPolicy::DEFAULT).expect("without a deadline only success ends the wait")
    }

    /// Waits until `ready` returns a value or the deadline, if there is one, has passed; `None` if `ready` has returned
    /// no value by then. Spins and naps as `policy` says, then sleeps. Otherwise like [`wait_for`](Self::wait_for).
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use millstream_sync::eventcount::{EventCount, SpinPolicy};
    ///
    /// let soon = Instant::now() + Duration::from_millis(1);
    /// assert_eq!(EventCount::new().wait_for_with(|| None::<u32>, Some(soon), SpinPolicy::DEFAULT), None);
    /// ```
    pub fn wait_for_with<T>(
        &self,
        mut ready: impl FnMut() -> Option<T>,
        deadline: Option<Instant>,
        policy: SpinPolicy,
    ) -> Option<T> {
        loop {
            let key = self.snapshot();
            if let Some(found) = ready() {
                return Some(found);
            }
            if self.wait_with(key, deadline, policy) == Waited::TimedOut {
                return ready();
            }
        }
    }

    /// Adds `n` and wakes at most `most` waiters, like [`add_waking`](Count::add_waking), for a caller that may
    /// increment the count but has no [`Incrementer`](super::Incrementer).
    ///
    /// # Safety
    /// If the count has a single incrementer:
    ///
    /// - No other thread (or process) increments this count at the same time, and the increments of different threads
    ///   are ordered by happens-before.
    /// - An [`Incrementer`](super::Incrementer) that was made before this call does not increment the count after it.
    ///   Its cached copy of the count would be out of date, so its next increment would undo this one, and a waiter
    ///   could miss both.
    /// - If the count is shared between processes, this process has made an [`Incrementer`](super::Incrementer) of it,
    ///   and no other process has made one since. Making an incrementer tells the waiters of this count whether this
    ///   process has registered for heavy fences, which it does once for all its counts. Waiters that have not been
    ///   told do not execute a heavy fence, and the fence of this increment is only a compiler fence. Each side may
    ///   then overlook the other, and a wake-up is lost.
    #[inline]
    pub unsafe fn add_waking_unchecked(&self, n: u64, most: usize) {
        // SAFETY: the caller promises that no other increment of a single-incrementer kind runs at the same time, as
        // `add` and `settle` require.
        unsafe {
            if self.kind.add::<S>(n) {
                self.settle(most);
            }
        }
    }

    /// Adds `n` and wakes at most `most` waiters, for the incrementer that has this cached copy of the count.
    ///
    /// # Safety
    /// The caller upholds the contracts of [`add_waking_unchecked`](Self::add_waking_unchecked) and of
    /// [`add_cached`](SoleKind::add_cached).
    #[inline]
    pub(super) unsafe fn add_cached(&self, cached: &mut K::Cached, n: u64, most: usize)
    where
        K: SoleKind,
    {
        // SAFETY: the caller promises what `add_cached` and `settle` require.
        unsafe {
            if self.kind.add_cached::<S>(cached, n) {
                self.settle(most);
            }
        }
    }

    /// Wakes waiters after an increment that found the flag set.
    ///
    /// # Safety
    /// The caller upholds the contract of [`add_waking_unchecked`](Self::add_waking_unchecked).
    #[cold]
    #[inline(never)]
    unsafe fn settle(&self, most: usize) {
        // SAFETY: the caller promises that no other increment of a single-incrementer kind runs at the same time.
        unsafe { self.kind.settle(most, |most| self.wake(most)) }
    }

    /// Wakes at most `most` waiters, threads before tasks, and returns how many it woke.
    pub(super) fn wake(&self, most: usize) -> usize {
        if most == 0 {
            // Given 0, the kernel would wake one thread.
            return 0;
        }
        let threads = self.kind.wake(most, &self.sleeping(None));
        // This thread may occupy the core that a woken thread needs, so it skips the tasks if it woke enough threads.
        if threads == most { threads } else { threads + self.scope.wake_tasks(most - threads) }
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
            // The kernel makes the second check: it compares the word before the thread sleeps.
            let nap = match self.scope.confirm(K::OVERLOOKS) {
                Certainty::Now => None,
                Certainty::InTime => quiet.get_or_insert_with(Quiet::new).nap(announced),
            };
            let limit = [left, nap, S::MAX_SLEEP].into_iter().flatten().min();
            self.kind.sleep(key.0, &self.sleeping(limit));
            if self.has_changed(key) {
                return Waited::Changed;
            }
        }
    }

    fn sleeping(&self, limit: Option<std::time::Duration>) -> Sleeping<'_> {
        Sleeping { shared: S::SHARED, limit, queue: self.scope.queue() }
    }
}

impl<K: Kind, S: Scope> Default for Count<K, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Width, S: Scope> Count<Many<W>, S> {
    /// Adds one and wakes all waiters.
    ///
    /// Without waiters it is wait-free: on x86-64, one `lock xadd` and a branch. With waiters it makes one system call,
    /// and briefly takes a lock if tasks are waiting. Release: everything written before is visible to any thread that
    /// sees the new count. [`wait`](Self::wait) has an example.
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

    /// Adds `n` and wakes at most `most` of the sleeping waiters: threads first, then tasks, the longest waiting first.
    ///
    /// Use this if the waiters are interchangeable and `most` of them can do all the new work: when `n` units arrive
    /// for a set of workers, call `add_waking(n, n)`. The other waiters stay asleep even though the count has changed.
    /// No wake-up is wasted: a waiter that gives up passes its wake-up on or returns [`Waited::Changed`], and a waiter
    /// that is woken with an up-to-date key has checked for work after the increment.
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
        // SAFETY: a count of this kind has many incrementers, so the contract demands nothing.
        unsafe { self.add_waking_unchecked(n, most) }
    }
}

/// The time left until the deadline; `None` if there is no deadline.
fn left_until(deadline: Option<Instant>) -> Option<std::time::Duration> {
    deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
}
