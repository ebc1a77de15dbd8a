//! One participant.
use std::cell::Cell;
use std::ops::Range;

use super::{Progress, Sequencer};
use crate::padded::Padded;
use crate::primitive::atomic::{AtomicU64, Ordering};

/// A side with one participant.
#[derive(Debug)]
pub struct Single {
    completed: Padded<AtomicU64>,
}

#[derive(Debug)]
pub struct SingleHand {
    next: Cell<u64>,
    limit: Cell<u64>,
}

impl Progress for Single {
    #[inline(always)]
    fn completed(&self, _from: u64) -> u64 {
        self.completed.load(Ordering::Acquire)
    }
}

impl Sequencer for Single {
    type Hand = SingleHand;
    fn new(_capacity: u64, _limit: u64) -> Self {
        Single { completed: Padded(AtomicU64::new(0)) }
    }
    fn hand(&self, limit: u64) -> SingleHand {
        SingleHand { next: Cell::new(0), limit: Cell::new(limit) }
    }

    #[inline(always)]
    fn claim(&self, hand: &SingleHand, least: u64, most: u64, frontier: impl Fn(u64) -> u64) -> Option<Range<u64>> {
        let next = hand.next.get();
        let mut free = hand.limit.get() - next;
        if free < least {
            let limit = frontier(hand.limit.get());
            hand.limit.set(limit);
            free = limit - next;
            if free < least {
                return None;
            }
        }
        Some(next..next + free.min(most))
    }

    #[inline(always)]
    fn complete(&self, hand: &SingleHand, claim: Range<u64>) {
        hand.next.set(claim.end);
        self.completed.store(claim.end, Ordering::Release);
    }

    fn room(&self, hand: &SingleHand, frontier: impl Fn(u64) -> u64) -> u64 {
        let limit = frontier(hand.limit.get());
        hand.limit.set(limit);
        limit - hand.next.get()
    }

    #[inline(always)]
    fn skipped(&self, _position: u64) -> bool {
        false
    }
}
