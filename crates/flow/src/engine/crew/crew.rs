//! The interface of the part: threads by post, busy shared workers and their turns, and the watch over them.

use std::sync::Arc;

use super::notes::BatchNotes;
use super::post::{Post, Threads};
use super::turn_slot::{Move, TakenBack, TurnSlot};
use super::watch::Watch;
use crate::engine::pace::{STALL_NS, WATCH_NS};
use crate::engine::timers::{TimerAction, Timers};

/// The time for which the flow starts no thread after the system has refused one.
pub(crate) const SPAWN_RETRY_NS: u64 = 100_000_000;

pub(crate) struct Crew {
    /// The number of threads that serve all non-blocking stages.
    shared_workers: usize,
    shared: Threads,
    /// The threads of each blocking stage.
    of_stage: Vec<Threads>,
    /// For each shared worker, the slot for its turns.
    turns: Vec<Arc<TurnSlot>>,
    notes: BatchNotes,
    /// The number of shared workers that run a batch or pull the source.
    shared_busy: usize,
    /// The number of busy shared workers that are expected back soon.
    shared_busy_soon: usize,
    watch: Watch,
    /// The time until which the timekeeper sleeps; `u64::MAX` if it does not sleep.
    clock_until: u64,
    /// The system refused a thread, so the flow starts none until a timer ends this pause.
    spawning_paused: bool,
}

impl Crew {
    pub(crate) fn new(shared_workers: usize, stages: usize) -> Self {
        Crew {
            shared_workers,
            shared: Threads::default(),
            of_stage: (0..stages).map(|_| Threads::default()).collect(),
            turns: Vec::new(),
            notes: BatchNotes::default(),
            shared_busy: 0,
            shared_busy_soon: 0,
            watch: Watch::default(),
            clock_until: u64::MAX,
            spawning_paused: false,
        }
    }

    /// The number of threads that serve all non-blocking stages.
    #[inline]
    pub(crate) fn shared_workers(&self) -> usize {
        self.shared_workers
    }

    /// Adopts a new number of shared workers.
    pub(crate) fn follow(&mut self, shared_workers: usize) {
        self.shared_workers = shared_workers;
    }

    #[inline]
    pub(crate) fn threads(&self, post: Post) -> &Threads {
        match post {
            Post::Shared => &self.shared,
            Post::Stage(stage) => &self.of_stage[usize::from(stage)],
        }
    }

    #[inline]
    pub(crate) fn threads_mut(&mut self, post: Post) -> &mut Threads {
        match post {
            Post::Shared => &mut self.shared,
            Post::Stage(stage) => &mut self.of_stage[usize::from(stage)],
        }
    }
}

// ---- busy workers -------------------------------------------------------------------------------------

impl Crew {
    /// The number of shared workers that run a batch or pull the source.
    #[inline]
    pub(crate) fn shared_busy(&self) -> usize {
        self.shared_busy
    }

    /// Whether a shared worker is expected back soon.
    #[inline]
    pub(crate) fn expects_one_soon(&self) -> bool {
        self.shared_busy_soon > 0
    }

    /// Whether a worker will soon admit the units at the gate.
    #[inline]
    pub(crate) fn attends_gate(&self) -> bool {
        self.shared_busy_soon > 0 || self.shared.has_signals()
    }

    /// Counts a shared worker that begins to run a batch, or to pull.
    #[inline]
    pub(crate) fn begin(&mut self, soon: bool) {
        self.shared_busy += 1;
        self.shared_busy_soon += usize::from(soon);
    }

    /// Counts a shared worker that has ended a pull.
    pub(crate) fn end_pull(&mut self, soon: bool) {
        self.shared_busy -= 1;
        self.shared_busy_soon -= usize::from(soon);
    }

    /// Counts a shared worker that has ended a turn.
    #[inline]
    pub(crate) fn end_turn(&mut self, soon: bool) {
        self.shared_busy -= 1;
        self.shared_busy_soon -= usize::from(soon);
        self.watch.count_turn();
    }

    /// Stops expecting a busy worker back soon.
    pub(crate) fn expect_no_longer(&mut self) {
        self.shared_busy_soon -= 1;
    }
}

// ---- turns --------------------------------------------------------------------------------------------

impl Crew {
    /// Adds the slot for the turns of a new shared worker.
    pub(crate) fn add_turn(&mut self, turn: Arc<TurnSlot>) {
        self.turns.push(turn);
    }

    /// The number of shared workers ever started; each has a slot for its turns.
    pub(crate) fn turns(&self) -> usize {
        self.turns.len()
    }

    /// Takes back the batches that a worker has not begun, if its turn had already taken too long at `watched_ns`.
    pub(crate) fn take_turn_back(&self, worker: usize, watched_ns: u64) -> Option<(Arc<TurnSlot>, TakenBack)> {
        let turn = &self.turns[worker];
        turn.take_back(watched_ns).map(|taken| (turn.clone(), taken))
    }

    /// The workers that have gone to other stages since the stages' counts were last updated.
    pub(crate) fn moves(&self) -> impl Iterator<Item = Move> {
        self.turns.iter().filter_map(|turn| turn.follow())
    }
}

// ---- notes --------------------------------------------------------------------------------------------

impl Crew {
    /// The notes of batches that are expected to run long.
    pub(crate) fn notes(&self) -> &BatchNotes {
        &self.notes
    }

    pub(crate) fn notes_mut(&mut self) -> &mut BatchNotes {
        &mut self.notes
    }
}

// ---- the watch ----------------------------------------------------------------------------------------

impl Crew {
    /// Sets a timer. When it fires, the timekeeper checks whether the workers that are expected soon have returned.
    #[inline]
    pub(crate) fn watch(&mut self, timers: &mut Timers, now: u64) {
        let all_busy = self.shared_busy >= self.shared_workers;
        self.watch.set(if all_busy { STALL_NS } else { WATCH_NS }, timers, now);
    }

    /// Brings forward a watch that is set, because from now on a free worker could do a busy worker's pending work.
    pub(crate) fn watch_sooner(&mut self, timers: &mut Timers, now: u64) {
        self.watch.bring_forward(timers, now);
    }

    /// Sets a timer at which the timekeeper checks whether workers still come to pull the source.
    pub(crate) fn watch_source(&mut self, pulling: bool, timers: &mut Timers, now: u64) {
        self.watch.set(if pulling { WATCH_NS } else { STALL_NS }, timers, now);
    }

    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watch.is_set()
    }

    /// Ends the watch whose timer was set for `at_ns`. Returns `false` if that timer is stale.
    pub(crate) fn end_watch(&mut self, at_ns: u64) -> bool {
        self.watch.end(at_ns)
    }

    /// Whether a watch has ended, and no thread has acted on it yet.
    #[inline]
    pub(crate) fn watch_has_ended(&self) -> bool {
        self.watch.has_ended()
    }

    /// Notes that a shared worker was woken or started in reaction to the last watch.
    pub(crate) fn act_on_watch(&mut self) {
        self.watch.act();
    }

    /// Whether no shared worker ended a turn during the last watch.
    #[inline]
    pub(crate) fn is_stalled(&self) -> bool {
        self.watch.is_stalled()
    }
}

// ---- the timekeeper and new threads -------------------------------------------------------------------

impl Crew {
    /// Whether the timekeeper sleeps beyond this time.
    #[inline]
    pub(crate) fn clock_sleeps_beyond(&self, at_ns: u64) -> bool {
        at_ns < self.clock_until
    }

    /// Notes the time until which the timekeeper sleeps.
    pub(crate) fn set_clock_until(&mut self, at_ns: u64) {
        self.clock_until = at_ns;
    }

    #[inline]
    pub(crate) fn may_spawn(&self) -> bool {
        !self.spawning_paused
    }

    /// Counts a thread that the system refused, and pauses the start of further threads.
    pub(crate) fn spawn_failed(&mut self, post: Post, timers: &mut Timers, now: u64) {
        self.threads_mut(post).count_end();
        // One timer ends the pause, however many threads are refused during it.
        if !std::mem::replace(&mut self.spawning_paused, true) {
            timers.set(now + SPAWN_RETRY_NS, TimerAction::RetrySpawn);
        }
    }

    pub(crate) fn resume_spawning(&mut self) {
        self.spawning_paused = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_is_attended_while_a_worker_is_expected_or_was_just_woken() {
        let mut crew = Crew::new(2, 0);
        assert!(!crew.attends_gate());
        crew.begin(true);
        assert!(crew.attends_gate() && crew.shared_busy() == 1);
        crew.expect_no_longer();
        assert!(!crew.attends_gate());
        crew.threads_mut(Post::Shared).count_start();
        crew.threads_mut(Post::Shared).fall_asleep(false);
        crew.threads_mut(Post::Shared).mark_woken();
        assert!(crew.attends_gate());
    }

    #[test]
    fn a_watch_over_workers_that_are_all_busy_lasts_longer() {
        let (mut crew, mut timers) = (Crew::new(2, 0), Timers::default());
        crew.begin(true);
        crew.watch(&mut timers, 0);
        assert_eq!(timers.next_at(), WATCH_NS);
        assert!(crew.end_watch(WATCH_NS) && crew.is_stalled());
        timers.next_due(WATCH_NS);
        crew.begin(true);
        crew.watch(&mut timers, 0);
        assert_eq!(timers.next_at(), STALL_NS);
        crew.end_turn(true);
        assert!(!crew.is_stalled());
    }

    #[test]
    fn a_refused_thread_pauses_the_starts_once() {
        let (mut crew, mut timers) = (Crew::new(1, 1), Timers::default());
        for post in [Post::Shared, Post::Stage(0)] {
            crew.threads_mut(post).count_start();
            crew.spawn_failed(post, &mut timers, 7);
        }
        assert!(!crew.may_spawn() && timers.next_due(7 + SPAWN_RETRY_NS).is_some() && timers.next_at() == u64::MAX);
        crew.resume_spawning();
        assert!(crew.may_spawn());
    }
}
