//! Models of the position before which all leaves have completed, without the lock and the claims around it, whose
//! orderings could stand in for those of the floor.

use std::sync::Arc;

use loom::thread;

use super::leaves::Floor;
use super::party::{Followed, Follows, Party};
use crate::model::explore;
use crate::sequencer::{Multi, SequencerParts};

/// One producer has seen the only event that is ever consumed, and another takes over the floor from it. Only parity
/// tells the laps of a pool apart, and its ring has one slot: a producer that has not seen the event's flag takes it for
/// one of the next lap.
#[test]
fn a_producer_that_takes_over_the_floor_has_seen_the_completions_before_it() {
    explore(2, || {
        let pool = Arc::new(Party::new(Multi::new(1, 0), 1));
        let leaves = Follows::new([&(Arc::clone(&pool) as Arc<dyn Followed>)]);
        let floor = Arc::new(Floor::new());
        let (others, others_floor) = (leaves.clone(), Arc::clone(&floor));
        let other = thread::spawn(move || {
            let completed = others_floor.completed(&others, 0);
            assert!(completed <= 1, "an event was consumed that was never published");
        });
        pool.own.complete(0..1);
        assert_eq!(floor.completed(&leaves, 0), 1);
        other.join().unwrap();
    });
}
