//! Timers: the times at which a worker must wake its fibers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Instant;

use super::core_ref::CoreRef;

/// The key of a timer: its time, and a number that distinguishes timers with the same time.
pub(crate) type TimerKey = (Instant, u64);

/// A worker's timers. Setting or clearing one of `n` timers takes O(log n).
#[derive(Default)]
pub(crate) struct Timers {
    due: RefCell<BTreeMap<TimerKey, CoreRef>>,
    numbers: Cell<u64>,
}

impl Timers {
    pub(crate) fn set(&self, at: Instant, fiber: CoreRef) -> TimerKey {
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        self.due.borrow_mut().insert((at, number), fiber);
        (at, number)
    }

    pub(crate) fn clear(&self, key: TimerKey) {
        self.due.borrow_mut().remove(&key);
    }

    /// Returns the time of the next timer.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.borrow().first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes and returns the earliest fiber that is due.
    pub(super) fn pop_due(&self, now: Instant) -> Option<CoreRef> {
        let mut due = self.due.borrow_mut();
        let first = due.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::NonNull;
    use std::time::Duration;

    use super::*;
    use crate::scheduler::blocks::Pool;
    use crate::scheduler::core::{Core, Start, Work};
    use crate::scheduler::local::take_numbers;

    struct Nothing;

    impl Work for Nothing {
        unsafe fn run(&self, _: Start) {}

        unsafe fn discard(&self) {}
    }

    #[test]
    fn fibers_are_due_in_the_order_of_their_moments_and_not_after_they_are_cleared() {
        let timers = Timers::default();
        let start = Instant::now();
        let pool = Pool::new(&[]);
        let next = || take_numbers(1).start;
        let work = || NonNull::from(Box::leak(Box::new(Nothing)));
        let fiber = || pool.take().fill(Core::new(next(), None, crate::IoModel::default(), None, work()));
        let fibers: Vec<_> = (0..4).map(|_| fiber()[0].clone()).collect();
        let keys: Vec<_> = [20, 10, 10, 30]
            .into_iter()
            .zip(&fibers)
            .map(|(ms, fiber)| timers.set(start + Duration::from_millis(ms), fiber.clone()))
            .collect();
        assert_eq!(timers.next(), Some(start + Duration::from_millis(10)));
        timers.clear(keys[2]);
        assert_eq!(CoreRef::count(&fibers[2]), 1);
        assert!(timers.pop_due(start).is_none());
        let due = || timers.pop_due(start + Duration::from_millis(20)).map(|fiber| fiber.id);
        assert_eq!([due(), due(), due()], [Some(fibers[1].id), Some(fibers[0].id), None]);
        timers.clear(keys[0]);
        assert_eq!(timers.next(), Some(start + Duration::from_millis(30)));
    }
}
