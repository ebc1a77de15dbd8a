//! The word that a thread publishes while it reads, and the proof that it suffices.
//!
//! A reader that enters reads the epoch, publishes it in its own state, and executes a [light](millstream_fence::light)
//! fence. When it leaves, it publishes that it is in no epoch. The reclaimer first unlinks the objects (1), increments
//! the epoch (2), executes a heavy fence (3), and scans all states (4). It frees the objects once no state contains an
//! epoch from before (2). For every reader and every such object, one of two cases applies:
//!
//! - The reader's light fence comes before (3). Then its state is visible at (4), unless the reader has left or entered
//!   again since. If its epoch is from before (2), the object is not freed before the reader leaves. If its epoch is
//!   from after (2), the reader read it by an acquiring load from the releasing addition (2) or a later one, so it sees
//!   (1) and cannot find the object.
//! - The light fence comes after (3). Then all later reads of the reader see (1).
//!
//! A reader that sleeps between reading the epoch and publishing it may publish an old epoch. Until it leaves, such a
//! reader holds back more objects than necessary. But no object is freed too early, because the argument does not rely
//! on a recent epoch. So one grace period is enough, and the reader does not read the epoch a second time.
//!
//! A reader that refreshes its guard publishes a newer epoch without a fence. A scan that still finds the older epoch
//! holds back more objects than necessary. For a scan that finds the newer epoch the first case applies, because the
//! reader loaded that epoch with acquire, too.
//!
//! A list entry that is added after the scan began belongs to a reader whose light fence comes after (3): the addition
//! precedes the fence in its thread, and would be visible otherwise.
//!
//! All stores to the state are releasing: whichever state the scan reads with acquire, each earlier reading section of
//! that thread has ended before the read.
//!
//! Where light fences are free, the state has no [`FENCED`] flag, so an entering reader tests nothing but its own
//! state.

use crate::primitive::{AtomicU64, Ordering, free_light, is_asymmetric, light};

/// The amount by which an epoch advances the state; the bits below it are the depth and the flags.
pub(super) const EPOCH: u64 = 1 << 12;
/// The first epoch. An epoch's number already contains a depth of one, which saves readers an addition.
pub(super) const FIRST: u64 = EPOCH + 1;
const LOW: u64 = EPOCH - 1;
/// The thread has ended, and its last guard releases the entry.
const ABANDONED: u64 = 1 << 11;
/// The light fences of this process are full fences. Either all states have this flag or none does, as long as the
/// process lives.
const FENCED: u64 = 1 << 10;
const DEPTH: u64 = FENCED - 1;

/// A thread's state: the epoch in which it entered, the number of its guards, and flags. Without guards there is no
/// epoch.
pub(super) struct Participant(AtomicU64);

/// The work that remains after a guard is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    /// The entry must be released: the thread has ended, and this was its last guard.
    TheThread,
}

impl Participant {
    pub(super) fn new() -> Self {
        Participant(AtomicU64::new(if is_asymmetric() { 0 } else { FENCED }))
    }

    /// The owner's own latest value; only the owner writes the state.
    #[inline(always)]
    fn own(&self) -> u64 {
        #[cfg(loom)]
        return self.0.load(Ordering::Relaxed);
        // This is a plain read, because compilers do not merge an atomic read with the comparison. SAFETY: no other
        // thread writes the word, and reads do not race with reads.
        #[cfg(not(loom))]
        unsafe {
            *self.0.as_ptr()
        }
    }

    /// Enters, or nests in a guard that the thread already has.
    #[inline(always)]
    pub(super) fn enter(&self, epoch: &AtomicU64) {
        // Zero means: no guard and no flag.
        if self.own() == 0 {
            self.0.store(epoch.load(Ordering::Acquire), Ordering::Release);
            free_light();
        } else {
            self.enter_slowly(epoch);
        }
    }

    #[cold]
    fn enter_slowly(&self, epoch: &AtomicU64) {
        let state = self.own();
        if state & DEPTH == 0 {
            self.0.store(epoch.load(Ordering::Acquire) | state, Ordering::Release);
            light();
            return;
        }
        assert!(state & DEPTH < DEPTH, "more than {DEPTH} guards of one thread");
        self.0.store(state + 1, Ordering::Release);
    }

    /// Drops one guard.
    #[inline(always)]
    pub(super) fn leave(&self) -> Left {
        // True if the depth is one and no flag is set; a depth of zero does not occur here.
        if self.own() & (LOW - 1) == 0 {
            self.0.store(0, Ordering::Release);
            Left::Nothing
        } else {
            self.leave_slowly()
        }
    }

    #[cold]
    fn leave_slowly(&self) -> Left {
        let state = self.own();
        let last = state & DEPTH == 1;
        self.0.store(if last { state & FENCED } else { state - 1 }, Ordering::Release);
        if last && state & ABANDONED != 0 { Left::TheThread } else { Left::Nothing }
    }

    /// Leaves and enters again, unless there are other guards.
    #[inline]
    pub(super) fn refresh(&self, epoch: &AtomicU64) {
        let state = self.own();
        if state & DEPTH == 1 {
            self.0.store(epoch.load(Ordering::Acquire) | (state & (ABANDONED | FENCED)), Ordering::Release);
        }
    }

    /// Marks the thread as ended. Returns [`TheThread`](Left::TheThread) if the thread has no guards left; otherwise
    /// [`leave`](Self::leave) returns it for the last guard.
    pub(super) fn abandon(&self) -> Left {
        let state = self.own();
        if state & DEPTH == 0 {
            return Left::TheThread;
        }
        self.0.store(state | ABANDONED, Ordering::Release);
        Left::Nothing
    }

    /// Forgets guards that were leaked.
    pub(super) fn reset(&self) {
        self.0.store(self.own() & FENCED, Ordering::Release);
    }

    /// The epoch in which the thread entered, if it has a guard.
    pub(super) fn entered(&self) -> Option<u64> {
        // Acquire pairs with the releasing stores: the end of every earlier reading section comes before this load.
        let state = self.0.load(Ordering::Acquire);
        (state & DEPTH != 0).then_some(state & !LOW | 1)
    }
}
