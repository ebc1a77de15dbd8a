//! Laying out the graph.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::consumer::{Consumer, Outcome, Place};
use super::core::Core;
use super::party::{Follows, Party};
use super::poller::Poller;
use super::producer::Producer;
use super::running::Running;
use crate::Options;
use crate::primitive::UnsafeCell;
use crate::sequencer::{Multi, Progress, Sequencer, SequencerParts, Single};

/// A consumer, or a pool, to be followed by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    index: usize,
    /// The address of the ring: a node means nothing in another.
    ring: usize,
}

/// What a handler's thread does.
pub(super) type Body = Box<dyn FnOnce() -> Outcome + Send>;

/// The nodes so far, and whose access excludes whose.
pub(super) struct Plan {
    nodes: Vec<Planned>,
    ring: usize,
}

struct Planned {
    party: Arc<dyn Progress>,
    /// All that are through with an event before this node sees it.
    before: BTreeSet<usize>,
    exclusive: bool,
    followed: bool,
}

/// A ring without its producers yet: add the consumers, then [`start`](Self::start) it.
pub struct Builder<E, P: Sequencer> {
    core: Arc<Core<E, P>>,
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
        let plan = Plan { nodes: Vec::new(), ring: Arc::as_ptr(&core).addr() };
        Builder { core, plan, bodies: Vec::new() }
    }

    /// A consumer on a thread of its own that sees each event after all of `follows` are through with it.
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
        let (party, node) = self.party::<Single>(follows, exclusive);
        let consumer = Consumer::new(Arc::clone(&self.core), party, 0);
        self.bodies.push((node, Box::new(move || consumer.run(handle))));
        node
    }

    fn party<C: SequencerParts>(&mut self, follows: &[Node], exclusive: bool) -> (Arc<Party<C>>, Node) {
        let upstream = self.plan.check(follows, exclusive, &self.core.producers);
        let party = Arc::new(Party::new(C::new(self.core.slots.capacity(), 0), upstream));
        let node = self.plan.enter(follows, exclusive, Arc::clone(&party) as Arc<dyn Progress>);
        (party, node)
    }

    /// A pool of consumers, each on a thread of its own; each event is handled by one of them.
    ///
    /// # Panics
    /// When there is no handler, a node is from another ring, or an exclusive consumer is not among those it follows.
    pub fn pool<H: FnMut(&E, Place) + Send + 'static>(
        &mut self,
        follows: &[Node],
        handlers: impl IntoIterator<Item = H>,
    ) -> Node {
        let (party, node) = self.party::<Multi>(follows, false);
        let before = self.bodies.len();
        for mut handle in handlers {
            let consumer = Consumer::new(Arc::clone(&self.core), Arc::clone(&party), 0).one_at_a_time();
            // SAFETY: as in `handle`.
            let handle = move |cell: &UnsafeCell<E>, place| cell.with(|event| handle(unsafe { &*event }, place));
            let body = move || consumer.run(handle);
            self.bodies.push((node, Box::new(body)));
        }
        assert!(self.bodies.len() > before, "a pool has at least one handler");
        node
    }

    /// A consumer to be driven by the caller. While the poller lives, producers wait for it.
    ///
    /// # Panics
    /// As [`handle`](Self::handle).
    pub fn poller(&mut self, follows: &[Node]) -> (Node, Poller<E, P>) {
        let (party, node) = self.party(follows, false);
        (node, Poller::new(Consumer::new(Arc::clone(&self.core), party, 0)))
    }

    /// Starts the consumers' threads.
    ///
    /// # Panics
    /// When there is no consumer, or a thread cannot be started.
    pub fn start(self) -> (Producer<E, P>, Running<E, P>) {
        assert!(!self.plan.nodes.is_empty(), "a ring has at least one consumer");
        self.core.gate.set_leaves(self.plan.leaves());
        let producer = Producer::first(Arc::clone(&self.core));
        let mut running = Running::new(self.core, self.plan);
        for (node, body) in self.bodies {
            running.spawn(node, body);
        }
        (producer, running)
    }
}

impl Plan {
    /// The parties behind `follows`; the producers, if there are none.
    pub(super) fn check<P: Progress + 'static>(
        &self,
        follows: &[Node],
        exclusive: bool,
        producers: &Arc<P>,
    ) -> Follows {
        let before = self.before(follows);
        for (index, node) in self.nodes.iter().enumerate() {
            assert!(
                !(exclusive || node.exclusive) || before.contains(&index),
                "consumer {index} {} has to be followed: it could have an event at the same time",
                if node.exclusive { "is exclusive and" } else { "of a ring with a new exclusive consumer" },
            );
        }
        if follows.is_empty() {
            return Follows::new(vec![Arc::clone(producers) as Arc<dyn Progress>]);
        }
        Follows::new(follows.iter().map(|node| Arc::clone(&self.nodes[node.index].party)).collect())
    }

    pub(super) fn enter(&mut self, follows: &[Node], exclusive: bool, party: Arc<dyn Progress>) -> Node {
        let before = self.before(follows);
        for node in follows {
            self.nodes[node.index].followed = true;
        }
        self.nodes.push(Planned { party, before, exclusive, followed: false });
        Node { index: self.nodes.len() - 1, ring: self.ring }
    }

    fn before(&self, follows: &[Node]) -> BTreeSet<usize> {
        let mut before = BTreeSet::new();
        for node in follows {
            assert_eq!(node.ring, self.ring, "a consumer can only follow consumers of its own ring");
            before.insert(node.index);
            before.extend(&self.nodes[node.index].before);
        }
        before
    }

    fn leaves(&self) -> Follows {
        let leaves = self.nodes.iter().filter(|node| !node.followed);
        Follows::new(leaves.map(|node| Arc::clone(&node.party)).collect())
    }
}

impl Node {
    /// Its number in the order consumers were added.
    #[must_use]
    pub fn index(self) -> usize {
        self.index
    }
}

impl<E, P: Sequencer> fmt::Debug for Builder<E, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("consumers", &self.plan.nodes.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("consumers", &self.nodes.len()).finish_non_exhaustive()
    }
}
