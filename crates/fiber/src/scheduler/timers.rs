//! Timers: the moments at which a worker must wake its fibers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::core::Core;

/// A timer that has been set: its moment, and a number that distinguishes timers of the same moment.
pub(crate) type TimerKey = (Instant, u64);

/// A worker's timers. Setting or clearing one of `n` timers takes O(log n).
#[derive(Default)]
pub(crate) struct Timers {
    due: RefCell<BTreeMap<TimerKey, Arc<Core>>>,
    numbers: Cell<u64>,
}

impl Timers {
    pub(crate) fn set(&self, at: Instant, fiber: Arc<Core>) -> TimerKey {
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        self.due.borrow_mut().insert((at, number), fiber);
        (at, number)
    }

    pub(crate) fn clear(&self, key: TimerKey) {
        self.due.borrow_mut().remove(&key);
    }

    /// Returns the next moment at which a fiber is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.borrow().first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes and returns the earliest fiber that is due.
    pub(super) fn pop_due(&self, now: Instant) -> Option<Arc<Core>> {
        let mut due = self.due.borrow_mut();
        let first = due.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn fibers_are_due_in_the_order_of_their_moments_and_not_after_they_are_cleared() {
        let timers = Timers::default();
        let start = Instant::now();
        let fiber = || Arc::new(Core::new(None, crate::IoModel::default(), Box::new(|_| ())));
        let fibers: Vec<_> = (0..4).map(|_| fiber()).collect();
        let keys: Vec<_> = [20, 10, 10, 30]
            .into_iter()
            .zip(&fibers)
            .map(|(ms, fiber)| timers.set(start + Duration::from_millis(ms), Arc::clone(fiber)))
            .collect();
        assert_eq!(timers.next(), Some(start + Duration::from_millis(10)));
        timers.clear(keys[2]);
        assert_eq!(Arc::strong_count(&fibers[2]), 1);
        assert!(timers.pop_due(start).is_none());
        let due = || timers.pop_due(start + Duration::from_millis(20)).map(|fiber| fiber.id);
        assert_eq!([due(), due(), due()], [Some(fibers[1].id), Some(fibers[0].id), None]);
        timers.clear(keys[0]);
        assert_eq!(timers.next(), Some(start + Duration::from_millis(30)));
    }
}
