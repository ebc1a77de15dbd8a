//! The loop of a worker: resume a ready fiber, start a fiber, take fibers from another worker, sleep.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant};

use corosensei::CoroutineResult;
use millstream_sync::eventcount::{Key, SpinPolicy};

use super::core::{Carrier, Leave, Start};
use super::core_ref::CoreRef;
use super::end::End;
use super::local::Local;
use super::post::Post;
use super::shared::Shared;
use super::state::Phase;
use crate::contained::AbortOnUnwind;
use crate::io::Poller;
use crate::overflow::SignalStack;
use crate::stack::Stack;

/// Each time this number of turns has passed, an unstarted fiber runs before the ready ones, and the worker compares its timers
/// with the clock.
const FAIR_TURNS: u32 = 16;

/// Each time this number of turns has passed, the worker polls its descriptors even if it has ready fibers. The number is a
/// multiple of `FAIR_TURNS`. Each poll is a system call. A worker without ready fibers polls anyway, because it sleeps in the
/// poller.
const POLLER_TURNS: u32 = 64;

/// With fewer ready fibers than this, each fiber's memory is probably still in the caches, so it is not fetched ahead.
const MANY_READY: usize = 16;

/// The number of a stack's cache lines that are fetched ahead. They contain the innermost frames, from the suspension to the
/// caller's caller.
const STACK_LINES: usize = 4;

const LINE_BYTES: usize = 64;

/// The number of ended fibers at which a worker subtracts them from the runtime's number of live fibers. A worker that is about
/// to sleep subtracts them immediately.
const MAX_ENDED: usize = 64;

/// Runs fibers until the runtime ends, or a single fiber if `is_sole`.
pub(super) fn work(shared: Arc<Shared>, post: Arc<Post>, is_sole: bool) {
    let _stack_for_signals = SignalStack::install();
    post.settle();
    let local = Local::new(shared, post, is_sole);
    // A panic of the loop itself is a bug, and the suspended fibers would never run again.
    let guard = AbortOnUnwind;
    local.install(|| local.serve());
    std::mem::forget(guard);
    local.stacks.borrow_mut().clear(&local.shared.pool);
    local.blocks.borrow_mut().clear(&local.shared.fibers);
}

impl Local {
    fn serve(&self) {
        self.shared.clock.worker_wakes();
        loop {
            let tick = self.tick.get().wrapping_add(1);
            self.tick.set(tick);
            let is_fair_turn = tick.is_multiple_of(FAIR_TURNS);
            self.post.inbox.take(|fiber| self.ready.borrow_mut().push_back(fiber));
            if is_fair_turn {
                self.see_end(End::seems_begun);
                self.wake_due();
            }
            if tick.is_multiple_of(POLLER_TURNS) {
                self.look_into_poller();
            }
            match self.next(is_fair_turn) {
                Some(fiber) => self.resume(fiber),
                None if self.rest() => {}
                None => break,
            }
        }
        self.shared.clock.worker_sleeps();
    }

    /// Returns the next fiber to run.
    fn next(&self, is_fair_turn: bool) -> Option<CoreRef> {
        let waited_long = if is_fair_turn { self.post.pop_unstarted() } else { None };
        let ready = || self.ready.borrow_mut().pop_front();
        waited_long.or_else(ready).or_else(|| self.post.pop_unstarted()).or_else(|| self.steal())
    }

    /// Takes unstarted fibers from another worker.
    fn steal(&self) -> Option<CoreRef> {
        let posts = &self.shared.posts;
        for step in 1..posts.len() {
            let mut stolen = posts[(self.post.index + step) % posts.len()].steal();
            if let Some(first) = stolen.pop_front() {
                if !stolen.is_empty() {
                    self.post.add_stolen(stolen);
                }
                return Some(first);
            }
        }
        None
    }

    /// Runs a fiber until it waits, yields or ends.
    fn resume(&self, fiber: CoreRef) {
        // SAFETY: this is the worker that started the fiber, or is about to start it. Its inbox, its ready queue and its timers
        // contain only fibers that it has started, and all other queues contain only unstarted fibers.
        let carrier = unsafe { fiber.own() }.carrier.get();
        // SAFETY: only this worker touches the carrier, and the fiber itself does not.
        let carrier = unsafe { &mut *carrier };
        if carrier.is_none() {
            match self.carry(&fiber) {
                Some(made) => *carrier = Some(made),
                None => return self.end(fiber),
            }
        }
        let carrier = carrier.as_mut().expect("the fiber has a carrier now");
        self.current.set(CoreRef::as_ptr(&fiber));
        self.operations.set(0);
        self.fetch_ahead();
        self.post.enter(fiber.id);
        let left = carrier.resume(());
        self.post.leave();
        self.current.set(std::ptr::null());
        match left {
            CoroutineResult::Yield(Leave::Yield) => self.ready.borrow_mut().push_back(fiber),
            // The waiting fiber owns this reference until a wake-up takes the reference over.
            CoroutineResult::Yield(Leave::Wait) => std::mem::forget(fiber),
            CoroutineResult::Return(()) => self.end(fiber),
        }
    }

    /// Prefetches the memory that the next turns need. If there are many fibers, a fiber's memory has left the caches by its next
    /// turn.
    fn fetch_ahead(&self) {
        let ready = self.ready.borrow();
        if ready.len() < MANY_READY {
            return;
        }
        // Fetch the control block of the fiber after the next one; its stack pointer is needed in the next call. The stack of the
        // next fiber is fetched below.
        fetch(CoreRef::as_ptr(&ready[1]).cast());
        // SAFETY: all ready fibers of this queue belong to this worker.
        let stack = unsafe { ready[0].own() }.left_at.get();
        (0..STACK_LINES).for_each(|line| fetch(stack.wrapping_add(line * LINE_BYTES)));
    }

    /// Gives an unstarted fiber a stack and binds it to this worker. If there is no stack, the fiber's body ends here.
    fn carry(&self, fiber: &CoreRef) -> Option<Carrier> {
        fiber.settle(&self.post);
        let taken = self.stacks.borrow_mut().take(&self.shared.pool);
        let stack = match taken {
            Ok(stack) => stack,
            Err(error) => {
                self.shared.report_not_started(fiber, &error);
                // SAFETY: the fiber has not started and never will, so the work runs once.
                contain(|| unsafe { fiber.work().run(Start::NoStack(error)) });
                return None;
            }
        };
        let (limit, top) = stack.span();
        fiber.state.set_stack([limit, limit + self.shared.pool.layout.guard_bytes, top]);
        fiber.state.set_phase(Phase::Started);
        let owner = CoreRef::as_ptr(fiber);
        Some(Carrier::with_stack(stack, move |yielder, ()| {
            // SAFETY: the worker holds a reference to the fiber while it runs, and this is its thread.
            let fiber = unsafe { &*owner };
            // SAFETY: this code runs on the fiber's worker.
            unsafe { fiber.own() }.yielder.set(yielder);
            let start = if fiber.is_cancelled() { Start::Cancelled } else { Start::Run };
            // SAFETY: the fiber starts once.
            contain(|| unsafe { fiber.work().run(start) });
        }))
    }

    /// Ends a fiber whose body has returned: releases its stack and wakes its joiner.
    fn end(&self, fiber: CoreRef) {
        fiber.state.set_phase(Phase::Ended);
        // SAFETY: this is the fiber's worker, and the fiber does not run.
        let carrier = unsafe { &mut *fiber.own().carrier.get() };
        if carrier.is_some() {
            // The carrier is dropped in place, because moving it out would be slow.
            *carrier = None;
            let [limit, _, top] = fiber.state.stack().expect("a fiber with a carrier has a stack");
            // SAFETY: the stack belonged to the carrier, which has been dropped.
            self.stacks.borrow_mut().put(unsafe { Stack::of(limit, top) }, &self.shared.pool);
        }
        self.is_done.set(self.is_sole);
        if fiber.take_ask_for_trace() {
            self.shared.traces.answer(&fiber, None);
        }
        fiber.joiner.end();
        drop(fiber);
        self.count_out();
    }

    /// Counts a fiber that has ended. Once there are enough such fibers, subtracts them from the runtime's number of live fibers.
    fn count_out(&self) {
        if self.is_sole {
            return self.shared.leave(1);
        }
        let ended = self.post.ended.load(Relaxed) + 1;
        // Release pairs with the acquire in `Shared::live`.
        self.post.ended.store(ended, Release);
        if ended >= MAX_ENDED {
            self.count_ended();
        }
    }

    /// Subtracts the fibers that have ended here from the runtime's number of live fibers.
    fn count_ended(&self) {
        let ended = self.post.ended.load(Relaxed);
        if ended > 0 {
            // This store comes before the subtraction, so that `Shared::live` never subtracts a fiber twice.
            self.post.ended.store(0, Release);
            self.shared.leave(ended);
        }
    }

    /// Counts a new fiber as live, and returns `false` if there are too many. If an ended fiber of this worker is still counted
    /// as live, the new fiber takes its place in the count.
    pub(super) fn admit(&self) -> bool {
        let ended = self.post.ended.load(Relaxed);
        if ended == 0 {
            return self.shared.admit();
        }
        self.post.ended.store(ended - 1, Release);
        true
    }

    /// Cancels all fibers when the worker first sees that the runtime is ending. The owner has cancelled them as well, but may
    /// have missed a fiber that this worker was just spawning. Fibers that are spawned later are cancelled at their spawn.
    fn see_end(&self, has_begun: impl FnOnce(&End) -> bool) {
        // A worker that serves a single fiber need not check here, because every spawn on it checks with a fence.
        if !self.is_sole && !self.sees_end.get() && has_begun(&self.shared.end) {
            self.sees_end.set(true);
            self.shared.cancel_all();
        }
    }

    /// Wakes the fibers whose timers are due.
    fn wake_due(&self) {
        if self.timers.next().is_some() {
            let now = Instant::now();
            while let Some(fiber) = self.timers.pop_due(now) {
                fiber.end_wait();
            }
        }
    }

    /// Wakes the fibers whose descriptors are ready. Does not sleep.
    fn look_into_poller(&self) {
        if let Some(poller) = &mut *self.poller.borrow_mut()
            && poller.is_in_use()
        {
            poller.poll(Some(Duration::ZERO));
        }
    }

    /// Sleeps until there is work. Returns `false` if there will never be work again.
    fn rest(&self) -> bool {
        self.count_ended();
        self.wake_due();
        if !self.ready.borrow().is_empty() {
            return true;
        }
        // Spinning is useless if fibers wait for descriptors: it would not show that a descriptor is ready.
        let has_poller = self.poller.borrow().as_ref().is_some_and(Poller::is_in_use);
        if !has_poller && self.alert.look(self.timers.next(), || self.seems_to_have_work()) {
            return true;
        }
        self.see_end(End::has_begun);
        if !self.ready.borrow().is_empty() {
            return true;
        }
        let key = self.post.inbox.bell.snapshot();
        if self.is_sole {
            return self.rest_alone(key);
        }
        if self.shared.has_ended() {
            return false;
        }
        self.shared.idle.enter(self.post.index);
        // This check must come after the worker has entered the idle list; the module docs explain why.
        let has_work = !self.post.inbox.is_empty() || self.shared.posts.iter().any(|post| post.has_unstarted());
        if !has_work {
            self.shared.clock.worker_sleeps();
            self.sleep(key);
            self.shared.clock.worker_wakes();
        }
        self.shared.idle.leave(self.post.index);
        true
    }

    /// Returns whether there seems to be work. Takes no lock and makes no system call.
    fn seems_to_have_work(&self) -> bool {
        !self.post.inbox.is_empty() || self.shared.posts.iter().any(|post| post.seems_to_have_unstarted())
    }

    /// Sleeps until the only fiber of this worker is ready. Returns `false` if that fiber has ended.
    fn rest_alone(&self, key: Key) -> bool {
        if self.is_done.get() {
            return false;
        }
        if self.post.inbox.is_empty() {
            self.sleep(key);
        }
        true
    }

    /// Sleeps until the bell has rung since the snapshot, a fiber's descriptor is ready, or a timer is due.
    fn sleep(&self, key: Key) {
        let bell = &self.post.inbox.bell;
        match &mut *self.poller.borrow_mut() {
            Some(poller) if poller.is_in_use() => bell.sleep_in_poller(key, |has_rung| {
                let until_timer = self.timers.next().map(|due| due.saturating_duration_since(Instant::now()));
                poller.poll(if has_rung { Some(Duration::ZERO) } else { until_timer });
            }),
            _ => {
                // If the bell has rung already, there is no sleep whose cost could be measured.
                if !bell.has_rung(key) {
                    let began = Instant::now();
                    let _ = bell.sleep(key, self.timers.next(), SpinPolicy::NONE);
                    self.alert.slept(began.elapsed());
                }
            }
        }
    }
}

/// Prefetches a cache line. Does nothing if the address is invalid.
#[inline]
fn fetch(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect that the program can observe, and never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Runs a fiber's body or drops it. A body catches every panic of the user's code, so a panic that arrives here is a
/// bug.
fn contain(body: impl FnOnce()) {
    let guard = AbortOnUnwind;
    body();
    std::mem::forget(guard);
}
