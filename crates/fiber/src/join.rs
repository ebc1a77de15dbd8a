//! Waiting for a fiber's end.

use std::fmt;
use std::sync::Arc;

use crate::error::JoinError;
use crate::handle::Fiber;
use crate::scheduler::core::Core;
use crate::scheduler::state::Reason;
use crate::spawn::Packet;
use crate::waiter::Waiter;

/// The fibers followed in search of a circle of joins.
const MAX_JOIN_CHAIN: usize = 1024;

/// The right to a fiber's result. Dropping it lets the fiber go on alone.
pub struct JoinHandle<T> {
    fiber: Fiber,
    core: Arc<Core>,
    packet: Arc<Packet<T>>,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(core: Arc<Core>, packet: Arc<Packet<T>>) -> Self {
        JoinHandle { fiber: Fiber::of(&core), core, packet }
    }

    /// Waits for the fiber's end and returns its result. Suspends a fiber, blocks a thread.
    ///
    /// Everything that the fiber did is visible afterwards.
    ///
    /// # Errors
    /// If the fiber panicked, was cancelled, never ran for want of a stack, or waits to join the calling fiber,
    /// directly or through up to 1024 others. Of the fibers in such a circle, at least one gets the error. Circles
    /// through scopes, channels or threads are not found.
    #[track_caller]
    pub fn join(self) -> Result<T, JoinError> {
        wait_for_end(&self.core)?;
        self.packet.take()
    }

    /// Whether the fiber has ended, so that [`join`](Self::join) returns at once. Wait-free.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.core.joiners.has_ended()
    }

    /// Cancels the fiber; returns at once. See [the crate's docs](crate#cancellation).
    pub fn cancel(&self) {
        self.core.cancel();
    }

    /// The fiber.
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

/// Waits until a fiber has ended.
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

/// The note that a fiber waits to join another, in the first one's control block while it waits.
struct Edge<'a> {
    joiner: &'a Core,
}

impl<'a> Edge<'a> {
    /// Notes that `joiner` waits for `target`, unless that closes a circle.
    ///
    /// Each fiber of a circle first notes its edge and then follows the others'. If its walk ends at a fiber without an
    /// edge, that fiber notes its own later. Walks cannot all end at a later one, so one goes all the way round.
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
