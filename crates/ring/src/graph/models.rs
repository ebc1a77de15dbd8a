//! Models of `leaves::Floor`, the position that all leaves have passed. The lock and the claims around it are left out,
//! because their orderings could make up for an ordering that the floor lacks.

use std::sync::Arc;

use loom::thread;

use super::leaves::Floor;
use super::party::{Followed, Follows, Party};
use crate::model::explore;
use crate::sequencer::{Multi, SequencerParts};

/// One producer has seen the completion of the only event that is ever consumed, and has stored the floor. Another
/// producer reads that floor. Only parity tells the laps of a pool apart, and the ring has one slot. So a reader that
/// does not see the event's flag mistakes the old flag for one of the next lap.
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
