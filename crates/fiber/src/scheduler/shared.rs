//! The state that all threads of a runtime share.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::thread;

use millstream_sync::eventcount::EventCount;

use super::core::{Body, Core};
use super::idle::Idle;
use super::local::Local;
use super::post::{MAX_STOLEN, Post};
use super::registry::Registry;
use super::traces::Traces;
use super::watch::{self, Clock};
use super::worker;
use crate::blocking::BlockingThreads;
use crate::error::{SpawnError, StackError};
use crate::options::Options;
use crate::report::Report;
use crate::spawn::Traits;
use crate::stack::{Guards, Layout, StackPool};

/// The stack of a worker's own thread. Its loop needs little; the fibers have stacks of their own.
const WORKER_STACK_BYTES: usize = 256 * 1024;

/// A runtime.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) pool: StackPool,
    /// The workers; none if each fiber has its own.
    pub(super) posts: Box<[Arc<Post>]>,
    pub(super) idle: Idle,
    pub(crate) registry: Registry,
    pub(crate) clock: Clock,
    pub(crate) traces: Traces,
    pub(crate) blocking: BlockingThreads,
    /// The number of fibers that have been spawned and have not ended.
    live: AtomicUsize,
    /// Incremented when the last fiber has ended.
    emptied: EventCount,
    /// Set when the runtime's owner waits for its end.
    closing: AtomicBool,
    /// The number of fibers so far that were spawned by other threads while no worker was idle.
    next_post: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(options: Options) -> Self {
        let workers = options.threads.workers();
        let layout = Layout::new(options.stack_bytes, options.guard_bytes);
        let guards = options.guards.unwrap_or_else(Guards::best);
        Shared {
            pool: StackPool::new(layout, guards, options.idle_stacks),
            posts: (0..workers).map(|index| Arc::new(Post::new(index))).collect(),
            idle: Idle::default(),
            registry: Registry::default(),
            clock: Clock::new(workers > 0),
            traces: Traces::default(),
            blocking: BlockingThreads::new(options.max_blocking_threads),
            live: AtomicUsize::new(0),
            emptied: EventCount::new(),
            closing: AtomicBool::new(false),
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

    /// Spawns a fiber.
    pub(crate) fn spawn(self: &Arc<Self>, traits: Traits, body: Body) -> Result<Arc<Core>, SpawnError> {
        let limit = self.options.max_fibers;
        // Sequentially consistent with the check in `has_ended`, like `closing`; see `has_ended`.
        if self.live.fetch_add(1, SeqCst) >= limit {
            self.leave();
            return Err(SpawnError::TooMany { limit });
        }
        let io = traits.io.unwrap_or(self.options.io).offered();
        let fiber = Arc::new(Core::new(traits.name, io, body));
        self.registry.insert(Arc::clone(&fiber));
        // `close` sets the flag and then cancels all registered fibers. Either it finds this fiber under the registry's
        // mutex, or this check, which comes after the registration, sees the flag.
        if self.closing.load(SeqCst) {
            fiber.cancel();
        }
        self.place(&fiber)?;
        Ok(fiber)
    }

    /// Puts an unstarted fiber into a queue, or gives it a thread.
    fn place(self: &Arc<Self>, fiber: &Arc<Core>) -> Result<(), SpawnError> {
        if self.posts.is_empty() {
            return self.start_sole(fiber);
        }
        let own = Local::with(|local, _| Arc::ptr_eq(&local.shared, self).then(|| local.post_index())).flatten();
        if let Some(own) = own {
            // A sole unstarted fiber waits until its spawner waits, and then finds warm caches. If the spawner
            // continues to compute, the watch soon wakes another worker to take the fiber.
            if self.posts[own].add_unstarted(Arc::clone(fiber)) > 1 {
                self.wake_idle();
            }
            return Ok(());
        }
        let idle = self.idle.pop();
        // Fibers that are spawned one after the other often talk to each other, which is dearer between workers.
        let next = || self.next_post.fetch_add(1, Relaxed) / MAX_STOLEN % self.posts.len();
        let index = idle.unwrap_or_else(next);
        self.posts[index].add_unstarted(Arc::clone(fiber));
        if idle.is_some() {
            self.posts[index].ring();
        } else {
            self.wake_idle();
        }
        Ok(())
    }

    /// Starts a thread for one fiber.
    fn start_sole(self: &Arc<Self>, fiber: &Arc<Core>) -> Result<(), SpawnError> {
        let post = Arc::new(Post::new(0));
        post.add_unstarted(Arc::clone(fiber));
        let shared = Arc::clone(self);
        let started = worker_thread(&fiber.label()).spawn(move || worker::work(shared, post, true));
        started.map(drop).map_err(|error| {
            self.registry.remove(fiber.id);
            // The body is dropped here, before the spawner learns of the failure, rather than by whichever owner is
            // last.
            drop(fiber.take_body());
            self.leave();
            SpawnError::Thread(error)
        })
    }

    /// Wakes an idle worker, if there is one, to look for unstarted fibers.
    pub(super) fn wake_idle(&self) {
        if let Some(worker) = self.idle.pop() {
            self.posts[worker].ring();
        }
    }

    /// Removes a fiber that has ended and given up its stack.
    pub(super) fn end(&self, fiber: &Core) {
        self.registry.remove(fiber.id);
        if fiber.take_ask_for_trace() {
            self.traces.answer(fiber, None);
        }
        fiber.joiners.end();
        self.leave();
    }

    /// Counts one live fiber less.
    fn leave(&self) {
        if self.live.fetch_sub(1, SeqCst) == 1 {
            self.emptied.increment();
            if self.closing.load(SeqCst) {
                self.ring_all();
            }
        }
    }

    /// Returns whether the runtime is closing and no fiber is left. By then only fibers can spawn fibers, so none
    /// follows.
    ///
    /// The last fiber to leave stores `live` and reads `closing`; `close` stores `closing` and rings afterwards. In the
    /// total order of these accesses, one of the two rings the bells after both stores. A worker that missed one of the
    /// stores took its snapshot before that ring.
    pub(super) fn has_ended(&self) -> bool {
        self.closing.load(SeqCst) && self.live.load(SeqCst) == 0
    }

    /// Cancels all fibers, and lets the workers exit after the last one.
    pub(crate) fn close(&self) {
        self.closing.store(true, SeqCst);
        self.registry.all().iter().for_each(Core::cancel);
        self.ring_all();
    }

    fn ring_all(&self) {
        self.posts.iter().for_each(|post| post.ring());
        self.clock.stop();
    }

    /// Blocks the thread until no fiber is left.
    pub(crate) fn wait_until_empty(&self) {
        self.emptied.wait_for(|| (self.live.load(SeqCst) == 0).then_some(()));
    }

    pub(crate) fn live(&self) -> usize {
        self.live.load(SeqCst)
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
    // A thread's name ends at its first zero byte, so there must be none.
    thread::Builder::new().name(name.replace('\0', "")).stack_size(WORKER_STACK_BYTES)
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.blocking.close();
    }
}
