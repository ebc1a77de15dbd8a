//! One stage: its queue, its granted batches, and the work in progress.

use std::collections::VecDeque;
use std::sync::Arc;

use super::auto_batch::AutoBatch;
use super::batch::{GrantedBatch, TakenBatch};
use super::queue::{Queue, Taken};
use super::stats::StageStats;
use crate::engine::claims::{Grant, GrantList, InstanceId, NO_STAGE, Wants};
use crate::engine::pace::{CHAIN_NS, OWN_NS, SOON_NS, TURN_BATCHES, TURN_NS, nanos};
use crate::engine::settings::Workers;
use crate::engine::timers::{TimerAction, Timers};
use crate::engine::units::column::Row;
use crate::engine::units::groups::GroupRules;
use crate::engine::units::pocket::Spares;
use crate::engine::units::walk::{See, Sight, Walk};
use crate::policy::Batch;
use crate::snapshot::StageSnapshot;

/// The maximum number of children of one run.
const MAX_BROOD: u64 = 256;

/// The builder's description of a stage.
pub(crate) struct StageSetup {
    pub(crate) name: Arc<str>,
    pub(crate) blocking: bool,
    pub(crate) dynamic: bool,
    pub(crate) wants: Wants,
    pub(crate) permits: Wants,
    pub(crate) places: Arc<[InstanceId]>,
    pub(crate) batch: Batch,
    /// The stage is the `nth` to split units on the way from the entry, from 1.
    pub(crate) splits: Option<u64>,
    /// The rules of the stage's groups, if it gathers its units.
    pub(crate) groups: Option<GroupRules>,
    pub(crate) resources: usize,
}

/// The waits of a stage's units, each as the sum of nanoseconds and the number of waits.
pub(crate) struct Waits<'a> {
    pub(crate) for_resources: &'a [(u64, u64)],
    pub(crate) for_memory: (u64, u64),
    pub(crate) for_room: (u64, u64),
    /// All the time in the queue, that in line for resources and for room included.
    pub(crate) in_queue: (u64, u64),
}

/// A stage as the scheduler sees it.
pub(crate) struct StageState {
    name: Arc<str>,
    number: u16,
    // Fixed when the flow is built.
    blocking: bool,
    /// At least one need differs by unit.
    dynamic: bool,
    /// The needs that are the same for all units.
    wants: Wants,
    /// `wants` are all the stage's needs, and each is held for the unit's run only.
    alike: bool,
    /// The needs that are taken once per batch.
    permits: Wants,
    /// The members of `wants` that are places in the queues of later stages.
    places: Arc<[InstanceId]>,
    batch: Batch,
    /// The shape of the stage's batches where its flow sets no size.
    auto: AutoBatch,
    splits: Option<u64>,
    groups: Option<GroupRules>,
    /// The number of units that hold groups open here and rest.
    open_groups: u64,
    /// The number of children that its next run may bring out.
    brood: u64,
    /// The stage's bounds, copied from the settings.
    workers: Workers,
    // The queue.
    waiting: Queue,
    /// Granted batches; the last one may still be filling.
    batches: VecDeque<GrantedBatch>,
    /// Units in `batches`, and those counted by `in_turns`.
    granted: usize,
    /// Units that workers have taken in addition to the batch that counts as running.
    in_turns: usize,
    /// Units that wait for a resource, by resource.
    parked: Vec<u32>,
    /// The sum of `parked`.
    parked_units: usize,
    /// Units that wait for room for their children.
    for_room: usize,
    /// A [`TimerAction::Batch`] of this stage is set.
    batch_timer_set: bool,
    /// The stage itself waits for a batch permit.
    awaits_permit: bool,
    /// The stage is in the list of queues to grant.
    pub(super) is_marked: bool,
    /// The queue holds units that were not looked at because every worker is busy elsewhere.
    pub(super) lacks_worker: bool,
    // Work in progress. A worker's turn has a first batch and may have further ones of the same stage:
    //
    // | batch of a turn | its units count in | its worker counts in |
    // | --- | --- | --- |
    // | the first one, until it is settled | `running` | `busy` |
    // | a further one, while the first one counts | `granted` and `in_turns` | – |
    // | the one in hand, once the timekeeper has settled the first one | `running` | `busy` |
    /// Units whose batch counts as running.
    running: usize,
    /// Workers whose turn counts here.
    busy: usize,
    last_dispatch_ns: u64,
    stats: StageStats,
}

impl StageState {
    pub(super) fn new(setup: StageSetup, number: u16, workers: Workers) -> Self {
        StageState {
            name: setup.name,
            number,
            blocking: setup.blocking,
            dynamic: setup.dynamic,
            alike: !setup.dynamic && setup.wants.iter().all(|want| want.until == NO_STAGE),
            wants: setup.wants,
            permits: setup.permits,
            places: setup.places,
            batch: setup.batch,
            splits: setup.splits,
            groups: setup.groups,
            open_groups: 0,
            brood: 1,
            auto: AutoBatch::ONE,
            workers,
            waiting: Queue::default(),
            batches: VecDeque::new(),
            granted: 0,
            in_turns: 0,
            parked: vec![0; setup.resources],
            parked_units: 0,
            for_room: 0,
            batch_timer_set: false,
            awaits_permit: false,
            is_marked: false,
            lacks_worker: false,
            running: 0,
            busy: 0,
            last_dispatch_ns: 0,
            stats: StageStats::new(setup.resources),
        }
    }
}

// ---- the stage's needs and bounds ---------------------------------------------------------------------

impl StageState {
    #[inline]
    pub(crate) fn is_blocking(&self) -> bool {
        self.blocking
    }

    /// Whether at least one need differs by unit.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.dynamic
    }

    /// Whether all units have the same needs, each for its run only.
    pub(crate) fn is_alike(&self) -> bool {
        self.alike
    }

    /// The needs that are the same for all units.
    pub(crate) fn wants(&self) -> &Wants {
        &self.wants
    }

    /// The needs that are taken once per batch.
    pub(crate) fn permits(&self) -> &Wants {
        &self.permits
    }

    /// Whether the instance is a place in the queue of a later stage.
    pub(crate) fn is_place(&self, instance: InstanceId) -> bool {
        self.places.contains(&instance)
    }

    /// Whether the stage splits its units; it is then the `nth` to do so on the way from the entry, from 1.
    #[inline]
    pub(crate) fn splits(&self) -> Option<u64> {
        self.splits
    }

    /// The rules of the stage's groups, if it gathers its units.
    #[inline]
    pub(crate) fn groups(&self) -> Option<&GroupRules> {
        self.groups.as_ref()
    }

    /// The number of units that hold groups open here and rest.
    pub(crate) fn open_groups(&self) -> u64 {
        self.open_groups
    }

    /// Counts a group that has been opened.
    pub(crate) fn open_group(&mut self) {
        self.open_groups += 1;
    }

    /// Counts a group that is closed, `early` if a limit of the stage or of the flow says so.
    pub(crate) fn close_group(&mut self, early: bool) {
        self.open_groups -= 1;
        self.stats.torn += u64::from(early);
    }

    /// Whether a unit is granted by its mere arrival.
    #[inline]
    pub(crate) fn needs_nothing(&self) -> bool {
        self.wants.is_empty() && !self.dynamic && self.permits.is_empty()
    }

    #[inline]
    pub(crate) fn workers(&self) -> Workers {
        self.workers
    }

    pub(super) fn set_workers(&mut self, workers: Workers) {
        self.workers = workers;
    }

    /// Whether its batches wait to fill up.
    pub(super) fn waits_for_batches(&self) -> bool {
        !self.batch.wait.is_zero()
    }
}

// ---- the size of batches and turns --------------------------------------------------------------------

impl StageState {
    /// Sizes the stage's batches: its workers share this number of units in flight.
    pub(super) fn size_batches(&mut self, has_source: bool, share: usize) {
        self.auto = AutoBatch::new(has_source, self.blocking, share);
    }

    /// The number of units that make a full batch.
    #[inline]
    pub(crate) fn batch_target(&self) -> usize {
        self.batch.size.unwrap_or_else(|| self.auto.units(self.stats.mean_ns))
    }

    /// The maximum number of units that a worker takes in one turn: its share, or a batch.
    fn turn_units(&self) -> usize {
        self.batch_target().max(self.auto.share())
    }

    /// The number of batches that a worker may take in a turn: several where batches are short and hold nothing.
    fn turn_batches(&self) -> usize {
        let batch_ns = self.stats.mean_ns.saturating_mul(self.batch_target() as u64);
        if batch_ns == 0 || !self.needs_nothing() {
            return 1;
        }
        ((TURN_NS / batch_ns) as usize).clamp(1, TURN_BATCHES)
    }

    /// The largest batch that may come to this stage in a chain; 0 if none may, since all workers must be able to enter
    /// and its units must need nothing. Where the flow sets no size, time alone decides: a batch that was right for the
    /// stage before need not be taken apart.
    pub(super) fn max_batch_in_chain(&self, max_threads: usize) -> usize {
        let is_open = self.needs_nothing()
            && self.splits.is_none()
            && self.groups.is_none()
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

    /// The time that this many units take, roughly.
    #[inline]
    pub(crate) fn takes_ns(&self, units: usize) -> u64 {
        self.unit_ns().saturating_mul(units as u64)
    }

    /// The time that one unit takes, roughly.
    pub(super) fn unit_ns(&self) -> u64 {
        self.stats.mean_ns.saturating_add(OWN_NS)
    }
}

// ---- seats --------------------------------------------------------------------------------------------

impl StageState {
    /// The number of further units that may be granted: as many as the given number of workers can run now. Units
    /// beyond that wait and hold nothing. Where all units have the same needs, the units in line have a seat, too,
    /// because a further unit would only stand behind them; where needs differ, a further unit may overtake them.
    pub(crate) fn free_seats(&self, workers: usize) -> usize {
        let each = self.batch_target().saturating_mul(self.turn_batches()).min(self.turn_units());
        let in_line = if self.dynamic { 0 } else { self.parked_units };
        // A worker may have more units in its hands than its own seats, if units take longer now than when it took
        // them. It may even wait for a unit that is still in the queue, so it gets no other worker's seat.
        let in_hands = (self.running + self.in_turns).min(self.busy.saturating_mul(each));
        let taken = in_hands + (self.granted - self.in_turns) + in_line;
        workers.saturating_mul(each).saturating_sub(taken)
    }

    /// Whether the queue should look at its next unit.
    pub(crate) fn has_seat(&self, workers: usize) -> bool {
        self.free_seats(workers) > 0
    }

    /// The number of workers that run this stage or could start to, given the number of idle shared workers.
    pub(super) fn workers_beside(&self, idle: usize) -> usize {
        match self.blocking {
            true => self.workers.ceiling,
            false => self.workers.ceiling.min(self.busy.max(self.workers.floor) + idle),
        }
    }

    /// The number of its workers beyond its floor, which are shared ones.
    pub(super) fn busy_beyond_floor(&self) -> usize {
        if self.blocking { 0 } else { self.busy.saturating_sub(self.workers.floor) }
    }
}

// ---- the queue ----------------------------------------------------------------------------------------

impl StageState {
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The number of units in the queue, whatever they wait for: those in lines, the granted ones, and those that
    /// workers have taken beside the batch that counts as running (`in_turns`).
    pub(crate) fn queued(&self) -> u64 {
        (self.waiting.len() + self.granted + self.parked_units + self.for_room) as u64
    }

    /// The number of units that could run as soon as a worker is free and their needs are met, and of those in the further
    /// batches of turns, some of which run.
    #[inline]
    pub(super) fn could_run(&self) -> usize {
        self.waiting.len() + self.granted
    }

    pub(super) fn push(&mut self, row: Row, spares: &mut Spares, now: u64) {
        self.waiting.push_back(now, row, spares);
    }

    #[inline]
    pub(super) fn push_all(&mut self, rows: VecDeque<Row>, plain: bool, now: u64) {
        self.waiting.push_all(now, rows, plain);
    }

    /// Takes the first unit of the queue, with the time of its arrival.
    pub(crate) fn pop_waiting(&mut self, spares: &mut Spares) -> Option<(Row, u64)> {
        self.waiting.pop_front(spares)
    }

    /// Puts a unit back at the front of the queue, with the time of its arrival.
    pub(crate) fn push_front(&mut self, row: Row, queued_ns: u64, spares: &mut Spares) {
        self.waiting.push_front(queued_ns, row, spares);
    }

    /// The arrival of the first unit in the queue.
    pub(crate) fn oldest_waiting_ns(&self) -> Option<u64> {
        self.waiting.oldest_ns()
    }

    /// The arrival of the oldest unit in the queue or in the first granted batch.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        let granted = self.batches.front().and_then(GrantedBatch::oldest_ns);
        self.waiting.oldest_ns().into_iter().chain(granted).min()
    }

    /// Counts a unit that waits for a resource.
    pub(crate) fn park(&mut self, resource: u16) {
        self.parked[usize::from(resource)] += 1;
        self.parked_units += 1;
    }

    /// Counts a unit that has waited for a resource this long and waits no longer.
    pub(crate) fn unpark(&mut self, resource: u16, waited_ns: u64) {
        self.parked[usize::from(resource)] -= 1;
        self.parked_units -= 1;
        self.stats.waited_for_resource(resource, waited_ns);
    }

    /// Counts a unit that waits for room for its children.
    pub(crate) fn await_room(&mut self) {
        self.for_room += 1;
    }

    /// Counts a unit that has waited for room this long and waits no longer.
    pub(crate) fn end_wait_for_room(&mut self, waited_ns: u64) {
        self.for_room -= 1;
        self.stats.waited_for_room(waited_ns);
    }

    /// The number of units that wait for room for their children.
    pub(crate) fn waiting_for_room(&self) -> u64 {
        self.for_room as u64
    }

    /// The number of children that the stage's next run may bring out, if there is room.
    pub(crate) fn next_brood(&self) -> u64 {
        self.brood
    }

    /// Sizes the next brood after one that had rows for `most` children: a run that used them all may have twice as
    /// many next time, so that short children share the cost of a run, and slow ones do not wait for one another.
    pub(crate) fn size_brood(&mut self, most: u64, born: u64) {
        let wish = if born >= most { self.brood.max(2 * born) } else { (2 * born).max(self.brood / 2) };
        self.brood = wish.clamp(1, MAX_BROOD);
    }

    /// The number of units that wait for the resource.
    pub(crate) fn parked_for(&self, resource: usize) -> u64 {
        self.parked[resource].into()
    }

    /// Whether the stage itself stands in the line of a permit.
    pub(crate) fn awaits_permit(&self) -> bool {
        self.awaits_permit
    }

    pub(crate) fn set_awaits_permit(&mut self, awaits: bool) {
        self.awaits_permit = awaits;
    }
}

// ---- granted batches ----------------------------------------------------------------------------------

impl StageState {
    /// Whether the next unit granted in this stage must take the permits of a new batch.
    pub(crate) fn next_unit_opens_batch(&self) -> bool {
        !self.permits.is_empty() && self.batches.back().is_none_or(|batch| batch.rows.len() >= self.batch_target())
    }

    /// Opens a batch that holds these permits.
    pub(crate) fn open_batch(&mut self, permits: GrantList, spares: &mut Spares, timers: &mut Timers, now: u64) {
        self.batches.push_back(GrantedBatch::new(spares.take(), permits, now));
        self.watch_batches(timers, now);
    }

    /// Returns the batch to join: the last one if it has room, or a new one.
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

    /// Moves up to `most` units of the queue's first arrival into a batch. Returns their number. The caller hands the
    /// grants for them to [`hold_for_batch`](Self::hold_for_batch).
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

    /// Notes a grant that the last batch holds for its units.
    pub(crate) fn hold_for_batch(&mut self, grant: Option<Grant>) {
        if let Some(batch) = self.batches.back_mut() {
            batch.held.extend(grant);
        }
    }

    /// Sets a timer for the moment at which the stage's first batch that may still wait has waited long enough. A stage
    /// has at most one such timer, however many batches fill up before it fires.
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

    /// The time since which the stage's first batch has been passed over. The stage's turn starts again with each
    /// dispatch, so what counts is how long it has been passed over, not how old its units are.
    pub(super) fn passed_over_since(&self) -> u64 {
        self.batches.front().map_or(u64::MAX, |batch| batch.opened_ns.max(self.last_dispatch_ns))
    }

    /// Whether a worker with this many units of the stage in its hands may take another of its batches.
    pub(crate) fn has_more(&self, units: usize, now: u64) -> bool {
        let room = self.turn_units().saturating_sub(units);
        self.batches.front().is_some_and(|batch| {
            batch.plain && batch.held.is_empty() && batch.rows.len() <= room && self.is_ripe(batch, now)
        })
    }

    /// Hands out the first batch: to a worker that is free (`leads`), or to one that already has batches of this stage
    /// and runs this one with them; the latter batch stays among the granted ones until it is settled.
    pub(crate) fn take_batch(&mut self, leads: bool, now: u64) -> Option<TakenBatch> {
        /// Below this mean, a clock read for each unit would be a good part of what it measures.
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

    /// Puts a batch, which has waited long enough to fill, back among the granted ones, because its worker has not begun
    /// it.
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

    /// Counts a worker that no longer runs these units here.
    #[inline]
    pub(crate) fn end_work(&mut self, units: usize) {
        self.busy -= 1;
        self.running -= units;
    }

    /// Counts units of a turn, other than its first batch, as ended.
    pub(crate) fn end_in_turn(&mut self, units: usize) {
        self.granted -= units;
        self.in_turns -= units;
    }

    /// Undoes [`end_in_turn`](Self::end_in_turn) for a batch whose settlement will do it again.
    pub(crate) fn reopen_in_turn(&mut self, units: usize) {
        self.granted += units;
        self.in_turns += units;
    }

    /// Replaces the number of units that count as running in one worker's hands.
    pub(crate) fn exchange_running(&mut self, before: usize, after: usize) {
        self.running = self.running + after - before;
    }

    #[inline]
    pub(crate) fn busy(&self) -> usize {
        self.busy
    }

    /// Whether a unit is granted or runs.
    pub(super) fn has_granted_or_running(&self) -> bool {
        self.granted + self.running > 0
    }

    /// Whether a unit runs, or could run now.
    pub(super) fn moves(&self, now: u64) -> bool {
        self.running + self.in_turns > 0 || self.batches.iter().any(|batch| self.is_ripe(batch, now))
    }

    /// Moves all units that no worker has to `remaining`. Workers settle the units in their hands themselves.
    pub(super) fn empty(&mut self, remaining: &mut Vec<Row>) {
        remaining.extend(self.waiting.drain());
        let granted = remaining.len();
        remaining.extend(self.batches.drain(..).flat_map(|batch| batch.rows));
        self.granted -= remaining.len() - granted;
        self.parked.fill(0);
        self.parked_units = 0;
        self.for_room = 0;
        self.open_groups = 0;
    }
}

// ---- a look at its units ------------------------------------------------------------------------------

impl StageState {
    /// The stage's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The number of units in workers' hands.
    pub(crate) fn in_hand(&self) -> u64 {
        (self.running + self.in_turns) as u64
    }

    /// Shows the units in the queue, and the granted ones.
    pub(super) fn walk<'a>(&'a self, walk: &mut Walk, see: See<'a, '_>) {
        self.waiting.walk(walk, |row, since_ns, run, place| {
            see(row, self.number, Sight::Queued { since_ns, run, place });
        });
        let batch = |run: usize| &self.batches[self.batches.len() - 1 - run];
        let len = |run: usize| batch(run).rows.len();
        walk.next_runs(self.batches.len(), len, |run, place| {
            let GrantedBatch { permits, held, opened_ns, rows, .. } = batch(run);
            let place = rows.len() - 1 - place;
            let sight = Sight::Granted { since_ns: *opened_ns, permits, held, place, units: rows.len() };
            see(&rows[place], self.number, sight);
        });
    }

    /// The number of units in the queue ahead of one that the walk has shown.
    pub(crate) fn ahead_of(&self, run: usize, place: usize) -> usize {
        self.waiting.ahead_of(run, place)
    }
}

// ---- statistics ---------------------------------------------------------------------------------------

impl StageState {
    /// Counts units that leave the stage with success.
    #[inline]
    pub(crate) fn count_units(&mut self, units: u64) {
        self.stats.units += units;
    }

    /// Counts units that come to the stage in a chain, without waiting in its queue.
    pub(crate) fn count_arrivals_in_chain(&mut self, units: u64) {
        self.stats.waited_in_queue(0, units);
    }

    /// Counts the time of a batch's run.
    pub(crate) fn count_run(&mut self, busy_ns: u64) {
        self.stats.busy_ns += busy_ns;
    }

    /// Records that `units` units were served in `ns` each.
    pub(crate) fn count_service(&mut self, ns: u64, units: u64) {
        self.stats.served(ns, units);
    }

    pub(crate) fn count_failure(&mut self) {
        self.stats.failures += 1;
    }

    pub(crate) fn count_retry(&mut self) {
        self.stats.failures += 1;
        self.stats.retries += 1;
    }

    pub(crate) fn count_dead_letter(&mut self) {
        self.stats.dead_lettered += 1;
    }

    /// Counts a unit that goes back to the queue although nothing has failed.
    pub(crate) fn count_requeue(&mut self) {
        self.stats.requeued += 1;
    }

    pub(crate) fn count_wait_for_memory(&mut self, ns: u64) {
        self.stats.waited_for_memory(ns);
    }

    pub(crate) fn waits(&self) -> Waits<'_> {
        let StageStats { waited, waited_memory, waited_room, queued, .. } = &self.stats;
        Waits { for_resources: waited, for_memory: *waited_memory, for_room: *waited_room, in_queue: *queued }
    }

    /// The stage's own part of its snapshot; what its units wait for is left empty.
    pub(crate) fn snapshot(&self, oldest_ns: u64) -> StageSnapshot {
        let mut snapshot = StageSnapshot {
            name: self.name.to_string(),
            waiting: self.queued(),
            waiting_for: Vec::new(),
            granted: self.granted as u64,
            running: self.running as u64,
            units: 0,
            failures: 0,
            retries: 0,
            dead_lettered: 0,
            requeued: 0,
            open_groups: self.open_groups,
            torn: 0,
            busy_ns: 0,
            workers_busy: self.busy as u64,
            workers_min: self.workers.floor as u64,
            workers_max: self.workers.ceiling as u64,
            blocking: self.blocking,
            oldest_ns: if self.queued() > 0 { oldest_ns } else { 0 },
            service_ns: Default::default(),
            wait_ns: Default::default(),
            waited_for: Vec::new(),
        };
        self.stats.write_to(&mut snapshot);
        snapshot
    }
}
