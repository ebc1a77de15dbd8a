//! Many participants.
use std::ops::Range;

use super::{Progress, Sequencer};
use crate::padded::Padded;
use crate::primitive::atomic::{AtomicU8, AtomicU64, Ordering};

#[derive(Debug)]
pub struct Multi {
    claims: Padded<Claims>,
    flags: Box<[AtomicU8]>,
    mask: usize,
    lap_shift: u32,
}

#[derive(Debug)]
struct Claims {
    cursor: AtomicU64,
    limit: AtomicU64,
}

impl Multi {
    #[inline(always)]
    fn flag(&self, position: u64) -> &AtomicU8 {
        unsafe { self.flags.get_unchecked(position as usize & self.mask) }
    }
    #[inline(always)]
    fn lap(&self, position: u64) -> u8 {
        (position >> self.lap_shift) as u8 & 1 ^ 1
    }
}

impl Progress for Multi {
    #[inline]
    fn completed(&self, from: u64) -> u64 {
        let mut at = from;
        let end = from + self.flags.len() as u64;
        while at < end && self.flag(at).load(Ordering::Acquire) & 1 == self.lap(at) {
            at += 1;
        }
        at
    }
}

impl Sequencer for Multi {
    type Hand = ();
    fn new(capacity: u64, limit: u64) -> Self {
        Multi {
            claims: Padded(Claims { cursor: AtomicU64::new(0), limit: AtomicU64::new(limit) }),
            flags: (0..capacity).map(|_| AtomicU8::new(0)).collect(),
            mask: capacity as usize - 1,
            lap_shift: capacity.trailing_zeros(),
        }
    }
    fn hand(&self, _limit: u64) {}

    #[inline(always)]
    fn claim(&self, _hand: &(), least: u64, most: u64, frontier: impl Fn(u64) -> u64) -> Option<Range<u64>> {
        let claims = &*self.claims;
        let mut lost = 0u32;
        loop {
            let at = claims.cursor.load(Ordering::Acquire);
            let mut limit = claims.limit.load(Ordering::Acquire);
            if limit < at + least {
                limit = frontier(limit.max(at));
                if limit < at + least {
                    if claims.cursor.load(Ordering::Relaxed) != at {
                        continue;
                    }
                    return None;
                }
                claims.limit.store(limit, Ordering::Release);
            }
            let n = (limit - at).min(most);
            match claims.cursor.compare_exchange(at, at + n, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(at..at + n),
                Err(_) => {
                    lost += 1;
                    for _ in 0..(1u32 << lost.min(crate::knob(0))) {
                        crate::primitive::pause();
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn complete(&self, _hand: &(), claim: Range<u64>) {
        for position in claim {
            self.flag(position).store(self.lap(position), Ordering::Release);
        }
    }

    fn room(&self, _hand: &(), frontier: impl Fn(u64) -> u64) -> u64 {
        let at = self.claims.cursor.load(Ordering::Acquire);
        let limit = self.claims.limit.load(Ordering::Acquire);
        frontier(limit.max(at)).saturating_sub(at)
    }

    #[inline(always)]
    fn skipped(&self, _position: u64) -> bool {
        false
    }
}
