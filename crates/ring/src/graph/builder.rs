//! Laying out the graph.

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

/// What a handler's thread does.
pub(super) type Body = Box<dyn FnOnce() -> Outcome + Send>;

/// A ring without its producers yet: add the consumers, then [`start`](Self::start) it.
///
/// If it is dropped instead, that is the end of the ring: its pollers find nothing and wait for nothing.
pub struct Builder<E, P: Sequencer> {
    /// The first one, so that the ring ends if it is never started.
    producer: Producer<E, P>,
    plan: Plan,
    bodies: Vec<(Node, Body)>,
}

impl<E: Send + Sync + 'static> Builder<E, Single> {
    /// A ring for one producer, its events made by `make`. A plain number is an [`Options`] with that capacity.
    ///
    /// # Panics
    /// When the capacity is not a power of two.
    pub fn single(options: impl Into<Options>, make: impl FnMut() -> E) -> Self {
        Builder::new(&options.into(), make)
    }
}

impl<E: Send + Sync + 'static> Builder<E, Multi> {
    /// A ring for any number of producers, its events made by `make`. A plain number is an [`Options`] with that capacity.
    ///
    /// # Panics
    /// When the capacity is not a power of two.
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

    /// A consumer on a thread of its own that sees each event after all of `follows` are through with it.
    ///
    /// If `handle` panics, its consumer leaves: those that follow this one follow those whom it followed, and get the event it panicked at
    /// and all later ones without its work. [`Producer::has_panicked`] tells.
    ///
    /// # Panics
    /// When a node is from another ring, or an exclusive consumer ([`handle_mut`](Self::handle_mut)) is not among those
    /// it follows, directly or not.
    pub fn handle(&mut self, follows: &[Node], mut handle: impl FnMut(&E, Place) + Send + 'static) -> Node {
        // SAFETY: the plan lets nobody write to events while this consumer has them: producers come a lap later, and
        // exclusive consumers are before or behind it.
        self.add(follows, false, move |cell, place| cell.with(|event| handle(unsafe { &*event }, place)))
    }

    /// A consumer on a thread of its own that may change events.
    ///
    /// If `handle` panics, its consumer leaves, as that of [`handle`](Self::handle). Those that follow it then get events as it did: what it
    /// would have written is left from the slot's last lap, or from `make`, and at the event it panicked at perhaps half written. If they must
    /// not act on such events, have the handler catch what can go wrong and mark the event.
    ///
    /// # Panics
    /// When a node is from another ring, or there are consumers so far that this one does not follow, directly or not: two that
    /// may have an event at the same time cannot both have it exclusively.
    pub fn handle_mut(&mut self, follows: &[Node], mut handle: impl FnMut(&mut E, Place) + Send + 'static) -> Node {
        // SAFETY: the plan has all other consumers before or behind this one, and producers come a lap later.
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

    /// A party whose `members` are to be made at once, and whom each of them follows.
    fn party<C: SequencerParts>(
        &mut self,
        follows: &[Node],
        exclusive: bool,
        members: usize,
    ) -> (Arc<Party<C>>, Follows, Node) {
        let core = &self.producer.core;
        let upstream = self.plan.check(follows, exclusive, &core.producers);
        if !(C::MANY && self.plan.is_empty()) {
            core.arrivals.differ();
        }
        let party = Arc::new(Party::new(C::new(core.slots.capacity(), 0), members));
        let node = self.plan.enter(follows, exclusive, Arc::clone(&party) as Arc<dyn Followed>);
        (party, upstream, node)
    }

    fn consumer<C: Sequencer>(&self, party: Arc<Party<C>>, upstream: Follows) -> Consumer<E, P, C> {
        Consumer::new(Arc::clone(&self.producer.core), party, upstream, 0)
    }

    /// A pool of consumers, each on a thread of its own; each event is handled by one of them.
    ///
    /// Each takes one event at a time. If its handler panics, that event counts as handled, nothing else is lost, and the others go on
    /// without it. When the last one panics the pool leaves, as the consumer of [`handle`](Self::handle).
    ///
    /// If the pool is the ring's only consumer, and none was ever added to it, an event wakes one member that sleeps (of a ring in a
    /// [`WaitSet`](crate::WaitSet), or with others beside it, all). If that one is stopped, the event waits for it until another member comes by.
    ///
    /// # Panics
    /// When there is no handler, a node is from another ring, or an exclusive consumer is not among those it follows.
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
            // SAFETY: as in `handle`.
            let handle = move |cell: &UnsafeCell<E>, place| cell.with(|event| handle(unsafe { &*event }, place));
            let body = move || consumer.run(handle);
            self.bodies.push((node, Box::new(body)));
        }
        node
    }

    /// A consumer to be driven by the caller. While the poller lives, producers wait for it.
    ///
    /// # Panics
    /// As [`handle`](Self::handle).
    pub fn poller(&mut self, follows: &[Node]) -> (Node, Poller<E, P>) {
        let (party, upstream, node) = self.party(follows, false, 1);
        (node, Poller::new(self.consumer(party, upstream)))
    }

    /// Starts the consumers' threads.
    ///
    /// # Panics
    /// When there is no consumer, or the system starts no thread: then the ring ends.
    pub fn start(self) -> (Producer<E, P>, Running<E, P>) {
        assert!(!self.plan.is_empty(), "a ring has at least one consumer");
        let core = Arc::clone(&self.producer.core);
        core.gate.set_leaves(self.plan.leaves());
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
