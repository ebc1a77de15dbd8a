//! An event count that costs its ringer nothing while nobody listens.
//!
//! Incrementing an event count is an atomic read-modify-write of a line that all ringers share: too much for
//! each event of a ring with many producers. So listeners say in a word of their own that they listen, and a
//! ringer only reads it.
//!
//! That read comes after the ringer's own write (a completed position), the listener's look for completed
//! positions comes after its write (that it listens). Unless each has a full fence between the two, both may miss the
//! other. The ringer's is the light fence, free on x86-64 Linux; the listener's is the heavy one, and it is
//! about to sleep anyway. Then either the ringer sees the listener and increments the count, or the listener
//! sees what the ringer completed. The rest is the event count's promise: an increment after the snapshot ends
//! the wait.

use std::sync::Arc;
use std::time::Instant;

use millstream_sync::eventcount::{EventCount, Key, Patience, Waited};

use crate::padded::Padded;
use crate::primitive::atomic::{AtomicU32, Ordering};
use crate::primitive::{heavy, light};

#[derive(Debug)]
pub(crate) struct Bell {
    words: Padded<Words>,
}

/// On one line: many ringers read it for each event, and it changes only when somebody begins or ends to listen, or is woken; who
/// wakes then has the whole of it with one way between the cores.
#[derive(Debug)]
struct Words {
    /// How many threads and tasks listen.
    listeners: AtomicU32,
    count: EventCount,
}

impl Bell {
    pub(crate) fn new() -> Self {
        Bell { words: Padded(Words { listeners: AtomicU32::new(0), count: EventCount::new() }) }
    }

    /// Whether somebody listens. Comes after what the listeners are to see.
    #[inline(always)]
    pub(crate) fn is_heard(&self) -> bool {
        light();
        self.has_listeners()
    }

    /// The same after what has done the ordering already.
    #[inline(always)]
    pub(crate) fn has_listeners(&self) -> bool {
        // Relaxed: the caller's fence has done the ordering, and the count carries the data.
        self.words.listeners.load(Ordering::Relaxed) != 0
    }

    /// Wakes at most `most` who sleep. Everybody who looks after this sees what came before.
    #[cold]
    pub(crate) fn wake(&self, most: usize) {
        self.words.count.add_waking(1, most);
    }

    /// Makes visible what came before every wake-up so far, our own included.
    pub(crate) fn catch_up(&self) {
        let _ = self.words.count.snapshot();
    }

    /// From here on ringers hear us.
    pub(crate) fn listen(&self) -> Listening<'_> {
        let listening = self.listen_in_time();
        heavy();
        listening
    }

    /// Soon ringers hear us, as soon as their store buffers are empty: for sleeps that are bounded.
    pub(crate) fn listen_in_time(&self) -> Listening<'_> {
        self.words.listeners.fetch_add(1, Ordering::Relaxed);
        Listening { bell: self }
    }

    /// From here on ringers hear somebody, until [`listen_no_more`](Self::listen_no_more).
    pub(crate) fn listen_on(&self) {
        std::mem::forget(self.listen());
    }

    /// Ends one [`listen_on`](Self::listen_on).
    pub(crate) fn listen_no_more(&self) {
        drop(Listening { bell: self });
    }

    /// Sleeps until `look` finds something, or the deadline has passed and it still does not.
    pub(crate) fn wait<R>(&self, deadline: Option<Instant>, look: impl FnMut() -> Option<R>) -> Option<R> {
        self.listen().wait(deadline, look)
    }

    /// The same for who [listens on](Self::listen_on).
    pub(crate) fn wait_heard<R>(&self, deadline: Option<Instant>, look: impl FnMut() -> Option<R>) -> Option<R> {
        std::mem::ManuallyDrop::new(Listening { bell: self }).wait(deadline, look)
    }

    /// Waits as a task until `look` finds something. Whoever rings learns by `announce` that somebody listens, if not by the bell itself.
    pub(crate) async fn wait_async<R>(&self, announce: impl FnOnce(), mut look: impl FnMut() -> Option<R>) -> R {
        let listening = self.listen_in_time();
        announce();
        heavy();
        loop {
            let key = listening.key();
            if let Some(found) = look() {
                return found;
            }
            listening.bell.words.count.wait_async(key).await;
        }
    }
}

impl Default for Bell {
    fn default() -> Self {
        Bell::new()
    }
}

/// The right to sleep on a bell; ends when dropped.
#[derive(Debug)]
pub(crate) struct Listening<'a> {
    bell: &'a Bell,
}

impl Listening<'_> {
    fn wait<R>(&self, deadline: Option<Instant>, mut look: impl FnMut() -> Option<R>) -> Option<R> {
        loop {
            let key = self.key();
            if let Some(found) = look() {
                return Some(found);
            }
            if self.sleep(key, deadline) == Waited::TimedOut {
                return look();
            }
        }
    }

    /// To be taken before the look.
    pub(crate) fn key(&self) -> Key {
        self.bell.words.count.snapshot()
    }

    /// Sleeps unless the bell was rung since `key`.
    pub(crate) fn sleep(&self, key: Key, deadline: Option<Instant>) -> Waited {
        // In a model time passes as it likes.
        #[cfg(loom)]
        if deadline.is_some() {
            crate::primitive::yield_now();
            return Waited::TimedOut;
        }
        self.bell.words.count.wait_patiently(key, deadline, &Patience::NONE)
    }

    /// How many listen, we included.
    pub(crate) fn listeners(&self) -> u32 {
        self.bell.words.listeners.load(Ordering::Relaxed)
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.bell.words.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A bell that several rings may ring.
pub(crate) type SharedBell = Arc<Bell>;
