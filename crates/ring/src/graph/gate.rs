//! The slowest of several consumers, to whom more may be added.

use std::sync::Arc;

use super::party::{Followed, Follows, Party};
use crate::primitive::RwLock;
use crate::primitive::atomic::{AtomicU64, Ordering};
use crate::sequencer::{Progress, Single};

/// The consumers that nobody follows: producers wait for the slowest of them.
///
/// A lock for reading is held while a limit is computed, one for writing while a consumer is added. So every limit
/// that a producer has was computed either before, and is within a lap of where the slowest was then; or with the
/// newcomer among the leaves. Producers come here only when the limit they know is used up.
///
/// Who reads never waits for who reads, nor for who waits to write: a producer that is preempted inside makes newcomers and leavers wait,
/// but no producer. The standard lock lets nobody in behind a waiting writer, so that one would stop them all. Who writes
/// holds the lock for about a microsecond, and that is what producers may wait for.
#[derive(Debug)]
pub(super) struct Gate {
    leaves: RwLock<Follows>,
    /// All leaves have completed everything before this.
    floor: AtomicU64,
}

impl Gate {
    pub(super) fn new() -> Self {
        Gate { leaves: RwLock::new(Follows::default()), floor: AtomicU64::new(0) }
    }

    pub(super) fn set_leaves(&self, leaves: Follows) {
        *self.leaves.write() = leaves;
    }

    /// How far all leaves are.
    pub(super) fn slowest(&self) -> u64 {
        // All leaves are past the floor, which is where `completed` starts at least.
        self.completed(0)
    }

    /// Adds a consumer that starts where the slowest is.
    pub(super) fn add(&self) -> (Arc<Party<Single>>, u64) {
        let mut leaves = self.leaves.write();
        // No limit is computed meanwhile, and none that was lies more than a lap beyond the slowest.
        let start = leaves.completed(self.floor.load(Ordering::Relaxed));
        let newcomer = Arc::new(Party::new(Single::starting_at(start), 1));
        leaves.add(&(Arc::clone(&newcomer) as Arc<dyn Followed>));
        (newcomer, start)
    }

    /// A consumer has left. Producers have not waited for it since; but the list does not grow with every consumer that comes and goes.
    ///
    /// May wait for a producer that is preempted while it computes a limit: whoever is to be woken should have been before.
    pub(super) fn forget_who_left(&self) {
        self.leaves.write().forget_who_left();
    }
}

impl Progress for Gate {
    fn completed(&self, from: u64) -> u64 {
        let leaves = self.leaves.read_recursive();
        // Acquire pairs with the release below: of what is before the floor the leaves' completions are not read again, so they have to be
        // seen through whoever read them.
        let slowest = leaves.completed(from.max(self.floor.load(Ordering::Acquire)));
        let higher = |floor| (floor < slowest).then_some(slowest);
        let _ = self.floor.fetch_update(Ordering::Release, Ordering::Relaxed, higher);
        slowest
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sequencer::SequencerParts;
    use std::time::Duration;

    #[test]
    fn who_comes_and_goes_leaves_nothing_behind() {
        let (gate, producers) = (Gate::new(), Arc::new(Single::new(4, 4)));
        let follows = || Follows::new([&(Arc::clone(&producers) as Arc<dyn Followed>)]);
        let stays = gate.add().0;
        for position in 1..100 {
            let (visitor, start) = gate.add();
            assert_eq!(start, position - 1);
            producers.complete(position - 1..position);
            stays.own.complete(position - 1..position);
            assert_eq!(gate.slowest(), position - 1, "the visitor has not handled it");
            assert!(visitor.leave(follows()), "it was the only one of its party");
            gate.forget_who_left();
            assert_eq!(gate.slowest(), position);
            assert!(format!("{gate:?}").contains("Follows(2 parties)"), "{gate:?}");
        }
    }

    #[test]
    fn who_waits_to_change_the_leaves_keeps_no_producer_waiting() {
        let gate = Gate::new();
        std::thread::scope(|scope| {
            let preempted = gate.leaves.read_recursive();
            scope.spawn(|| gate.add());
            while !gate.leaves.is_locked_exclusive() {
                std::thread::yield_now();
            }
            let (sender, limits) = std::sync::mpsc::channel();
            let gate = &gate;
            scope.spawn(move || sender.send(gate.slowest()));
            let limit = limits.recv_timeout(Duration::from_secs(60));
            drop(preempted);
            assert_eq!(limit, Ok(0));
        });
    }
}
