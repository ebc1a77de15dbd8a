//! Sequencers decide which participant may use which position, by claims and completions.
//!
//! Positions count up from zero without end; position `p` uses slot `p mod capacity`. A ring has producers and
//! consumers, and to this module the two sides are alike. Each side *claims* positions in order, works on them, and
//! *completes* them. Each side follows the other: a position may be claimed only when the side in front has completed
//! it. Consumers follow the producers; producers follow the last consumers, one lap behind. So one pair of types serves
//! both sides:
//!
//! | | [`Single`]: one participant | [`Multi`]: many |
//! | --- | --- | --- |
//! | claim | no other participant competes: no atomic operation | compare-and-swap of the cursor, when the position is free |
//! | complete | store the cursor | store each position's own flag, in any order, without reading other participants' flags |
//! | followers read | the cursor | the run of flags that are set |
//! | progress of claims | wait-free | lock-free |
//! | progress of completions | wait-free | wait-free |
//!
//! # Why flags, and the cost of alternatives
//! A participant of `Multi` that is stopped between claim and completion must not keep others from completing. Flags
//! ensure this: the others set their own flags behind the gap. Followers stop in front of the gap, and continue when it
//! closes.
//!
//! - In the first disruptor, completions waited for each other by spinning. With more threads than cores, a spinning
//!   thread occupies the core that the other thread needs (Michael Barker measured 56 events a second). The remedy was
//!   a list of pending positions, each *unpublished*, *pending* or *published*, where a thread whose compare-and-swap
//!   fails leaves the publication to another thread. Each completion takes a store and one or more compare-and-swaps on
//!   a shared cursor, and one thread may have to publish for all.
//! - One flag per position, as here, has the same states without a list. A flag that is set behind a gap means
//!   *pending*. When the gap closes, followers find all flags up to this flag set, which means *published*. So
//!   publishing takes no further write. LMAX 3 and 4 do the same with a 4-byte lap number per position.
//! - A sequence word in each slot (Vyukov) costs 8 bytes next to each payload, and a write by the *consumer* to each
//!   slot. A claim by fetch-and-add (SCQ, LMAX) never retries, but it may claim a position that is not free yet. Its
//!   thread must then wait for that position, and so must all threads behind it. On two cores with three producers and
//!   one consumer, fetch-and-add passed 16 M events/s, sequence words passed 31 M, and this protocol 110 to 120 M (200
//!   M with producers that prefetch the lines of free slots together before they write).
//!
//! Here a flag is one byte: the parity of the lap, and whether the position was skipped. 64 flags share a cache line,
//! so a follower reads a 64th of a line for each event. Parity suffices because followers never read further ahead than
//! one lap (the comment on `Multi::completed` has the argument).
//!
//! # Skipped positions
//! A claim that is dropped, by a panic for example, is completed as *skipped*, and followers pass it. A `Single` does
//! not need this: no claim follows the dropped claim, so its positions are claimed again.

mod multi;
mod single;

pub use multi::Multi;
pub use single::Single;

use std::fmt::Debug;
use std::ops::Range;

pub(crate) use sealed::{Hand, Progress, Sequencer as SequencerParts};

/// How one side of a ring claims and completes positions: [`Single`] or [`Multi`].
pub trait Sequencer: sealed::Sequencer {}

impl Sequencer for Single {}
impl Sequencer for Multi {}

pub(crate) mod sealed {
    use super::{Debug, Range};

    /// The progress of one side of a ring, or of a party of consumers.
    pub trait Progress: Send + Sync {
        /// The end of the run of completed positions that starts at `from`.
        ///
        /// The caller knows that all positions before `from` are complete. Everything done with the positions before
        /// the result is visible to the caller (acquire).
        fn completed(&self, from: u64) -> u64;

        /// Whether `position` is completed. The caller knows that all positions before it are. Otherwise like
        /// [`completed`](Self::completed).
        #[inline(always)]
        fn has_passed(&self, position: u64) -> bool {
            self.completed(position) > position
        }
    }

    /// One participant's private state. A function that is not inlined gets a copy of the hand. If it got the hand's
    /// address, the compiler would have to read the hand from memory for each event.
    pub trait Hand: Debug + Send + Clone {
        /// Replaces this state with that of a copy.
        fn catch_up(&self, copy: Self);

        /// Records that this participant has completed all positions before `end`.
        ///
        /// The best time to call this is after the [light fence](crate::primitive::light) that follows a completion. At
        /// the fence the compiler discards what it knows about memory; a value stored after the fence can stay in a
        /// register for the next claim.
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

        /// The private state of one participant.
        type Hand: Hand;

        /// The argument of [`complete_one`](Self::complete_one), computed before the claim.
        type Completion<'a>: Debug + Copy;

        /// A side of a ring of `capacity` slots, without claims. The first `limit` positions are free.
        fn new(capacity: u64, limit: u64) -> Self;

        /// The initial state of a new participant. A `Single` has one participant at a time.
        fn hand(&self, limit: u64) -> Self::Hand;

        /// Claims at least `least` and at most `most` positions, or none.
        ///
        /// `frontier` takes a position before which all positions are known to be free, and returns the position before
        /// which all are free now.
        #[inline(always)]
        fn claim(&self, hand: &Self::Hand, least: u64, most: u64, frontier: impl Fn(u64) -> u64) -> Option<Range<u64>> {
            self.claim_prepared(hand, least, most, frontier, |_, _| ()).map(|(claim, ())| claim)
        }

        /// Claims like [`claim`](Self::claim), and also returns the result of `prepare`, which runs right before the
        /// claim. `prepare` gets the positions to be claimed, and the position before which all positions are known to
        /// be free.
        ///
        /// A claim in a `Multi` is a locked instruction: no later load begins before it ends, and it waits for all
        /// earlier stores. So a load on which a store depends should precede the claim. After the claim, the load would
        /// delay the store, and the store would delay the next claim.
        fn claim_prepared<R>(
            &self,
            hand: &Self::Hand,
            least: u64,
            most: u64,
            frontier: impl Fn(u64) -> u64,
            prepare: impl Fn(Range<u64>, u64) -> R,
        ) -> Option<(Range<u64>, R)>;

        /// Prefetches, for writing, the memory that completing these positions writes. This is a hint.
        fn fetch(&self, positions: Range<u64>);

        /// The number of positions that could be claimed now.
        fn available(&self, hand: &Self::Hand, frontier: impl Fn(u64) -> u64) -> u64;

        /// Completes claimed positions, so that followers may claim them (release). In a `Single`, `positions` starts
        /// where the claim starts.
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

        /// Whether this one position was completed. Without ordering, for callers with exclusive access.
        fn is_complete(&self, position: u64) -> bool;

        /// The end of the claimed positions; in a `Single`, of the completed positions.
        fn claimed(&self) -> u64;

        /// Ends all claims: none succeeds after this, and [`claimed`](Self::claimed) includes all that have succeeded.
        /// Has no effect on a `Single`, which claims without an atomic operation.
        fn close(&self) {}

        /// Whether claims have ended. Always `false` for a `Single`.
        fn is_closed(&self) -> bool {
            false
        }
    }
}
