//! The scheduler's state: everything behind the flow's one mutex.
//!
//! The state is a plain state machine that knows neither threads nor clocks: every method takes the time as an
//! argument, so tests drive it step by step. Its work is split over the files beside this one: `admit` (a unit's way
//! in), `grant` (a unit's needs), `dispatch` (the stage that a worker serves next) and `settle` (the end of a batch).
//! Each step costs O(units it moves + stages), however many units wait elsewhere.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use smallvec::SmallVec;

use super::auto_batch::AutoBatch;
use super::chain::{Chain, OpenStages};
use super::column::{Column, Row};
use super::entrance::Entrance;
use super::pocket::Pocket;
use super::queue::Queue;
use super::settings::{Settings, Workers};
use super::source::SourceState;
use super::stats::StageStats;
use super::unit::{Ask, Grant, Grants, InstanceId, NO_STAGE, Stamp, Unit, Want, Wants};
use super::worker::{TURN_BATCHES, TURN_NS};
use crate::policy::Batch;
use crate::resource::{ResourceSpec, Supply};
use crate::snapshot::Phase;

pub(crate) struct State {
    pub(crate) units: Arc<Column<Unit>>,
    pub(crate) stamps: Arc<Column<Stamp>>,
    pub(crate) stages: Vec<StageState>,
    /// The stages by their distance to the exit, nearest first.
    pub(crate) order: Box<[u16]>,
    pub(crate) blocking: Arc<[u16]>,
    /// Some stage lets its batches wait to fill up.
    pub(crate) has_batch_waits: bool,
    pub(crate) resources: Vec<ResourceState>,
    /// Resources without keys come first, each at its own index.
    pub(crate) instances: Vec<Instance>,
    pub(crate) free_instances: Vec<InstanceId>,

    /// The settings that `follow` was given last.
    pub(crate) settings: Arc<Settings>,
    pub(crate) phase: Phase,
    pub(crate) stopped_by_failure: bool,
    /// The gate has been told that a failure stopped the flow.
    pub(crate) gate_closed: bool,
    /// `stop` or `abandon` was called; the source's own end does not set this.
    pub(crate) stop_asked: bool,
    pub(crate) entry: u16,
    /// The resource that bounds the entry stage's queue.
    pub(crate) entry_place: Option<u16>,

    /// Free rows that are in no worker's pocket.
    pub(crate) free_rows: Vec<Row>,
    /// The pocket of the worker that holds the mutex; empty if the holder has none.
    pub(crate) pocket: Pocket,
    pub(crate) rows_made: u32,
    pub(crate) in_flight: u64,
    /// Payload bytes in flight. The sum is exact: 2^32 weights of at most `MAX_AMOUNT` fit.
    pub(crate) bytes: u128,
    pub(crate) admitted: u64,
    /// The number of the next unit.
    pub(crate) next_id: u64,
    pub(crate) retired: u64,
    pub(crate) skipped: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) oversize: u64,
    pub(crate) peak_in_flight: u64,
    pub(crate) peak_bytes: u128,
    pub(crate) latency: Histogram<u64>,
    /// The times at which the first unit was admitted and the last one left.
    pub(crate) started_ns: Option<u64>,
    pub(crate) ended_ns: Option<u64>,
    /// The flow is joined; its threads exit.
    pub(crate) finished: bool,

    pub(crate) timers: BinaryHeap<Reverse<Timer>>,
    pub(crate) delayed: u64,
    /// Timers that give tokens or keys to waiting units.
    pub(crate) supply_timers: usize,
    /// Units cancelled to keep the byte budget, each with the value of `unit.bytes` that it asks for.
    pub(crate) memory_waiters: VecDeque<MemoryWaiter>,
    pub(crate) memory_timer_set: bool,
    /// The time at which a unit last went on beyond the byte budget.
    pub(crate) memory_exceeded_ns: u64,
    /// Units that an abandoned flow leaves behind.
    pub(crate) left: Vec<Row>,

    /// Instances whose waiters may now be served, and stages whose queues may now be granted.
    pub(crate) to_serve: Vec<InstanceId>,
    pub(crate) to_pump: Vec<u16>,
    /// Resources that may be able to make a key for a unit that waits for one.
    pub(crate) keys_freed: Vec<u16>,
    /// The number of stages that lack a worker.
    pub(crate) lacking_workers: usize,

    /// The maximum number of threads that may run non-blocking stages.
    pub(crate) max_threads: usize,
    /// The chain of each shared worker.
    pub(crate) chains: Vec<Arc<Chain>>,
    pub(crate) open_stages: OpenStages,
    /// Shared workers that run a batch or pull the source.
    pub(crate) busy_shared: usize,
    /// The busy shared workers that are expected back soon.
    pub(crate) busy_soon: usize,
    /// The time for which a [`TimerAction::Watch`] is set; and whether one has fired that no thread has acted on yet.
    pub(crate) watch_at: Option<u64>,
    pub(crate) watched: bool,
    /// The number of turns that shared workers have ended; and that number when the watch was set.
    pub(crate) turns: u64,
    pub(crate) turns_watched: u64,
    /// No shared worker ended a turn while the last watch ran.
    pub(crate) stalled: bool,
    pub(crate) threads: Threads,
    /// The system refused a thread, so the flow starts none until a timer ends the pause.
    pub(crate) spawning_paused: bool,
    pub(crate) entrance: Entrance,
    pub(crate) source: Option<SourceState>,
    /// The time that all submitters together have waited for room.
    pub(crate) room_waited_ns: u64,
    /// The number of units that entered through the gate.
    pub(crate) left_the_gate: u64,
}

/// The flow's threads, as its wake-ups count them.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// Workers alive, and workers asleep.
    pub(crate) alive: usize,
    pub(crate) asleep: usize,
    /// Sleepers that still poll for work; waking them takes no system call.
    pub(crate) alert: usize,
    /// Workers that were woken and have not noticed yet.
    pub(crate) signals: usize,
    /// The time until which the timekeeper sleeps; `u64::MAX` if it does not sleep.
    pub(crate) clock_until: u64,
}

impl Threads {
    /// Counts one sleeper as awake. Returns how many threads the system has to wake for that: none while a poller is
    /// left.
    pub(crate) fn mark_woken(&mut self) -> usize {
        self.asleep -= 1;
        self.signals += 1;
        usize::from(self.alert < self.signals)
    }
}

/// A stage as the scheduler sees it.
pub(crate) struct StageState {
    pub(crate) name: Arc<str>,
    // Fixed when the flow is built.
    pub(crate) blocking: bool,
    /// At least one need differs by unit.
    pub(crate) dynamic: bool,
    /// The needs that are the same for all units.
    pub(crate) wants: Wants,
    /// `wants` are all the stage's needs, and each is held for the unit's run only.
    pub(crate) alike: bool,
    /// The needs that are taken once per batch.
    pub(crate) permits: Wants,
    /// The members of `wants` that are places in the queues of later stages.
    pub(crate) places: Arc<[InstanceId]>,
    pub(crate) batch: Batch,
    /// The shape of the stage's batches where its flow sets no size.
    pub(crate) auto: AutoBatch,
    /// The stage's bounds, copied from the settings.
    pub(crate) workers: Workers,
    // The queue.
    pub(crate) waiting: Queue,
    /// Granted batches; the last one may still be filling.
    pub(crate) batches: VecDeque<GrantedBatch>,
    /// Units in `batches`, and those counted by `in_turns`.
    pub(crate) granted: usize,
    /// Units that workers have taken in addition to the batch that counts as running.
    pub(crate) in_turns: usize,
    /// Units that wait for a resource, by resource.
    pub(crate) parked: Vec<u32>,
    /// The sum of `parked`.
    pub(crate) parked_units: usize,
    /// A [`TimerAction::Batch`] of this stage is set.
    pub(crate) batch_timer_set: bool,
    /// The stage itself waits for a batch permit.
    pub(crate) awaits_permit: bool,
    pub(crate) in_pump_list: bool,
    /// The queue holds units that were not looked at because every worker is busy elsewhere.
    pub(crate) lacks_worker: bool,
    // Work in progress.
    pub(crate) running: usize,
    pub(crate) busy: usize,
    pub(crate) last_dispatch_ns: u64,
    /// The threads of a blocking stage.
    pub(crate) threads: Threads,
    pub(crate) stats: StageStats,
}

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

    /// The number of workers that run this stage or could start to, given the number of idle shared workers.
    pub(crate) fn workers_beside(&self, idle: usize) -> usize {
        match self.blocking {
            true => self.workers.ceiling,
            false => self.workers.ceiling.min(self.busy.max(self.workers.floor) + idle),
        }
    }

    /// The number of batches that a worker may take in a turn: several where batches are short and hold nothing.
    fn turn_batches(&self) -> usize {
        let batch_ns = self.stats.mean_ns.saturating_mul(self.batch_target() as u64);
        if batch_ns == 0 || !self.needs_nothing() {
            return 1;
        }
        ((TURN_NS / batch_ns) as usize).clamp(1, TURN_BATCHES)
    }

    /// Whether a unit is granted by its mere arrival.
    pub(crate) fn needs_nothing(&self) -> bool {
        self.wants.is_empty() && !self.dynamic && self.permits.is_empty()
    }

    /// Whether the queue should look at its next unit.
    pub(crate) fn has_seat(&self, workers: usize) -> bool {
        self.free_seats(workers) > 0
    }

    pub(crate) fn count_parked(&mut self, resource: u16) {
        self.parked[usize::from(resource)] += 1;
        self.parked_units += 1;
    }

    /// The number of units in the queue, whatever they wait for.
    pub(crate) fn queued(&self) -> u64 {
        (self.waiting.len() + self.granted + self.parked_units) as u64
    }
}

/// The arrivals of a batch's units at the queue, as pairs of time and number of units.
pub(crate) type Arrivals = SmallVec<[(u64, u32); 4]>;

/// Units that have all they need and wait for a worker.
pub(crate) struct GrantedBatch {
    pub(crate) rows: VecDeque<Row>,
    /// All its units are plain (see `Unit`).
    pub(crate) plain: bool,
    /// The arrivals of its units at the queue.
    pub(crate) arrivals: Arrivals,
    pub(crate) permits: Grants,
    /// The grants that its units hold for their run, where all units have the same needs.
    pub(crate) held: Grants,
    pub(crate) opened_ns: u64,
}

/// A resource without keys, or one key of a resource.
pub(crate) struct Instance {
    pub(crate) resource: u16,
    /// The number of tokens held.
    pub(crate) in_use: u64,
    /// The time at which all tokens of a rate will be back (its "theoretical arrival time").
    pub(crate) full_at_ns: u64,
    /// The waiters, first come, first served.
    pub(crate) waiters: VecDeque<Waiter>,
    /// The number of units that wait for the instance or hold it; a key without users is forgotten.
    pub(crate) users: u32,
    pub(crate) key: Option<Box<str>>,
    /// The time at which a timer will serve the waiters of this rate.
    pub(crate) timer_set_ns: Option<u64>,
    /// The instance is in its resource's list of idle rates.
    pub(crate) listed_idle: bool,
}

pub(crate) enum Waiter {
    Unit {
        row: Row,
        stage: u16,
    },
    /// A stage whose next batch needs a permit.
    Stage(u16),
}

pub(crate) struct ResourceState {
    pub(crate) spec: ResourceSpec,
    /// The resource's place in the order in which a unit acquires its needs one by one.
    pub(crate) rank: u16,
    pub(crate) keys: HashMap<Box<str>, InstanceId>,
    /// Keys of a rate that had no user when they were listed here, and whose tokens were not back yet; oldest first.
    pub(crate) idle_rates: VecDeque<InstanceId>,
    /// Units whose keys cannot be made yet because the bound on keys is reached.
    pub(crate) key_waiters: VecDeque<KeyWaiter>,
    /// A time no later than the one at which the first idle key may be forgotten.
    pub(crate) idle_until_ns: u64,
    pub(crate) keys_timer_set: bool,
    /// The tokens held over all keys.
    pub(crate) in_use: u128,
    pub(crate) peak_in_use: u64,
}

pub(crate) struct KeyWaiter {
    pub(crate) row: Row,
    pub(crate) stage: u16,
}

pub(crate) struct MemoryWaiter {
    pub(crate) row: Row,
    pub(crate) stage: u16,
    pub(crate) wants_bytes: u64,
    pub(crate) since_ns: u64,
}

pub(crate) struct Timer {
    pub(crate) at_ns: u64,
    pub(crate) action: TimerAction,
}

pub(crate) enum TimerAction {
    /// The unit enters the stage's queue.
    Enqueue(Row, u16),
    /// A filling batch of the stage may have waited long enough; the next `choose` sees it.
    Batch(u16),
    /// The rate has tokens again.
    Rate(InstanceId),
    /// A key of the rate may be forgotten.
    Keys(u16),
    /// The first unit that waits for memory may have waited long enough.
    Memory,
    /// The system may have a thread to give again.
    RetrySpawn,
    /// The timekeeper checks whether the workers that were expected soon have come.
    Watch,
}

impl TimerAction {
    /// Whether the timer gives waiting units what they stand in line for.
    fn supplies(&self) -> bool {
        matches!(self, TimerAction::Rate(_) | TimerAction::Keys(_))
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.at_ns == other.at_ns
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at_ns.cmp(&other.at_ns)
    }
}

impl State {
    pub(crate) fn is_closed(&self) -> bool {
        !matches!(self.phase, Phase::Ready | Phase::Running)
    }

    /// Whether the flow has ended: nothing further can happen.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed() && self.in_flight == 0
    }

    /// Whether no stage's code runs.
    pub(crate) fn no_stage_runs(&self) -> bool {
        self.stages.iter().all(|stage| stage.busy == 0)
    }

    /// Whether a batch's age matters for its dispatch.
    pub(crate) fn batches_may_wait(&self) -> bool {
        self.has_batch_waits
    }

    pub(crate) fn stage(&mut self, stage: u16) -> &mut StageState {
        &mut self.stages[usize::from(stage)]
    }

    pub(crate) fn set_timer(&mut self, at_ns: u64, action: TimerAction) {
        self.supply_timers += usize::from(action.supplies());
        self.timers.push(Reverse(Timer { at_ns, action }));
    }

    /// Runs every timer that is due.
    pub(crate) fn fire_timers(&mut self, now: u64) {
        while self.timers.peek().is_some_and(|Reverse(timer)| timer.at_ns <= now) {
            let Some(Reverse(timer)) = self.timers.pop() else { break };
            self.supply_timers -= usize::from(timer.action.supplies());
            match timer.action {
                TimerAction::Enqueue(row, stage) => {
                    self.delayed -= 1;
                    self.enqueue(row, stage, now);
                }
                TimerAction::Batch(stage) => {
                    self.stage(stage).batch_timer_set = false;
                    self.watch_batches(stage, now);
                }
                TimerAction::Memory => self.watch_memory(now),
                TimerAction::RetrySpawn => self.spawning_paused = false,
                TimerAction::Keys(resource) => {
                    self.resources[usize::from(resource)].keys_timer_set = false;
                    self.keys_freed.push(resource);
                }
                // `watch_sooner` has replaced this watch, so it is stale.
                TimerAction::Watch if self.watch_at != Some(timer.at_ns) => {}
                TimerAction::Watch => {
                    self.watch_at = None;
                    self.watched = true;
                    self.stalled = self.turns == self.turns_watched;
                    self.watch_pull(now);
                    self.take_turns_back(timer.at_ns, now);
                    self.follow_chains();
                }
                TimerAction::Rate(instance) => {
                    let set = &mut self.instances[instance as usize].timer_set_ns;
                    // A timer that was set for another time, or for an earlier key with this number, is stale.
                    if *set == Some(timer.at_ns) {
                        *set = None;
                        self.to_serve.push(instance);
                    }
                }
            }
        }
        self.flow_on(now);
        self.note_room(now);
    }

    /// Puts a unit at the end of a stage's queue.
    pub(crate) fn enqueue(&mut self, row: Row, stage: u16, now: u64) {
        self.stages[usize::from(stage)].waiting.push_back(now, row, &mut self.pocket.spares);
        self.mark_pump(stage);
    }

    /// Puts admitted units into their first queue.
    pub(crate) fn enter(&mut self, rows: VecDeque<Row>, plain: bool, now: u64) {
        self.enqueue_run(rows, plain, self.entry, now);
    }

    pub(crate) fn take_spare(&mut self) -> VecDeque<Row> {
        self.pocket.spares.take()
    }

    /// Puts units that arrive together at the end of a stage's queue.
    pub(crate) fn enqueue_run(&mut self, rows: VecDeque<Row>, plain: bool, stage: u16, now: u64) {
        if rows.is_empty() {
            self.pocket.spares.keep(rows);
        } else {
            self.stage(stage).waiting.push_run(now, rows, plain);
            self.mark_pump(stage);
        }
    }

    pub(crate) fn mark_pump(&mut self, stage: u16) {
        let state = &mut self.stages[usize::from(stage)];
        if !state.in_pump_list {
            state.in_pump_list = true;
            self.to_pump.push(stage);
        }
    }

    /// Grants everything that can be granted after a change.
    pub(crate) fn flow_on(&mut self, now: u64) {
        // The order is deliberate: a unit in line for a resource comes before one for a key, and both before a newcomer
        // from a queue. Seats, memory and the source come last, because each of the former may use up what they would
        // hand out.
        loop {
            if let Some(instance) = self.to_serve.pop() {
                self.serve(instance, now);
            } else if let Some(resource) = self.keys_freed.pop() {
                self.serve_key_waiters(resource, now);
            } else if let Some(stage) = self.to_pump.pop() {
                self.stage(stage).in_pump_list = false;
                self.pump(stage, now);
            } else if !self.seat_again() && !self.serve_memory(now) && !self.admit_pulled(now) {
                return;
            }
        }
    }

    /// Asserts that every admitted unit is in flight or was counted when it left.
    pub(crate) fn assert_conserved(&self) {
        assert_eq!(
            self.admitted,
            self.retired + self.dead_lettered + self.in_flight,
            "a unit was lost or counted twice"
        );
    }
}

/// A duration in nanoseconds; a longer one than fits counts as endless.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Ask {
    pub(crate) fn want(&self, instance: InstanceId) -> Want {
        Want { instance, until: self.until, for_batch: false, amount: self.amount }
    }
}

impl Want {
    pub(crate) fn grant(&self, from: u16) -> Grant {
        Grant { instance: self.instance, until: self.until, from, amount: self.amount }
    }
}

impl ResourceState {
    pub(crate) fn capacity(&self) -> u64 {
        match self.spec.supply {
            Supply::Tokens(tokens) => tokens,
            Supply::Rate(rate) => rate.burst,
        }
    }
}

/// The builder's description of a stage.
pub(crate) struct StageSetup {
    pub(crate) name: Arc<str>,
    pub(crate) blocking: bool,
    pub(crate) dynamic: bool,
    pub(crate) wants: Wants,
    pub(crate) permits: Wants,
    pub(crate) places: Arc<[InstanceId]>,
    pub(crate) batch: Batch,
    pub(crate) resources: usize,
}

impl State {
    pub(crate) fn new(
        settings: Arc<Settings>,
        stages: Vec<StageSetup>,
        resources: &[ResourceSpec],
        ranks: &[u16],
        order: Vec<u16>,
        entry: u16,
        entry_place: Option<u16>,
    ) -> Self {
        let blocking = (0..stages.len() as u16).filter(|&s| stages[usize::from(s)].blocking).collect();
        State {
            units: Arc::new(Column::new()),
            stamps: Arc::new(Column::new()),
            blocking,
            has_batch_waits: stages.iter().any(|stage| !stage.batch.wait.is_zero()),
            order: order.into(),
            resources: resources
                .iter()
                .zip(ranks)
                .map(|(spec, &rank)| ResourceState::new(spec.clone(), rank))
                .collect(),
            instances: (0..resources.len() as u16).map(|resource| Instance::new(resource, None)).collect(),
            free_instances: Vec::new(),
            phase: Phase::Ready,
            stopped_by_failure: false,
            gate_closed: false,
            stop_asked: false,
            entry,
            entry_place,
            free_rows: Vec::new(),
            pocket: Pocket::default(),
            rows_made: 0,
            in_flight: 0,
            bytes: 0,
            admitted: 0,
            next_id: 0,
            retired: 0,
            skipped: 0,
            dead_lettered: 0,
            oversize: 0,
            peak_in_flight: 0,
            peak_bytes: 0,
            latency: super::stats::histogram(),
            started_ns: None,
            ended_ns: None,
            finished: false,
            timers: BinaryHeap::new(),
            delayed: 0,
            supply_timers: 0,
            memory_waiters: VecDeque::new(),
            memory_timer_set: false,
            memory_exceeded_ns: 0,
            left: Vec::new(),
            to_serve: Vec::new(),
            to_pump: Vec::new(),
            keys_freed: Vec::new(),
            lacking_workers: 0,
            max_threads: 1,
            chains: Vec::new(),
            open_stages: OpenStages::new(stages.len()),
            stages: stages
                .into_iter()
                .zip(&settings.workers)
                .map(|(setup, &workers)| StageState::new(setup, workers))
                .collect(),
            settings,
            busy_shared: 0,
            busy_soon: 0,
            watch_at: None,
            watched: false,
            turns: 0,
            turns_watched: 0,
            stalled: false,
            threads: Threads { clock_until: u64::MAX, ..Threads::default() },
            spawning_paused: false,
            entrance: Entrance::default(),
            source: None,
            room_waited_ns: 0,
            left_the_gate: 0,
        }
    }
}

impl StageState {
    fn new(setup: StageSetup, workers: Workers) -> Self {
        StageState {
            name: setup.name,
            blocking: setup.blocking,
            dynamic: setup.dynamic,
            alike: !setup.dynamic && setup.wants.iter().all(|want| want.until == NO_STAGE),
            wants: setup.wants,
            permits: setup.permits,
            places: setup.places,
            batch: setup.batch,
            auto: AutoBatch::ONE,
            workers,
            waiting: Queue::default(),
            batches: VecDeque::new(),
            granted: 0,
            in_turns: 0,
            parked: vec![0; setup.resources],
            parked_units: 0,
            batch_timer_set: false,
            awaits_permit: false,
            in_pump_list: false,
            lacks_worker: false,
            running: 0,
            busy: 0,
            last_dispatch_ns: 0,
            threads: Threads::default(),
            stats: StageStats::new(setup.resources),
        }
    }
}

impl ResourceState {
    fn new(spec: ResourceSpec, rank: u16) -> Self {
        ResourceState {
            spec,
            rank,
            keys: HashMap::new(),
            idle_rates: VecDeque::new(),
            key_waiters: VecDeque::new(),
            idle_until_ns: u64::MAX,
            keys_timer_set: false,
            in_use: 0,
            peak_in_use: 0,
        }
    }
}
