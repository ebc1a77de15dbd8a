//! A side with many participants, which has a cursor for claims and a flag for each completion.

use std::ops::Range;

use super::sealed::{Progress, Sequencer};
use crate::padded::CachePadded;
use crate::primitive::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use crate::primitive::{LINE_BYTES, pause, prefetch_for_writing};

/// A side with many participants, which claim by compare-and-swap and complete in any order.
///
/// Claims are lock-free: a claim has to retry only because another one succeeded. Completions are wait-free: a store
/// for each position.
#[derive(Debug)]
pub struct Multi {
    claims: CachePadded<Claims>,
    /// One flag for each slot: [`LAP`] and [`SKIPPED`].
    flags: Box<[AtomicU8]>,
    /// Whether any position was ever skipped. Skips are rare: before the first skip, readers need not check the flags
    /// for skips.
    has_skipped: AtomicBool,
    mask: usize,
    capacity_log2: u32,
}

/// The two words that a claim uses. They share a cache line, which a thread that is about to change the cursor needs
/// anyway.
#[derive(Debug)]
struct Claims {
    /// The first unclaimed position, plus [`CLOSED`] once claims have ended.
    cursor: AtomicU64,
    /// All positions before this were found to be free. This is a hint: an older value may overwrite a newer one, so
    /// the limit may be too low, but never too high.
    limit: AtomicU64,
}

/// The bit of the cursor that ends claims. It makes the cursor larger than any limit, so that a claim finds no free
/// position and then checks this bit.
const CLOSED: u64 = 1 << 63;

const LAP: u8 = 1;
const SKIPPED: u8 = 2;

/// Binary logarithm of the longest back-off, in pauses. A participant that lost a compare-and-swap pauses 2, 4, 8, …
/// times, up to 64 times, which takes some 1.6 µs. Meanwhile the winner runs alone: a claim takes 2 ns while the line
/// stays on its core, and 60 ns when the line moves back and forth.
const MAX_PAUSES_LOG2: u32 = 6;

impl Multi {
    #[inline(always)]
    fn flag(&self, position: u64) -> &AtomicU8 {
        // SAFETY: `mask` is the number of flags minus one, so a position masked by it is the index of a flag.
        unsafe { self.flags.get_unchecked(position as usize & self.mask) }
    }

    /// The lap bit of a completed position: 1 in the first lap, because flags start as 0, then alternately 0 and 1.
    #[inline(always)]
    fn lap(&self, position: u64) -> u8 {
        !(position >> self.capacity_log2) as u8 & LAP
    }

    #[cold]
    #[inline(never)]
    fn let_the_winner_run(lost: u32) {
        for _ in 0..1u32 << lost.min(MAX_PAUSES_LOG2) {
            pause();
        }
    }
}

/// The number of leading flags that belong to this lap.
#[inline(always)]
fn run(flags: &[AtomicU8], lap: u8) -> u64 {
    // Acquire pairs, flag by flag, with the release in `complete_one` and `skip`.
    flags.iter().take_while(|flag| flag.load(Ordering::Acquire) & LAP == lap).count() as u64
}

impl Progress for Multi {
    /// Reads flags until the first that does not belong to this lap.
    ///
    /// One bit tells laps apart. Positions before `from` are complete, so the flag of a position within a lap of `from`
    /// belongs to that position's own lap, or to the lap before, whose bit differs. The flag can belong to a later lap
    /// only if `from` is long out of date. The result may then be too low, but never too high.
    #[inline]
    fn completed(&self, from: u64) -> u64 {
        // There are two runs: one to the end of the slots, and one from their beginning. Within a run the lap is the
        // same, so the loop does not load it again after every acquire.
        let (behind, before) = self.flags.split_at(from as usize & self.mask);
        let completed = run(before, self.lap(from));
        if completed < before.len() as u64 {
            return from + completed;
        }
        from + completed + run(behind, !self.lap(from) & LAP)
    }

    #[inline(always)]
    fn has_passed(&self, position: u64) -> bool {
        // Acquire pairs with the release in `complete_one` and `skip`.
        self.flag(position).load(Ordering::Acquire) & LAP == self.lap(position)
    }
}

impl Sequencer for Multi {
    const MANY: bool = true;

    /// Empty: participants share all state.
    type Hand = ();

    /// The position's flag, and its completed value.
    type Completion<'a> = (&'a AtomicU8, u8);

    fn new(capacity: u64, limit: u64) -> Self {
        Multi {
            claims: CachePadded(Claims { cursor: AtomicU64::new(0), limit: AtomicU64::new(limit) }),
            has_skipped: AtomicBool::new(false),
            flags: (0..capacity).map(|_| AtomicU8::new(0)).collect(),
            mask: capacity as usize - 1,
            capacity_log2: capacity.trailing_zeros(),
        }
    }

    fn hand(&self, _limit: u64) {}

    #[inline(always)]
    fn claim_prepared<R>(
        &self,
        _hand: &(),
        least: u64,
        most: u64,
        frontier: impl Fn(u64) -> u64,
        prepare: impl Fn(Range<u64>, u64) -> R,
    ) -> Option<(Range<u64>, R)> {
        let claims = &*self.claims;
        let mut lost = 0;
        loop {
            // Acquire pairs with the release below: this thread sees the flags of the positions before the cursor as
            // they were when those positions were claimed. An older value of such a flag has the parity of the next
            // lap, so the position one lap later would look complete.
            let next = claims.cursor.load(Ordering::Acquire);
            // Acquire pairs with the release below: the thread that found the positions free has seen their
            // completions, and so this thread sees them, too.
            let mut limit = claims.limit.load(Ordering::Acquire);
            if limit < next + least {
                if next & CLOSED != 0 {
                    return None;
                }
                // The hint may be old, and more than a lap behind. The frontier must not start there, because parity
                // does not tell laps apart at such a distance. It may start at the cursor, because all positions before
                // the cursor were claimed, and so were free.
                limit = frontier(limit.max(next));
                if limit < next + least {
                    // If the cursor has moved in the meantime, the frontier may be out of date, so the claim retries.
                    if claims.cursor.load(Ordering::Relaxed) == next {
                        return None;
                    }
                    continue;
                }
                claims.limit.store(limit, Ordering::Release);
            }
            let end = next + (limit - next).min(most);
            // This runs before the exchange, which is a release, so the compiler does not move it behind the exchange.
            let prepared = prepare(next..end, limit);
            match claims.cursor.compare_exchange(next, end, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Some((next..end, prepared)),
                Err(_) => {
                    lost += 1;
                    Self::let_the_winner_run(lost);
                }
            }
        }
    }

    fn available(&self, _hand: &(), frontier: impl Fn(u64) -> u64) -> u64 {
        // Acquire, for the reasons given in `claim_prepared`.
        let next = self.claims.cursor.load(Ordering::Acquire);
        if next & CLOSED != 0 {
            return 0;
        }
        let limit = self.claims.limit.load(Ordering::Acquire).max(next);
        frontier(limit) - next
    }

    #[inline(always)]
    fn fetch(&self, positions: Range<u64>) {
        for position in positions.step_by(LINE_BYTES) {
            prefetch_for_writing(self.flag(position));
        }
    }

    #[inline(always)]
    fn complete(&self, positions: Range<u64>) {
        for position in positions {
            self.complete_one(self.completion(position));
        }
    }

    #[inline(always)]
    fn completion(&self, position: u64) -> (&AtomicU8, u8) {
        (self.flag(position), self.lap(position))
    }

    #[inline(always)]
    fn complete_one(&self, (flag, lap): (&AtomicU8, u8)) {
        // Release pairs with the acquire in `completed` and `has_passed`.
        flag.store(lap, Ordering::Release);
    }

    #[cold]
    fn skip(&self, positions: Range<u64>) {
        // Relaxed: a thread that sees one of the flags below, which are stored with release, also sees this store.
        self.has_skipped.store(true, Ordering::Relaxed);
        for position in positions {
            self.flag(position).store(self.lap(position) | SKIPPED, Ordering::Release);
        }
    }

    #[inline(always)]
    fn is_skipped(&self, position: u64) -> bool {
        // Relaxed: `completed` has read this flag with acquire, and the flag does not change before the next lap.
        self.may_have_skipped() && self.flag(position).load(Ordering::Relaxed) & SKIPPED != 0
    }

    #[inline(always)]
    fn may_have_skipped(&self) -> bool {
        self.has_skipped.load(Ordering::Relaxed)
    }

    fn is_complete(&self, position: u64) -> bool {
        self.flag(position).load(Ordering::Relaxed) & LAP == self.lap(position)
    }

    fn claimed(&self) -> u64 {
        self.claims.cursor.load(Ordering::Relaxed) & !CLOSED
    }

    fn close(&self) {
        // Claims and their end change the same word, so each claim comes before the end or fails. Release: a thread
        // that learns of the end sees everything that preceded it.
        self.claims.cursor.fetch_or(CLOSED, Ordering::Release);
    }

    fn is_closed(&self) -> bool {
        self.claims.cursor.load(Ordering::Relaxed) & CLOSED != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Both sides of a ring of four slots.
    struct Sides {
        producers: Multi,
        consumers: Multi,
    }

    impl Sides {
        fn new() -> Self {
            Sides { producers: Multi::new(4, 4), consumers: Multi::new(4, 0) }
        }

        fn produce(&self, least: u64, most: u64) -> Option<Range<u64>> {
            self.producers.claim(&(), least, most, |from| self.consumers.completed(from - 4) + 4)
        }

        fn consume(&self, most: u64) -> Option<Range<u64>> {
            self.consumers.claim(&(), 1, most, |from| self.producers.completed(from))
        }

        fn pass(&self, positions: u64) {
            for _ in 0..positions {
                self.producers.complete(self.produce(1, 1).unwrap());
                self.consumers.complete(self.consume(1).unwrap());
            }
        }
    }

    #[test]
    fn an_outdated_hint_hides_nothing() {
        for passed in 0..20 {
            let sides = Sides::new();
            sides.pass(passed);
            // These stores imitate two threads that were stopped right before they stored the first hints of the ring,
            // and that continue only now.
            sides.producers.claims.limit.store(4, Ordering::Relaxed);
            sides.consumers.claims.limit.store(0, Ordering::Relaxed);
            assert_eq!(sides.produce(4, 4), Some(passed..passed + 4), "after {passed} positions");
            sides.producers.complete(passed..passed + 4);
            assert_eq!(sides.consume(9), Some(passed..passed + 4), "after {passed} positions");
        }
    }

    #[test]
    fn a_claim_retries_when_another_claim_made_its_frontier_stale() {
        let sides = Sides::new();
        sides.producers.complete(sides.produce(4, 4).unwrap());
        let checks = Cell::new(0);
        let claim = sides.producers.claim(&(), 1, 1, |from| {
            let full = sides.consumers.completed(from - 4) + 4;
            if checks.replace(checks.get() + 1) == 0 {
                // Right after this check, all positions are consumed and another thread claims.
                sides.consumers.complete(sides.consume(4).unwrap());
                assert_eq!(sides.produce(1, 1), Some(4..5));
            }
            full
        });
        assert_eq!(claim, Some(5..6));
    }

    #[test]
    fn followers_stop_at_a_gap_and_go_on_when_it_closes() {
        for passed in 0..20 {
            let sides = Sides::new();
            sides.pass(passed);
            let [first, second, third] = [(); 3].map(|()| sides.produce(1, 1).unwrap());
            sides.producers.complete(third);
            sides.producers.complete(second);
            assert_eq!(sides.consume(9), None);
            assert_eq!([0, 1, 2].map(|offset| sides.producers.has_passed(passed + offset)), [false, true, true]);
            sides.producers.complete(first);
            assert!(sides.producers.has_passed(passed));
            assert_eq!(sides.consume(9), Some(passed..passed + 3));
        }
    }

    #[test]
    fn a_full_ring_and_an_empty_one_are_told_apart_in_every_lap() {
        for passed in 0..20 {
            let sides = Sides::new();
            sides.pass(passed);
            assert_eq!(sides.consume(1), None);
            sides.producers.complete(sides.produce(4, 4).unwrap());
            assert_eq!(sides.produce(1, 1), None);
            let taken = sides.consume(4).unwrap();
            assert_eq!(sides.produce(1, 1), None, "taken positions were free before their completion");
            sides.consumers.complete(taken);
            assert_eq!(sides.produce(5, 5), None, "a claim got more than a lap");
            assert!(sides.produce(4, 4).is_some());
        }
    }

    #[test]
    fn no_claim_succeeds_after_the_end_and_earlier_claims_stay() {
        for passed in 0..20 {
            let sides = Sides::new();
            sides.pass(passed);
            let claim = sides.produce(1, 2).unwrap();
            sides.producers.close();
            assert_eq!(sides.produce(1, 1), None);
            assert_eq!(sides.producers.available(&(), |from| from + 4), 0);
            assert!(sides.producers.is_closed() && !sides.consumers.is_closed());
            assert_eq!(sides.producers.claimed(), claim.end);
            sides.producers.complete(claim.clone());
            assert_eq!(sides.consume(9), Some(claim));
        }
    }

    #[test]
    fn a_skipped_position_counts_as_completed_for_one_lap() {
        let sides = Sides::new();
        sides.producers.complete(sides.produce(1, 1).unwrap());
        sides.producers.skip(sides.produce(1, 1).unwrap());
        assert_eq!(sides.consume(9), Some(0..2));
        assert_eq!([0, 1].map(|position| sides.producers.is_skipped(position)), [false, true]);
        sides.consumers.complete(0..2);
        sides.pass(4);
        assert!(!sides.producers.is_skipped(5), "slot 1 stayed skipped for a second lap");
    }
}
