//! The phase of a flow's life, and the reasons for its end.

use crate::report::Outcome;
use crate::snapshot::Phase;

pub(crate) struct Life {
    phase: Phase,
    stopped_by_failure: bool,
    /// The gate has been told that a failure stopped the flow.
    gate_closed: bool,
    /// The flow was stopped or abandoned; the source's own end does not set this.
    stop_asked: bool,
    /// The flow was joined, so its threads exit.
    finished: bool,
}

impl Life {
    pub(crate) fn new() -> Self {
        Life { phase: Phase::Ready, stopped_by_failure: false, gate_closed: false, stop_asked: false, finished: false }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        !matches!(self.phase, Phase::Ready | Phase::Running)
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.phase == Phase::Abandoned
    }

    /// Whether workers may take batches.
    #[inline]
    pub(crate) fn dispatches(&self) -> bool {
        !matches!(self.phase, Phase::Abandoned | Phase::Done)
    }

    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Opens admission, unless the flow was closed before it started.
    pub(crate) fn open(&mut self) {
        if self.phase == Phase::Ready {
            self.phase = Phase::Running;
        }
    }

    /// Closes admission, because no further units will come.
    pub(crate) fn drain(&mut self) {
        if !self.is_closed() {
            self.phase = Phase::Draining;
        }
    }

    /// Closes admission, because the program asks for it.
    pub(crate) fn stop(&mut self) {
        if !self.is_closed() {
            self.phase = Phase::Draining;
            self.stop_asked = true;
        }
    }

    /// Closes admission, because a unit failed in a stage that stops the flow.
    pub(crate) fn stop_by_failure(&mut self) {
        if !self.is_closed() {
            self.phase = Phase::Draining;
            self.stopped_by_failure = true;
        }
    }

    /// Ends dispatch. Returns `false` if the flow is already done.
    pub(crate) fn abandon(&mut self) -> bool {
        let lives = self.phase != Phase::Done;
        if lives {
            self.phase = Phase::Abandoned;
            self.stop_asked = true;
        }
        lives
    }

    /// Marks the flow as joined, so that its threads end.
    pub(crate) fn finish(&mut self) {
        if self.phase != Phase::Abandoned {
            self.phase = Phase::Done;
        }
        self.finished = true;
    }

    /// Whether the gate must now be told that a failure stopped the flow. Returns `true` only once.
    #[inline]
    pub(crate) fn must_close_gate(&mut self) -> bool {
        self.stopped_by_failure && !std::mem::replace(&mut self.gate_closed, true)
    }

    pub(crate) fn outcome(&self) -> Outcome {
        match self.phase {
            Phase::Abandoned => Outcome::Abandoned,
            _ if self.stopped_by_failure => Outcome::StoppedByFailure,
            _ if self.stop_asked => Outcome::Stopped,
            _ => Outcome::Complete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_that_was_stopped_before_it_opened_stays_closed() {
        let mut life = Life::new();
        life.stop();
        life.open();
        assert!(life.is_closed() && life.outcome() == Outcome::Stopped);
    }

    #[test]
    fn the_first_reason_for_the_end_is_the_one_reported() {
        let mut life = Life::new();
        life.open();
        life.stop_by_failure();
        life.stop();
        assert_eq!(life.outcome(), Outcome::StoppedByFailure);
        assert!(life.must_close_gate() && !life.must_close_gate());
    }

    #[test]
    fn a_flow_that_is_done_cannot_be_abandoned() {
        let mut life = Life::new();
        life.open();
        life.drain();
        life.finish();
        assert!(!life.abandon() && life.outcome() == Outcome::Complete && life.is_finished());
    }
}
