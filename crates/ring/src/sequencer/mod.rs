//! Sequencers decide which participant may touch which position: claims, completions, and how far others have come.
//!
//! Positions count up from zero without end; position `p` lives in slot `p mod capacity`. A ring has two kinds of
//! parties, and to this module they are the same: each *claims* positions in order, works on them, and *completes*
//! them; and each follows another party, because a position may be claimed only when the party before it is through.
//! Consumers follow the producers; producers follow the last consumers, one lap behind. So one pair of types serves
//! both sides:
//!
//! | | [`Single`]: one participant | [`Multi`]: many |
//! | --- | --- | --- |
//! | claim | no other participant competes: no atomic operation | compare-and-swap of the cursor, when the position is free |
//! | complete | store the cursor | store each position's own flag, in any order, without reading other participants' flags |
//! | followers look at | the cursor | the run of flags that are set |
//! | progress of claims | wait-free | lock-free |
//! | progress of completions | wait-free | wait-free |
//!
//! # Why flags, and the cost of alternatives
//! A participant of `Multi` that is stopped between claim and completion must not keep others from completing. It does
//! not: the flags behind it are set all the same; followers stop before the gap, and go on when it closes.
//!
//! - The first disruptor let completions wait for each other by spinning; with more threads than cores the spinner
//!   keeps the thread for which it waits off the core (Michael Barker measured 56 events a second). The cure, a list of
//!   pending positions and a state machine *unpublished → pending → published* in which a failed compare-and-swap means
//!   "another thread does it", takes a store and one or more compare-and-swaps on a shared cursor for each completion,
//!   and one thread may end up publishing for all.
//! - One flag per position is that state machine with the list as its only state: a flag beyond a gap is *pending*, and
//!   *published* is a fact that the follower finds out by reading, so the last transition needs no write at all. LMAX 3
//!   and 4 do the same with a 4-byte lap number per position.
//! - A sequence word in each slot (Vyukov) costs 8 bytes beside each payload and a write by the *consumer* into each
//!   slot. A queue of tickets claimed by fetch-and-add (SCQ, LMAX's claim) never retries, but takes positions that are
//!   not free yet: a thread that holds one must wait for it, and so must all threads behind it. In trials on two cores
//!   with three producers and one consumer, fetch-and-add ahead of free slots passed 16 M events/s, sequence words 31,
//!   and this protocol 110 to 120 (200 since producers fetch the lines of free slots together before they write).
//!
//! Here a flag is one byte: the parity of the lap, and whether the position was skipped. 64 flags share a cache line,
//! so following costs a 64th of a line for each event. Parity suffices because followers never look further than one
//! lap (the comment on `Multi::completed` has the argument).
//!
//! # Skipped positions
//! A claim that is dropped, by a panic for example, is completed as *skipped*: followers pass it. A `Single` needs none
//! of this: there are no claims behind the dropped one, so it is simply taken back.

mod multi;
mod single;

pub use multi::Multi;
pub use single::Single;

use std::fmt::Debug;
use std::ops::Range;

pub(crate) use sealed::{Hand, Progress, Sequencer as SequencerParts};

/// The way in which one side of a ring claims and completes positions: [`Single`] or [`Multi`].
pub trait Sequencer: sealed::Sequencer {}

impl Sequencer for Single {}
impl Sequencer for Multi {}

pub(crate) mod sealed {
    use super::{Debug, Range};

    /// The progress of a party.
    pub trait Progress: Send + Sync {
        /// The end of the completed positions from `from` on.
        ///
        /// All positions before `from` are complete. Everything done with them, and with those up to the result, is
        /// visible to the caller (acquire).
        fn completed(&self, from: u64) -> u64;

        /// Whether `position` is completed, where all before it are; otherwise like [`completed`](Self::completed).
        #[inline(always)]
        fn has_passed(&self, position: u64) -> bool {
            self.completed(position) > position
        }
    }

    /// One participant's knowledge of its side. A call that is not inlined gets a copy: if it got the hand's address,
    /// the hand would be read from memory for each event.
    pub trait Hand: Debug + Send + Clone {
        /// Takes over the state of a copy.
        fn catch_up(&self, copy: Self);

        /// Records that all positions before `end` are completed.
        ///
        /// The best place is after the [light fence](crate::primitive::light) that follows a completion: there the
        /// compiler forgets the contents of memory, and the next claim need not load a value stored after the fence.
        fn has_completed(&self, end: u64);
    }

    impl Hand for () {
        #[inline(always)]
        fn catch_up(&self, (): ()) {}

        #[inline(always)]
        fn has_completed(&self, _end: u64) {}
    }

    /// One side of a ring.
    pub trait Sequencer: Progress + Debug + Sized + 'static {
        /// Whether there may be more than one participant.
        const MANY: bool;

        /// The state that one participant keeps to itself.
        type Hand: Hand;

        /// The argument of [`complete_one`](Self::complete_one), computed ahead.
        type Completion<'a>: Debug + Copy;

        /// A side without claims on a ring of `capacity` slots; the first `limit` positions are free.
        fn new(capacity: u64, limit: u64) -> Self;

        /// The initial state of a new participant. A `Single` has one participant at a time.
        fn hand(&self, limit: u64) -> Self::Hand;

        /// Claims at least `least` and at most `most` positions, or none.
        ///
        /// `frontier` takes a position before which all are known to be free, and returns the position before which all
        /// are free now.
        #[inline(always)]
        fn claim(&self, hand: &Self::Hand, least: u64, most: u64, frontier: impl Fn(u64) -> u64) -> Option<Range<u64>> {
            self.claim_prepared(hand, least, most, frontier, |_, _| ()).map(|(claim, ())| claim)
        }

        /// Claims like [`claim`](Self::claim), and returns the value that `prepare` made right before the claim, for its
        /// positions and the position before which all are known to be free.
        ///
        /// A claim in a `Multi` is a locked instruction. No later load begins before it ends, and it waits for the
        /// stores before it. So a load on which a store depends belongs ahead of the claim: behind it, the load delays
        /// the store, and the store delays the next claim.
        fn claim_prepared<R>(
            &self,
            hand: &Self::Hand,
            least: u64,
            most: u64,
            frontier: impl Fn(u64) -> u64,
            prepare: impl Fn(Range<u64>, u64) -> R,
        ) -> Option<(Range<u64>, R)>;

        /// Prefetches for writing the memory that completing these positions will write; a hint.
        fn fetch(&self, positions: Range<u64>);

        /// The number of positions that could be claimed now.
        fn available(&self, hand: &Self::Hand, frontier: impl Fn(u64) -> u64) -> u64;

        /// Completes claimed positions, which followers may then have (release). In a `Single`, they begin with the
        /// claim's start.
        ///
        /// The participant's hand must [record it](Hand::has_completed) afterwards.
        fn complete(&self, positions: Range<u64>);

        /// The argument of [`complete_one`](Self::complete_one) for `position`.
        fn completion(&self, position: u64) -> Self::Completion<'_>;

        /// Completes one claimed position, like [`complete`](Self::complete).
        fn complete_one(&self, completion: Self::Completion<'_>);

        /// Gives claimed positions up.
        fn skip(&self, positions: Range<u64>);

        /// Whether a completed position was given up.
        fn is_skipped(&self, position: u64) -> bool;

        /// Whether any completed position was ever given up.
        fn may_have_skipped(&self) -> bool;

        /// Whether this one position was completed; for exclusive access, without ordering.
        fn is_complete(&self, position: u64) -> bool;

        /// The end of the claimed positions (in a `Single`: of the completed ones).
        fn claimed(&self) -> u64;

        /// Ends all claims: none succeeds after this, and those that have succeeded are in [`claimed`](Self::claimed).
        /// Has no effect on a `Single`, which claims without an atomic operation.
        fn close(&self) {}

        /// Whether claims have ended. A `Single` has no such end.
        fn is_closed(&self) -> bool {
            false
        }
    }
}
