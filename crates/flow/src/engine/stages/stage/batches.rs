//! A stage's granted batches: their size, how they fill, and how they run.

use std::collections::VecDeque;

use super::StageState;
use crate::engine::claims::{Grant, GrantList};
use crate::engine::pace::{CHAIN_NS, OWN_NS, SOON_NS, TURN_BATCHES, TURN_NS, nanos};
use crate::engine::stages::auto_batch::AutoBatch;
use crate::engine::stages::batch::{GrantedBatch, TakenBatch};
use crate::engine::stages::queue::Taken;
use crate::engine::timers::{TimerAction, Timers};
use crate::engine::units::column::Row;
use crate::engine::units::pocket::Spares;

// ---- the size of batches and turns --------------------------------------------------------------------

impl StageState {
    /// Sizes the stage's batches. `share` is a worker's share of the units that may be in flight.
    pub(in crate::engine::stages) fn size_batches(&mut self, has_source: bool, share: usize) {
        self.auto = AutoBatch::new(has_source, self.blocking, share);
    }

    /// The number of units that make a full batch.
    #[inline]
    pub(crate) fn batch_target(&self) -> usize {
        self.batch.size.unwrap_or_else(|| self.auto.units(self.stats.mean_ns))
    }

    /// The maximum number of units that a worker takes in one turn: its share of the units in flight, or a batch if
    /// that is larger.
    pub(super) fn turn_units(&self) -> usize {
        self.batch_target().max(self.auto.share())
    }

    /// The maximum number of batches that a worker takes in a turn: more than one if batches are short and hold
    /// nothing.
    pub(super) fn turn_batches(&self) -> usize {
        let batch_ns = self.stats.mean_ns.saturating_mul(self.batch_target() as u64);
        if batch_ns == 0 || !self.needs_nothing() {
            return 1;
        }
        ((TURN_NS / batch_ns) as usize).clamp(1, TURN_BATCHES)
    }

    /// The size of the largest batch that may go on to this stage in a chain. It is 0 if the stage is not open (see
    /// `crew/turn_slot`). If the flow sets no batch size, only the time that the batch takes matters. So a batch sized
    /// for the previous stage need not be split.
    pub(in crate::engine::stages) fn max_batch_in_chain(&self, max_threads: usize) -> usize {
        let is_open = self.needs_nothing()
            && self.splits.is_none()
            && !self.blocking
            && self.batch.wait.is_zero()
            && self.workers.ceiling >= max_threads
            && self.stats.mean_ns > 0;
        if !is_open {
            return 0;
        }
        self.batch.size.unwrap_or_else(|| {
            let lasting = self.auto.units_that_last(CHAIN_NS / 2, self.stats.mean_ns);
            self.batch_target().max(lasting)
        })
    }

    /// The approximate time that this many units take.
    #[inline]
    pub(crate) fn takes_ns(&self, units: usize) -> u64 {
        self.unit_ns().saturating_mul(units as u64)
    }

    /// The approximate time that one unit takes.
    pub(in crate::engine::stages) fn unit_ns(&self) -> u64 {
        self.stats.mean_ns.saturating_add(OWN_NS)
    }
}

// ---- granted batches ----------------------------------------------------------------------------------

impl StageState {
    /// Whether the next unit that is granted in this stage opens a batch, and must take the batch's permits.
    pub(crate) fn next_unit_opens_batch(&self) -> bool {
        !self.permits.is_empty() && self.batches.back().is_none_or(|batch| batch.rows.len() >= self.batch_target())
    }

    /// Opens a batch that holds these permits.
    pub(crate) fn open_batch(&mut self, permits: GrantList, spares: &mut Spares, timers: &mut Timers, now: u64) {
        self.batches.push_back(GrantedBatch::new(spares.take(), permits, now));
        self.watch_batches(timers, now);
    }

    /// Returns the index of the batch to join: the last batch if it has room, or else a new batch.
    fn batch_to_join(&mut self, spares: &mut Spares, timers: &mut Timers, now: u64) -> usize {
        let target = self.batch_target();
        if self.batches.back().is_none_or(|batch| batch.rows.len() >= target) {
            self.open_batch(GrantList::new(), spares, timers, now);
        }
        self.batches.len() - 1
    }

    /// Puts a unit that has all it needs into a batch.
    pub(crate) fn join_batch(&mut self, row: Row, queued_ns: u64, spares: &mut Spares, timers: &mut Timers, now: u64) {
        let batch = self.batch_to_join(spares, timers, now);
        let batch = &mut self.batches[batch];
        batch.note_arrival(&Taken { units: 1, queued_ns, plain: false });
        batch.rows.push_back(row);
        self.granted += 1;
    }

    /// Moves up to `most` units of the queue's first *arrival* into a batch: units that arrived together, or alone at the
    /// same time. Returns their number. The caller passes their grants to [`hold_for_batch`](Self::hold_for_batch).
    #[inline]
    pub(crate) fn fill_batch(&mut self, most: usize, spares: &mut Spares, timers: &mut Timers, now: u64) -> usize {
        let batch = self.batch_to_join(spares, timers, now);
        let target = self.batch_target();
        let batch = &mut self.batches[batch];
        let room = target.saturating_sub(batch.rows.len()).max(1);
        let taken = self.waiting.take_first(&mut batch.rows, most.min(room), spares);
        batch.note_arrival(&taken);
        self.granted += taken.units;
        taken.units
    }

    /// Adds a grant that the last batch holds for its units.
    pub(crate) fn hold_for_batch(&mut self, grant: Option<Grant>) {
        if let Some(batch) = self.batches.back_mut() {
            batch.held.extend(grant);
        }
    }

    /// Sets a timer for the earliest moment at which a batch stops waiting for further units. A stage has at most one
    /// such timer, however many batches become full before it fires.
    fn watch_batches(&mut self, timers: &mut Timers, now: u64) {
        if self.batch.wait.is_zero() || self.batch_timer_set {
            return;
        }
        let wait = nanos(self.batch.wait);
        let ends = self.batches.iter().map(|batch| batch.opened_ns.saturating_add(wait)).find(|&at| at > now);
        if let Some(at) = ends {
            self.batch_timer_set = true;
            timers.set(at, TimerAction::Batch(self.number));
        }
    }

    /// Sets the next timer after one has fired.
    pub(crate) fn batch_timer_fired(&mut self, timers: &mut Timers, now: u64) {
        self.batch_timer_set = false;
        self.watch_batches(timers, now);
    }

    fn is_ripe(&self, batch: &GrantedBatch, now: u64) -> bool {
        !batch.rows.is_empty()
            && (self.batch.wait.is_zero()
                || batch.rows.len() >= self.batch_target()
                || now >= batch.opened_ns.saturating_add(nanos(self.batch.wait)))
    }
}

// ---- dispatch and settlement --------------------------------------------------------------------------

impl StageState {
    /// Whether a worker may take this stage's first batch now.
    #[inline]
    pub(crate) fn can_dispatch(&self, now: u64) -> bool {
        self.busy < self.workers.ceiling && self.batches.front().is_some_and(|batch| self.is_ripe(batch, now))
    }

    /// The time at which workers began to pass over the stage's first batch. Each dispatch resets this time, because
    /// what counts is how long the stage has been passed over, not how old its units are.
    pub(in crate::engine::stages) fn passed_over_since(&self) -> u64 {
        self.batches.front().map_or(u64::MAX, |batch| batch.opened_ns.max(self.last_dispatch_ns))
    }

    /// Whether a worker with this many units of the stage in hand may take another batch of the stage.
    pub(crate) fn has_more(&self, units: usize, now: u64) -> bool {
        let room = self.turn_units().saturating_sub(units);
        self.batches.front().is_some_and(|batch| {
            batch.plain && batch.held.is_empty() && batch.rows.len() <= room && self.is_ripe(batch, now)
        })
    }

    /// Takes the first batch for a worker. `leads` says that the worker is free. Otherwise, the worker already has
    /// batches of this stage and runs one more in the same turn; such a batch counts as granted until it is settled.
    pub(crate) fn take_batch(&mut self, leads: bool, now: u64) -> Option<TakenBatch> {
        /// Below this mean, reading the clock for each unit would take a large part of the measured time.
        const WORTH_TIMING_NS: u64 = 2_000;
        let GrantedBatch { rows, plain, arrivals, mut permits, held, .. } = self.batches.pop_front()?;
        let units = rows.len();
        permits.extend(held);
        self.last_dispatch_ns = now;
        let stats = &mut self.stats;
        for (queued_ns, units) in arrivals {
            stats.waited_in_queue(now.saturating_sub(queued_ns), units.into());
        }
        let time_each = units == 1 || stats.mean_ns == 0 || stats.mean_ns > WORTH_TIMING_NS;
        let soon = !self.blocking && stats.mean_ns > 0 && stats.slow_ns.saturating_mul(units as u64) <= SOON_NS;
        if leads {
            self.granted -= units;
            self.begin_work(units);
        } else {
            self.in_turns += units;
        }
        Some(TakenBatch { rows, plain, permits, soon, time_each })
    }

    /// Puts a batch back in front of the granted batches, because its worker has not begun it. The batch no longer
    /// waits for further units.
    pub(crate) fn take_back(&mut self, rows: VecDeque<Row>, plain: bool, permits: GrantList) {
        self.in_turns -= rows.len();
        let batch = GrantedBatch { plain, ..GrantedBatch::new(rows, permits, 0) };
        self.batches.push_front(batch);
    }

    /// Counts a worker that runs this many units here.
    #[inline]
    pub(crate) fn begin_work(&mut self, units: usize) {
        self.busy += 1;
        self.running += units;
    }

    /// Stops counting a worker that ran this many units here.
    #[inline]
    pub(crate) fn end_work(&mut self, units: usize) {
        self.busy -= 1;
        self.running -= units;
    }

    /// Stops counting units that were in a turn, but not in its first batch.
    pub(crate) fn end_in_turn(&mut self, units: usize) {
        self.granted -= units;
        self.in_turns -= units;
    }

    /// Undoes [`end_in_turn`](Self::end_in_turn) for a batch whose settlement will call it again.
    pub(crate) fn reopen_in_turn(&mut self, units: usize) {
        self.granted += units;
        self.in_turns += units;
    }

    /// Replaces the number of units that count as running for one worker.
    pub(crate) fn exchange_running(&mut self, before: usize, after: usize) {
        self.running = self.running + after - before;
    }

    #[inline]
    pub(crate) fn busy(&self) -> usize {
        self.busy
    }

    /// Whether a unit is granted or runs.
    pub(in crate::engine::stages) fn has_granted_or_running(&self) -> bool {
        self.granted + self.running > 0
    }

    /// Whether a unit runs, or could run now.
    pub(in crate::engine::stages) fn moves(&self, now: u64) -> bool {
        self.running + self.in_turns > 0 || self.batches.iter().any(|batch| self.is_ripe(batch, now))
    }

    /// Moves to `remaining` all units that no worker has taken. Workers settle the units in hand themselves.
    pub(in crate::engine::stages) fn empty(&mut self, remaining: &mut Vec<Row>) {
        remaining.extend(self.waiting.drain());
        let granted = remaining.len();
        remaining.extend(self.batches.drain(..).flat_map(|batch| batch.rows));
        self.granted -= remaining.len() - granted;
        self.parked.clear();
        self.open_groups = 0;
    }
}
