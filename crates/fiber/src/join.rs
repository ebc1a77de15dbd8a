//! Joins: waiting for a fiber to end.

use std::fmt;
use std::sync::Arc;

use crate::error::JoinError;
use crate::handle::Fiber;
use crate::scheduler::core::Core;
use crate::scheduler::state::Reason;
use crate::spawn::Packet;
use crate::waiter::Waiter;

/// The maximum number of fibers followed in search of a cycle of joins.
const MAX_JOIN_CHAIN: usize = 1024;

/// The right to a fiber's result. Dropping it detaches the fiber.
pub struct JoinHandle<T> {
    fiber: Fiber,
    core: Arc<Core>,
    packet: Arc<Packet<T>>,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(core: Arc<Core>, packet: Arc<Packet<T>>) -> Self {
        JoinHandle { fiber: Fiber::of(&core), core, packet }
    }

    /// Waits for the fiber to end and returns its result. The wait suspends a fiber and blocks a thread.
    ///
    /// Everything the fiber wrote is visible afterwards.
    ///
    /// # Errors
    /// Returns an error if the fiber panicked, was cancelled, never ran because it got no stack, or waits to join the
    /// calling fiber, directly or through up to 1024 others. At least one fiber of such a cycle gets the error. Cycles
    /// through scopes, channels or threads are not detected.
    #[track_caller]
    pub fn join(self) -> Result<T, JoinError> {
        wait_for_end(&self.core)?;
        self.packet.take()
    }

    /// Returns whether the fiber has ended, so that [`join`](Self::join) returns at once. Wait-free.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.core.joiners.has_ended()
    }

    /// Cancels the fiber and returns at once. See [the crate's docs](crate#cancellation).
    pub fn cancel(&self) {
        self.core.cancel();
    }

    /// Returns the fiber.
    #[must_use]
    pub fn fiber(&self) -> &Fiber {
        &self.fiber
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("fiber", &self.fiber).finish_non_exhaustive()
    }
}

/// Waits for a fiber to end.
#[track_caller]
fn wait_for_end(target: &Arc<Core>) -> Result<(), JoinError> {
    if target.joiners.has_ended() {
        return Ok(());
    }
    let waiter = Waiter::current();
    let _edge = match &waiter {
        Waiter::Fiber(joiner) => Some(Edge::draw(joiner, target)?),
        Waiter::Thread(_) => None,
    };
    if target.joiners.add(waiter.clone()) {
        while !target.joiners.has_ended() {
            waiter.block(Reason::Join, None);
        }
    }
    Ok(())
}

/// Records that one fiber waits to join another. It is in the joiner's control block for as long as the wait lasts.
struct Edge<'a> {
    joiner: &'a Core,
}

impl<'a> Edge<'a> {
    /// Records that `joiner` waits for `target`, unless that closes a cycle.
    ///
    /// Each fiber of a cycle first records its own edge and then follows the edges of the others. If its walk ends at a
    /// fiber without an edge, that fiber records its edge later. The last fiber to record its edge therefore walks the
    /// whole cycle and finds it.
    fn draw(joiner: &'a Arc<Core>, target: &Arc<Core>) -> Result<Self, JoinError> {
        *joiner.joining.lock() = Some(Arc::clone(target));
        let edge = Edge { joiner };
        let mut fiber = Arc::clone(target);
        for _ in 0..MAX_JOIN_CHAIN {
            if Arc::ptr_eq(&fiber, joiner) {
                return Err(JoinError::Cycle);
            }
            let next = fiber.joining.lock().clone();
            let Some(next) = next else { break };
            fiber = next;
        }
        Ok(edge)
    }
}

impl Drop for Edge<'_> {
    fn drop(&mut self) {
        *self.joiner.joining.lock() = None;
    }
}
