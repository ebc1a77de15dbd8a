//! Which consumer follows which, and which consumers are exclusive.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::fmt;
use std::sync::Arc;

use super::party::{Followed, Follows};

/// A consumer, or a pool, that others can follow.
///
/// A node stays valid when its consumer has left. A new follower then follows the consumers that the departed consumer
/// followed. If the ring has forgotten these, the new follower follows all consumers that were added before the
/// departed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    index: usize,
    /// The address of the ring, because a node means nothing to another ring.
    ring: usize,
}

/// The nodes added so far.
pub(super) struct Plan {
    /// The nodes by index, without those that have left and been forgotten.
    nodes: BTreeMap<usize, Planned>,
    /// The number of nodes ever added.
    entered: usize,
    ring: usize,
}

struct Planned {
    party: Arc<dyn Followed>,
    /// All nodes that have handled an event before this one sees it.
    before: BTreeSet<usize>,
    exclusive: bool,
}

impl Plan {
    pub(super) fn new(ring: usize) -> Self {
        Plan { nodes: BTreeMap::new(), entered: 0, ring }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Checks that a new consumer may follow the nodes in `follows`, and returns the parties that it then follows: the
    /// producers, if `follows` is empty.
    pub(super) fn check<P: Followed + 'static>(
        &self,
        follows: &[Node],
        exclusive: bool,
        producers: &Arc<P>,
    ) -> Follows {
        let before = self.before(follows);
        for (index, node) in &self.nodes {
            assert!(
                !(exclusive || node.exclusive) || before.contains(index),
                "consumer {index} {} has to be followed; otherwise both could have an event at the same time",
                if node.exclusive { "is exclusive and" } else { "of a ring with a new exclusive consumer" },
            );
        }
        if before.is_empty() {
            return Follows::new([&(Arc::clone(producers) as Arc<dyn Followed>)]);
        }
        Follows::new(follows.iter().flat_map(|&node| self.planned(node)).map(|(_, planned)| &planned.party))
    }

    pub(super) fn enter(&mut self, follows: &[Node], exclusive: bool, party: Arc<dyn Followed>) -> Node {
        let node = Node { index: self.entered, ring: self.ring };
        let before = self.before(follows);
        self.nodes.insert(node.index, Planned { party, before, exclusive });
        self.entered += 1;
        node
    }

    fn before(&self, follows: &[Node]) -> BTreeSet<usize> {
        let mut before = BTreeSet::new();
        for &node in follows {
            assert_eq!(node.ring, self.ring, "a consumer can only follow consumers of its own ring");
            for (&index, planned) in self.planned(node) {
                before.insert(index);
                before.extend(&planned.before);
            }
        }
        before
    }

    /// The entry of `node`. If the node has been forgotten, the entries of all nodes added before it, because it may
    /// have followed any of these.
    fn planned(&self, node: Node) -> btree_map::Range<'_, usize, Planned> {
        let first = if self.nodes.contains_key(&node.index) { node.index } else { 0 };
        self.nodes.range(first..=node.index)
    }

    pub(super) fn has_left(&self, node: Node) -> bool {
        self.nodes.get(&node.index).is_none_or(|planned| planned.party.has_left())
    }

    /// The parties without followers.
    pub(super) fn leaves(&self) -> Follows {
        let is_followed = |index| self.nodes.values().any(|node| node.before.contains(index));
        Follows::new(self.nodes.iter().filter(|(index, _)| !is_followed(index)).map(|(_, node)| &node.party))
    }

    /// Forgets nodes that have left, so that the plan does not grow with every consumer that joins and leaves.
    ///
    /// Exclusive nodes are kept. Otherwise the nodes that a new consumer must follow would depend on which ones have
    /// left.
    pub(super) fn forget_departed(&mut self) {
        self.nodes.retain(|_, node| node.exclusive || !node.party.has_left());
        let staying: BTreeSet<_> = self.nodes.keys().copied().collect();
        for node in self.nodes.values_mut() {
            node.before.retain(|index| staying.contains(index));
        }
    }
}

impl Node {
    /// The node's number in the order in which consumers were added.
    #[must_use]
    pub fn index(self) -> usize {
        self.index
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("consumers", &self.nodes.len()).finish_non_exhaustive()
    }
}
