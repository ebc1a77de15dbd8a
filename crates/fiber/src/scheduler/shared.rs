//! The state that all threads of a runtime share.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, SeqCst},
};
use std::thread;

use millstream_sync::eventcount::EventCount;

use super::blocks::Pool;
use super::core::{Core, Work};
use super::core_ref::CoreRef;
use super::end::End;
use super::idle::Idle;
use super::local::{Local, take_numbers};
use super::post::{MAX_STOLEN, Post};
use super::state::Phase;
use super::traces::Traces;
use super::watch::{self, Clock};
use super::worker;
use crate::blocking::BlockingThreads;
use crate::error::{SpawnError, StackError};
use crate::options::Options;
use crate::report::Report;
use crate::spawn::Traits;
use crate::stack::{Guards, Layout, StackPool};

/// The stack of a worker's own thread. The worker's loop needs little, and the fibers have their own stacks.
const WORKER_STACK_BYTES: usize = 256 * 1024;

/// A runtime.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) pool: StackPool,
    /// The posts of the workers; empty if each fiber has its own worker.
    pub(super) posts: Box<[Arc<Post>]>,
    pub(super) idle: Idle,
    /// The fibers, with the memory of their control blocks.
    pub(crate) fibers: Pool,
    pub(crate) clock: Clock,
    pub(crate) traces: Traces,
    pub(crate) blocking: BlockingThreads,
    /// The number of fibers that have been spawned and have not ended.
    live: AtomicUsize,
    /// An event count that is incremented when the last fiber has ended.
    emptied: EventCount,
    pub(super) end: End,
    /// The number of fibers that threads outside the runtime have spawned while no worker was idle. It determines which worker
    /// gets the next such fiber.
    next_post: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(options: Options) -> Self {
        let workers = options.threads.workers();
        let layout = Layout::new(options.stack_bytes, options.guard_bytes);
        let guards = options.guards.unwrap_or_else(Guards::best);
        let posts: Box<[_]> = (0..workers).map(|index| Arc::new(Post::new(index))).collect();
        Shared {
            fibers: Pool::new(&posts),
            pool: StackPool::new(layout, guards, options.idle_stacks),
            posts,
            idle: Idle::default(),
            clock: Clock::new(workers > 0),
            traces: Traces::default(),
            blocking: BlockingThreads::new(options.max_blocking_threads),
            live: AtomicUsize::new(0),
            emptied: EventCount::new(),
            end: End::new(),
            next_post: AtomicUsize::new(0),
            options,
        }
    }

    /// Starts the workers' threads.
    pub(crate) fn start(self: &Arc<Self>) -> std::io::Result<Vec<thread::JoinHandle<()>>> {
        let start = |post: &Arc<Post>| {
            let (shared, post) = (Arc::clone(self), Arc::clone(post));
            let name = format!("fibers-{}", post.index);
            worker_thread(&name).spawn(move || worker::work(shared, post, false))
        };
        let mut threads = Vec::new();
        for post in &self.posts {
            threads.push(start(post)?);
        }
        if !self.posts.is_empty() {
            let shared = Arc::clone(self);
            threads.push(worker_thread("fibers-watch").spawn(move || watch::watch(&shared))?);
        }
        Ok(threads)
    }

    /// Spawns a fiber. `work` is a leaked box, which belongs to the fiber from now on.
    pub(crate) fn spawn(self: &Arc<Self>, traits: Traits, work: NonNull<dyn Work>) -> Result<CoreRef, SpawnError> {
        let local = Local::on_this_thread().filter(|local| !local.is_sole && Arc::ptr_eq(&local.shared, self));
        let is_admitted = match local {
            Some(local) => local.admit(),
            None => self.admit(),
        };
        if !is_admitted {
            // SAFETY: the work is a leaked box that nothing else uses.
            let work = unsafe { Box::from_raw(work.as_ptr()) };
            // SAFETY: this function owns the box, and the work has not run.
            unsafe { work.discard() };
            return Err(SpawnError::TooMany { limit: self.options.max_fibers });
        }
        let io = traits.io.unwrap_or(self.options.io).offered();
        let (block, id) = match local {
            Some(local) => (local.blocks.borrow_mut().take(&self.fibers), local.number()),
            None => (self.fibers.take(), take_numbers(1).start),
        };
        let sole = self.posts.is_empty().then(|| Arc::new(Post::new(0)));
        let [fiber, queued] = block.fill(Core::new(id, traits.name, io, sole, work));
        // Only a worker may use the cheaper check, because it checks again in `Local::see_end`.
        if if local.is_some() { self.end.seems_begun() } else { self.end.has_begun() } {
            fiber.cancel();
        }
        match local {
            Some(local) => self.place_near(local, queued),
            None if self.posts.is_empty() => self.start_sole(queued)?,
            None => self.place(queued),
        }
        Ok(fiber)
    }

    /// Counts a new fiber as live. Returns `false` if there are too many.
    pub(super) fn admit(&self) -> bool {
        let limit = self.options.max_fibers;
        // Sequentially consistent; see `has_ended`.
        let is_admitted = self.live.fetch_add(1, SeqCst) < limit || self.live() <= limit;
        if !is_admitted {
            self.leave(1);
        }
        is_admitted
    }

    /// Puts an unstarted fiber into the queue of the calling worker.
    fn place_near(&self, local: &Local, fiber: CoreRef) {
        // A sole unstarted fiber starts on this worker as soon as its spawner waits, with warm caches. If the spawner continues
        // to compute instead, the watch soon wakes another worker, which takes the fiber.
        if let Some(fiber) = local.post.add_sole_unstarted(fiber) {
            local.post.add_unstarted(fiber);
            self.wake_idle();
        }
    }

    /// Puts an unstarted fiber into a worker's queue.
    fn place(&self, fiber: CoreRef) {
        let idle = self.idle.pop();
        // Fibers that are spawned one after the other often communicate, which is cheaper on the same worker.
        let next = || self.next_post.fetch_add(1, Relaxed) / MAX_STOLEN % self.posts.len();
        let index = idle.unwrap_or_else(next);
        self.posts[index].add_unstarted(fiber);
        if idle.is_some() {
            self.posts[index].ring();
        } else {
            self.wake_idle();
        }
    }

    /// Starts a thread for one fiber.
    fn start_sole(self: &Arc<Self>, fiber: CoreRef) -> Result<(), SpawnError> {
        let post = Arc::clone(fiber.sole().expect("the fiber has a worker of its own"));
        let name = fiber.label();
        post.add_unstarted(fiber);
        let (shared, theirs) = (Arc::clone(self), Arc::clone(&post));
        let started = worker_thread(&name).spawn(move || worker::work(shared, theirs, true));
        started.map(drop).map_err(|error| {
            if let Some(fiber) = post.pop_unstarted() {
                fiber.state.set_phase(Phase::Ended);
                // SAFETY: no thread has started the fiber. The body is dropped here, so it is gone before the spawner gets the
                // error.
                unsafe { fiber.work().discard() };
            }
            self.leave(1);
            SpawnError::Thread(error)
        })
    }

    /// Wakes an idle worker, if there is one. The worker then searches for unstarted fibers.
    pub(super) fn wake_idle(&self) {
        if let Some(worker) = self.idle.pop() {
            self.posts[worker].ring();
        }
    }

    /// Subtracts ended fibers from the number of live fibers.
    pub(super) fn leave(&self, fibers: usize) {
        if self.live.fetch_sub(fibers, SeqCst) == fibers {
            self.emptied.increment();
            if self.end.has_begun() {
                self.ring_all();
            }
        }
    }

    /// Returns whether the runtime is closing and no fiber is left. By then only fibers can spawn fibers, so none will follow.
    ///
    /// The worker that subtracts the last fiber stores `live` and then reads `end`; `close` stores `end` and then rings the
    /// bells. In the total order of these accesses, at least one of the two rings the bells after both stores. A worker that
    /// has missed one of the stores took its snapshot before that ring, so the ring ends its sleep.
    pub(super) fn has_ended(&self) -> bool {
        self.end.has_begun() && self.live.load(SeqCst) == 0
    }

    /// Cancels all fibers, and lets the workers exit after the last one.
    pub(crate) fn close(&self) {
        self.end.begin();
        self.cancel_all();
        self.ring_all();
    }

    /// Cancels all fibers whose spawn happened before this call. Others may be missed.
    pub(crate) fn cancel_all(&self) {
        self.fibers.all().iter().for_each(|fiber| fiber.cancel());
    }

    fn ring_all(&self) {
        self.posts.iter().for_each(|post| post.ring());
        self.clock.stop();
    }

    /// Blocks the thread until no fiber is left.
    pub(crate) fn wait_until_empty(&self) {
        self.emptied.wait_for(|| (self.live.load(SeqCst) == 0).then_some(()));
    }

    /// Returns the number of fibers that have been spawned and have not ended.
    pub(crate) fn live(&self) -> usize {
        let counted = self.live.load(SeqCst);
        // The result may be too high for a moment: a worker clears its own count before it subtracts the fibers from `live`, and
        // the sum is computed after `live` was loaded. The result may be too low only if, during the call, a fiber spawns another
        // fiber and then ends. Acquire pairs with the release in `Local::count_out`.
        let ended: usize = self.posts.iter().map(|post| post.ended.load(Acquire)).sum();
        counted.saturating_sub(ended)
    }

    /// Returns the numbers of the running fibers; `None` if each fiber has its own worker.
    pub(crate) fn running(&self) -> Option<Vec<u64>> {
        let running = || self.posts.iter().map(|post| post.turn().0).collect();
        (!self.posts.is_empty()).then(running)
    }

    pub(super) fn report_not_started(&self, fiber: &Core, error: &StackError) {
        self.options.report(&Report::NotStarted { fiber: fiber.label(), error: error.to_string() });
    }
}

fn worker_thread(name: &str) -> thread::Builder {
    // A thread's name must not contain a zero byte.
    thread::Builder::new().name(name.replace('\0', "")).stack_size(WORKER_STACK_BYTES)
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.blocking.close();
    }
}
