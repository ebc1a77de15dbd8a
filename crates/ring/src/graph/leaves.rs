//! The leaves of the graph: the consumers without followers. Producers wait for the slowest of them.

use std::sync::Arc;

use super::party::{Followed, Follows, Party};
use crate::primitive::RwLock;
use crate::primitive::atomic::{AtomicU64, Ordering};
use crate::sequencer::{Progress, Single};

/// The leaves of the graph. More may be added while the ring runs.
///
/// A producer computes its limit, the position up to which it may claim, under a read lock; a consumer is added under
/// the write lock. So a limit was computed either before a newcomer was added or with the newcomer among the leaves. In
/// the first case the limit is at most a lap beyond the position of the slowest consumer, where the newcomer starts. A
/// producer takes the lock only when it has used up the limit it knows.
///
/// A reader waits neither for other readers nor for a waiting writer. So a producer that is preempted with the lock
/// delays consumers that join or leave, but no other producer. With the standard lock, readers would wait behind a
/// waiting writer: while a consumer waits to join or leave, one preempted producer would stop all others. A writer holds
/// the lock for about a microsecond; a producer waits no longer than that.
#[derive(Debug)]
pub(super) struct Leaves {
    parties: RwLock<Follows>,
    floor: Floor,
}

impl Leaves {
    pub(super) fn new() -> Self {
        Leaves { parties: RwLock::new(Follows::default()), floor: Floor::new() }
    }

    pub(super) fn set(&self, leaves: Follows) {
        *self.parties.write() = leaves;
    }

    /// The position up to which all leaves have completed.
    pub(super) fn slowest(&self) -> u64 {
        // `completed` never starts below the floor, which all leaves have passed.
        self.completed(0)
    }

    /// Adds a consumer that starts at the position of the slowest one.
    pub(super) fn add(&self) -> (Arc<Party<Single>>, u64) {
        let mut leaves = self.parties.write();
        // Under the write lock no limit is computed, and no earlier limit is more than a lap beyond the slowest
        // consumer.
        let start = leaves.completed(self.floor.0.load(Ordering::Relaxed));
        let newcomer = Arc::new(Party::new(Single::starting_at(start), 1));
        leaves.add(&(Arc::clone(&newcomer) as Arc<dyn Followed>));
        (newcomer, start)
    }

    /// Removes consumers that have left, so that the list does not grow with every consumer that joins and leaves.
    /// Producers stopped waiting for them when they left.
    ///
    /// May wait for a producer that is preempted while it computes a limit, so the caller should wake other threads
    /// first.
    pub(super) fn forget_departed(&self) {
        self.parties.write().forget_departed();
    }
}

impl Progress for Leaves {
    fn completed(&self, from: u64) -> u64 {
        self.floor.completed(&self.parties.read_recursive(), from)
    }
}

/// A position that all leaves have passed, according to the producers' checks so far.
#[derive(Debug)]
pub(super) struct Floor(AtomicU64);

impl Floor {
    pub(super) fn new() -> Self {
        Floor(AtomicU64::new(0))
    }

    /// The position up to which all of `leaves` have completed, given that they have completed everything before
    /// `from`. Several producers may call this at the same time.
    pub(super) fn completed(&self, leaves: &Follows, from: u64) -> u64 {
        // Acquire pairs with the release below. This thread does not read the completions before the floor, so it must
        // see them through the thread that did. Otherwise an old flag could be mistaken for one of a later lap. The
        // lock does not order the two threads, because both may hold it for reading.
        let slowest = leaves.completed(from.max(self.0.load(Ordering::Acquire)));
        let higher = |floor| (floor < slowest).then_some(slowest);
        let _ = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, higher);
        slowest
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sequencer::SequencerParts;
    use std::time::Duration;

    #[test]
    fn a_consumer_that_joins_and_leaves_is_forgotten() {
        let (leaves, producers) = (Leaves::new(), Arc::new(Single::new(4, 4)));
        let follows = || Follows::new([&(Arc::clone(&producers) as Arc<dyn Followed>)]);
        let stays = leaves.add().0;
        for position in 1..100 {
            let (visitor, start) = leaves.add();
            assert_eq!(start, position - 1);
            producers.complete(position - 1..position);
            stays.own.complete(position - 1..position);
            assert_eq!(
                leaves.slowest(),
                position - 1,
                "the slowest is not the visitor, which has not handled the event"
            );
            assert!(visitor.leave(follows()), "the visitor was not the last of its party");
            leaves.forget_departed();
            assert_eq!(leaves.slowest(), position);
            assert!(format!("{leaves:?}").contains("Follows(2 parties)"), "{leaves:?}");
        }
    }

    #[test]
    fn a_waiting_writer_keeps_no_producer_waiting() {
        let leaves = Leaves::new();
        std::thread::scope(|scope| {
            let preempted = leaves.parties.read_recursive();
            scope.spawn(|| leaves.add());
            while !leaves.parties.is_locked_exclusive() {
                std::thread::yield_now();
            }
            let (sender, limits) = std::sync::mpsc::channel();
            let leaves = &leaves;
            scope.spawn(move || sender.send(leaves.slowest()));
            let limit = limits.recv_timeout(Duration::from_secs(60));
            drop(preempted);
            assert_eq!(limit, Ok(0));
        });
    }
}
