//! Workers that are fibers: they run the code of some stages on a runtime of few threads.
//!
//! To the state, a fiber is like a thread of a blocking stage: the state counts it before it starts, and it runs
//! [`work`](crate::engine::cycle). So the proof against deadlock, the caps, and the rules for failures, panics and
//! draining apply to fibers as they do to threads. Two things differ. First, a fiber without work ends, because
//! starting a new one is cheap. (A thread without work sleeps.) So a fiber never sleeps in the engine's own code.
//! Second, a wait in a stage's code can be ended from outside. So an abandoned flow unwinds the fibers that still wait
//! when their grace is over.
//!
//! A fiber is suspended only in a stage's code, where it holds no lock of the engine.
//!
//! The runtime starts with the first fiber. If the system refuses its threads or a stack, that counts as a refused
//! thread: the timekeeper tries again after a while.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use millstream_fiber::{Builder, Options, Runtime, current, stack_used_bytes};

use crate::engine::run::witness::{Ran, Track};
use crate::fibers::{FiberTrouble, Fibers};
use crate::report::{Report, StackUse};

/// The stages whose workers are fibers, and the runtime of these fibers.
pub(crate) struct FiberSeats {
    /// For each stage, whether its workers are fibers.
    stages: Box<[bool]>,
    stack_bytes: usize,
    options: Options,
    runtime: RwLock<Phase>,
    trouble: Arc<Mutex<FiberTrouble>>,
    /// For each stage, the depth in bytes of the deepest stack among its fibers that have ended.
    deepest: Box<[AtomicU64]>,
    /// The track that all fibers share.
    track: OnceLock<SharedTrack>,
}

enum Phase {
    Unused,
    Runs(Runtime),
    Ended,
}

impl FiberSeats {
    /// `options` has the number of threads.
    pub(crate) fn new(stages: Box<[bool]>, stack_bytes: usize, options: Options) -> Self {
        let trouble = Arc::<Mutex<FiberTrouble>>::default();
        let noted = trouble.clone();
        let options = options
            .stack_bytes(stack_bytes)
            // The flow itself bounds the number of fibers, so the runtime need not.
            .max_fibers(usize::MAX)
            .stack_setting(
                "set `stack = \"{KiB}KiB\"` in the stage of the flow file, or `StageBuilder::stack({bytes})` in code",
            )
            .on_report(move |report| noted.lock().unwrap_or_else(PoisonError::into_inner).note(report));
        let deepest = stages.iter().map(|_| AtomicU64::new(0)).collect();
        FiberSeats {
            stages,
            stack_bytes,
            options,
            runtime: RwLock::new(Phase::Unused),
            trouble,
            deepest,
            track: OnceLock::new(),
        }
    }

    /// Whether the workers of the stage are fibers.
    #[inline]
    pub(crate) fn serve(&self, stage: u16) -> bool {
        self.stages[usize::from(stage)]
    }

    /// Starts the runtime for the first fiber, unless the system refuses or the flow has ended.
    fn open(&self) {
        if self.with(|_| ()).is_some() {
            return;
        }
        let mut phase = self.runtime.write().unwrap_or_else(PoisonError::into_inner);
        if let Phase::Unused = *phase {
            match Runtime::start(self.options.clone()) {
                Ok(runtime) => *phase = Phase::Runs(runtime),
                Err(error) => self.trouble.lock().unwrap_or_else(PoisonError::into_inner).refuse(error.to_string()),
            }
        }
    }

    /// Starts a fiber. If the fiber cannot be started, drops the body.
    pub(super) fn spawn(&self, name: Arc<str>, body: impl FnOnce() + Send + 'static) {
        self.open();
        drop(self.with(|runtime| Builder::new().name(name).spawn_on(runtime, body)));
    }

    /// Calls `act` with the runtime, if there is one. The runtime does not end before the call does.
    fn with<T>(&self, act: impl FnOnce(&Runtime) -> T) -> Option<T> {
        match &*self.runtime.read().unwrap_or_else(PoisonError::into_inner) {
            Phase::Runs(runtime) => Some(act(runtime)),
            Phase::Unused | Phase::Ended => None,
        }
    }

    /// Unwinds the fibers that wait. Returns whether there is a runtime.
    pub(super) fn cancel(&self) -> bool {
        self.with(Runtime::cancel).is_some()
    }

    /// Ends the runtime. If `all_idle`, waits for its fibers; otherwise leaves behind the fibers that do not end.
    pub(super) fn end(&self, all_idle: bool) {
        let phase = std::mem::replace(&mut *self.runtime.write().unwrap_or_else(PoisonError::into_inner), Phase::Ended);
        match phase {
            Phase::Runs(runtime) if all_idle => drop(runtime),
            Phase::Runs(runtime) => runtime.abandon(),
            Phase::Unused | Phase::Ended => {}
        }
    }

    /// A track for a fiber. It is a handle to one track that all fibers share.
    pub(super) fn track(&self, make: impl FnOnce() -> Box<dyn Track>) -> Box<dyn Track> {
        Box::new(self.track.get_or_init(|| SharedTrack(Arc::new(Mutex::new(make())))).clone())
    }

    /// Notes how deep the calling fiber's stack has been. Called when the fiber ends.
    pub(super) fn note_depth(&self, stage: u16) {
        let depth = stack_used_bytes().unwrap_or(0) as u64;
        // Relaxed is enough: only the report reads this number, and it is made after the fibers have ended.
        self.deepest[usize::from(stage)].fetch_max(depth, Relaxed);
    }

    /// Adds the report's part about fibers.
    pub(super) fn complete(&self, mut report: Report) -> Report {
        let stack_bytes = self.stack_bytes as u64;
        for (stage, deepest) in report.stages.iter_mut().zip(&self.deepest) {
            let deepest_bytes = deepest.load(Relaxed);
            stage.stacks = (deepest_bytes > 0).then_some(StackUse { stack_bytes, deepest_bytes });
        }
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        report.refused_fibers = trouble.refused;
        report.latest_refusal.clone_from(&trouble.latest_refusal);
        report
    }

    /// The state of all fibers. If `backtraces` is set, waits at most this long for the fibers' backtraces.
    pub(crate) fn look(&self, backtraces: Option<Duration>) -> Fibers {
        let dump = |runtime: &Runtime| match backtraces {
            Some(limit) => runtime.dump_with_backtraces(limit),
            None => runtime.dump(),
        };
        let (stacks, dump) = self.with(|runtime| (runtime.stacks(), dump(runtime))).unzip();
        Fibers::of(dump.as_ref(), stacks, self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// The track of all fibers. The processor time of a thread says nothing about one of its fibers. So a run counts as a
/// wait from beginning to end, apart from the processor time that was charged to it.
#[derive(Clone)]
struct SharedTrack(Arc<Mutex<Box<dyn Track>>>);

impl Track for SharedTrack {
    fn fiber_began(&mut self, delay_ns: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fiber_began(delay_ns);
    }

    fn rests(&mut self) {
        unreachable!("a fiber without work ends");
    }

    fn begins(&mut self, _: u64) {}

    fn ran(&mut self, ran: &Ran<'_>) {
        let mut track = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        track.begins(ran.began_ns);
        track.ran(ran);
    }

    fn pulled(&mut self, _: u64, _: u64, _: u64, _: u64) {
        unreachable!("fibers do not pull the source");
    }
}

/// Notes the unit that the calling fiber serves, which is the first unit of its batch.
pub(crate) fn note_unit(unit: Option<u64>) {
    current().set_unit(unit);
}
