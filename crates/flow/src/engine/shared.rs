//! The parts of a flow that all its threads share: the scheduler's state behind its mutex, and the ways to wait for it.
//!
//! Every change ends in [`Shared::release`], which examines the new state once, unlocks the mutex, and wakes at most
//! one thread of each kind that now has work. A woken worker does the same when it has taken its batch, so work spreads
//! over sleeping workers as a chain, not as a herd.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millstream_sync::eventcount::{EventCount, SpinPolicy};
use millstream_sync::lock;
use smallvec::SmallVec;

use super::chain::OpenStages;
use super::column::{Column, Row};
use super::dispatch::Post;
use super::gate::Gate;
use super::lane::Lane;
use super::settings::LiveSettings;
use super::source::{PullEnd, SourceEnd, SourceSlot};
use super::state::State;
use super::unit::{Stamp, Unit};
use super::waking::wake_before_blocking;
use super::worker;
use crate::contain::{Contained, discard};
use crate::failure::DeadLetter;
use crate::policy::{AfterFailure, Retry};
use crate::snapshot::Phase;

/// The fixed settings of a stage, which are read without the mutex.
pub(crate) struct StageConfig {
    pub(crate) name: Arc<str>,
    pub(crate) retry: Retry,
    pub(crate) after_failure: AfterFailure,
    pub(crate) timeout: Option<Duration>,
    pub(crate) idempotent: bool,
    /// The resources (by index) whose objects the stage's code may take.
    pub(crate) objects: Vec<u16>,
}

/// The listener for the end of the source.
pub(crate) type TellEnd = Box<dyn FnOnce(SourceEnd) + Send>;

pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) flow_id: u64,
    pub(crate) stages: Vec<StageConfig>,
    pub(crate) settings: Arc<LiveSettings>,
    pub(crate) lanes: Vec<Contained<Box<dyn Lane>>>,
    pub(crate) units: Arc<Column<Unit>>,
    pub(crate) letters: Contained<Box<dyn Fn(DeadLetter) + Send + Sync>>,
    pub(crate) gate: Arc<dyn Gate>,
    /// The slot of the flow's source; empty if submitters send the units.
    pub(crate) source: SourceSlot,
    /// The listener for the end of the source, until it is called.
    pub(crate) source_ended: Mutex<Option<TellEnd>>,
    /// The payload of the source's panic, until a caller takes it.
    pub(crate) source_panic: Mutex<Option<Box<dyn Any + Send>>>,
    pub(crate) stamps: Arc<Column<Stamp>>,
    pub(crate) open_stages: OpenStages,
    /// The mutex is held for a microsecond or two. Sleeping and waking takes far longer, so a thread that finds it
    /// locked spins for a while first.
    state: CachePadded<lock::Mutex<State>>,
    pub(crate) epoch: Instant,
    /// Set together with `phase = Abandoned`, for code that runs without the mutex. The flag publishes nothing else, so
    /// relaxed is enough.
    abandoned: AtomicBool,
    /// A worker will come by the gate, so a unit may wait there (see `gate`). The flag is written under the mutex and
    /// ordered by fences.
    attended: CachePadded<AtomicBool>,
    /// The event count on which shared workers sleep; incremented under the mutex or after it.
    pub(crate) work: CachePadded<EventCount>,
    /// An event count for each stage, used by the blocking ones.
    pub(crate) stage_work: Vec<EventCount>,
    pub(crate) clock: EventCount,
    pub(crate) done: EventCount,
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A value that is written often, in cache lines of its own (two, because the processor fetches them in pairs).
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

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
    pub(crate) settings: Arc<LiveSettings>,
    pub(crate) lanes: Vec<Box<dyn Lane>>,
    pub(crate) letters: Box<dyn Fn(DeadLetter) + Send + Sync>,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) state: State,
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Shared {
            stage_work: parts.stages.iter().map(|_| EventCount::new()).collect(),
            name: parts.name,
            flow_id: parts.flow_id,
            stages: parts.stages,
            settings: parts.settings,
            lanes: parts.lanes.into_iter().map(Contained::new).collect(),
            letters: Contained::new(parts.letters),
            gate: parts.gate,
            source: SourceSlot::default(),
            source_ended: Mutex::new(None),
            source_panic: Mutex::new(None),
            units: parts.state.units.clone(),
            stamps: parts.state.stamps.clone(),
            open_stages: parts.state.open_stages.clone(),
            state: CachePadded(lock::Mutex::new(parts.state)),
            epoch: Instant::now(),
            abandoned: AtomicBool::new(false),
            attended: CachePadded(AtomicBool::new(false)),
            work: CachePadded(EventCount::new()),
            clock: EventCount::new(),
            done: EventCount::new(),
            threads: Mutex::new(Vec::new()),
        })
    }

    /// Nanoseconds since the flow was built.
    pub(crate) fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Locks the state. No user code runs under the mutex, so a panic under it is a defect of the engine. The mutex
    /// does not poison itself, because going on with the state as it is loses less than taking every thread down.
    pub(crate) fn lock(&self) -> lock::MutexGuard<'_, State> {
        self.state.0.lock()
    }

    /// Unlocks the state until the event count, which is incremented after the state changes, changes or the time has
    /// passed.
    pub(crate) fn wait_for<'a>(
        &'a self,
        event: &EventCount,
        state: lock::MutexGuard<'a, State>,
        most: Option<Duration>,
    ) -> lock::MutexGuard<'a, State> {
        let key = event.snapshot();
        drop(state);
        wake_before_blocking();
        // Whichever it was, the caller checks the state again.
        let _ = event.wait_with(key, most.map(|most| Instant::now() + most), SpinPolicy::NONE);
        self.lock()
    }

    /// The unit's number.
    pub(crate) fn id(&self, row: &Row) -> u64 {
        // SAFETY: the column of stamps is private to this flow's engine, which sees no rows but the flow's own.
        unsafe { self.stamps.peek(row) }.map_or(0, |stamp| stamp.id)
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    pub(crate) fn gate_is_attended(&self) -> bool {
        self.attended.0.load(Ordering::Relaxed)
    }

    /// Whether the gate is still attended after a unit was put there. If it is not, perhaps no worker has seen the
    /// unit.
    pub(crate) fn gate_is_still_attended(&self) -> bool {
        // Pairs with the fence in `watch_gate`: if this load misses the end of the attendance, the worker sees the
        // unit.
        fence(Ordering::SeqCst);
        self.gate_is_attended()
    }

    /// Whether the calling thread belongs to this flow.
    pub(crate) fn is_own_thread(&self) -> bool {
        worker::is_of(self)
    }

    /// Opens admission.
    ///
    /// # Panics
    /// If the system keeps refusing the first thread.
    pub(crate) fn open(self: &Arc<Self>) {
        worker::spawn_timekeeper(self);
        let mut state = self.lock();
        if state.phase == Phase::Ready {
            state.phase = Phase::Running;
        }
        state.started_ns = Some(self.now());
    }

    /// Closes admission, because the source has ended.
    pub(crate) fn close(self: &Arc<Self>) {
        self.gate.close();
        let mut state = self.lock();
        if !state.is_closed() {
            state.phase = Phase::Draining;
        }
        self.release(state);
    }

    pub(crate) fn stop(self: &Arc<Self>) {
        self.gate.close();
        let mut state = self.lock();
        if !state.is_closed() {
            state.phase = Phase::Draining;
            state.stop_asked = true;
        }
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
        self.release(state);
    }

    /// Accounts for a payload that grows while its unit runs. Returns `false` if there is no room, and the unit can and
    /// should run again later; `may_wait` says whether it can.
    pub(crate) fn grow(&self, unit: &mut Unit, total_bytes: u64, may_wait: bool) -> bool {
        // The unit grows beyond the budget where waiting could not help: it is privileged, it is alone in the flow, or
        // its code must not run twice.
        let mut state = self.lock();
        let grows = total_bytes - unit.bytes;
        let fits = state.fits(grows.into());
        let alone = state.in_flight == 1;
        if fits || unit.privileged || alone || !may_wait {
            if total_bytes > state.settings.memory && unit.bytes <= state.settings.memory {
                state.oversize += 1;
            }
            state.add_bytes(grows);
            unit.bytes = total_bytes;
            return true;
        }
        false
    }

    /// Unlocks the state and wakes the threads that the change concerns.
    pub(crate) fn release(self: &Arc<Self>, mut state: lock::MutexGuard<'_, State>) {
        // All decisions are made before the mutex is unlocked and all wake-ups are sent after it, so a woken thread
        // does not run into the lock. A thread is woken only if none of its kind is looking for work already: that one
        // will find it, and will wake the next.
        let mut to_spawn: SmallVec<[Post; 2]> = SmallVec::new();
        let mut wake_worker = None;
        let mut wake_stages: SmallVec<[u16; 4]> = SmallVec::new();
        let now = if state.batches_may_wait() { self.now() } else { u64::MAX };
        self.watch_gate(&mut state);
        if state.source_needs_watch() {
            let now = self.now();
            state.watch_source(now);
        }

        let looking = state.threads.alive - state.busy_shared - state.threads.asleep;
        if looking == 0 && state.wants_shared_thread(now) {
            state.watched = false;
            if state.threads.asleep > 0 {
                wake_worker = Some(state.threads.mark_woken());
            } else if !state.spawning_paused {
                state.threads.alive += 1;
                to_spawn.push(Post::Shared);
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
                    threads.mark_woken();
                    wake_stages.push(stage);
                } else if !state.spawning_paused {
                    state.stage(stage).threads.alive += 1;
                    to_spawn.push(Post::Stage(stage));
                }
            }
        }
        let next_timer = state.timers.peek().map_or(u64::MAX, |std::cmp::Reverse(timer)| timer.at_ns);
        let wake_clock = next_timer < state.threads.clock_until;
        if wake_clock {
            state.threads.clock_until = next_timer;
        }
        let entering = state.wake_entering();
        let closes_source = state.is_closed() && state.close_source();
        let over = self.is_over(&state) || (state.phase == Phase::Abandoned && state.no_stage_runs());
        drop(state);

        if let Some(sleepers) = wake_worker {
            self.work.0.add_waking(1, sleepers);
        }
        for post in to_spawn {
            worker::spawn_worker(self, post);
        }
        for stage in wake_stages {
            self.stage_work[usize::from(stage)].add_waking(1, 1);
        }
        if wake_clock {
            self.clock.increment();
        }
        self.wake(entering);
        if over {
            self.done.increment();
            self.wake_all_threads();
        }
        if closes_source {
            self.tell_source_ended(PullEnd::Closed);
        }
    }

    /// Wakes every thread of the flow, so that each notices the end.
    fn wake_all_threads(&self) {
        self.work.0.increment();
        self.clock.increment();
        self.stage_work.iter().for_each(EventCount::increment);
    }

    /// Publishes whether the gate is attended, and admits the units that wait there if it is not.
    fn watch_gate(&self, state: &mut State) {
        if state.stopped_by_failure && !state.gate_closed {
            state.gate_closed = true;
            self.gate.close();
        }
        let attended = state.gate_is_attended();
        let ends = !attended && self.gate_is_attended();
        self.attended.0.store(attended, Ordering::Relaxed);
        if ends {
            // Pairs with the fence in `gate_is_still_attended`.
            fence(Ordering::SeqCst);
        }
        if ends || (!attended && !self.gate.is_empty()) {
            let now = self.now();
            self.gate.admit_staged(state, now, ends);
            state.flow_on(now);
        }
    }

    /// Whether the flow has ended and nothing can enter it any more.
    fn is_over(&self, state: &State) -> bool {
        // A pull that blocks loses its seat soon; `finish` waits a little longer.
        state.is_over() && self.gate.is_empty() && state.source_is_empty() && state.seated_pulls() == 0
    }

    /// Waits until every unit has left, or the flow was abandoned and its running code had `grace` to end; then ends
    /// the flow's threads. Returns the remaining units that no worker runs.
    ///
    /// # Panics
    /// On one of the flow's own threads, which would wait for itself.
    pub(crate) fn finish(self: &Arc<Self>, grace: Duration) -> Vec<Row> {
        assert!(
            !worker::is_of(self),
            "flow `{}` is drained by its own stage's code, which it would wait for",
            self.name
        );
        let mut state = self.lock();
        let mut give_up_at = None;
        loop {
            if self.is_over(&state) {
                let Some(left) = state.pull_grace_remaining(self.now()) else { break };
                state = self.wait_for(&self.done, state, Some(left));
            } else if state.phase == Phase::Abandoned {
                let at = *give_up_at.get_or_insert_with(|| Instant::now() + grace);
                let left = at.saturating_duration_since(Instant::now());
                if state.no_stage_runs() || left.is_zero() {
                    break;
                }
                state = self.wait_for(&self.done, state, Some(left));
            } else {
                state = self.wait_for(&self.done, state, None);
            }
        }
        let all_idle = state.no_stage_runs() && !state.is_pulling();
        self.gate.admit_all(&mut state, self.now());
        state.admit_all_pulled(self.now());
        let rows = state.empty_queues();
        state.ended_ns.get_or_insert(self.now());
        state.phase = if state.phase == Phase::Abandoned { Phase::Abandoned } else { Phase::Done };
        state.finished = true;
        state.assert_conserved();
        let is_pulling = state.is_pulling();
        self.release(state);
        self.wake_all_threads();
        if !is_pulling {
            self.detach();
        }
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        if all_idle {
            // Every thread is asleep or about to notice the end of the flow.
            for thread in threads {
                if thread.thread().id() != std::thread::current().id() {
                    // A worker contains all panics of user code; the panic hook has reported one of its own.
                    if let Err(panic) = thread.join() {
                        discard(panic);
                    }
                }
            }
        }
        rows
    }
}
