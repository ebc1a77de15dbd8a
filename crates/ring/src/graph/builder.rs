//! The layout of the graph.

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

/// The function of a handler's thread.
pub(super) type Body = Box<dyn FnOnce() -> Outcome + Send>;

/// A ring whose consumers are being added; [`start`](Self::start) hands out its producer.
///
/// Dropping it instead ends the ring: its pollers find no events and do not wait for any.
pub struct Builder<E, P: Sequencer> {
    /// The first producer, so that the ring ends if it is never started.
    producer: Producer<E, P>,
    plan: Plan,
    bodies: Vec<(Node, Body)>,
}

impl<E: Send + Sync + 'static> Builder<E, Single> {
    /// A ring for one producer, whose events `make` produces. A plain number is an [`Options`] with that capacity.
    ///
    /// # Panics
    /// If the capacity is not a power of two.
    pub fn single(options: impl Into<Options>, make: impl FnMut() -> E) -> Self {
        Builder::new(&options.into(), make)
    }
}

impl<E: Send + Sync + 'static> Builder<E, Multi> {
    /// A ring for any number of producers, whose events `make` produces. A plain number is an [`Options`] with that
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

    /// Adds a consumer on a thread of its own, which sees each event after all of `follows` are through with it.
    ///
    /// If `handle` panics, its consumer leaves: its followers then follow the consumers it followed, and get the event
    /// at which it panicked and all later ones without its work. [`Producer::has_panicked`] reports it.
    ///
    /// # Panics
    /// If a node belongs to another ring, or an exclusive consumer ([`handle_mut`](Self::handle_mut)) is not among
    /// those it follows, directly or indirectly.
    pub fn handle(&mut self, follows: &[Node], mut handle: impl FnMut(&E, Place) + Send + 'static) -> Node {
        // SAFETY: the plan keeps every writer away from events while this consumer has them: producers come a lap
        // later, and exclusive consumers come before or after it.
        self.add(follows, false, move |cell, place| cell.with(|event| handle(unsafe { &*event }, place)))
    }

    /// Adds a consumer on a thread of its own that may change events.
    ///
    /// If `handle` panics, its consumer leaves, like that of [`handle`](Self::handle). Its followers then get events in
    /// the state in which it would have got them: the fields that it would have written hold values of the slot's last
    /// lap, or of `make`, and the event at which it panicked may be half written. If followers must not act on such
    /// events, have the handler catch its failures and mark the event.
    ///
    /// # Panics
    /// If a node belongs to another ring, or an existing consumer is not among those it follows, directly or
    /// indirectly: two consumers that may have an event at the same time cannot both have it exclusively.
    pub fn handle_mut(&mut self, follows: &[Node], mut handle: impl FnMut(&mut E, Place) + Send + 'static) -> Node {
        // SAFETY: the plan puts all other consumers before or after this one, and producers come a lap later.
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

    /// A party with this number of members, which the caller makes at once, and the parties that each of them follows.
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

    /// Adds a pool of consumers, each on a thread of its own; each event is handled by one of them.
    ///
    /// Each member takes one event at a time. If its handler panics, that event counts as handled, no other event is
    /// lost, and the other members go on without it. When the last one panics the pool leaves, like the consumer of
    /// [`handle`](Self::handle).
    ///
    /// If the pool is the ring's only consumer, and no other was ever added, an event wakes one sleeping member (in a
    /// ring with a [`WaitSet`](crate::WaitSet), or with other consumers, all of them). If that member is stopped, the
    /// event waits for it until another member comes by.
    ///
    /// # Panics
    /// If there is no handler, a node belongs to another ring, or an exclusive consumer is not among those it follows.
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
            // SAFETY: the plan keeps every writer away from events while this pool has them, and each member claims its
            // own.
            let handle = move |cell: &UnsafeCell<E>, place| cell.with(|event| handle(unsafe { &*event }, place));
            let body = move || consumer.run(handle);
            self.bodies.push((node, Box::new(body)));
        }
        node
    }

    /// Adds a consumer that the caller drives. As long as the poller lives, producers wait for it.
    ///
    /// # Panics
    /// Like [`handle`](Self::handle).
    pub fn poller(&mut self, follows: &[Node]) -> (Node, Poller<E, P>) {
        let (party, upstream, node) = self.party(follows, false, 1);
        (node, Poller::new(self.consumer(party, upstream)))
    }

    /// Starts the consumers' threads.
    ///
    /// # Panics
    /// If there is no consumer, or the system cannot start a thread: then the ring ends.
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
