//! A running ring: its threads, and consumers that join later.

use std::any::Any;
use std::sync::Arc;

use thiserror::Error;

use super::builder::Body;
use super::consumer::{Consumer, Outcome, Place};
use super::core::Core;
use super::party::Followed;
use super::plan::{Node, Plan};
use super::poller::Poller;
use crate::primitive::UnsafeCell;
use crate::primitive::thread::{self, JoinHandle};
use crate::sequencer::{Sequencer, Single};

/// The consumers' threads of a started ring.
///
/// If this value is dropped, the threads run on until the last producer is dropped.
#[derive(Debug)]
pub struct Running<E, P: Sequencer> {
    core: Arc<Core<E, P>>,
    plan: Plan,
    threads: Vec<(Node, JoinHandle<Outcome>)>,
    /// The panics of threads that have been joined already.
    panics: Vec<HandlerPanicked>,
}

/// A handler panicked, or a value that it had captured panicked when dropped. The handler's consumer has left, and
/// handles no more events.
#[derive(Debug, Error)]
#[error("the handler of consumer {} panicked at position {position}: {message}", node.index())]
#[non_exhaustive]
pub struct HandlerPanicked {
    /// The consumer.
    pub node: Node,
    /// The position of the event that the handler was handling. For a panic after the last event, the position of that
    /// event, or 0 if there was none.
    pub position: u64,
    /// The panic's message, if it has one.
    pub message: String,
}

impl<E: Send + Sync + 'static, P: Sequencer> Running<E, P> {
    pub(super) fn new(core: Arc<Core<E, P>>, plan: Plan) -> Self {
        Running { core, plan, threads: Vec::new(), panics: Vec::new() }
    }

    pub(super) fn spawn(&mut self, node: Node, body: Body) {
        let name = format!("ring-consumer-{}", node.index());
        let thread = thread::Builder::new().name(name).spawn(body).expect("the system starts a thread");
        self.threads.push((node, thread));
    }

    /// Adds a consumer on its own thread. It starts with the oldest event that some consumer has not handled yet.
    ///
    /// Adding the consumer takes about a microsecond. A producer that checks during this time how many slots are free
    /// has to wait until the consumer is added. The call itself does not wait for other consumers or for the threads of
    /// consumers that have left.
    ///
    /// # Panics
    /// Panics as [`Builder::handle`](super::Builder::handle) does, and also if the system cannot start a thread. The
    /// ring then continues without the newcomer.
    pub fn add(&mut self, follows: &[Node], mut handle: impl FnMut(&E, Place) + Send + 'static) -> Node {
        let (node, consumer) = self.newcomer(follows);
        // SAFETY: the plan keeps every writer away from events while this consumer has them, and producers have not
        // been more than a lap ahead of its start.
        let handle = move |cell: &UnsafeCell<E>, place| cell.with(|event| handle(unsafe { &*event }, place));
        self.spawn(node, Box::new(move || consumer.run(handle)));
        node
    }

    /// Adds a consumer that the caller drives by polling. Otherwise like [`add`](Self::add).
    ///
    /// # Panics
    /// Panics as [`Builder::handle`](super::Builder::handle) does.
    pub fn add_poller(&mut self, follows: &[Node]) -> (Node, Poller<E, P>) {
        let (node, consumer) = self.newcomer(follows);
        (node, Poller::new(consumer))
    }

    fn newcomer(&mut self, follows: &[Node]) -> (Node, Consumer<E, P, Single>) {
        self.forget_departed();
        let upstream = self.plan.check(follows, false, &self.core.producers);
        self.core.arrivals.become_distinct();
        let (party, start) = self.core.leaves.add();
        let node = self.plan.enter(follows, false, Arc::clone(&party) as Arc<dyn Followed>);
        (node, Consumer::new(Arc::clone(&self.core), party, upstream, start))
    }

    /// Forgets consumers that have left, but keeps their panics.
    ///
    /// Does not wait. The thread of a consumer that has left may still be dropping its handler's captured values; such
    /// a thread stays in the list until a later call.
    fn forget_departed(&mut self) {
        let left = self.threads.extract_if(.., |(node, thread)| self.plan.has_left(*node) && has_ended(thread));
        self.panics.extend(left.filter_map(|(node, thread)| ended(node, thread)));
        self.plan.forget_departed();
    }

    /// Whether a handler has panicked, see [`Producer::has_panicked`](super::Producer::has_panicked).
    #[must_use]
    pub fn has_panicked(&self) -> bool {
        self.core.has_panicked()
    }

    /// Waits until all producers are dropped and all consumers have handled all published events. Blocks.
    ///
    /// # Errors
    /// One error for each handler that panicked.
    pub fn join(self) -> Result<(), Vec<HandlerPanicked>> {
        let mut panics = self.panics;
        panics.extend(self.threads.into_iter().filter_map(|(node, thread)| ended(node, thread)));
        if panics.is_empty() { Ok(()) } else { Err(panics) }
    }
}

/// Whether a join of the thread returns at once.
#[cfg(not(loom))]
fn has_ended(thread: &JoinHandle<Outcome>) -> bool {
    thread.is_finished()
}

/// Loom's threads do not report that they have ended, so a model joins them.
#[cfg(loom)]
fn has_ended(_thread: &JoinHandle<Outcome>) -> bool {
    true
}

/// Waits until the thread has ended; returns its handler's panic, if there was one.
fn ended(node: Node, thread: JoinHandle<Outcome>) -> Option<HandlerPanicked> {
    // The thread's body catches the handler's panics. So the thread panics only if a panic payload panics when it is
    // dropped.
    let (position, panic) = thread.join().unwrap_or_else(|panic| Some((0, panic)))?;
    Some(HandlerPanicked { node, position, message: message(&*panic) })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::graph::Builder;

    #[test]
    fn a_consumer_that_has_left_is_forgotten_before_another_joins() {
        let mut ring = Builder::single(4, || 0_u32);
        let (node, stays) = ring.poller(&[]);
        let (producer, mut running) = ring.start();
        let (_, visitor) = running.add_poller(&[node]);
        let parties = |count| format!("Follows({count} parties)");
        let leaves = format!("{:?}", running.core.leaves);
        assert!(leaves.contains(&parties(2)), "{leaves}");
        drop(visitor);
        let leaves = format!("{:?}", running.core.leaves);
        assert!(leaves.contains(&parties(1)), "{leaves}");
        drop((producer, stays));
        running.join().unwrap();
    }
}
