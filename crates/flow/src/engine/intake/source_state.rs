//! The source as the scheduler sees it: whether it can be pulled, and the pull in progress.

use std::sync::Arc;
use std::time::Duration;

use super::staging::Staging;
use crate::engine::pace::{PULL_NS, TURN_LASTS_NS};

/// Units get a new stamp on admission if their pull has taken longer than this.
const SLOW_NS: u64 = 400_000;

/// A pull that lasts longer than this counts as blocked, and the end of the flow does not wait for it.
const PULL_GRACE_NS: u64 = 100_000_000;

/// A source that has just yielded a unit is assumed to have this many more units.
const MORE: u64 = 1024;

pub(crate) struct SourceState {
    /// The staging of the current puller, or of the last puller.
    staging: Arc<Staging>,
    /// The source may have more units, and the flow wants them.
    open: bool,
    pulling: Option<Pulling>,
    /// The running mean of the source's time for a unit; 0 before the first unit.
    unit_ns: u64,
    last_pull_ns: u64,
    /// The first number after the numbers of the last pull.
    next_id: u64,
    /// The listener has been told of the source's end, or will be at once.
    told: bool,
    /// The last finished pull took so long that its units get new stamps.
    slow: bool,
    /// The time at which the source's units began to lack room.
    held_up_since: Option<u64>,
}

/// A pull in progress.
#[derive(Clone, Copy)]
pub(crate) struct Pulling {
    since_ns: u64,
    /// The pull is expected to end soon.
    pub(super) soon: bool,
    /// The pull occupies the slot of a shared worker.
    pub(super) in_place: bool,
}

impl Pulling {
    /// Whether the pull was expected to end soon.
    pub(crate) fn is_soon(&self) -> bool {
        self.soon
    }
}

impl SourceState {
    pub(crate) fn new() -> Self {
        SourceState {
            staging: Arc::new(Staging::new()),
            open: true,
            pulling: None,
            unit_ns: 0,
            last_pull_ns: 0,
            next_id: 0,
            told: false,
            slow: false,
            held_up_since: None,
        }
    }

    #[inline]
    pub(crate) fn staging(&self) -> &Staging {
        &self.staging
    }

    /// Whether no pulled unit waits for admission.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.staging.len() == 0
    }

    #[inline]
    pub(crate) fn is_pulling(&self) -> bool {
        self.pulling.is_some()
    }

    /// Whether a pull in progress should end soon. The puller itself then admits its units, because they are in its
    /// core's cache.
    #[inline]
    pub(crate) fn pull_ends_soon(&self) -> bool {
        self.pulling.as_ref().is_some_and(|pull| pull.soon)
    }

    /// Whether a pull occupies the slot of a shared worker.
    #[inline]
    pub(crate) fn is_in_place(&self) -> bool {
        self.pulling.as_ref().is_some_and(|pull| pull.in_place)
    }

    /// Whether a worker may pull if the flow has room: no pull is in progress, and the units of the last pull are
    /// admitted.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.open && self.pulling.is_none() && self.staging.len() == 0
    }

    /// The time since the last pull.
    pub(crate) fn not_pulled_for(&self, now: u64) -> u64 {
        now.saturating_sub(self.last_pull_ns)
    }

    /// The estimated work of a source that can be pulled, in nanoseconds; 0 if its time for a unit is unknown.
    pub(crate) fn backlog_ns(&self, unit_in_flow_ns: u64) -> u64 {
        match self.unit_ns {
            0 => 0,
            unit_ns => MORE.saturating_mul(unit_ns.saturating_add(unit_in_flow_ns)),
        }
    }

    /// Whether the staged units may keep their stamps, which contain the time at which the pull began. The pull must
    /// not have lasted long. The staged units belong to the pull in progress or, without one, to the last pull.
    pub(crate) fn stamps_hold(&self, now: u64) -> bool {
        self.pulling.as_ref().map_or(!self.slow, |pull| now.saturating_sub(pull.since_ns) <= SLOW_NS)
    }

    /// Begins a pull that pushes to `staging`. Returns the pull, and the number of units that it should bring: as many
    /// as take about [`PULL_NS`], and at most four batches.
    pub(crate) fn begin(&mut self, staging: &Arc<Staging>, in_place: bool, batch: usize, now: u64) -> (Pulling, u64) {
        // The staging of the last pull is empty; otherwise `is_ready` would have refused this pull.
        self.staging = staging.clone();
        self.staging.calm_down();
        let chunk = match self.unit_ns {
            // The source's time for a unit is not known yet, so the pull brings only one unit.
            0 => 1,
            unit_ns => (PULL_NS / unit_ns).clamp(1, (4 * batch).min(Staging::CAPACITY) as u64),
        };
        let pull = Pulling { since_ns: now, soon: in_place && self.unit_ns > 0, in_place };
        self.pulling = Some(pull);
        (pull, chunk)
    }

    /// Notes the end of the range of numbers that the pull may give to its units.
    pub(crate) fn set_next_id(&mut self, next_id: u64) {
        self.next_id = next_id;
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Ends the pull in progress, and returns it. `open` says that the source may have more units.
    pub(crate) fn end(&mut self, open: bool, now: u64) -> Option<Pulling> {
        let ended = self.pulling.take();
        if let Some(pull) = &ended {
            let lasted = now - pull.since_ns;
            self.slow = lasted > SLOW_NS;
            let sample = (lasted / self.staging.len().max(1)).max(1);
            self.unit_ns = if self.unit_ns == 0 { sample } else { (self.unit_ns * 3 + sample) / 4 }.max(1);
        }
        self.last_pull_ns = now;
        self.open &= open;
        // If the source has ended, the worker tells the listener how. So `close` need not tell it.
        self.told |= !open;
        ended
    }

    /// Whether [`close`](Self::close) would do nothing.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        !self.open && (self.told || self.is_in_place())
    }

    /// Ends the source after the flow was closed. Returns whether the listener must be told now. While a pull occupies
    /// a worker's slot, the listener is not told yet, because this pull may still find the source exhausted, or the
    /// source may panic.
    pub(crate) fn close(&mut self) -> bool {
        if std::mem::take(&mut self.open) && self.pulling.is_some() {
            self.staging.hurry_up();
        }
        !self.is_in_place() && !std::mem::replace(&mut self.told, true)
    }

    /// Takes the worker's slot from a long pull, so that another worker gets it. Returns whether the pull was still
    /// expected to end soon.
    pub(crate) fn displace(&mut self, now: u64) -> bool {
        let Some(pull) = self.pulling.as_mut().filter(|pull| now.saturating_sub(pull.since_ns) > TURN_LASTS_NS) else {
            return false;
        };
        pull.in_place = false;
        let was_soon = std::mem::take(&mut pull.soon);
        self.staging.hurry_up();
        was_soon
    }

    /// The time for which the end of the flow should still wait for a pull that has lost its worker's slot. The pull's
    /// thread may merely have been preempted; without the wait, the units that it has taken from the source would be
    /// lost.
    pub(crate) fn grace_remaining(&self, now: u64) -> Option<Duration> {
        let pull = self.pulling.as_ref()?;
        let left = (pull.since_ns + PULL_GRACE_NS).saturating_sub(now);
        (left > 0).then(|| Duration::from_nanos(left))
    }

    /// Measures the time during which a lack of room is the only reason not to pull the source. Returns the length of
    /// that time when it ends, and 0 otherwise.
    #[inline]
    pub(crate) fn note_room(&mut self, has_room: bool, now: u64) -> u64 {
        let held_up = self.open && self.pulling.is_none() && !has_room;
        if held_up == self.held_up_since.is_some() {
            return 0;
        }
        let since = std::mem::replace(&mut self.held_up_since, held_up.then_some(now));
        since.map_or(0, |since| now.saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulled(unit_ns: u64) -> (SourceState, Arc<Staging>) {
        let (mut source, staging) = (SourceState::new(), Arc::new(Staging::new()));
        source.begin(&staging, true, 64, 0);
        source.end(true, unit_ns);
        (source, staging)
    }

    #[test]
    fn the_first_pull_brings_one_unit_and_later_ones_a_chunk() {
        let (mut source, staging) = (SourceState::new(), Arc::new(Staging::new()));
        let (pull, chunk) = source.begin(&staging, true, 64, 0);
        assert!(chunk == 1 && !pull.is_soon() && source.is_in_place() && !source.is_ready());
        source.end(true, 10_000);
        let (pull, chunk) = source.begin(&staging, true, 64, 20_000);
        assert!(chunk == PULL_NS / 10_000 && pull.is_soon());
        assert_eq!(pulled(1).0.begin(&staging, true, 2, 9).1, 8, "at most four batches");
    }

    #[test]
    fn a_long_pull_loses_its_slot_and_is_told_to_hurry() {
        let (mut source, staging) = pulled(1_000);
        source.begin(&staging, true, 64, 10_000);
        assert!(!source.displace(10_000 + TURN_LASTS_NS), "it has a little longer");
        assert!(source.displace(10_001 + TURN_LASTS_NS) && !source.is_in_place() && !source.pull_ends_soon());
        // SAFETY: this test makes one row of each number.
        assert!(staging.push(unsafe { crate::engine::units::column::Row::new(0) }, true), "the puller is told");
        assert!(!source.displace(10_002 + TURN_LASTS_NS), "the slot is lost once");
    }

    #[test]
    fn units_of_a_long_pull_get_new_stamps_before_it_ends_and_after() {
        let (mut source, staging) = (SourceState::new(), Arc::new(Staging::new()));
        source.begin(&staging, true, 64, 0);
        assert!(source.stamps_hold(SLOW_NS) && !source.stamps_hold(SLOW_NS + 1), "the pull blocks");
        source.end(true, SLOW_NS + 1);
        assert!(!source.stamps_hold(SLOW_NS + 2), "the units that it has left were pulled long ago");
        source.begin(&staging, true, 64, 2 * SLOW_NS);
        assert!(source.stamps_hold(2 * SLOW_NS + 1), "the length of an earlier pull does not matter");
        source.end(true, 2 * SLOW_NS + 1);
        assert!(source.stamps_hold(9 * SLOW_NS));
    }

    #[test]
    fn the_listener_is_told_once_and_not_while_a_pull_may_still_end() {
        let (mut source, staging) = pulled(1_000);
        source.begin(&staging, true, 64, 0);
        assert!(!source.is_closed() && !source.close() && source.is_closed());
        source.end(true, 5);
        assert!(!source.is_closed() && source.close() && !source.close());
    }

    #[test]
    fn time_without_room_is_counted_when_it_ends() {
        let (mut source, _) = pulled(1_000);
        assert_eq!(
            [(false, 10), (false, 20), (true, 30), (true, 40)].map(|(room, at)| source.note_room(room, at)),
            [0, 0, 20, 0]
        );
    }
}
