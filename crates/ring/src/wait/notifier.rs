//! An event count that costs a notifying thread next to nothing while there are no waiters.
//!
//! Incrementing an event count is an atomic read-modify-write of a line that all notifying threads share: too expensive
//! for each event of a ring with many producers. So waiters register in a separate word, and a notifying thread only
//! reads that word.
//!
//! That read comes after the notifying thread's own write (a completed position); the waiter's check for completed
//! positions comes after its write (its registration). Without a full fence between the write and the read of each
//! thread, each may miss the other's write. The notifying thread uses the light fence, which is free on x86-64 Linux;
//! the waiter, which is about to sleep anyway, uses the heavy one. Then either the notifying thread sees the waiter and
//! increments the count, or the waiter sees the completed position. The event count promises the last step: an
//! increment after the snapshot ends the wait.

use std::sync::Arc;
use std::time::Instant;

use millstream_sync::eventcount::{EventCount, Key, SpinPolicy, Waited};

use super::cost::Stamp;
use crate::padded::CachePadded;
use crate::primitive::atomic::{AtomicU32, Ordering};
use crate::primitive::{heavy, light};

#[derive(Debug)]
pub(crate) struct Notifier {
    words: CachePadded<Words>,
}

/// The words share one line: many threads read it for each event, and it changes only when a waiter registers or
/// unregisters, or is woken. A thread that wakes a waiter then gets all the words with one transfer between the cores.
#[derive(Debug)]
struct Words {
    /// The number of registered threads and tasks.
    waiters: AtomicU32,
    count: EventCount,
    /// The time at which a waiter was last woken.
    woken: Stamp,
}

impl Notifier {
    pub(crate) fn new() -> Self {
        Notifier {
            words: CachePadded(Words { waiters: AtomicU32::new(0), count: EventCount::new(), woken: Stamp::default() }),
        }
    }

    /// Whether there are waiters. The caller has already written the state that the waiters wait for.
    #[inline(always)]
    pub(crate) fn has_waiters(&self) -> bool {
        light();
        self.has_waiters_unfenced()
    }

    /// Like [`has_waiters`](Self::has_waiters), but without a fence, for callers that have just executed one.
    #[inline(always)]
    pub(crate) fn has_waiters_unfenced(&self) -> bool {
        // Relaxed: the caller's fence has done the ordering, and the count carries the data.
        self.words.waiters.load(Ordering::Relaxed) != 0
    }

    /// Wakes at most `most` sleeping waiters. Every waiter that checks afterwards sees everything the caller wrote
    /// before.
    #[cold]
    pub(crate) fn wake(&self, most: usize) {
        self.words.woken.set();
        self.words.count.add_waking(1, most);
    }

    /// The time at which a waiter was last woken.
    pub(super) fn woken(&self) -> &Stamp {
        &self.words.woken
    }

    /// Acquires from all wake-ups so far, including this thread's own: everything written before those wake-ups is
    /// visible.
    pub(crate) fn catch_up(&self) {
        let _ = self.words.count.snapshot();
    }

    /// Registers a waiter, which notifying threads see from now on.
    pub(crate) fn register(&self) -> Registration<'_> {
        let registration = self.register_unfenced();
        heavy();
        registration
    }

    /// Registers a waiter without a fence. Notifying threads see it only once store buffers are drained, which suits
    /// bounded sleeps.
    pub(crate) fn register_unfenced(&self) -> Registration<'_> {
        self.words.waiters.fetch_add(1, Ordering::Relaxed);
        Registration { notifier: self }
    }

    /// Registers a waiter until [`unregister`](Self::unregister).
    pub(crate) fn stay_registered(&self) {
        std::mem::forget(self.register());
    }

    /// Ends one [`stay_registered`](Self::stay_registered).
    pub(crate) fn unregister(&self) {
        drop(Registration { notifier: self });
    }

    /// Sleeps until `check` finds something; `None` if `check` still finds nothing when the deadline has passed.
    pub(crate) fn wait<R>(&self, deadline: Option<Instant>, check: impl FnMut() -> Option<R>) -> Option<R> {
        self.register().wait(deadline, check)
    }

    /// Like [`wait`](Self::wait), for a waiter that [stays registered](Self::stay_registered).
    pub(crate) fn wait_registered<R>(&self, deadline: Option<Instant>, check: impl FnMut() -> Option<R>) -> Option<R> {
        std::mem::ManuallyDrop::new(Registration { notifier: self }).wait(deadline, check)
    }

    /// Waits as a task until `check` finds something. `announce` tells notifying threads of the task if they do not
    /// check this notifier itself.
    pub(crate) async fn wait_async<R>(&self, announce: impl FnOnce(), mut check: impl FnMut() -> Option<R>) -> R {
        let registration = self.register_unfenced();
        announce();
        heavy();
        loop {
            // The snapshot comes before the check, as for a thread.
            let key = registration.key();
            if let Some(found) = check() {
                return found;
            }
            registration.notifier.words.count.wait_async(key).await;
        }
    }
}

impl Default for Notifier {
    fn default() -> Self {
        Notifier::new()
    }
}

/// The right to sleep on a notifier. It ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Registration<'a> {
    notifier: &'a Notifier,
}

impl Registration<'_> {
    fn wait<R>(&self, deadline: Option<Instant>, mut check: impl FnMut() -> Option<R>) -> Option<R> {
        loop {
            // The snapshot comes before the check, so an event after the check changes the count and ends the sleep.
            let key = self.key();
            if let Some(found) = check() {
                return Some(found);
            }
            if self.sleep(key, deadline) == Waited::TimedOut {
                return check();
            }
        }
    }

    /// A snapshot of the count, which the waiter takes before it checks.
    pub(crate) fn key(&self) -> Key {
        self.notifier.words.count.snapshot()
    }

    /// Sleeps unless a waiter was woken since `key`.
    pub(crate) fn sleep(&self, key: Key, deadline: Option<Instant>) -> Waited {
        // In a model, deadlines pass at once.
        #[cfg(loom)]
        if deadline.is_some() {
            crate::primitive::yield_now();
            return Waited::TimedOut;
        }
        self.notifier.words.count.wait_with(key, deadline, SpinPolicy::NONE)
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.notifier.words.waiters.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A notifier that several rings may share.
pub(crate) type SharedNotifier = Arc<Notifier>;
