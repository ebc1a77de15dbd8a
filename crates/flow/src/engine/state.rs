//! The scheduler's state: everything behind the flow's one mutex.
//!
//! It is a plain state machine that knows neither threads nor clocks: every method takes the time as an
//! argument, so tests drive it step by step. Its work is split over the files beside this one: `admit`
//! (a unit's way in), `grant` (what a unit needs), `dispatch` (which stage a worker serves next) and
//! `settle` (what follows a batch). Each step costs O(units it moves + stages), whatever waits elsewhere.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use smallvec::SmallVec;

use super::auto_batch::AutoBatch;
use super::chain::{Chain, Roads};
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
    /// Stages by their distance to the exit, nearest first.
    pub(crate) order: Box<[u16]>,
    pub(crate) blocking: Arc<[u16]>,
    /// Some stage lets batches wait to fill up.
    pub(crate) has_batch_waits: bool,
    pub(crate) resources: Vec<ResourceState>,
    /// The first ones are the resources without keys, at the resource's own index.
    pub(crate) instances: Vec<Instance>,
    pub(crate) free_instances: Vec<InstanceId>,

    /// Those handed over last.
    pub(crate) settings: Arc<Settings>,
    pub(crate) phase: Phase,
    pub(crate) stopped_by_failure: bool,
    /// The gate knows of that.
    pub(crate) gate_closed: bool,
    /// `stop` or `abandon` was asked for, as opposed to the source's end.
    pub(crate) stop_asked: bool,
    pub(crate) entry: u16,
    /// The resource that bounds the entry stage's queue.
    pub(crate) entry_place: Option<u16>,

    /// Free rows that are in nobody's pocket.
    pub(crate) free_rows: Vec<Row>,
    /// That of whoever has the mutex, where it has one.
    pub(crate) pocket: Pocket,
    pub(crate) rows_made: u32,
    pub(crate) in_flight: u64,
    /// Exact: a sum of at most 2^32 weights of at most `MAX_AMOUNT` fits.
    pub(crate) bytes: u128,
    pub(crate) admitted: u64,
    /// The next unit's number.
    pub(crate) next_id: u64,
    pub(crate) retired: u64,
    pub(crate) skipped: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) oversize: u64,
    pub(crate) peak_in_flight: u64,
    pub(crate) peak_bytes: u128,
    pub(crate) latency: Histogram<u64>,
    /// When the first unit was admitted, and the last one left.
    pub(crate) started_ns: Option<u64>,
    pub(crate) ended_ns: Option<u64>,
    /// Nobody waits for the flow any more: its threads end.
    pub(crate) finished: bool,

    pub(crate) timers: BinaryHeap<Reverse<Timer>>,
    pub(crate) delayed: u64,
    /// Timers that give tokens or keys to units which wait for them.
    pub(crate) supply_timers: usize,
    /// Units cancelled for memory, with what they want in `unit.bytes` terms.
    pub(crate) memory_waiters: VecDeque<MemoryWaiter>,
    pub(crate) memory_timer_set: bool,
    /// When a unit last went on beyond the byte budget.
    pub(crate) memory_exceeded_ns: u64,
    /// Units of an abandoned flow.
    pub(crate) left: Vec<Row>,

    /// Instances whose waiters may now be served, and stages whose queues may now be granted.
    pub(crate) to_serve: Vec<InstanceId>,
    pub(crate) to_pump: Vec<u16>,
    /// Resources that can make a key for a unit that waits for one.
    pub(crate) keys_freed: Vec<u16>,
    /// How many stages lack a worker.
    pub(crate) lacking_workers: usize,

    /// The most threads that may run stages that do not block.
    pub(crate) threads_most: usize,
    /// One for each shared worker.
    pub(crate) chains: Vec<Arc<Chain>>,
    pub(crate) roads: Roads,
    /// Shared workers that run a batch or pull the source.
    pub(crate) busy_shared: usize,
    /// Those of them that will end soon.
    pub(crate) busy_soon: usize,
    /// A [`TimerAction::Watch`] is set; one has fired and nobody has acted on it yet.
    pub(crate) watch_at: Option<u64>,
    pub(crate) watched: bool,
    /// How often a shared worker has brought a batch back, and had when the watch was set.
    pub(crate) turns: u64,
    pub(crate) turns_watched: u64,
    /// No shared worker has come by for a while.
    pub(crate) stalled: bool,
    pub(crate) threads: Threads,
    /// The system had no thread to give; a timer ends this.
    pub(crate) hires_nobody: bool,
    pub(crate) entrance: Entrance,
    pub(crate) source: Option<SourceState>,
    /// How long all submitters together have waited for room.
    pub(crate) room_waited_ns: u64,
    /// Units that came by the gate.
    pub(crate) left_the_gate: u64,
}

/// Threads of the flow, as its wake-ups count them.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// Workers alive, and asleep.
    pub(crate) alive: usize,
    pub(crate) asleep: usize,
    /// Those of the sleepers that still look for work to come; waking them takes no system call.
    pub(crate) alert: usize,
    /// Workers that were woken and do not know yet.
    pub(crate) signals: usize,
    /// What the timekeeper sleeps until; `u64::MAX` if it does not.
    pub(crate) clock_until: u64,
}

impl Threads {
    /// Counts one of the sleepers as awake. Returns how many the system has to wake for that.
    pub(crate) fn rouse(&mut self) -> usize {
        self.asleep -= 1;
        self.signals += 1;
        usize::from(self.alert < self.signals)
    }
}

/// A stage as the scheduler sees it.
pub(crate) struct StageState {
    pub(crate) name: Arc<str>,
    // What never changes.
    pub(crate) blocking: bool,
    /// Some need differs by unit.
    pub(crate) dynamic: bool,
    /// Needs that are the same for all units.
    pub(crate) wants: Wants,
    /// These are all its needs, and each is held for the unit's run only.
    pub(crate) alike: bool,
    /// Needs taken once per batch.
    pub(crate) permits: Wants,
    /// Those of `wants` that are places in the queues of stages it leads to.
    pub(crate) places: Arc<[InstanceId]>,
    pub(crate) batch: Batch,
    /// What its batches are like where its flow sets no size.
    pub(crate) auto: AutoBatch,
    /// As the settings say.
    pub(crate) workers: Workers,
    // The queue.
    pub(crate) waiting: Queue,
    /// Granted batches; the last one may still be filling.
    pub(crate) batches: VecDeque<GrantedBatch>,
    /// Units in `batches`, and those of `in_turns`.
    pub(crate) granted: usize,
    /// Units that workers have taken besides the batch that counts as running.
    pub(crate) in_turns: usize,
    /// Units that wait for a resource, by resource.
    pub(crate) parked: Vec<u32>,
    /// Their sum.
    pub(crate) parked_units: usize,
    /// A [`TimerAction::Batch`] of this stage is set.
    pub(crate) batch_timer_set: bool,
    /// The stage itself waits for a batch permit.
    pub(crate) awaits_permit: bool,
    pub(crate) in_pump_list: bool,
    /// Units wait here that were not looked at because every worker is busy elsewhere.
    pub(crate) lacks_worker: bool,
    // At work.
    pub(crate) running: usize,
    pub(crate) busy: usize,
    pub(crate) last_dispatch_ns: u64,
    /// Threads of a blocking stage.
    pub(crate) threads: Threads,
    pub(crate) stats: StageStats,
}

impl StageState {
    /// How many more units may be granted: what so many workers can run now. Beyond that units wait without
    /// holding anything. Where all units need the same, those in line have a seat, too: the next one would only
    /// stand behind them. Where needs differ it may overtake them.
    pub(crate) fn free_seats(&self, workers: usize) -> usize {
        let each = self.batch_target().saturating_mul(self.turn_batches()).min(self.turn_units());
        let in_line = if self.dynamic { 0 } else { self.parked_units };
        // A worker may have more in its hands than its own seats, if units last longer now than when it took
        // them. It may even wait for a unit that is still in the queue, so it gets no other worker's seat.
        let in_hands = (self.running + self.in_turns).min(self.busy.saturating_mul(each));
        let taken = in_hands + (self.granted - self.in_turns) + in_line;
        workers.saturating_mul(each).saturating_sub(taken)
    }

    /// The workers that run this stage or could start to, given the number of idle shared workers.
    pub(crate) fn workers_beside(&self, idle: usize) -> usize {
        match self.blocking {
            true => self.workers.ceiling,
            false => self.workers.ceiling.min(self.busy.max(self.workers.floor) + idle),
        }
    }

    /// How many batches a worker may take in a turn: several where they are short and hold nothing.
    fn turn_batches(&self) -> usize {
        let batch_ns = self.stats.mean_ns.saturating_mul(self.batch_target() as u64);
        if batch_ns == 0 || !self.needs_nothing() {
            return 1;
        }
        ((TURN_NS / batch_ns) as usize).clamp(1, TURN_BATCHES)
    }

    /// A unit is granted here by coming.
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

    /// Units in the queue, for whatever reason.
    pub(crate) fn queued(&self) -> u64 {
        (self.waiting.len() + self.granted + self.parked_units) as u64
    }
}

/// Times at which units of a batch came to the queue, and how many did.
pub(crate) type Arrivals = SmallVec<[(u64, u32); 4]>;

/// Units that have what they need and wait for a worker.
pub(crate) struct GrantedBatch {
    pub(crate) rows: VecDeque<Row>,
    /// All its units are plain (see `Unit`).
    pub(crate) plain: bool,
    /// When how many of them came to the queue.
    pub(crate) arrivals: Arrivals,
    pub(crate) permits: Grants,
    /// What its units need for their run, where all need the same.
    pub(crate) held: Grants,
    pub(crate) opened_ns: u64,
}

/// A resource without keys, or one key of a resource.
pub(crate) struct Instance {
    pub(crate) resource: u16,
    /// Tokens held.
    pub(crate) in_use: u64,
    /// Of a rate: when its tokens will all be back (its "theoretical arrival time").
    pub(crate) full_at_ns: u64,
    /// First come, first served.
    pub(crate) waiters: VecDeque<Waiter>,
    /// Units that wait for it or hold it; a key without any is forgotten.
    pub(crate) users: u32,
    pub(crate) key: Option<Box<str>>,
    /// When a timer will serve the waiters of this rate.
    pub(crate) timer_set_ns: Option<u64>,
    /// It is in its resource's list of idle rates.
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
    /// Its place in the order in which a unit acquires its needs one by one.
    pub(crate) rank: u16,
    pub(crate) keys: HashMap<Box<str>, InstanceId>,
    /// Keys of a rate that nobody used when they were put here, and whose tokens were not back, oldest first.
    pub(crate) idle_rates: VecDeque<InstanceId>,
    /// Units whose keys can't be made yet: there are too many.
    pub(crate) key_waiters: VecDeque<KeyWaiter>,
    /// When the first of them may be forgotten, or earlier.
    pub(crate) idle_until_ns: u64,
    pub(crate) keys_timer_set: bool,
    /// Of all keys together.
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
    Hire,
    /// Somebody looks whether workers that were expected soon have come.
    Watch,
}

impl TimerAction {
    /// It gives units what they wait for in line.
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

    /// Nothing more will happen.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed() && self.in_flight == 0
    }

    /// No stage's code runs.
    pub(crate) fn nobody_runs(&self) -> bool {
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
                TimerAction::Hire => self.hires_nobody = false,
                TimerAction::Keys(resource) => {
                    self.resources[usize::from(resource)].keys_timer_set = false;
                    self.keys_freed.push(resource);
                }
                // One that was set for later before is nobody's.
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
                    // A timer of an earlier time, or of an earlier key with this number, is nobody's.
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

    /// Units that were admitted enter their first queue.
    pub(crate) fn enter(&mut self, rows: VecDeque<Row>, plain: bool, now: u64) {
        self.enqueue_run(rows, plain, self.entry, now);
    }

    pub(crate) fn take_spare(&mut self) -> VecDeque<Row> {
        self.pocket.spares.take()
    }

    /// Puts units that come together at the end of a stage's queue.
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

    /// Grants whatever can be granted, after anything has changed.
    pub(crate) fn flow_on(&mut self, now: u64) {
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

    /// Whether the flow's resources, seen as a whole, are as they must be. For tests and debug builds.
    pub(crate) fn assert_conserved(&self) {
        assert_eq!(
            self.admitted,
            self.retired + self.dead_lettered + self.in_flight,
            "a unit was lost or counted twice"
        );
    }
}

/// A duration in nanoseconds; what does not fit is for ever.
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

/// What the builder says of a stage.
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
            threads_most: 1,
            chains: Vec::new(),
            roads: Roads::new(stages.len()),
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
            hires_nobody: false,
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
