//! The watch: a timer at which the timekeeper checks whether the workers expected back soon have returned. Without it,
//! one unit that takes much longer than the units before it would hold up work that sleeping workers could do.

use crate::engine::pace::WATCH_NS;
use crate::engine::timers::{TimerAction, Timers};

#[derive(Default)]
pub(super) struct Watch {
    /// The time for which a [`TimerAction::Watch`] is set.
    at: Option<u64>,
    /// A watch has ended, and no thread has acted on it yet.
    ended: bool,
    /// The number of turns that shared workers have ended, not counting pulls.
    turns: u64,
    /// The value of `turns` when the watch was set.
    turns_at_set: u64,
    /// No shared worker ended a turn during the last watch.
    stalled: bool,
}

impl Watch {
    /// Sets the watch, unless one is set.
    #[inline]
    pub(super) fn set(&mut self, pause_ns: u64, timers: &mut Timers, now: u64) {
        if self.at.is_none() {
            let at = now + pause_ns;
            self.at = Some(at);
            self.turns_at_set = self.turns;
            timers.set(at, TimerAction::Watch);
        }
    }

    /// Brings forward a watch that is set.
    pub(super) fn bring_forward(&mut self, timers: &mut Timers, now: u64) {
        if self.at.is_some_and(|at| at > now + WATCH_NS) {
            self.at = None;
            self.set(WATCH_NS, timers, now);
        }
    }

    #[inline]
    pub(super) fn is_set(&self) -> bool {
        self.at.is_some()
    }

    /// Ends the watch whose timer was set for `at_ns`. Returns `false` if that watch was brought forward, which makes
    /// its timer stale.
    pub(super) fn end(&mut self, at_ns: u64) -> bool {
        if self.at != Some(at_ns) {
            return false;
        }
        self.at = None;
        self.ended = true;
        self.stalled = self.turns == self.turns_at_set;
        true
    }

    /// Counts a turn that has ended.
    #[inline]
    pub(super) fn count_turn(&mut self) {
        self.turns += 1;
        self.stalled = false;
    }

    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Notes that a thread was woken to act on the result of the watch.
    pub(super) fn act(&mut self) {
        self.ended = false;
    }

    #[inline]
    pub(super) fn is_stalled(&self) -> bool {
        self.stalled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_tells_a_stall_from_a_turn_that_ended() {
        let (mut watch, mut timers) = (Watch::default(), Timers::default());
        watch.set(10, &mut timers, 0);
        watch.set(99, &mut timers, 5);
        assert!(timers.next_at() == 10 && watch.end(10) && watch.is_stalled() && watch.has_ended());
        watch.act();
        watch.set(10, &mut timers, 20);
        watch.count_turn();
        assert!(watch.end(30) && !watch.is_stalled());
    }

    #[test]
    fn the_timer_of_a_watch_that_was_brought_forward_is_stale() {
        let (mut watch, mut timers) = (Watch::default(), Timers::default());
        watch.set(4 * WATCH_NS, &mut timers, 0);
        watch.bring_forward(&mut timers, 1);
        assert_eq!(timers.next_at(), WATCH_NS + 1);
        assert!(!watch.end(4 * WATCH_NS) && watch.is_set() && watch.end(WATCH_NS + 1) && !watch.is_set());
    }
}
