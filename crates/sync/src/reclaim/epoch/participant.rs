//! What a thread publishes while it reads, and the proof that it suffices.
//!
//! A reader that enters reads the epoch, publishes it in its own state, and passes a [light](millstream_fence::light)
//! fence. When it leaves it publishes 0. Who reclaims first unlinks the objects (1), makes the epoch one larger (2),
//! passes a heavy fence (3), and looks at all states (4). The objects are freed once no state holds an epoch from before
//! (2). For any reader and any such object one of these is the case:
//!
//! - The reader's light fence comes before (3). Then its state is visible at (4), unless it has left or entered again
//!   since. If its epoch is from before (2), the object is not freed before it leaves. If it is from after, the reader
//!   read it by an acquiring load from the releasing addition (2) or a later one, so it sees (1) and cannot find the object.
//! - The light fence comes after (3). Then all that the reader reads afterwards sees (1).
//!
//! A reader that sleeps between reading the epoch and publishing it may publish an old one. Then it holds back more
//! than it needs to, until it leaves; nothing is freed too early, since the argument nowhere uses that the
//! published epoch is recent. So one grace period is enough, and there is no second look at the epoch.
//!
//! A list entry that is added after the scan began belongs to a reader whose light fence comes after (3): the addition is
//! before the fence in its thread, and would be visible otherwise.
//!
//! All stores to the state are releasing: the state that the scan reads with acquire, whichever it is, comes after the end
//! of each earlier reading section in its thread.

use crate::primitive::{AtomicU64, Ordering, light};

/// One epoch; below it are the depth and the flag.
pub(super) const EPOCH: u64 = 1 << 12;
/// The first epoch. Epochs are counted with a depth of one already in them, which saves readers an addition.
pub(super) const FIRST: u64 = EPOCH + 1;
const LOW: u64 = EPOCH - 1;
const ABANDONED: u64 = 1 << 11;
const DEPTH: u64 = ABANDONED - 1;

/// A thread's state: 0, or the epoch in which it entered and how many guards it has.
pub(super) struct Participant(AtomicU64);

/// What remains to be done after leaving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    /// The thread has ended and this was its last guard.
    TheThread,
}

impl Participant {
    pub(super) fn new() -> Self {
        Participant(AtomicU64::new(0))
    }

    /// What the owner, who alone writes it, has written.
    #[inline(always)]
    fn own(&self) -> u64 {
        #[cfg(loom)]
        return self.0.load(Ordering::Relaxed);
        // As a plain read, since compilers do not merge atomic ones with the comparison.
        // SAFETY: no other thread writes, and reads do not race with reads.
        #[cfg(not(loom))]
        unsafe {
            *self.0.as_ptr()
        }
    }

    /// Enters, or nests.
    #[inline(always)]
    pub(super) fn enter(&self, epoch: &AtomicU64) {
        let state = self.own();
        if state == 0 {
            self.0.store(epoch.load(Ordering::Acquire), Ordering::Release);
            light();
        } else {
            self.nest(state);
        }
    }

    #[cold]
    fn nest(&self, state: u64) {
        assert!(state & DEPTH < DEPTH, "more than {DEPTH} guards of one thread");
        self.0.store(state + 1, Ordering::Release);
    }

    /// Takes one guard back.
    #[inline(always)]
    pub(super) fn leave(&self) -> Left {
        let state = self.own();
        // No flag, and a depth of one (or, never, none).
        if state & (LOW - 1) == 0 {
            self.0.store(0, Ordering::Release);
            Left::Nothing
        } else {
            self.leave_slowly(state)
        }
    }

    #[cold]
    fn leave_slowly(&self, state: u64) -> Left {
        if state & DEPTH > 1 {
            self.0.store(state - 1, Ordering::Release);
            return Left::Nothing;
        }
        self.0.store(0, Ordering::Release);
        Left::TheThread
    }

    /// Leaves and enters again, unless there are other guards.
    #[inline]
    pub(super) fn refresh(&self, epoch: &AtomicU64) {
        let state = self.own();
        if state & DEPTH == 1 {
            self.0.store(epoch.load(Ordering::Acquire) | (state & ABANDONED), Ordering::Release);
            light();
        }
    }

    /// The thread ends. Whether it has left already; if not, its last guard will say so.
    pub(super) fn abandon(&self) -> Left {
        let state = self.own();
        if state == 0 {
            return Left::TheThread;
        }
        self.0.store(state | ABANDONED, Ordering::Release);
        Left::Nothing
    }

    /// Forgets guards that were leaked.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// The epoch in which it entered, if it is in.
    pub(super) fn entered(&self) -> Option<u64> {
        let state = self.0.load(Ordering::Acquire);
        (state != 0).then_some(state & !LOW | 1)
    }
}
