//! The flow as all its threads share it: the scheduler's state behind its mutex, and how threads wait for it.
//!
//! A change that may concern other threads ends with [`Shared::unlock_and_wake`], which plans the wake-ups, unlocks the
//! mutex, and sends the wake-ups. All other holders of the mutex just drop the guard. They only read, open admission,
//! begin to wait, go back to sleep, return the rows of a pocket, or end. A thread that charges the growth of a unit
//! (`grow`) just drops the guard, too, because growth only uses up room. [`Host::expel`] returns its wake-ups to its
//! caller.
//!
//! A submitter may admit units from the gate and then begin to wait. The wake-ups for these units are not lost. If the
//! gate was attended, the end of the attendance is a change that plans wake-ups. Otherwise, the sender of the units is
//! about to make such a change.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millstream_sync::eventcount::{EventCount, SpinPolicy};
use millstream_sync::lock;

#[cfg(feature = "fibers")]
use super::fibers::FiberSeats;
use super::source_slot::SourceSlot;
use crate::contain::Contained;
use crate::engine::admit::Gate;
use crate::engine::crew::post::Post;
use crate::engine::crew::wakeups::{Call, Wakeups};
use crate::engine::intake::entrance::Entering;
use crate::engine::intake::source::PullEnd;
use crate::engine::intake::waking::{self, Host, wake_before_blocking};
use crate::engine::run::advance::{AdvancedBytes, Growth};
use crate::engine::run::lane::Lane;
use crate::engine::run::site::Site;
use crate::engine::run::witness::{Track, Witness};
use crate::engine::settings::LiveSettings;
use crate::engine::stages::open::OpenStages;
use crate::engine::state::State;
use crate::engine::units::record::Record;

/// The state, locked.
pub(crate) type Locked<'a> = lock::MutexGuard<'a, State>;

/// The function that starts a worker. The state already counts the worker as alive.
pub(crate) type StartWorker = fn(&Arc<Shared>, Post);

pub(crate) struct Shared {
    site: Site,
    pub(super) settings: Arc<LiveSettings>,
    lanes: Vec<Contained<Box<dyn Lane>>>,
    gate: Arc<dyn Gate>,
    source: SourceSlot,
    open_stages: OpenStages,
    witness: OnceLock<Arc<dyn Witness>>,
    start_worker: StartWorker,
    /// The mutex is held for a microsecond or two. Sleeping and waking take far longer, so a thread that finds the
    /// mutex locked first spins for a while.
    state: CachePadded<lock::Mutex<State>>,
    /// A worker will admit the units at the gate, so a unit may wait there (see `intake/gate`). The flag is written
    /// under the mutex and ordered by fences.
    attended: CachePadded<AtomicBool>,
    /// The event count on which shared workers sleep; incremented under the mutex or after it.
    work: CachePadded<EventCount>,
    /// An event count for each stage; only blocking stages use theirs.
    stage_work: Vec<EventCount>,
    pub(super) clock: EventCount,
    /// The event count that changes when the flow may be over.
    pub(super) done: EventCount,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
    #[cfg(feature = "fibers")]
    fibers: FiberSeats,
}

/// A frequently written value in cache lines of its own (two, because the processor fetches them in pairs).
#[repr(align(128))]
struct CachePadded<T>(T);

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("name", &self.site.name()).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(
        site: Site,
        settings: Arc<LiveSettings>,
        lanes: Vec<Box<dyn Lane>>,
        gate: Arc<dyn Gate>,
        state: State,
        start_worker: StartWorker,
        #[cfg(feature = "fibers")] fibers: FiberSeats,
    ) -> Arc<Self> {
        Arc::new(Shared {
            stage_work: lanes.iter().map(|_| EventCount::new()).collect(),
            site,
            settings,
            lanes: lanes.into_iter().map(Contained::new).collect(),
            gate,
            source: SourceSlot::default(),
            open_stages: state.open_stages(),
            witness: OnceLock::new(),
            start_worker,
            state: CachePadded(lock::Mutex::new(state)),
            attended: CachePadded(AtomicBool::new(false)),
            work: CachePadded(EventCount::new()),
            clock: EventCount::new(),
            done: EventCount::new(),
            threads: Mutex::new(Vec::new()),
            #[cfg(feature = "fibers")]
            fibers,
        })
    }

    /// The newest settings.
    #[cfg(feature = "trace")]
    pub(crate) fn settings(&self) -> Arc<crate::engine::settings::Settings> {
        self.settings.get()
    }

    /// Sets the listener to the flow's runs before the flow starts. Only the first call has an effect.
    #[cfg(feature = "trace")]
    pub(crate) fn set_witness(&self, witness: Arc<dyn Witness>) {
        let _ = self.witness.set(witness);
    }

    /// A track for the calling worker of the post, if there is a listener.
    pub(crate) fn track(&self, post: Post) -> Option<Box<dyn Track>> {
        let witness = self.witness.get()?;
        #[cfg(feature = "fibers")]
        if self.are_fibers(post) {
            return Some(self.fibers.track(|| witness.clone().track(true)));
        }
        let _ = post;
        Some(witness.clone().track(false))
    }

    /// The parts of the flow that running code may use.
    #[inline]
    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// Nanoseconds since the flow was built.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.site.now()
    }

    #[inline]
    pub(crate) fn gate(&self) -> &dyn Gate {
        &*self.gate
    }

    #[inline]
    pub(crate) fn source(&self) -> &SourceSlot {
        &self.source
    }

    #[inline]
    pub(crate) fn lane(&self, stage: u16) -> &dyn Lane {
        &**self.lanes[usize::from(stage)]
    }

    #[inline]
    pub(crate) fn open_stages(&self) -> &OpenStages {
        &self.open_stages
    }

    /// The workers that are fibers.
    #[cfg(feature = "fibers")]
    #[inline]
    pub(crate) fn fibers(&self) -> &FiberSeats {
        &self.fibers
    }

    /// Whether the workers of the post are fibers.
    #[inline]
    pub(crate) fn are_fibers(&self, post: Post) -> bool {
        matches!(post, Post::Stage(stage) if self.runs_on_fibers(stage))
    }

    /// Whether the workers of the stage are fibers.
    #[inline]
    pub(crate) fn runs_on_fibers(&self, stage: u16) -> bool {
        #[cfg(feature = "fibers")]
        return self.fibers.serve(stage);
        #[cfg(not(feature = "fibers"))]
        {
            let _ = stage;
            false
        }
    }

    /// The event count on which workers of the post sleep.
    pub(super) fn work_for(&self, post: Post) -> &EventCount {
        match post {
            Post::Shared => &self.work.0,
            Post::Stage(stage) => &self.stage_work[usize::from(stage)],
        }
    }
}

// ---- the mutex ----------------------------------------------------------------------------------------

impl Shared {
    /// Locks the state. No user code runs under the mutex, so a panic under it is a defect of the engine. A panic does
    /// not poison the mutex, because going on with the state as it is does less harm than stopping every thread.
    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_> {
        self.state.0.lock()
    }

    /// Finishes a change, unlocks the state, and wakes the threads that the change concerns.
    pub(crate) fn unlock_and_wake(self: &Arc<Self>, mut state: Locked<'_>) {
        let wakeups = self.finish_change(&mut state);
        drop(state);
        self.send(wakeups);
    }

    /// Finishes a change. Publishes whether the gate is attended, and if it is not, admits the units there. Closes
    /// groups if nothing else can move. Sets a watch over the source. Then plans the wake-ups, and marks them in the
    /// state.
    #[inline]
    pub(crate) fn finish_change(&self, state: &mut State) -> Wakeups {
        self.serve_unattended_gate(state);
        if state.units.groups().at_rest() > 0 {
            state.close_if_stuck(|| self.gate.is_empty(), self.now());
        }
        if state.source_needs_watch() {
            let now = self.now();
            state.watch_source(now);
        }
        // The plan depends on the time only if batches may wait to fill. A clock read costs as much as the rest of the
        // plan.
        let now = if state.stages.batches_may_wait() { self.now() } else { u64::MAX };
        let mut wakeups = state.plan_wakeups(|| self.gate.is_empty(), now);
        state.mark(&mut wakeups);
        wakeups
    }

    /// Unlocks the state, and waits until the event count changes or the time has passed. A thread that changes the
    /// state increments the count afterwards.
    pub(crate) fn wait_for<'a>(&'a self, event: &EventCount, state: Locked<'a>, most: Option<Duration>) -> Locked<'a> {
        let key = event.snapshot();
        drop(state);
        wake_before_blocking();
        // The caller checks the state again in both cases, so the result is ignored.
        let _ = event.wait_with(key, most.map(|most| Instant::now() + most), SpinPolicy::NONE);
        self.lock()
    }

    /// Sends planned wake-ups. The caller must hold no lock.
    fn send(self: &Arc<Self>, wakeups: Wakeups) {
        for (post, call) in wakeups.workers {
            match (post, call) {
                (_, Call::Start) => (self.start_worker)(self, post),
                (Post::Shared, Call::Wake { sleepers }) => self.work.0.add_waking(1, sleepers),
                (Post::Stage(stage), Call::Wake { .. }) => {
                    self.stage_work[usize::from(stage)].add_waking(1, 1);
                }
            }
        }
        if wakeups.clock.is_some() {
            self.clock.increment();
        }
        waking::wake(self, wakeups.entering);
        if wakeups.over {
            self.done.increment();
            self.wake_all_threads();
        }
        if wakeups.tells_source {
            self.source.tell_end(PullEnd::Closed);
        }
    }

    /// Wakes every thread of the flow, so that each notices the end.
    pub(super) fn wake_all_threads(&self) {
        self.work.0.increment();
        self.clock.increment();
        self.stage_work.iter().for_each(EventCount::increment);
    }
}

impl Host for Shared {
    fn expel(&self, places: &[u64]) -> Entering {
        self.lock().expel(places).entering
    }
}

// ---- the gate -----------------------------------------------------------------------------------------

impl Shared {
    #[inline]
    pub(crate) fn gate_is_attended(&self) -> bool {
        self.attended.0.load(Ordering::Relaxed)
    }

    /// Whether the gate is still attended after a unit was put there. If it is not, perhaps no worker has seen the
    /// unit.
    #[inline]
    pub(crate) fn gate_is_still_attended(&self) -> bool {
        // Pairs with the fence in `serve_unattended_gate`: if this load misses the end of the attendance, the worker
        // sees the unit.
        fence(Ordering::SeqCst);
        self.gate_is_attended()
    }

    /// Publishes whether the gate is attended. If it is not, admits the units that wait there.
    #[inline]
    fn serve_unattended_gate(&self, state: &mut State) {
        if state.life.must_close_gate() {
            self.gate.close();
        }
        let attended = state.crew.attends_gate();
        let ends = !attended && self.gate_is_attended();
        self.attended.0.store(attended, Ordering::Relaxed);
        if ends {
            // Pairs with the fence in `gate_is_still_attended`.
            fence(Ordering::SeqCst);
        }
        if ends || (!attended && !self.gate.is_empty()) {
            let now = self.now();
            self.gate.admit_from_gate(state, now);
            state.grant_all(now);
        }
    }
}

impl Growth for Shared {
    fn grow(
        &self,
        record: &mut Record,
        total_bytes: u64,
        may_wait: bool,
        advance: &mut AdvancedBytes,
        alike: u64,
    ) -> bool {
        self.lock().grow(record, total_bytes, may_wait, advance, alike)
    }
}
