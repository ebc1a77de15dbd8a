//! One stage: its needs, its seats, its queue, its [granted batches](batches), and what it [counts](statistics).

mod batches;
mod statistics;

use std::collections::VecDeque;
use std::sync::Arc;

use super::auto_batch::AutoBatch;
use super::batch::GrantedBatch;
use super::parked::Parked;
use super::queue::Queue;
use super::stats::StageStats;
use crate::engine::claims::{InstanceId, NO_STAGE, Wants};
use crate::engine::settings::Workers;
use crate::engine::units::column::Row;
use crate::engine::units::groups::GroupRules;
use crate::engine::units::pocket::Spares;
use crate::policy::Batch;

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
    /// Units in lines.
    parked: Parked,
    /// A timer for its batches is set.
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
            parked: Parked::new(setup.resources),
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

// ---- seats --------------------------------------------------------------------------------------------

impl StageState {
    /// The number of further units that may be granted: as many as the given number of workers can run now. Units
    /// beyond that wait and hold nothing. Where all units have the same needs, the units in line have a seat, too,
    /// because a further unit would only stand behind them; where needs differ, a further unit may overtake them.
    pub(crate) fn free_seats(&self, workers: usize) -> usize {
        let each = self.batch_target().saturating_mul(self.turn_batches()).min(self.turn_units());
        let in_line = if self.dynamic { 0 } else { self.parked.for_resources() };
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
        (self.waiting.len() + self.granted + self.parked.for_resources() + self.parked.for_room()) as u64
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

    /// The arrival of the unit that has been in the queue longest, whatever it waits for.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        // A unit that waited in a line may come to any batch; there are no more of them than workers can take next.
        let granted = self.batches.iter().filter_map(GrantedBatch::oldest_ns);
        granted.chain(self.waiting.oldest_ns()).chain(self.parked.oldest_ns()).min()
    }

    /// Counts a unit that waits for a resource; it came to the queue at `queued_ns`.
    pub(crate) fn park(&mut self, resource: u16, queued_ns: u64) {
        self.parked.begin(resource, queued_ns);
    }

    /// Counts a unit that came to the queue at `queued_ns`, has waited for a resource for `waited_ns`, and waits no longer.
    pub(crate) fn unpark(&mut self, resource: u16, queued_ns: u64, waited_ns: u64) {
        self.parked.end(resource, queued_ns);
        self.stats.waited_for_resource(resource, waited_ns);
    }

    /// Counts a unit that waits for room for its children; it came to the queue at `queued_ns`.
    pub(crate) fn await_room(&mut self, queued_ns: u64) {
        self.parked.begin_for_room(queued_ns);
    }

    /// Counts a unit that came to the queue at `queued_ns`, has waited for room for `waited_ns`, and waits no longer.
    pub(crate) fn end_wait_for_room(&mut self, queued_ns: u64, waited_ns: u64) {
        self.parked.end_for_room(queued_ns);
        self.stats.waited_for_room(waited_ns);
    }

    /// The number of units that wait for room for their children.
    pub(crate) fn waiting_for_room(&self) -> u64 {
        self.parked.for_room() as u64
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

    /// The number of units that wait for the resource: those in its lines, and those in the queue that would only stand
    /// behind them.
    pub(crate) fn waiting_for(&self, resource: usize) -> u64 {
        let in_queue = if self.queues_for() == Some(resource) { self.waiting.len() as u64 } else { 0 };
        u64::from(self.parked.for_resource(resource)) + in_queue
    }

    /// The resource that holds the stage's queue up. Where all units have the same needs, those in the queue wait for what
    /// those in line wait for; they take a place there when a worker could run them.
    pub(crate) fn queues_for(&self) -> Option<usize> {
        let is_held_up = !self.dynamic && self.parked.for_resources() > 0;
        if is_held_up { self.parked.longest() } else { None }
    }

    /// The number of units in the queue.
    pub(crate) fn in_queue(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Whether the stage itself stands in the line of a permit.
    pub(crate) fn awaits_permit(&self) -> bool {
        self.awaits_permit
    }

    pub(crate) fn set_awaits_permit(&mut self, awaits: bool) {
        self.awaits_permit = awaits;
    }
}
