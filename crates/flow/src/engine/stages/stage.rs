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
    /// The position of this stage among the splitting stages on the path from the entry, counted from 1; `None` if it
    /// does not split.
    pub(crate) splits: Option<u64>,
    /// The rules of the stage's groups, if it gathers its units.
    pub(crate) groups: Option<GroupRules>,
    pub(crate) resources: usize,
}

/// How long a stage's units have waited, for each kind of wait: the sum of nanoseconds, and the number of waits.
pub(crate) struct Waits<'a> {
    pub(crate) for_resources: &'a [(u64, u64)],
    pub(crate) for_memory: (u64, u64),
    pub(crate) for_room: (u64, u64),
    /// The whole time in the queue, including the time in line for resources and for room.
    pub(crate) in_queue: (u64, u64),
}

/// A stage as the scheduler sees it.
pub(crate) struct StageState {
    name: Arc<str>,
    number: u16,
    // The fields from here to `groups`, except `auto`, are fixed when the flow is built.
    blocking: bool,
    /// At least one need differs by unit.
    dynamic: bool,
    /// The needs that are the same for all units.
    wants: Wants,
    /// `wants` are all the stage's needs, and a unit holds each of them only while it runs.
    alike: bool,
    /// The needs that are taken once per batch.
    permits: Wants,
    /// The members of `wants` that are slots in the queues of later stages.
    places: Arc<[InstanceId]>,
    batch: Batch,
    /// The shape of the stage's batches if the flow sets no size.
    auto: AutoBatch,
    splits: Option<u64>,
    groups: Option<GroupRules>,
    /// The number of resting units that hold groups open here.
    open_groups: u64,
    /// The number of children that the stage's next run may produce.
    brood: u64,
    /// The stage's bounds, copied from the settings.
    workers: Workers,
    // The queue.
    waiting: Queue,
    /// Granted batches; the last batch may still be filling.
    batches: VecDeque<GrantedBatch>,
    /// The number of units in `batches`, plus the units that `in_turns` counts.
    granted: usize,
    /// The number of units that workers have taken in addition to the batches that count as running.
    in_turns: usize,
    /// Units in lines.
    parked: Parked,
    /// A timer for the stage's batches is set.
    batch_timer_set: bool,
    /// The stage itself waits for a batch permit.
    awaits_permit: bool,
    /// The stage is in the list of queues to grant.
    pub(super) is_marked: bool,
    /// The queue has units that got no seat, because workers were busy in other stages.
    pub(super) lacks_worker: bool,
    // Work in progress. A worker's turn has a first batch, and may have further batches of the same stage:
    //
    // | batch of a turn | its units count in | its worker counts in |
    // | --- | --- | --- |
    // | the first batch, until it is settled | `running` | `busy` |
    // | a further batch, until it is settled or counts as running | `granted` and `in_turns` | – |
    // | the batch that runs, once the timekeeper has settled the first batch | `running` | `busy` |
    /// The number of units in the batches that count as running.
    running: usize,
    /// The number of workers whose turns count in this stage.
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

    /// Whether all units have the same needs and hold each of them only while they run.
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

    /// Whether the instance is a slot in the queue of a later stage.
    pub(crate) fn is_place(&self, instance: InstanceId) -> bool {
        self.places.contains(&instance)
    }

    /// The stage's position among the splitting stages on the path from the entry, counted from 1; `None` if it does
    /// not split.
    #[inline]
    pub(crate) fn splits(&self) -> Option<u64> {
        self.splits
    }

    /// The rules of the stage's groups, if it gathers its units.
    #[inline]
    pub(crate) fn groups(&self) -> Option<&GroupRules> {
        self.groups.as_ref()
    }

    /// The number of resting units that hold groups open here.
    pub(crate) fn open_groups(&self) -> u64 {
        self.open_groups
    }

    /// Counts a group that has been opened.
    pub(crate) fn open_group(&mut self) {
        self.open_groups += 1;
    }

    /// Counts a group that is closed; `early` says that a limit of the stage or of the flow closed it.
    pub(crate) fn close_group(&mut self, early: bool) {
        self.open_groups -= 1;
        self.stats.torn += u64::from(early);
    }

    /// Whether a unit of this stage needs nothing, so that it is granted when it arrives.
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

    /// Whether the stage's batches wait to fill up.
    pub(super) fn waits_for_batches(&self) -> bool {
        !self.batch.wait.is_zero()
    }
}

// ---- seats --------------------------------------------------------------------------------------------

impl StageState {
    /// The number of further units that may be granted: as many as the given number of workers can run now. Units
    /// beyond this number wait and hold nothing. If all units have the same needs, units in line take seats, too,
    /// because a further unit would only wait behind them. If needs differ, a further unit may overtake them.
    pub(crate) fn free_seats(&self, workers: usize) -> usize {
        let each = self.batch_target().saturating_mul(self.turn_batches()).min(self.turn_units());
        let in_line = if self.dynamic { 0 } else { self.parked.for_resources() };
        // A worker may have more units in hand than it has seats, because units may have become slower since the worker
        // took them. The surplus units must not take the seats of other workers. Otherwise, code of this stage that
        // waits for a unit in the queue could wait forever, because that unit would get no seat.
        let in_hands = (self.running + self.in_turns).min(self.busy.saturating_mul(each));
        let taken = in_hands + (self.granted - self.in_turns) + in_line;
        workers.saturating_mul(each).saturating_sub(taken)
    }

    /// Whether the stage has a seat for the next unit of its queue.
    pub(crate) fn has_seat(&self, workers: usize) -> bool {
        self.free_seats(workers) > 0
    }

    /// The number of workers that run this stage or could begin to run it, given the number of idle shared workers.
    pub(super) fn workers_beside(&self, idle: usize) -> usize {
        match self.blocking {
            true => self.workers.ceiling,
            false => self.workers.ceiling.min(self.busy.max(self.workers.floor) + idle),
        }
    }

    /// The number of the stage's busy workers beyond its floor. These are shared workers.
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

    /// The number of units in the queue, whatever they wait for. It includes units in lines, granted units, and units
    /// that workers have taken in addition to the batches that count as running (`in_turns`).
    pub(crate) fn queued(&self) -> u64 {
        (self.waiting.len() + self.granted + self.parked.for_resources() + self.parked.for_room()) as u64
    }

    /// The number of units that could run once a worker is free and their needs are met. It includes the further
    /// batches of turns, although some of those units already run.
    #[inline]
    pub(super) fn could_run(&self) -> usize {
        self.waiting.len() + self.granted
    }

    pub(super) fn push(&mut self, row: Row, now: u64) {
        self.waiting.push_back(now, row);
    }

    #[inline]
    pub(super) fn push_all(&mut self, rows: VecDeque<Row>, plain: bool, spares: &mut Spares, now: u64) {
        self.waiting.push_all(now, rows, plain, spares);
    }

    /// Takes the first unit of the queue, with its arrival time.
    pub(crate) fn pop_waiting(&mut self, spares: &mut Spares) -> Option<(Row, u64)> {
        self.waiting.pop_front(spares)
    }

    /// Puts a unit back at the front of the queue, with its arrival time.
    pub(crate) fn push_front(&mut self, row: Row, queued_ns: u64) {
        self.waiting.push_front(queued_ns, row);
    }

    /// The arrival time of the first unit in the queue.
    pub(crate) fn oldest_waiting_ns(&self) -> Option<u64> {
        self.waiting.oldest_ns()
    }

    /// The arrival time of the unit that has been in the queue longest, whatever it waits for.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        // A unit that waited in a line may join any batch, so all batches are searched. There are only a few, because
        // together they have no more units than the workers can take next.
        let granted = self.batches.iter().filter_map(GrantedBatch::oldest_ns);
        granted.chain(self.waiting.oldest_ns()).chain(self.parked.oldest_ns()).min()
    }

    /// Counts a unit that waits for a resource; it came to the queue at `queued_ns`.
    pub(crate) fn park(&mut self, resource: u16, queued_ns: u64) {
        self.parked.begin(resource, queued_ns);
    }

    /// Ends the wait of a unit that came to the queue at `queued_ns` and waited for a resource for `waited_ns`.
    pub(crate) fn unpark(&mut self, resource: u16, queued_ns: u64, waited_ns: u64) {
        self.parked.end(resource, queued_ns);
        self.stats.waited_for_resource(resource, waited_ns);
    }

    /// Counts a unit that waits for room for its children; it came to the queue at `queued_ns`.
    pub(crate) fn await_room(&mut self, queued_ns: u64) {
        self.parked.begin_for_room(queued_ns);
    }

    /// Ends the wait of a unit that came to the queue at `queued_ns` and waited for room for `waited_ns`.
    pub(crate) fn end_wait_for_room(&mut self, queued_ns: u64, waited_ns: u64) {
        self.parked.end_for_room(queued_ns);
        self.stats.waited_for_room(waited_ns);
    }

    /// The number of units that wait for room for their children.
    pub(crate) fn waiting_for_room(&self) -> u64 {
        self.parked.for_room() as u64
    }

    /// The number of children that the stage's next run may produce, if there is room.
    pub(crate) fn next_brood(&self) -> u64 {
        self.brood
    }

    /// Sizes the next brood after a run that had rows for `most` children. After a run that used all its rows, the next
    /// run may have twice as many. So quick children share the cost of a run, and slow children do not wait for one
    /// another.
    pub(crate) fn size_brood(&mut self, most: u64, born: u64) {
        let wish = if born >= most { self.brood.max(2 * born) } else { (2 * born).max(self.brood / 2) };
        self.brood = wish.clamp(1, MAX_BROOD);
    }

    /// The number of units that wait for the resource: the units in its lines, and the units in the queue that would
    /// only wait behind them.
    pub(crate) fn waiting_for(&self, resource: usize) -> u64 {
        let in_queue = if self.queues_for() == Some(resource) { self.waiting.len() as u64 } else { 0 };
        u64::from(self.parked.for_resource(resource)) + in_queue
    }

    /// The resource that holds up the stage's queue. If all units have the same needs, the units in the queue wait for
    /// the same resource as the units in line. They join its line when a worker could run them.
    pub(crate) fn queues_for(&self) -> Option<usize> {
        let is_held_up = !self.dynamic && self.parked.for_resources() > 0;
        if is_held_up { self.parked.longest() } else { None }
    }

    /// The number of units in the queue.
    pub(crate) fn in_queue(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Whether the stage itself waits in the line of a permit.
    pub(crate) fn awaits_permit(&self) -> bool {
        self.awaits_permit
    }

    pub(crate) fn set_awaits_permit(&mut self, awaits: bool) {
        self.awaits_permit = awaits;
    }
}
