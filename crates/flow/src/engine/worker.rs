//! The threads of a flow: shared workers, workers of blocking stages, and the timekeeper.

use std::cell::Cell;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use millstream_sync::eventcount::{SpinPolicy, Waited};
use millstream_sync::lock::MutexGuard;

use super::chain::{CHAIN_NS, Chain, Finished};
use super::column::Row;
use super::dispatch::{Job, Post, RunningBatch};
use super::lane::Run;
use super::pocket::Pocket;
use super::settle::{Settlement, leave_early};
use super::shared::Shared;
use super::source::{PullEnd, PullOrder};
use super::staging::Staging;
use super::state::{State, TimerAction};
use super::unit::NO_STAGE;

/// A thread of a blocking stage ends after this time without work.
const MAX_IDLE: Duration = Duration::from_secs(5);

/// After the system has refused a thread, the flow starts none for this long.
const SPAWN_RETRY_NS: u64 = 100_000_000;

/// The number of attempts to start the timekeeper.
const TIMEKEEPER_ATTEMPTS: u32 = 100;

/// A worker polls for work for this long before it sleeps, if some is likely to come.
const ALERT_NS: u64 = 10_000;

/// The number of pauses between two looks at the clock while polling.
const ALERT_SPINS: u32 = 8;

/// The maximum number of batches that a worker takes in one turn, and the maximum time that they should take together.
pub(crate) const TURN_BATCHES: usize = 16;
pub(crate) const TURN_NS: u64 = 20_000;

/// The maximum number of stages that a batch runs through at once.
const MAX_STAGE_RUNS: usize = 64;

thread_local! {
    /// Id of the flow that this thread works for, as a worker or as the timekeeper; 0 if none.
    static FLOW: Cell<u64> = const { Cell::new(0) };
}

/// Id of the flow that the calling thread works for, if any.
pub(crate) fn own_flow() -> Option<u64> {
    Some(FLOW.get()).filter(|&flow| flow != 0)
}

/// Whether the calling thread works for the flow, as a worker or as the timekeeper, which runs wakers.
pub(crate) fn is_of(shared: &Shared) -> bool {
    FLOW.get() == shared.flow_id
}

/// Starts a worker that the state already counts as alive. If the system refuses the thread, the flow goes on with the
/// threads it has, and the timekeeper tries again in a while.
pub(crate) fn spawn_worker(shared: &Arc<Shared>, post: Post) {
    let name = match post {
        Post::Shared => "worker",
        Post::Stage(stage) => &*shared.stages[usize::from(stage)].name,
    };
    let theirs = shared.clone();
    let body = move || {
        FLOW.set(theirs.flow_id);
        work(&theirs, post);
    };
    if start(shared, name, body).is_err() {
        let mut state = shared.lock();
        retire_worker(&mut state, post);
        if !std::mem::replace(&mut state.spawning_paused, true) {
            state.set_timer(shared.now() + SPAWN_RETRY_NS, TimerAction::RetrySpawn);
        }
        // A sleeping worker may be able to do the work.
        shared.release(state);
    }
}

/// Starts the flow's timekeeper before anything is admitted. The timekeeper then makes up for any thread that the
/// system refuses later.
///
/// # Panics
/// If the system keeps refusing the thread.
pub(crate) fn spawn_timekeeper(shared: &Arc<Shared>) {
    for _ in 0..TIMEKEEPER_ATTEMPTS {
        let theirs = shared.clone();
        let body = move || {
            FLOW.set(theirs.flow_id);
            keep_time(&theirs);
        };
        match start(shared, "timekeeper", body) {
            Ok(()) => return,
            Err(_) => std::thread::sleep(Duration::from_nanos(SPAWN_RETRY_NS)),
        }
    }
    panic!("flow `{}` cannot start a single thread: the system refuses every attempt", shared.name);
}

fn start(shared: &Arc<Shared>, name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    // The kernel keeps 15 bytes of a thread's name, which ends at a NUL.
    let name = format!("ms-{name}").replace('\0', "?");
    let thread = std::thread::Builder::new().name(name).spawn(body)?;
    let mut threads = shared.threads.lock().unwrap_or_else(PoisonError::into_inner);
    threads.retain(|thread| !thread.is_finished());
    threads.push(thread);
    Ok(())
}

/// The state of one worker between and during its turns.
struct Hands<'a> {
    shared: &'a Arc<Shared>,
    post: Post,
    /// The batches it ran, with their settlements.
    batches: Vec<Finished>,
    /// The source was pulled; and its end, if it has ended.
    pulled: Option<Option<PullEnd>>,
    /// The rows that a pull fills, and the staging it pushes them to.
    rows: Vec<Row>,
    staging: Arc<Staging>,
    pocket: Pocket,
    /// Settlements for reuse.
    settlements: Vec<Settlement>,
    /// The position of its turn, for threads that look at the flow.
    chain: Option<Arc<Chain>>,
}

fn work(shared: &Arc<Shared>, post: Post) {
    let chain = (post == Post::Shared).then(Arc::<Chain>::default);
    shared.lock().chains.extend(chain.clone());
    let mut hands = Hands {
        shared,
        post,
        batches: Vec::new(),
        pulled: None,
        rows: Vec::new(),
        staging: Arc::new(Staging::new()),
        pocket: Pocket::default(),
        settlements: Vec::new(),
        chain,
    };
    let mut now = shared.now();
    loop {
        let mut state = shared.lock();
        state.swap_pocket(&mut hands.pocket);
        let ended = hands.give_back(&mut state, now);
        let task = match ended {
            None => hands.take(&mut state, now),
            Some(_) => None,
        };
        state.swap_pocket(&mut hands.pocket);
        if let Some(end) = ended {
            shared.release(state);
            if end == PullEnd::Panicked {
                shared.abandon();
            }
            shared.tell_source_ended(end);
            continue;
        }
        match task {
            Some(Task::Pull(order)) => {
                shared.release(state);
                hands.pulled = Some(shared.pull(order, &mut hands.rows, &hands.staging));
                now = shared.now();
            }
            Some(Task::Batch(batch)) => {
                shared.release(state);
                now = hands.run(batch);
            }
            None if state.finished => {
                retire_worker(&mut state, post);
                return;
            }
            None => {
                state.watch_sooner(now);
                let Some(mut state) = sleep(shared, state, post) else {
                    shared.lock().keep_rows(hands.pocket.rows.drain(..));
                    return;
                };
                now = shared.now();
                shared.gate.admit_staged(&mut state, now, false);
                state.flow_on(now);
            }
        }
    }
}

/// The work of one turn.
enum Task {
    /// Pull the source.
    Pull(PullOrder),
    /// Run a batch, and the further batches of its chain.
    Batch(RunningBatch),
}

impl Hands<'_> {
    /// Brings back the results of a turn. Returns the end of the source, if it has ended.
    fn give_back(&mut self, state: &mut State, now: u64) -> Option<PullEnd> {
        if let Some(end) = self.pulled.take() {
            state.end_pull(&mut self.rows, end.is_none(), now);
            return end;
        }
        if self.batches.is_empty() {
            return None;
        }
        for (batch, settlement) in self.batches.drain(..) {
            match settlement {
                Some(mut settlement) => {
                    state.settle(batch, &mut settlement, now);
                    self.settlements.push(settlement);
                }
                None => state.end_run(&batch),
            }
        }
        state.keep_rows(std::iter::empty());
        state.flow_on(now);
        if state.wants_more() {
            self.shared.gate.admit_staged(state, now, false);
            state.flow_on(now);
        }
        state.note_room(now);
        None
    }

    /// Takes the next work: a pull, or a batch, or several batches of a stage if they are short. More units then share
    /// the cost of coming here, and fewer visits disturb the scheduler's state for the other workers in between.
    fn take(&mut self, state: &mut State, now: u64) -> Option<Task> {
        let stage = match state.choose(self.post, now)? {
            Job::Batch(stage) => stage,
            Job::Pull { seated } => {
                return state.begin_pull(&mut self.rows, &self.staging, seated, now).map(Task::Pull);
            }
        };
        let chain = self.chain.as_ref();
        let lead = state.dispatch(stage, chain, true, now)?;
        if let Some(chain) = lead.chain.as_ref().filter(|_| lead.soon && lead.plain) {
            let (mut turn_ns, mut units) = (state.takes_ns(&lead), lead.units);
            for _ in 1..TURN_BATCHES {
                if turn_ns >= TURN_NS || !state.has_more(stage, units, now) {
                    break;
                }
                let Some(batch) = state.dispatch(stage, Some(chain), false, now) else { break };
                turn_ns = turn_ns.saturating_add(state.takes_ns(&batch));
                units += batch.units;
                debug_assert!(batch.chain.is_some(), "a further batch holds nothing, or the turn would end at it");
                chain.add(batch);
            }
        }
        // A turn of more units than the worker has seats leaves seats to other units, and perhaps no other thread comes
        // by to grant them.
        if !state.stage(stage).waiting.is_empty() {
            state.mark_pump(stage);
            state.flow_on(now);
        }
        Some(Task::Batch(lead))
    }

    /// Runs the batches of a turn. Returns the time at which the last one ended.
    fn run(&mut self, lead: RunningBatch) -> u64 {
        let mut now = self.shared.now();
        let mut next = Some(lead);
        while let Some(mut batch) = next {
            let mut settlement = self.settlements.pop().unwrap_or_default();
            run(self.shared, &mut batch, &mut settlement, now);
            now = settlement.ended_ns;
            if settlement.to == NO_STAGE && settlement.plain && settlement.exceptions.is_empty() {
                leave_early(&mut batch.rows, &mut settlement, &self.shared.stamps, &mut self.pocket);
            }
            let chain = self.chain.as_ref().filter(|_| batch.chain.is_some());
            let finished = (batch, Some(settlement));
            next = match chain {
                Some(chain) => chain.next(finished, &mut self.batches),
                None => {
                    self.batches.push(finished);
                    None
                }
            };
        }
        now
    }
}

/// Runs a batch in its stage, and on through the open stages that follow.
fn run(shared: &Shared, batch: &mut RunningBatch, settlement: &mut Settlement, began_ns: u64) {
    let mut started_ns = began_ns;
    settlement.plain = batch.plain;
    settlement.lighter = false;
    let mut stage = batch.stage;
    if let Some(chain) = &batch.chain {
        chain.go(stage);
    }
    let rows = batch.rows.make_contiguous();
    loop {
        let at = usize::from(stage);
        // A time limit counts from the unit's own start.
        let time_each = batch.time_each || shared.stages[at].timeout.is_some();
        let plain = batch.plain && settlement.plain;
        shared.lanes[at].run(rows, &mut Run { shared, stage, plain, time_each, started_ns, settlement });
        let Some(chain) = &batch.chain else { return };
        let next = settlement.to;
        let goes_on = settlement.exceptions.is_empty()
            && next != NO_STAGE
            && settlement.ended_ns - began_ns < CHAIN_NS
            && settlement.stage_runs.len() < MAX_STAGE_RUNS
            && shared.open_stages.is_open(next, rows.len());
        if !goes_on {
            return;
        }
        chain.go(next);
        started_ns = settlement.ended_ns;
        stage = next;
    }
}

fn threads_of(state: &mut State, post: Post) -> &mut super::state::Threads {
    match post {
        Post::Shared => &mut state.threads,
        Post::Stage(stage) => &mut state.stage(stage).threads,
    }
}

fn retire_worker(state: &mut State, post: Post) {
    threads_of(state, post).alive -= 1;
}

/// Sleeps until there may be work. Returns `None` if the thread was idle for long and is retired.
///
/// If another worker will be back soon, this one polls for its work for a while first: work that it would find then
/// would be over before the thread had gone to sleep and come back.
fn sleep<'a>(shared: &'a Arc<Shared>, mut state: MutexGuard<'a, State>, post: Post) -> Option<MutexGuard<'a, State>> {
    let (work, max_idle) = match post {
        Post::Shared => (&shared.work.0, None),
        Post::Stage(stage) => (&shared.stage_work[usize::from(stage)], Some(MAX_IDLE)),
    };
    let mut alert = post == Post::Shared && state.busy_soon > 0 && state.threads.alert == 0;
    let threads = threads_of(&mut state, post);
    threads.asleep += 1;
    threads.alert += usize::from(alert);
    let mut key = work.snapshot();
    // Changes that this thread made before it found no work may concern other threads.
    shared.release(state);
    if alert {
        let until = shared.now() + ALERT_NS;
        while !work.has_changed(key) && shared.now() < until {
            for _ in 0..ALERT_SPINS {
                std::hint::spin_loop();
            }
        }
    }
    loop {
        let mut state = shared.lock();
        let finished = state.finished;
        let threads = threads_of(&mut state, post);
        threads.alert -= usize::from(std::mem::take(&mut alert));
        // A wake-up has already counted its sleeper as awake.
        if threads.signals > 0 {
            threads.signals -= 1;
            return Some(state);
        }
        if finished {
            threads.asleep -= 1;
            return Some(state);
        }
        key = work.snapshot();
        drop(state);
        let deadline = max_idle.map(|most| Instant::now() + most);
        if work.wait_with(key, deadline, SpinPolicy::NONE) == Waited::TimedOut {
            let mut state = shared.lock();
            let threads = threads_of(&mut state, post);
            if threads.signals == 0 {
                threads.asleep -= 1;
                threads.alive -= 1;
                return None;
            }
        }
    }
}

/// Fires timers when they are due.
fn keep_time(shared: &Arc<Shared>) {
    let mut state = shared.lock();
    while !state.finished {
        let now = shared.now();
        let next = match state.timers.peek() {
            Some(std::cmp::Reverse(timer)) if timer.at_ns <= now => {
                state.fire_timers(now);
                if state.watched {
                    shared.gate.admit_staged(&mut state, now, true);
                    state.flow_on(now);
                    if state.busy_soon > 0 {
                        state.watch(now);
                    }
                }
                shared.release(state);
                state = shared.lock();
                continue;
            }
            Some(std::cmp::Reverse(timer)) => timer.at_ns,
            None => u64::MAX,
        };
        state.threads.clock_until = next;
        let key = shared.clock.snapshot();
        drop(state);
        let deadline = (next != u64::MAX).then(|| shared.epoch + Duration::from_nanos(next));
        let _ = shared.clock.wait_with(key, deadline, SpinPolicy::NONE);
        state = shared.lock();
    }
}
