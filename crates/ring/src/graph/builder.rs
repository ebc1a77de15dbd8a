//! Building a graph: producers, consumers, and which follows which.

use std::fmt;
use std::sync::Arc;

use super::consumer::{Consumer, Outcome, Place};
use super::core::Core;
use super::party::{Followed, Follows, Party};
use super::plan::{Node, Plan};
use super::poller::Poller;
use super::producer::Producer;
use super::running::Running;
use crate::Options;
use crate::primitive::UnsafeCell;
use crate::sequencer::{Multi, Sequencer, SequencerParts, Single};

/// The function that a handler's thread runs.
pub(super) type Body = Box<dyn FnOnce() -> Outcome + Send>;

/// A ring to which consumers are being added. [`start`](Self::start) returns its producer.
///
/// Dropping the builder instead ends the ring: its pollers report the end and do not wait.
pub struct Builder<E, P: Sequencer> {
    /// The first producer. If the ring is never started, it ends when the builder drops this producer.
    producer: Producer<E, P>,
    plan: Plan,
    bodies: Vec<(Node, Body)>,
}

impl<E: Send + Sync + 'static> Builder<E, Single> {
    /// A ring for one producer; `make` creates the events. A plain number is an [`Options`] with that capacity.
    ///
    /// # Panics
    /// If the capacity is not a power of two.
    pub fn single(options: impl Into<Options>, make: impl FnMut() -> E) -> Self {
        Builder::new(&options.into(), make)
    }
}

impl<E: Send + Sync + 'static> Builder<E, Multi> {
    /// A ring for any number of producers; `make` creates the events. A plain number is an [`Options`] with that
    /// capacity.
    ///
    /// # Panics
    /// If the capacity is not a power of two.
    pub fn multi(options: impl Into<Options>, make: impl FnMut() -> E) -> Self {
        Builder::new(&options.into(), make)
    }
}

impl<E: Send + Sync + 'static, P: Sequencer> Builder<E, P> {
    fn new(options: &Options, make: impl FnMut() -> E) -> Self {
        let core = Arc::new(Core::new(options, make));
        let plan = Plan::new(Arc::as_ptr(&core).addr());
        Builder { producer: Producer::first(core), plan, bodies: Vec::new() }
    }

    /// Adds a consumer on its own thread. It sees each event after all consumers in `follows` have handled it.
    ///
    /// If `handle` panics, its consumer leaves. The followers of that consumer then follow the consumers in `follows`
    /// directly. They see the event at which `handle` panicked, and all later events, without the work of `handle`.
    /// [`Producer::has_panicked`] reports the panic.
    ///
    /// # Panics
    /// If a node belongs to another ring, or if the new consumer does not follow, directly or indirectly, every
    /// exclusive consumer ([`handle_mut`](Self::handle_mut)).
    pub fn handle(&mut self, follows: &[Node], mut handle: impl FnMut(&E, Place) + Send + 'static) -> Node {
        // SAFETY: the plan keeps every writer away from events while this consumer has them: producers reach them a lap
        // later, and exclusive consumers have them before or after this one.
        self.add(follows, false, move |cell, place| cell.with(|event| handle(unsafe { &*event }, place)))
    }

    /// Adds a consumer on its own thread; this consumer may change events.
    ///
    /// If `handle` panics, its consumer leaves, like that of [`handle`](Self::handle). The followers then see events
    /// without the changes of `handle`: fields that only `handle` writes have their values from the slot's last lap, or
    /// from `make`. The event at which `handle` panicked may be half written. If followers must not act on such events,
    /// have the handler catch its own failures and mark the event.
    ///
    /// # Panics
    /// If a node belongs to another ring, or if the new consumer does not follow, directly or indirectly, every
    /// existing consumer. A consumer that the new one does not follow could use an event while the new one changes it.
    pub fn handle_mut(&mut self, follows: &[Node], mut handle: impl FnMut(&mut E, Place) + Send + 'static) -> Node {
        // SAFETY: the plan puts all other consumers before or after this one, and producers reach the event a lap
        // later.
        self.add(follows, true, move |cell, place| cell.with_mut(|event| handle(unsafe { &mut *event }, place)))
    }

    fn add(
        &mut self,
        follows: &[Node],
        exclusive: bool,
        handle: impl FnMut(&UnsafeCell<E>, Place) + Send + 'static,
    ) -> Node {
        let (party, upstream, node) = self.party::<Single>(follows, exclusive, 1);
        let consumer = self.consumer(party, upstream);
        self.bodies.push((node, Box::new(move || consumer.run(handle))));
        node
    }

    /// A new party, the parties that it follows, and its node. The caller creates the party's `members` right after
    /// this call.
    fn party<C: SequencerParts>(
        &mut self,
        follows: &[Node],
        exclusive: bool,
        members: usize,
    ) -> (Arc<Party<C>>, Follows, Node) {
        let core = &self.producer.core;
        let upstream = self.plan.check(follows, exclusive, &core.producers);
        if !(C::MANY && self.plan.is_empty()) {
            core.arrivals.set_distinct();
        }
        let party = Arc::new(Party::new(C::new(core.slots.capacity(), 0), members));
        let node = self.plan.enter(follows, exclusive, Arc::clone(&party) as Arc<dyn Followed>);
        (party, upstream, node)
    }

    fn consumer<C: Sequencer>(&self, party: Arc<Party<C>>, upstream: Follows) -> Consumer<E, P, C> {
        Consumer::new(Arc::clone(&self.producer.core), party, upstream, 0)
    }

    /// Adds a pool of consumers, each on its own thread. Each event is handled by one of them.
    ///
    /// Each member takes one event at a time. If its handler panics, that event counts as handled, no other event is
    /// lost, and the remaining members continue. When the last member panics, the pool leaves, like the consumer of
    /// [`handle`](Self::handle).
    ///
    /// If the pool is the only consumer that the ring has ever had, an event wakes one sleeping member. If that member
    /// is stopped, the event waits until the member continues or another member becomes free. In a ring with other
    /// consumers or with a [`WaitSet`](crate::WaitSet), an event wakes all sleeping members.
    ///
    /// # Panics
    /// If there is no handler, a node belongs to another ring, or the pool does not follow every exclusive consumer.
    pub fn pool<H: FnMut(&E, Place) + Send + 'static>(
        &mut self,
        follows: &[Node],
        handlers: impl IntoIterator<Item = H>,
    ) -> Node {
        let handlers = Vec::from_iter(handlers);
        assert!(!handlers.is_empty(), "a pool has at least one handler");
        let (party, upstream, node) = self.party::<Multi>(follows, false, handlers.len());
        for mut handle in handlers {
            let consumer = self.consumer(Arc::clone(&party), upstream.clone());
            // SAFETY: the plan keeps every writer away from events while this pool has them, and a member handles only
            // events that it has claimed.
            let handle = move |cell: &UnsafeCell<E>, place| cell.with(|event| handle(unsafe { &*event }, place));
            let body = move || consumer.run(handle);
            self.bodies.push((node, Box::new(body)));
        }
        node
    }

    /// Adds a consumer that the caller drives by polling. Producers wait for the poller until it is dropped.
    ///
    /// # Panics
    /// Panics as [`handle`](Self::handle) does.
    pub fn poller(&mut self, follows: &[Node]) -> (Node, Poller<E, P>) {
        let (party, upstream, node) = self.party(follows, false, 1);
        (node, Poller::new(self.consumer(party, upstream)))
    }

    /// Starts the consumers' threads.
    ///
    /// # Panics
    /// If there is no consumer, or the system cannot start a thread. The ring then ends.
    pub fn start(self) -> (Producer<E, P>, Running<E, P>) {
        assert!(!self.plan.is_empty(), "a ring has at least one consumer");
        let core = Arc::clone(&self.producer.core);
        core.leaves.set(self.plan.leaves());
        let mut running = Running::new(core, self.plan);
        for (node, body) in self.bodies {
            running.spawn(node, body);
        }
        (self.producer, running)
    }
}

impl<E, P: Sequencer> fmt::Debug for Builder<E, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("plan", &self.plan).finish_non_exhaustive()
    }
}
