//! The watch: a thread that wakes up every 2 ms while workers are busy, and checks which fiber each worker runs.
//!
//! The watch updates the runtime's coarse clock. It reports a fiber that keeps its worker busy for too long. It also wakes idle
//! workers, which take the unstarted fibers of busy workers. While all workers sleep, the watch sleeps too.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::time::{Duration, Instant};

use millstream_sync::eventcount::EventCount;

use super::post::Post;
use super::shared::Shared;
use crate::interrupt;
use crate::report::Report;

/// The time between two checks, and therefore the resolution of the coarse clock.
const TICK: Duration = Duration::from_millis(2);

/// The runtime's clock, and the number of workers that are awake.
pub(crate) struct Clock {
    started: Instant,
    /// The milliseconds from the start to the last tick; unused if there is no watch.
    coarse_ms: AtomicU64,
    has_watch: bool,
    busy: AtomicUsize,
    /// The bell that ends the watch's sleep. It is rung when the first worker wakes up, and at the end of the runtime.
    bell: EventCount,
}

impl Clock {
    pub(super) fn new(has_watch: bool) -> Self {
        Clock {
            started: Instant::now(),
            coarse_ms: AtomicU64::new(0),
            has_watch,
            busy: AtomicUsize::new(0),
            bell: EventCount::new(),
        }
    }

    fn exact_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the milliseconds since the start. With a watch this is one load, late by up to a tick.
    pub(crate) fn now_ms(&self) -> u64 {
        if self.has_watch { self.coarse_ms.load(Relaxed) } else { self.exact_ms() }
    }

    /// Returns the milliseconds since the start, for a dump.
    pub(crate) fn dump_ms(&self) -> u64 {
        self.exact_ms()
    }

    fn tick(&self) {
        self.coarse_ms.fetch_max(self.exact_ms(), Relaxed);
    }

    pub(super) fn worker_wakes(&self) {
        if !self.has_watch {
            return;
        }
        self.tick();
        // Sequentially consistent, like the watch's check of `busy`, which follows its snapshot of the bell. Either the watch
        // sees the increment, or the ring below comes after the snapshot and ends the watch's sleep.
        if self.busy.fetch_add(1, SeqCst) == 0 {
            self.bell.increment();
        }
    }

    pub(super) fn worker_sleeps(&self) {
        if self.has_watch {
            self.busy.fetch_sub(1, SeqCst);
        }
    }

    /// Makes the watch check whether the runtime has ended.
    pub(super) fn stop(&self) {
        self.bell.increment();
    }
}

/// The last observation of a worker: the worker's turn, and the time when the watch first observed this turn.
struct Seen {
    turn: (u64, u64),
    since: Instant,
    is_reported: bool,
}

/// Watches the workers until the runtime has ended.
pub(super) fn watch(shared: &Arc<Shared>) {
    let clock = &shared.clock;
    let mut seen: Vec<Option<Seen>> = shared.posts.iter().map(|_| None).collect();
    loop {
        let key = clock.bell.snapshot();
        if shared.has_ended() {
            return;
        }
        if clock.busy.load(SeqCst) == 0 {
            seen.iter_mut().for_each(|seen| *seen = None);
            clock.bell.wait(key);
        } else {
            std::thread::sleep(TICK);
        }
        clock.tick();
        for (post, seen) in shared.posts.iter().zip(&mut seen) {
            look(shared, post, seen);
        }
    }
}

/// Wakes an idle worker if `post` has unstarted fibers. Reports the fiber that `post` runs, if it has run for too long in one
/// turn.
fn look(shared: &Shared, post: &Post, seen: &mut Option<Seen>) {
    if post.seems_to_have_unstarted() {
        shared.wake_idle();
    }
    let turn = post.turn();
    let (fiber, _) = turn;
    match seen {
        _ if fiber == 0 => *seen = None,
        Some(before) if before.turn == turn => {
            let since = before.since.elapsed();
            if since >= shared.options.stall && !before.is_reported {
                before.is_reported = true;
                // The name is looked up before the backtrace, because the fiber may end while the backtrace is captured.
                let core = shared.fibers.get(fiber);
                let unit = core.as_ref().and_then(|core| core.unit());
                let label = core.map_or_else(|| format!("#{fiber}"), |core| core.label());
                let backtrace = interrupt::backtrace(post, fiber);
                shared.options.report(&Report::Stalled { fiber: label, unit, worker: post.index, since, backtrace });
            }
        }
        _ => *seen = Some(Seen { turn, since: Instant::now(), is_reported: false }),
    }
}
