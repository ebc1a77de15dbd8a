//! The interface of the part: the budget, the entrance and the source, and the first queue that units enter.

use super::budget::Budget;
use super::entrance::{Entering, Entrance, Wake};
use super::source_state::SourceState;

pub(crate) struct Intake {
    budget: Budget,
    entrance: Entrance,
    source: Option<SourceState>,
    /// The stage that units enter first.
    entry: u16,
    /// The resource that bounds the entry stage's queue, if the queue is bounded.
    entry_place: Option<u16>,
    /// The number of units that entered through the gate.
    left_the_gate: u64,
}

impl Intake {
    pub(crate) fn new(budget: Budget, entry: u16, entry_place: Option<u16>) -> Self {
        Intake { budget, entrance: Entrance::default(), source: None, entry, entry_place, left_the_gate: 0 }
    }

    #[inline]
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    #[inline]
    pub(crate) fn budget_mut(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// The stage that units enter first.
    #[inline]
    pub(crate) fn entry(&self) -> u16 {
        self.entry
    }

    /// The resource that bounds the entry stage's queue.
    #[inline]
    pub(crate) fn entry_place(&self) -> Option<u16> {
        self.entry_place
    }
}

// ---- the source ---------------------------------------------------------------------------------------

impl Intake {
    /// Gives the flow a source.
    pub(crate) fn attach(&mut self) {
        self.source = Some(SourceState::new());
    }

    #[inline]
    pub(crate) fn source(&self) -> Option<&SourceState> {
        self.source.as_ref()
    }

    #[inline]
    pub(crate) fn source_mut(&mut self) -> Option<&mut SourceState> {
        self.source.as_mut()
    }

    /// Takes out the source's state, for a step that also changes other parts of the intake.
    /// [`put_source`](Self::put_source) puts it back.
    #[inline]
    pub(crate) fn take_source(&mut self) -> Option<SourceState> {
        self.source.take()
    }

    #[inline]
    pub(crate) fn put_source(&mut self, source: SourceState) {
        self.source = Some(source);
    }

    /// Whether pulled units wait for admission.
    #[inline]
    pub(crate) fn has_pulled(&self) -> bool {
        self.source.as_ref().is_some_and(|source| !source.is_empty())
    }

    #[inline]
    pub(crate) fn is_pulling(&self) -> bool {
        self.source.as_ref().is_some_and(SourceState::is_pulling)
    }

    /// The number of pulls that occupy the slot of a shared worker: 0 or 1.
    #[inline]
    pub(crate) fn pulls_in_place(&self) -> usize {
        usize::from(self.source.as_ref().is_some_and(SourceState::is_in_place))
    }

    /// Whether a worker may pull if the flow has room. A pull must not overtake a waiting submitter.
    #[inline]
    pub(crate) fn is_ready_to_pull(&self) -> bool {
        self.source.as_ref().is_some_and(SourceState::is_ready) && self.entrance.len() == 0
    }
}

// ---- the entrance and the gate ------------------------------------------------------------------------

impl Intake {
    /// Counts units that have left the gate.
    pub(crate) fn count_left_the_gate(&mut self, units: usize) {
        self.left_the_gate += units as u64;
    }

    /// The value that `left_the_gate` will have when all units that are now at the gate have left.
    pub(crate) fn behind(&self, at_the_gate: usize) -> u64 {
        self.left_the_gate + at_the_gate as u64
    }

    /// The number of units that may leave the gate before the first submitter at the entrance enters.
    pub(crate) fn may_leave_the_gate(&self) -> usize {
        let behind = self.entrance.head_is_behind();
        behind.map_or(usize::MAX, |behind| behind.saturating_sub(self.left_the_gate) as usize)
    }

    /// Whether the submitter at position `place` (`None`: a newcomer) is the next to enter. All units that came to the
    /// gate before the first submitter in line must have left the gate.
    pub(crate) fn is_turn(&self, place: Option<u64>, at_the_gate: usize) -> bool {
        // A newcomer is behind all units that are at the gate.
        let behind = self.entrance.head_is_behind().unwrap_or_else(|| self.behind(at_the_gate));
        behind <= self.left_the_gate && self.entrance.is_next(place)
    }

    /// Whether no submitter is ahead of position `place` (`None`: a newcomer).
    pub(crate) fn is_next(&self, place: Option<u64>) -> bool {
        self.entrance.is_next(place)
    }

    /// Joins the line at the entrance or keeps a position in it (see [`Entrance::wait`]).
    #[must_use = "the waker must be dropped without holding the mutex"]
    pub(crate) fn wait(
        &mut self,
        place: &mut Option<u64>,
        at_the_gate: usize,
        bytes: u64,
        is_unticketed: bool,
        wake: Wake,
    ) -> Option<Wake> {
        let behind = self.behind(at_the_gate);
        self.entrance.wait(place, behind, bytes, is_unticketed, wake)
    }

    /// Leaves the entrance (see [`Entrance::leave`]).
    #[must_use = "the waker must be dropped without holding the mutex"]
    pub(crate) fn leave(&mut self, place: Option<u64>) -> Option<Wake> {
        self.entrance.leave(place)
    }

    /// Removes submitters whose wake-ups failed.
    pub(crate) fn expel(&mut self, places: &[u64]) {
        places.iter().for_each(|&place| self.entrance.expel(place));
    }

    /// Whether the first submitter sleeps, no unit at the gate is ahead of it, and `may_enter(bytes, is_unticketed)`
    /// agrees.
    #[inline]
    pub(crate) fn head_may_enter(&self, may_enter: impl FnOnce(u64, bool) -> bool) -> bool {
        self.entrance.head_may_enter(self.left_the_gate, may_enter)
    }

    /// Whether the entrance has a submitter that [`wake_all`](Self::wake_all) has not woken.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.entrance.has_sleepers()
    }

    /// Takes the first submitter's waker.
    pub(crate) fn wake_head(&mut self) -> Entering {
        self.entrance.wake_head().into_iter().collect()
    }

    /// Takes the wakers of all submitters, because none will ever enter.
    pub(crate) fn wake_all(&mut self) -> Entering {
        self.entrance.wake_all()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use millstream_sync::eventcount::EventCount;

    use super::*;

    #[test]
    fn a_submitter_enters_after_the_units_at_the_gate_and_before_later_units() {
        let mut intake = Intake::new(Budget::new(10, 10), 0, None);
        let mut place = None;
        assert!(intake.is_turn(None, 0) && !intake.is_turn(None, 3));
        assert!(intake.wait(&mut place, 3, 1, false, Wake::Thread(Arc::new(EventCount::new()))).is_none());
        assert!(!intake.is_next(None) && intake.may_leave_the_gate() == 3 && !intake.head_may_enter(|_, _| true));
        intake.count_left_the_gate(3);
        assert_eq!(intake.may_leave_the_gate(), 0);
        assert!(intake.is_turn(place, 5) && intake.head_may_enter(|_, _| true));
        assert_eq!(intake.wake_head().len(), 1);
        assert!(intake.leave(place).is_none() && intake.may_leave_the_gate() == usize::MAX);
    }

    #[test]
    fn a_pull_does_not_overtake_a_waiting_submitter() {
        let mut intake = Intake::new(Budget::new(10, 10), 0, None);
        assert!(!intake.is_ready_to_pull());
        intake.attach();
        assert!(intake.is_ready_to_pull());
        let mut place = None;
        let _ = intake.wait(&mut place, 0, 1, false, Wake::Thread(Arc::new(EventCount::new())));
        assert!(!intake.is_ready_to_pull());
    }
}
