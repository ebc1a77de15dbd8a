//! The threads: shared workers, workers of blocking stages, and the timekeeper.

use std::cell::Cell;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use super::dispatch::{Post, RunningBatch};
use super::lane::Run;
use super::settle::Settlement;
use super::shared::Shared;
use super::state::State;

/// A thread of a blocking stage that had nothing to do for this long ends.
const IDLE_MOST: Duration = Duration::from_secs(5);

/// After the only thread for some work could not be started, it is tried again this much later, so often.
const HIRE_AGAIN: Duration = Duration::from_millis(100);
const HIRE_ATTEMPTS: u32 = 100;

thread_local! {
    /// The flow whose worker this thread is; 0: of none.
    static FLOW: Cell<u64> = const { Cell::new(0) };
}

/// Whether the calling thread is one of the flow's workers.
pub(crate) fn is_of(shared: &Shared) -> bool {
    FLOW.get() == shared.flow_id
}

/// Starts a worker that the state already counts as alive. If the system has no thread to give, the flow goes
/// on with those it has; the next one to let go of the state tries again.
///
/// # Panics
/// If not a single thread can be had for long.
pub(crate) fn hire(shared: &Arc<Shared>, post: Post) {
    let name = match post {
        Post::Shared => "worker".to_owned(),
        Post::Stage(stage) => shared.stages[usize::from(stage)].name.to_string(),
    };
    for _ in 0..HIRE_ATTEMPTS {
        let theirs = shared.clone();
        let body = move || {
            FLOW.set(theirs.flow_id);
            work(&theirs, post);
        };
        if start(shared, &name, body).is_ok() {
            return;
        }
        let mut state = shared.lock();
        if threads_of(&mut state, post).alive > 1 {
            dismiss(&mut state, post);
            return;
        }
        // Nobody else could do this work.
        drop(state);
        std::thread::sleep(HIRE_AGAIN);
    }
    panic!("flow `{}` cannot start a single thread: the system has none to give", shared.name);
}

pub(crate) fn hire_timekeeper(shared: &Arc<Shared>) {
    let theirs = shared.clone();
    if start(shared, "timekeeper", move || keep_time(&theirs)).is_err() {
        // The next release tries again.
        let mut state = shared.lock();
        state.threads.clock_alive = false;
        state.threads.clock_until = u64::MAX;
    }
}

fn start(shared: &Arc<Shared>, name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    // The kernel keeps 15 bytes of a thread's name.
    let thread = std::thread::Builder::new().name(format!("ms-{name}")).spawn(body)?;
    let mut threads = shared.threads.lock().unwrap_or_else(PoisonError::into_inner);
    threads.retain(|thread| !thread.is_finished());
    threads.push(thread);
    Ok(())
}

fn work(shared: &Arc<Shared>, post: Post) {
    let mut settlement = Settlement::default();
    let mut finished: Option<RunningBatch> = None;
    loop {
        let mut state = shared.lock();
        let mut now = match &finished {
            Some(_) => settlement.ended_ns,
            None => shared.now(),
        };
        if let Some(batch) = finished.take() {
            state.settle(batch, &mut settlement, now);
            if state.wants_more() {
                shared.gate.admit_staged(&mut state, now, false);
                state.flow_on(now);
            }
        }
        let mut batch = loop {
            let batch = state.choose(post, now).and_then(|stage| state.dispatch(stage, now));
            if let Some(batch) = batch {
                shared.release(state);
                break batch;
            }
            if state.finished {
                dismiss(&mut state, post);
                return;
            }
            match sleep(shared, state, post) {
                Some(awake) => state = awake,
                None => return,
            }
            now = shared.now();
            shared.gate.admit_staged(&mut state, now, false);
            state.flow_on(now);
        };
        let stage = usize::from(batch.stage);
        let mut run = Run {
            shared,
            stage: batch.stage,
            // A time limit counts from the unit's own start.
            time_each: batch.time_each || shared.stages[stage].timeout.is_some(),
            started_ns: shared.now(),
            settlement: &mut settlement,
        };
        shared.lanes[stage].run(batch.rows.make_contiguous(), &mut run);
        finished = Some(batch);
    }
}

fn threads_of(state: &mut State, post: Post) -> &mut super::state::Threads {
    match post {
        Post::Shared => &mut state.threads,
        Post::Stage(stage) => &mut state.stage(stage).threads,
    }
}

fn dismiss(state: &mut State, post: Post) {
    threads_of(state, post).alive -= 1;
}

/// Sleeps until there may be work. `None`: the thread was idle for long and is dismissed.
fn sleep<'a>(shared: &'a Arc<Shared>, mut state: MutexGuard<'a, State>, post: Post) -> Option<MutexGuard<'a, State>> {
    threads_of(&mut state, post).asleep += 1;
    let condvar = match post {
        Post::Shared => &shared.work,
        Post::Stage(stage) => &shared.stage_work[usize::from(stage)],
    };
    // What this thread changed before it found nothing to do may concern others.
    shared.release(state);
    let mut state = shared.lock();
    loop {
        let threads = threads_of(&mut state, post);
        // Whoever wakes a sleeper has already counted it as awake.
        if threads.signals > 0 {
            threads.signals -= 1;
            return Some(state);
        }
        if state.finished {
            threads_of(&mut state, post).asleep -= 1;
            return Some(state);
        }
        match post {
            Post::Shared => state = condvar.wait(state).unwrap_or_else(PoisonError::into_inner),
            Post::Stage(_) => {
                let (awake, timed_out) = condvar.wait_timeout(state, IDLE_MOST).unwrap_or_else(PoisonError::into_inner);
                state = awake;
                let threads = threads_of(&mut state, post);
                if timed_out.timed_out() && threads.signals == 0 {
                    threads.asleep -= 1;
                    threads.alive -= 1;
                    return None;
                }
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
        state = if next == u64::MAX {
            shared.clock.wait(state).unwrap_or_else(PoisonError::into_inner)
        } else {
            let pause = Duration::from_nanos(next - now);
            shared.clock.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0
        };
    }
}
