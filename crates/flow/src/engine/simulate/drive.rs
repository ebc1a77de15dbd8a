//! The events of a simulated run.
//!
//! The driver is one thread. It takes the earliest event (a worker wakes, code ends, a timer is due), lets the state
//! machine react as a thread would, and carries out the plan of wake-ups.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::cores::Cores;
use super::meter::{Meter, Spent};
use crate::engine::crew::post::Post;
use crate::engine::crew::turn_slot::DispatchedBatch;
use crate::engine::crew::wakeups::Call;
use crate::engine::dispatch::Job;
use crate::engine::intake::source::PullOrder;
use crate::engine::intake::staging::Staging;
use crate::engine::pace::ALERT_NS;
use crate::engine::run::advance::Advance;
use crate::engine::run::batch_run::Run;
use crate::engine::run::settlement::Settlement;
use crate::engine::state::State;
use crate::engine::threads::clock::fire;
use crate::engine::threads::shared::{Locked, Shared};
use crate::engine::units::column::Row;
use crate::report::Report;
use crate::snapshot::Snapshot;

/// The machine that a run is simulated on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    pub(crate) cores: usize,
    /// The time from a wake-up to the first instruction of a sleeping worker.
    pub(crate) wake_ns: u64,
    /// The time from the start of a thread to its first instruction.
    pub(crate) start_ns: u64,
    /// The time from the start of a fiber to its first instruction.
    pub(crate) fiber_start_ns: u64,
    /// The engine's own work for a run of a batch in a stage.
    pub(crate) between_ns: u64,
    /// The part of the cores' speed that is lost while several jobs compute, from 0 to below 1 (see [`Cores`]).
    pub(crate) loss: f64,
}

/// The source of a simulated run. It says how long the pull of each unit takes.
pub(crate) trait Pulls {
    /// Returns the time to pull the next `units` units, or the remaining units if there are fewer.
    fn next(&mut self, units: usize) -> Spent;
}

/// The reason why a simulated run did not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoEnd {
    /// Units are left, but no further event can happen.
    Stuck { left: u64, held_by: String },
    /// There were more events than a run can need.
    TooManyEvents,
}

/// The outcome of a simulated run.
pub(crate) struct Simulated {
    pub(crate) report: Report,
    /// The times of the two departures that the caller asked for.
    pub(crate) marks_ns: [u64; 2],
}

/// The viewer's interval doubles after this many snapshots, because a simulated run may last very long.
const LOOKS_AT_AN_INTERVAL: u32 = 4096;

/// A viewer of a simulated run: it sees the flow at its beginning, after each interval, and at its end.
pub(crate) struct Viewer<'a> {
    every_ns: u64,
    looks: u32,
    next_ns: u64,
    see: &'a mut dyn FnMut(&Snapshot),
}

impl<'a> Viewer<'a> {
    pub(crate) fn new(every_ns: u64, see: &'a mut dyn FnMut(&Snapshot)) -> Self {
        Viewer { every_ns: every_ns.max(1), looks: 0, next_ns: 0, see }
    }

    /// The time of the viewer's next look, if that is before `until_ns`.
    fn next_before(&self, until_ns: u64) -> Option<u64> {
        Some(self.next_ns).filter(|&at| at < until_ns)
    }

    fn look(&mut self, shared: &Shared, now: u64) {
        self.looks += 1;
        if self.looks == LOOKS_AT_AN_INTERVAL {
            (self.looks, self.every_ns) = (0, self.every_ns.saturating_mul(2));
        }
        self.next_ns = now.saturating_add(self.every_ns);
        let snapshot = shared.lock().snapshot(shared.site().name(), now);
        (self.see)(&snapshot);
    }
}

/// Runs a flow in simulated time, from its first pull to the departure of its last unit. The flow must have a source
/// and take its time from `meter`; it must not have been started, so it has no threads. `marks` has the numbers of two
/// departures whose times are noted.
pub(crate) fn simulate(
    shared: &Arc<Shared>,
    meter: &Meter,
    costs: Costs,
    pulls: &mut dyn Pulls,
    marks: [u64; 2],
    max_events: u64,
    viewer: Option<Viewer<'_>>,
) -> Result<Simulated, NoEnd> {
    let mut drive = Drive {
        shared,
        meter,
        costs,
        pulls,
        cores: Cores::new(costs.cores, costs.loss),
        now: 1,
        events: BinaryHeap::new(),
        sequence: 0,
        workers: Vec::new(),
        settlements: Vec::new(),
        over: false,
        viewer,
    };
    meter.set_now(drive.now);
    let mut state = shared.lock();
    state.open(drive.now);
    state.attach_source();
    state.grant_all(drive.now);
    drive.wake(&mut state);
    drop(state);
    let mut marks_ns = [None; 2];
    for _ in 0..max_events {
        let departures = shared.lock().ledger.departures();
        for (mark_ns, mark) in marks_ns.iter_mut().zip(marks) {
            if departures > mark {
                mark_ns.get_or_insert(drive.now);
            }
        }
        if drive.over {
            let mut state = shared.lock();
            state.ledger.end(drive.now);
            state.life.finish();
            let report = state.report(shared.site().name(), drive.now);
            drop(state);
            if let Some(viewer) = &mut drive.viewer {
                viewer.look(shared, drive.now);
            }
            return Ok(Simulated { report, marks_ns: marks_ns.map(|at| at.unwrap_or(drive.now)) });
        }
        if !drive.step() {
            let state = shared.lock();
            let snapshot = state.snapshot(shared.site().name(), drive.now);
            return Err(NoEnd::Stuck { left: snapshot.in_flight, held_by: snapshot.held_by() });
        }
    }
    Err(NoEnd::TooManyEvents)
}

struct Drive<'a, 'v> {
    shared: &'a Arc<Shared>,
    meter: &'a Meter,
    costs: Costs,
    pulls: &'a mut dyn Pulls,
    cores: Cores,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// The number of events so far; it orders events of the same time.
    sequence: u64,
    workers: Vec<Worker>,
    /// Settlements for reuse.
    settlements: Vec<Settlement>,
    over: bool,
    viewer: Option<Viewer<'v>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A started worker begins, or a woken worker continues.
    Begins { worker: usize },
    /// A worker stops polling for work.
    StopsPolling { worker: usize },
    /// A worker's task ends.
    Ends { worker: usize },
}

struct Worker {
    post: Post,
    at: At,
    /// The worker's current task.
    task: Option<Task>,
    /// The rows of its pulls, which enter the flow through `staging`.
    rows: Vec<Row>,
    staging: Arc<Staging>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// The worker was started or woken, and will look for work.
    OnTheWay {
        was_asleep: bool,
        polled: bool,
    },
    Polling,
    Asleep,
    Busy,
}

/// A worker's task.
#[expect(clippy::large_enum_variant, reason = "nearly all tasks are batches")]
enum Task {
    Batch { batch: DispatchedBatch, settlement: Settlement, began_ns: u64, wait_ns: u64 },
    Pull { order: PullOrder, wait_ns: u64 },
}

impl Drive<'_, '_> {
    /// Advances to the next event. Returns `false` if there is none.
    fn step(&mut self) -> bool {
        let timer = self.shared.lock().timers.next_at();
        let computed = self.cores.next_end();
        let event = self.events.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
        let at = timer.min(computed).min(event);
        if at == u64::MAX {
            return false;
        }
        let at_now = self.now.max(at);
        // Nothing changes between two events, so every look before the next event sees the current state.
        if let Some(viewer) = &mut self.viewer {
            while let Some(due) = viewer.next_before(at_now) {
                viewer.look(self.shared, due.max(self.now));
            }
        }
        self.now = at_now;
        self.meter.set_now(self.now);
        if at == computed {
            if let Some(worker) = self.cores.take_ended(self.now) {
                self.computed(worker);
            }
        } else if at == event {
            if let Some(Reverse((_, _, event))) = self.events.pop() {
                self.react(event);
            }
        } else {
            let shared = self.shared;
            let mut state = shared.lock();
            fire(shared, &mut state, self.now);
            self.wake(&mut state);
        }
        true
    }

    fn schedule(&mut self, after_ns: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((self.now.saturating_add(after_ns), self.sequence, event)));
    }

    fn react(&mut self, event: Event) {
        match event {
            Event::Begins { worker } => self.begin(worker),
            Event::StopsPolling { worker } => self.stop_polling(worker),
            Event::Ends { worker } => self.end(worker),
        }
    }

    // ---- wake-ups -------------------------------------------------------------------------------------

    /// Carries out the plan of wake-ups.
    fn wake(&mut self, state: &mut State) {
        let wakeups = self.shared.finish_change(state);
        for &(post, call) in &wakeups.workers {
            match call {
                Call::Start => {
                    let worker = self.workers.len();
                    let at = At::OnTheWay { was_asleep: false, polled: false };
                    let (rows, staging) = (Vec::new(), Arc::new(Staging::new()));
                    self.workers.push(Worker { post, at, task: None, rows, staging });
                    self.schedule(self.start_ns(post), Event::Begins { worker });
                }
                Call::Wake { .. } => self.wake_one(post),
            }
        }
        self.over |= wakeups.over;
    }

    /// The time from the start of a worker of the post to its first instruction.
    fn start_ns(&self, post: Post) -> u64 {
        if self.shared.are_fibers(post) { self.costs.fiber_start_ns } else { self.costs.start_ns }
    }

    /// Wakes a worker of the post: a polling worker if there is one, otherwise the sleeping worker that was started
    /// last.
    fn wake_one(&mut self, post: Post) {
        let of_post = |at: At| move |worker: &Worker| worker.post == post && worker.at == at;
        let polling = self.workers.iter().position(of_post(At::Polling));
        let Some(worker) = polling.or_else(|| self.workers.iter().rposition(of_post(At::Asleep))) else { return };
        let polled = polling.is_some();
        self.workers[worker].at = At::OnTheWay { was_asleep: true, polled };
        self.schedule(if polled { 0 } else { self.costs.wake_ns }, Event::Begins { worker });
    }

    fn stop_polling(&mut self, worker: usize) {
        if self.workers[worker].at == At::Polling {
            self.workers[worker].at = At::Asleep;
            let post = self.workers[worker].post;
            self.shared.lock().crew.threads_mut(post).stop_polling();
        }
    }

    fn begin(&mut self, worker: usize) {
        let At::OnTheWay { was_asleep, polled } = self.workers[worker].at else { return };
        let shared = self.shared;
        let mut state = shared.lock();
        if was_asleep {
            state.has_woken(self.workers[worker].post, polled);
            if !shared.gate().is_empty() {
                shared.gate().admit_from_gate(&mut state, self.now);
            }
        }
        self.turn(worker, state);
    }

    // ---- a worker's turn ------------------------------------------------------------------------------

    /// Makes a worker look for work, as in `cycle::work`.
    fn turn(&mut self, worker: usize, mut state: Locked<'_>) {
        let (now, post) = (self.now, self.workers[worker].post);
        state.admit_from_gate_if_wanted(self.shared.gate(), now);
        state.grant_all(now);
        state.note_room(now);
        let job = state.choose(post, now);
        let taken = match job {
            None => None,
            Some(Job::Batch(stage)) => {
                let batch = state.dispatch(stage, None, true, now);
                if batch.is_some() {
                    state.grant_behind(stage, now);
                }
                batch.map(Ok)
            }
            Some(Job::Pull { in_place }) => {
                let Worker { rows, staging, .. } = &mut self.workers[worker];
                state.begin_pull(rows, staging, in_place, now).map(Err)
            }
        };
        match taken {
            None => {
                let polls = state.fall_asleep(post, now);
                self.workers[worker].at = if polls { At::Polling } else { At::Asleep };
                if polls {
                    self.schedule(ALERT_NS, Event::StopsPolling { worker });
                }
                self.wake(&mut state);
            }
            Some(task) => {
                self.workers[worker].at = At::Busy;
                self.wake(&mut state);
                drop(state);
                match task {
                    Ok(batch) => self.run(worker, batch),
                    Err(order) => {
                        let Spent { cpu_ns, wait_ns } = self.pulls.next(self.workers[worker].rows.len());
                        self.start(worker, Task::Pull { order, wait_ns }, cpu_ns, wait_ns);
                    }
                }
            }
        }
    }

    /// Runs a batch's code, which reports how long it takes.
    fn run(&mut self, worker: usize, mut batch: DispatchedBatch) {
        let (shared, began_ns) = (self.shared, self.now);
        let mut settlement = self.settlements.pop().unwrap_or_default();
        (settlement.plain, settlement.lighter) = (batch.plain, false);
        let rows = batch.rows.make_contiguous();
        let advance = Advance::new(&**shared, rows.len());
        let mut run = Run {
            site: shared.site(),
            advance: &advance,
            stage: batch.stage,
            plain: batch.plain,
            time_each: true,
            started_ns: began_ns,
            settlement: &mut settlement,
            brood: batch.brood.as_deref_mut(),
        };
        shared.lane(batch.stage).run(rows, &mut run);
        settlement.advance = advance.bytes();
        self.meter.set_now(began_ns);
        let Spent { cpu_ns, wait_ns } = self.meter.take();
        let cpu_ns = cpu_ns.saturating_add(self.costs.between_ns);
        self.start(worker, Task::Batch { batch, settlement, began_ns, wait_ns }, cpu_ns, wait_ns);
    }

    /// Starts a worker's task, which first computes and then waits.
    fn start(&mut self, worker: usize, task: Task, cpu_ns: u64, wait_ns: u64) {
        self.workers[worker].task = Some(task);
        if cpu_ns > 0 {
            self.cores.add(worker as u64, cpu_ns, self.now);
        } else {
            self.schedule(wait_ns, Event::Ends { worker });
        }
    }

    /// A worker's task has finished its computing, and no longer needs a core.
    fn computed(&mut self, worker: u64) {
        let worker = worker as usize;
        let wait_ns = match &self.workers[worker].task {
            Some(Task::Batch { wait_ns, .. } | Task::Pull { wait_ns, .. }) => *wait_ns,
            None => return,
        };
        if wait_ns > 0 { self.schedule(wait_ns, Event::Ends { worker }) } else { self.end(worker) }
    }

    /// Settles a worker's finished task, and makes the worker look for more work.
    fn end(&mut self, worker: usize) {
        let shared = self.shared;
        let mut state = shared.lock();
        match self.workers[worker].task.take() {
            None => return,
            Some(Task::Batch { batch, mut settlement, began_ns, .. }) => {
                stretch(&mut settlement, began_ns, self.now.saturating_sub(self.costs.between_ns).max(began_ns));
                state.settle(batch, &mut settlement, self.now);
                self.settlements.push(settlement);
            }
            Some(Task::Pull { order, .. }) => {
                let Worker { rows, staging, .. } = &mut self.workers[worker];
                let end = shared.source().pull(order, rows, staging);
                state.end_pull(rows, end.is_none(), self.now);
                if end.is_some() {
                    state.grant_all(self.now);
                    state.note_room(self.now);
                    state.life.drain();
                }
            }
        }
        state.units.share_surplus();
        state.grant_all(self.now);
        self.turn(worker, state);
    }
}

/// Changes a settlement as if its batch ended now. Units took longer than they reported if they had to share cores.
fn stretch(settlement: &mut Settlement, began_ns: u64, now: u64) {
    let (said, took) = (settlement.ended_ns - began_ns, now - began_ns);
    settlement.ended_ns = now;
    for run in &mut settlement.stage_runs {
        run.busy_ns = took;
    }
    if took != said {
        for (ns, _) in &mut settlement.timings {
            *ns = (u128::from(*ns) * u128::from(took) / u128::from(said.max(1))) as u64;
        }
    }
}
