//! A side with one participant, the only writer of the cursor.

use std::cell::Cell;
use std::ops::Range;

use super::sealed::{Hand, Progress, Sequencer};
use crate::padded::CachePadded;
use crate::primitive::atomic::{AtomicU64, Ordering};

/// A side with one participant, which needs no atomic read-modify-write operation.
///
/// Claims and completions are wait-free. A claim reads the progress of the side that it follows only when the limit it
/// last saw is used up, and a completion is one release store.
#[derive(Debug)]
pub struct Single {
    /// The end of the completed positions. Only the participant writes it.
    cursor: CachePadded<AtomicU64>,
}

/// The participant's private state.
#[derive(Debug, Clone)]
pub struct SingleHand {
    /// The end of the completed positions: a private copy of the cursor. Loading the cursor right after it was stored
    /// takes five times as long as an addition, and each event would wait for that load.
    next: Cell<u64>,
    /// All positions before this are free.
    limit: Cell<u64>,
}

impl Hand for SingleHand {
    #[inline(always)]
    fn catch_up(&self, copy: Self) {
        self.next.set(copy.next.get());
        self.limit.set(copy.limit.get());
    }

    #[inline(always)]
    fn has_completed(&self, end: u64) {
        self.next.set(end);
    }
}

impl Single {
    /// A side whose positions before `position` count as completed.
    pub(crate) fn starting_at(position: u64) -> Self {
        Single { cursor: CachePadded(AtomicU64::new(position)) }
    }
}

impl Progress for Single {
    #[inline(always)]
    fn completed(&self, _from: u64) -> u64 {
        // Acquire pairs with the release in `complete`.
        self.cursor.load(Ordering::Acquire)
    }
}

impl Sequencer for Single {
    const MANY: bool = false;

    type Hand = SingleHand;

    /// The end of the completed positions after this one.
    type Completion<'a> = u64;

    fn new(_capacity: u64, _limit: u64) -> Self {
        Single::starting_at(0)
    }

    fn hand(&self, limit: u64) -> SingleHand {
        SingleHand { next: Cell::new(self.claimed()), limit: Cell::new(limit) }
    }

    #[inline(always)]
    fn claim_prepared<R>(
        &self,
        hand: &SingleHand,
        least: u64,
        most: u64,
        frontier: impl Fn(u64) -> u64,
        prepare: impl Fn(Range<u64>, u64) -> R,
    ) -> Option<(Range<u64>, R)> {
        let next = hand.next.get();
        let mut free = hand.limit.get() - next;
        if free < least {
            free = self.available(hand, frontier);
            if free < least {
                return None;
            }
        }
        let claim = next..next + free.min(most);
        Some((claim.clone(), prepare(claim, hand.limit.get())))
    }

    #[inline(always)]
    fn available(&self, hand: &SingleHand, frontier: impl Fn(u64) -> u64) -> u64 {
        let limit = frontier(hand.limit.get());
        hand.limit.set(limit);
        limit - hand.next.get()
    }

    /// Does nothing: the participant writes the cursor all the time, so its core has the line.
    #[inline(always)]
    fn fetch(&self, _positions: Range<u64>) {}

    #[inline(always)]
    fn complete(&self, positions: Range<u64>) {
        self.complete_one(positions.end);
    }

    #[inline(always)]
    fn completion(&self, position: u64) -> u64 {
        position + 1
    }

    #[inline(always)]
    fn complete_one(&self, end: u64) {
        // Release pairs with the acquire in `completed`: followers see everything done with the positions.
        self.cursor.store(end, Ordering::Release);
    }

    /// Does nothing: no claim follows the dropped one, so its positions are claimed again.
    fn skip(&self, _positions: Range<u64>) {}

    #[inline(always)]
    fn is_skipped(&self, _position: u64) -> bool {
        false
    }

    #[inline(always)]
    fn may_have_skipped(&self) -> bool {
        false
    }

    fn is_complete(&self, position: u64) -> bool {
        position < self.claimed()
    }

    #[inline(always)]
    fn claimed(&self) -> u64 {
        // Relaxed: callers use only the number.
        self.cursor.load(Ordering::Relaxed)
    }
}
