//! What all threads of a flow share: the scheduler's state behind its mutex, and the ways to wait for it.
//!
//! Every change ends in [`Shared::release`], which looks at the new state once, lets go of the mutex and
//! wakes at most one thread of each kind that now has something to do. A woken worker does the same when it
//! has taken its batch, so work spreads over sleeping workers as a chain, not as a herd.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::column::{Column, Row};
use super::dispatch::Post;
use super::gate::Gate;
use super::lane::Lane;
use super::state::State;
use super::unit::Unit;
use super::worker;
use crate::failure::DeadLetter;
use crate::policy::{AfterFailure, Retry};
use crate::snapshot::Phase;

/// What of a stage never changes and is read without the mutex.
pub(crate) struct StageConfig {
    pub(crate) name: Arc<str>,
    pub(crate) retry: Retry,
    pub(crate) after_failure: AfterFailure,
    pub(crate) timeout: Option<Duration>,
    pub(crate) idempotent: bool,
    /// Resources (by index) whose objects its code may take.
    pub(crate) objects: Vec<u16>,
}

pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) flow_id: u64,
    pub(crate) stages: Vec<StageConfig>,
    pub(crate) lanes: Vec<Box<dyn Lane>>,
    pub(crate) units: Arc<Column<Unit>>,
    pub(crate) letters: Box<dyn Fn(DeadLetter) + Send + Sync>,
    pub(crate) gate: Arc<dyn Gate>,
    state: Mutex<State>,
    pub(crate) epoch: Instant,
    /// Set with `phase = Abandoned`, for code that runs without the mutex. It publishes nothing else, so
    /// relaxed is enough.
    abandoned: AtomicBool,
    /// A worker will come by the gate, so a unit may wait there (see `gate`). Written under the mutex;
    /// ordered by the gate's.
    attended: AtomicBool,
    pub(crate) work: Condvar,
    /// One for each stage; used by blocking ones.
    pub(crate) stage_work: Vec<Condvar>,
    pub(crate) clock: Condvar,
    pub(crate) room: Condvar,
    pub(crate) done: Condvar,
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The parts of [`Shared`] that the builder fills.
pub(crate) struct Parts {
    pub(crate) name: String,
    pub(crate) flow_id: u64,
    pub(crate) stages: Vec<StageConfig>,
    pub(crate) lanes: Vec<Box<dyn Lane>>,
    pub(crate) units: Arc<Column<Unit>>,
    pub(crate) letters: Box<dyn Fn(DeadLetter) + Send + Sync>,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) state: State,
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Shared {
            stage_work: parts.stages.iter().map(|_| Condvar::new()).collect(),
            name: parts.name,
            flow_id: parts.flow_id,
            stages: parts.stages,
            lanes: parts.lanes,
            units: parts.units,
            letters: parts.letters,
            gate: parts.gate,
            state: Mutex::new(parts.state),
            epoch: Instant::now(),
            abandoned: AtomicBool::new(false),
            attended: AtomicBool::new(false),
            work: Condvar::new(),
            clock: Condvar::new(),
            room: Condvar::new(),
            done: Condvar::new(),
            threads: Mutex::new(Vec::new()),
        })
    }

    /// Nanoseconds since the flow was built.
    pub(crate) fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // No user code runs under the mutex, so a panic under it is a defect of the engine; going on with
        // the state as it is loses less than taking every thread down.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    pub(crate) fn gate_is_attended(&self) -> bool {
        self.attended.load(Ordering::Relaxed)
    }

    /// Begins to admit.
    pub(crate) fn open(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Ready {
            state.phase = Phase::Running;
        }
        state.started_ns = Some(self.now());
    }

    /// Admits nothing any more: the source has ended.
    pub(crate) fn close(self: &Arc<Self>) {
        self.gate.close();
        let mut state = self.lock();
        if !state.is_closed() {
            state.phase = Phase::Draining;
        }
        self.room.notify_all();
        self.release(state);
    }

    pub(crate) fn stop(self: &Arc<Self>) {
        self.gate.close();
        let mut state = self.lock();
        if !state.is_closed() {
            state.phase = Phase::Draining;
            state.stop_asked = true;
        }
        self.room.notify_all();
        self.release(state);
    }

    pub(crate) fn abandon(self: &Arc<Self>) {
        self.gate.close();
        let mut state = self.lock();
        if state.phase != Phase::Done {
            state.phase = Phase::Abandoned;
            state.stop_asked = true;
            self.abandoned.store(true, Ordering::Relaxed);
        }
        self.room.notify_all();
        self.release(state);
    }

    /// Accounts for a payload that grows while its unit runs. `false`: there is no room, and the unit can
    /// and should run again later.
    pub(crate) fn grow(&self, unit: &mut Unit, stage: u16, total_bytes: u64) -> bool {
        let mut state = self.lock();
        let grows = total_bytes - unit.bytes;
        let fits = state.bytes.saturating_add(grows) <= state.memory_cap;
        let alone = state.in_flight == 1;
        if fits || unit.privileged || alone || !self.stages[usize::from(stage)].idempotent {
            if total_bytes > state.memory_cap && unit.bytes <= state.memory_cap {
                state.oversize += 1;
            }
            state.bytes += grows;
            state.peak_bytes = state.peak_bytes.max(state.bytes);
            unit.bytes = total_bytes;
            return true;
        }
        false
    }

    /// Lets go of the state and wakes whoever the change concerns.
    pub(crate) fn release(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let mut hire = None;
        let mut wake_worker = false;
        let mut wake_stages: u64 = 0;
        let now = if state.batches_may_wait() { self.now() } else { u64::MAX };
        self.watch_gate(&mut state);

        let crowd = state.threads.alive;
        let looking = crowd - state.busy_shared - state.threads.asleep;
        if looking == 0 && state.wants_shared_thread(now) {
            state.watched = false;
            if state.threads.asleep > 0 {
                state.threads.asleep -= 1;
                state.threads.signals += 1;
                wake_worker = true;
            } else {
                state.threads.alive += 1;
                hire = Some(Post::Shared);
            }
        }
        for i in 0..state.blocking.len() {
            let stage = state.blocking[i];
            let looking = {
                let s = &state.stages[usize::from(stage)];
                s.threads.alive - s.busy - s.threads.asleep
            };
            if looking == 0 && state.choose(Post::Stage(stage), now).is_some() {
                let threads = &mut state.stage(stage).threads;
                if threads.asleep > 0 {
                    threads.asleep -= 1;
                    threads.signals += 1;
                    wake_stages |= 1 << (stage % 64);
                } else {
                    threads.alive += 1;
                    worker::spawn(self, Post::Stage(stage));
                }
            }
        }
        let next_timer = state.timers.peek().map_or(u64::MAX, |std::cmp::Reverse(timer)| timer.at_ns);
        let wake_clock = next_timer < state.threads.clock_until;
        if wake_clock {
            state.threads.clock_until = next_timer;
            if !state.threads.clock_alive {
                state.threads.clock_alive = true;
                worker::spawn_timekeeper(self);
            }
        }
        let wake_all_room = state.room_waiters > 0 && state.is_closed();
        let wake_room = state.room_waiters > 0 && state.wants_more() && state.has_room(state.room_wants);
        let wakers = if !state.room_wakers.is_empty() && (state.is_closed() || state.has_room(0)) {
            std::mem::take(&mut state.room_wakers)
        } else {
            Vec::new()
        };
        let over = self.is_over(&state) || (state.phase == Phase::Abandoned && state.nobody_runs());
        drop(state);

        if wake_worker {
            self.work.notify_one();
        }
        if let Some(post) = hire {
            worker::spawn(self, post);
        }
        if wake_stages != 0 {
            for (stage, condvar) in self.stage_work.iter().enumerate() {
                if wake_stages & (1 << (stage % 64)) != 0 {
                    condvar.notify_one();
                }
            }
        }
        if wake_clock {
            self.clock.notify_one();
        }
        if wake_all_room {
            self.room.notify_all();
        } else if wake_room {
            self.room.notify_one();
        }
        wakers.into_iter().for_each(std::task::Waker::wake);
        if over {
            self.done.notify_all();
            self.work.notify_all();
            self.clock.notify_all();
            self.stage_work.iter().for_each(Condvar::notify_all);
        }
    }

    /// Waits until a worker has admitted what waits at the gate. `false`: no worker will, or nothing waits.
    pub(crate) fn wait_for_gate(&self) -> bool {
        let mut state = self.lock();
        let since = self.now();
        let mut waited = false;
        while !state.is_closed() && state.gate_is_attended() && !self.gate.is_empty() {
            waited = true;
            state.room_waiters += 1;
            state.room_wants = 0;
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.room_waiters -= 1;
        }
        state.room_waited_ns += self.now() - since;
        waited && !state.is_closed()
    }

    /// Says whether the gate is attended, and admits what waits there if it is not.
    fn watch_gate(&self, state: &mut State) {
        if state.stopped_by_failure && !state.gate_closed {
            state.gate_closed = true;
            self.gate.close();
        }
        let attended = state.gate_is_attended();
        let ends = !attended && self.gate_is_attended();
        self.attended.store(attended, Ordering::Relaxed);
        if ends || (!attended && !self.gate.is_empty()) {
            let now = self.now();
            self.gate.admit_staged(state, now, ends);
            state.flow_on(now);
        }
    }

    /// Nothing will happen any more.
    fn is_over(&self, state: &State) -> bool {
        state.is_over() && self.gate.is_empty()
    }

    /// Waits until every unit has left, or the flow was abandoned and its running code had `grace` to end;
    /// then ends the flow's threads. Returns the units that are left and that nobody runs.
    pub(crate) fn finish(self: &Arc<Self>, grace: Duration) -> Vec<Row> {
        let mut state = self.lock();
        let mut give_up_at = None;
        while !self.is_over(&state) {
            if state.phase == Phase::Abandoned {
                let at = *give_up_at.get_or_insert_with(|| Instant::now() + grace);
                let left = at.saturating_duration_since(Instant::now());
                if state.nobody_runs() || left.is_zero() {
                    break;
                }
                state = self.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            } else {
                state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let all_idle = state.nobody_runs();
        self.gate.admit_all(&mut state, self.now());
        let rows = state.empty_queues();
        state.ended_ns.get_or_insert(self.now());
        state.phase = if state.phase == Phase::Abandoned { Phase::Abandoned } else { Phase::Done };
        state.finished = true;
        state.assert_conserved();
        self.release(state);
        self.work.notify_all();
        self.clock.notify_all();
        self.room.notify_all();
        self.stage_work.iter().for_each(Condvar::notify_all);
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        if all_idle {
            // Every thread is asleep or about to see that the flow is over.
            for thread in threads {
                if thread.thread().id() != std::thread::current().id() {
                    // A worker catches all panics of user code; one of its own was printed.
                    let _ = thread.join();
                }
            }
        }
        rows
    }
}
