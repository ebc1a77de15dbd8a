//! The entrance: submitters that wait until there is room, first come, first served.
//!
//! No newcomer overtakes a waiting submitter: the newcomer joins the end of the line, or is told that the flow is full.
//! So a large unit gets in even if smaller units keep coming. A unit larger than the whole budget closes admission
//! until the flow is empty.
//!
//! A waker is user code, so the line only stores it: a submitter brings its waker, and the line returns the waker once.
//! Everything else (cloning, waking, dropping) happens without the flow's mutex.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use millstream_sync::eventcount::EventCount;

use crate::contain::{self, Contained};

#[derive(Default)]
pub(crate) struct Entrance {
    /// The submitters by position; positions only grow.
    line: BTreeMap<u64, Waiting>,
    next: u64,
    /// Every waker in line has been taken.
    all_woken: bool,
}

struct Waiting {
    /// The number of units that must have left the gate before the submitter may enter.
    behind: u64,
    bytes: u64,
    /// The submitter awaits no ticket. Like a source, it need not be woken as soon as there is room for a single unit
    /// (see `wants_more`).
    is_unticketed: bool,
    /// The submitter's waker; `None` if it was woken and has not returned yet.
    wake: Option<Wake>,
}

/// Wakers of submitters, each with its position at the entrance.
pub(crate) type Entering = Vec<(u64, Wake)>;

/// A submitter's waker, used once. Dropping it may run a user's destructor, whose panic is contained.
pub(crate) enum Wake {
    Thread(Arc<EventCount>),
    Task(Contained<Waker>),
}

impl Wake {
    /// Wakes the submitter. Returns whether the wake-up ran to completion. The caller must hold no lock.
    pub(crate) fn wake(self) -> bool {
        match self {
            Wake::Thread(bell) => {
                bell.increment();
                true
            }
            Wake::Task(waker) => contain::wake(waker),
        }
    }
}

impl Entrance {
    pub(crate) fn len(&self) -> usize {
        self.line.len()
    }

    /// Whether the submitter at position `place` (`None`: a newcomer) is the next to enter.
    pub(crate) fn is_next(&self, place: Option<u64>) -> bool {
        self.line.first_key_value().is_none_or(|(&head, _)| Some(head) == place)
    }

    /// The number of units that must have left the gate before the head of the line may enter.
    pub(crate) fn head_is_behind(&self) -> Option<u64> {
        self.line.first_key_value().map(|(_, head)| head.behind)
    }

    /// Joins the end of the line, behind the units that are at the gate now. A submitter that is already in line keeps
    /// its position and replaces its waker. Costs O(log n) with n submitters in line. Returns the replaced waker, which
    /// the caller must drop without holding the mutex.
    #[must_use = "the waker must be dropped without holding the mutex"]
    pub(crate) fn wait(
        &mut self,
        place: &mut Option<u64>,
        behind: u64,
        bytes: u64,
        is_unticketed: bool,
        wake: Wake,
    ) -> Option<Wake> {
        self.all_woken = false;
        if let Some(waiting) = place.and_then(|place| self.line.get_mut(&place)) {
            return waiting.wake.replace(wake);
        }
        *place = Some(self.next);
        self.line.insert(self.next, Waiting { behind, bytes, is_unticketed, wake: Some(wake) });
        self.next += 1;
        None
    }

    /// Leaves the line. Returns the submitter's waker, which the caller must drop without holding the mutex.
    #[must_use = "the waker must be dropped without holding the mutex"]
    pub(crate) fn leave(&mut self, place: Option<u64>) -> Option<Wake> {
        self.line.remove(&place?)?.wake
    }

    /// Removes a submitter whose wake-up failed, unless it has returned nevertheless.
    pub(crate) fn expel(&mut self, place: u64) {
        if self.line.get(&place).is_some_and(|waiting| waiting.wake.is_none()) {
            self.line.remove(&place);
        }
    }

    /// Whether to wake the head of the line. The head must not have been woken yet, all units ahead of it must have
    /// left the gate, and `may_enter(bytes, is_unticketed)` must agree. `left` is the number of units that have left
    /// the gate.
    #[inline]
    pub(crate) fn head_may_enter(&self, left: u64, may_enter: impl FnOnce(u64, bool) -> bool) -> bool {
        self.line.first_key_value().is_some_and(|(_, head)| {
            head.wake.is_some() && head.behind <= left && may_enter(head.bytes, head.is_unticketed)
        })
    }

    /// Whether the line has a submitter that [`wake_all`](Self::wake_all) has not woken.
    pub(crate) fn has_sleepers(&self) -> bool {
        !self.all_woken && !self.line.is_empty()
    }

    /// Takes the head's waker.
    pub(crate) fn wake_head(&mut self) -> Option<(u64, Wake)> {
        let (&place, head) = self.line.iter_mut().next()?;
        head.wake.take().map(|wake| (place, wake))
    }

    /// Takes the wakers of all submitters in line. This costs time proportional to the length of the line, or O(1) if
    /// no submitter has joined since the last call.
    pub(crate) fn wake_all(&mut self) -> Entering {
        if std::mem::replace(&mut self.all_woken, true) {
            return Vec::new();
        }
        self.line.iter_mut().filter_map(|(&place, waiting)| Some((place, waiting.wake.take()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread() -> Wake {
        Wake::Thread(Arc::new(EventCount::new()))
    }

    #[test]
    fn a_position_is_kept_until_its_submitter_leaves_or_its_wake_up_fails() {
        let mut entrance = Entrance::default();
        let mut places = [None; 3];
        for place in &mut places {
            assert!(entrance.wait(place, 0, 1, false, thread()).is_none());
        }
        assert!(entrance.head_may_enter(0, |bytes, _| bytes == 1) && !entrance.head_may_enter(0, |_, _| false));
        let (woken, _) = entrance.wake_head().expect("it is asleep");
        assert!(Some(woken) == places[0] && !entrance.head_may_enter(0, |_, _| true), "a submitter is woken once");
        let mut comes_back = places[0];
        assert!(entrance.wait(&mut comes_back, 0, 1, false, thread()).is_none() && comes_back == places[0]);
        entrance.expel(woken);
        assert!(entrance.is_next(places[0]), "it came back before it was expelled");
        assert!(entrance.leave(places[1]).is_some() && entrance.leave(places[1]).is_none());
        let _ = entrance.wake_head();
        entrance.expel(woken);
        assert!(entrance.is_next(places[2]) && entrance.len() == 1);
    }

    #[test]
    fn a_submitter_that_comes_after_all_were_woken_is_woken_too() {
        let mut entrance = Entrance::default();
        let (mut first, mut second) = (None, None);
        let _ = entrance.wait(&mut first, 0, 1, false, thread());
        assert_eq!((entrance.wake_all().len(), entrance.wake_all().len()), (1, 0));
        let _ = entrance.wait(&mut second, 0, 1, false, thread());
        assert_eq!((entrance.wake_all().len(), entrance.wake_all().len()), (1, 0));
        let _ = entrance.wait(&mut first, 0, 1, false, thread());
        assert_eq!(entrance.wake_all().len(), 1);
    }

    #[test]
    fn a_long_line_costs_no_more_than_a_short_one() {
        const LINE: usize = 100_000;
        let mut entrance = Entrance::default();
        let mut places = vec![None; LINE];
        let began = std::time::Instant::now();
        for _ in 0..3 {
            for place in &mut places {
                let _ = entrance.wait(place, 0, 1, false, thread());
            }
        }
        // A search from the front for each position would take fifteen billion steps.
        assert!(entrance.len() == LINE && began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }
}
