//! The rules by which a stage combines its units into groups.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::time::Duration;

use crate::cx::Cx;
use crate::engine::pace::nanos;
use crate::engine::units::groups::GroupRules;
use crate::failure::Failure;
use crate::limits::DEFAULT_MAX_GROUPS;

/// The rules by which a stage combines its units into groups, for [`FlowBuilder::gather`](crate::FlowBuilder::gather).
///
/// Units of type `In` join a group of type `G`. Groups with different keys `K` are open at the same time. A group is
/// closed, and continues as one unit,
/// - when it reaches its limit of [units](Self::units) or [bytes](Self::bytes), or `full` [says so](Self::full);
/// - when it has been open for as long as it may [wait](Self::wait);
/// - when the last unit of its [family](Self::by_parent) has arrived;
/// - when the flow ends, and no more units can arrive.
///
/// The oldest group is closed early, and counted in [`StageReport::torn`](crate::StageReport::torn),
/// - when the open groups together exceed half of the flow's byte budget;
/// - when a stage has more than [`max_groups`](Self::max_groups) open groups;
/// - when the flow has no room for another unit, and nothing else in it can move.
///
/// Groups [by parent](Self::by_parent) are never closed early, and do not count towards these limits.
///
/// A closed group continues as an `Out`, which is `G` unless [`map`](Self::map) converts it.
pub struct Gather<In, G, K = (), Out = G> {
    pub(crate) key: KeyOf<In, K>,
    pub(crate) begin: Box<dyn Fn() -> G + Send + Sync>,
    pub(crate) add: Add<In, G>,
    pub(crate) weigh: Option<Weigh<G>>,
    pub(crate) full: Option<Full<G>>,
    pub(crate) finish: Option<Finish<G>>,
    pub(crate) map: Map<G, Out>,
    pub(crate) max_units: u64,
    pub(crate) max_bytes: u64,
    wait: Duration,
    max_groups: u64,
    goes_on_torn: bool,
}

/// Weighs a group.
type Weigh<G> = Box<dyn Fn(&G) -> u64 + Send + Sync>;
/// Decides whether a group is to be closed.
type Full<G> = Box<dyn Fn(&G) -> bool + Send + Sync>;
/// Changes a closed group.
type Finish<G> = Box<dyn Fn(&mut G) + Send + Sync>;
/// Converts a closed group into the payload of its unit.
type Map<G, Out> = Box<dyn Fn(G) -> Out + Send + Sync>;
/// Adds a member to a group.
type Fold<In, G> = Box<dyn Fn(&mut G, &mut In, &mut Cx<'_>) -> Result<(), Failure> + Send + Sync>;

/// The part of a unit that decides which group it joins.
pub(crate) enum KeyOf<In, K> {
    /// All units join one group.
    All(PhantomData<fn() -> K>),
    /// The children of one parent join one group.
    Parent(PhantomData<fn() -> K>),
    /// Units with equal keys join one group.
    By(Box<dyn Fn(&In) -> K + Send + Sync>),
}

/// How a member joins a group.
pub(crate) enum Add<In, G> {
    /// Code that may fail adds the member. The engine keeps the member until it has joined.
    Fold(Fold<In, G>),
    /// The group keeps the member.
    Keep(fn(&mut G, In)),
}

impl<In, G, K, Out> fmt::Debug for Gather<In, G, K, Out> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gather")
            .field("units", &self.max_units)
            .field("bytes", &self.max_bytes)
            .field("wait", &self.wait)
            .field("max_groups", &self.max_groups)
            .finish_non_exhaustive()
    }
}

impl<In: 'static> Gather<In, Vec<In>> {
    /// Groups that are lists of their members, in the order of arrival.
    pub fn into_vec() -> Self {
        Self::new(Box::new(Vec::new), Add::Keep(Vec::push))
    }
}

impl<In, G: 'static> Gather<In, G> {
    /// Groups that `begin` creates, and to which `add` adds the members.
    ///
    /// A member for which `add` fails has not joined: the stage's policies decide whether its unit is retried or given
    /// up. So `add` should change the group as its last step. The engine drops the member after it has joined. Members
    /// join a group one after the other, so `add` should be short, and must not wait for other units of the flow.
    ///
    /// The group weighs as much as its first member, unless [`weigh`](Self::weigh) says otherwise.
    pub fn fold(
        begin: impl Fn() -> G + Send + Sync + 'static,
        add: impl Fn(&mut G, &mut In, &mut Cx<'_>) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Box::new(begin), Add::Fold(Box::new(add)))
    }

    fn new(begin: Box<dyn Fn() -> G + Send + Sync>, add: Add<In, G>) -> Self {
        Gather {
            key: KeyOf::All(PhantomData),
            begin,
            add,
            weigh: None,
            full: None,
            finish: None,
            map: Box::new(|group| group),
            max_units: u64::MAX,
            max_bytes: u64::MAX,
            wait: Duration::MAX,
            max_groups: DEFAULT_MAX_GROUPS,
            goes_on_torn: false,
        }
    }
}

impl<In, G, Out> Gather<In, G, (), Out> {
    /// Lets units with equal keys join one group.
    ///
    /// `key`, and the key's `Hash`, `Eq` and `Clone`, run on the worker. A panic in these functions is a failure of
    /// the unit.
    pub fn by_key<K>(self, key: impl Fn(&In) -> K + Send + Sync + 'static) -> Gather<In, G, K, Out>
    where
        K: Hash + Eq + Clone + Send + 'static,
    {
        let Gather {
            begin, add, weigh, full, finish, map, max_units, max_bytes, wait, max_groups, goes_on_torn, ..
        } = self;
        let key = KeyOf::By(Box::new(key));
        Gather { key, begin, add, weigh, full, finish, map, max_units, max_bytes, wait, max_groups, goes_on_torn }
    }
}

impl<In, G, K, Out> Gather<In, G, K, Out> {
    /// Sets the function that converts a closed group into the payload of its unit. So an open group can be small, such
    /// as a sum, even if the unit's payload is not.
    ///
    /// The function runs after [`finish`](Self::finish). A panic in this function is a failure of the group, and the
    /// group's content is lost. If a group fails for another reason, its dead letter contains the converted group.
    pub fn map<Mapped>(self, map: impl Fn(G) -> Mapped + Send + Sync + 'static) -> Gather<In, G, K, Mapped> {
        let Gather {
            key, begin, add, weigh, full, finish, max_units, max_bytes, wait, max_groups, goes_on_torn, ..
        } = self;
        let map = Box::new(map);
        Gather { key, begin, add, weigh, full, finish, map, max_units, max_bytes, wait, max_groups, goes_on_torn }
    }

    /// Lets the children of one parent join one group (see [`FlowBuilder::split`](crate::FlowBuilder::split)).
    ///
    /// The group is closed when all children of the parent, except the group's own unit, have left the flow. The group
    /// then replaces the parent: the parent leaves, and its own parent, if any, becomes the parent of the group's unit.
    ///
    /// If the parent, or any unit split from the parent or from its children, has failed for good, the group fails as
    /// well, unless [`even_if_torn`](Self::even_if_torn) is set. A child that is [skipped](crate::AfterFailure::Skip)
    /// is merely missing from the group, but a parent that is skipped after its first child counts as failed. A unit
    /// without a parent continues alone.
    ///
    /// A limit on units, bytes or time closes the group earlier, with a part of the family. The unit of such a part
    /// remains a child of the parent, so a later stage may gather the parts.
    pub fn by_parent(mut self) -> Self {
        self.key = KeyOf::Parent(PhantomData);
        self
    }

    /// Lets a group of the children of one parent continue even if one of them has failed for good.
    pub fn even_if_torn(mut self) -> Self {
        self.goes_on_torn = true;
        self
    }

    /// Closes a group of this many units (0 counts as 1).
    pub fn units(mut self, units: u64) -> Self {
        self.max_units = units.max(1);
        self
    }

    /// Closes a group whose members together weigh at least this much (0 counts as 1), as
    /// [`StageBuilder::bytes`](crate::StageBuilder::bytes) weighs them.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes.max(1);
        self
    }

    /// Closes a group for which `full` returns `true`. The engine calls `full` after each member.
    ///
    /// A panic in `full` fails the group, which is not retried: its dead letter contains the group with all its
    /// members.
    pub fn full(mut self, full: impl Fn(&G) -> bool + Send + Sync + 'static) -> Self {
        self.full = Some(Box::new(full));
        self
    }

    /// Closes a group this long after its first member has joined.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets the function that weighs a group in bytes (default: a list weighs as much as its members, and another group
    /// as much as its first member). The function runs after each member. A panic in this function fails the group, as
    /// a panic in [`full`](Self::full) does.
    pub fn weigh(mut self, weigh: impl Fn(&G) -> u64 + Send + Sync + 'static) -> Self {
        self.weigh = Some(Box::new(weigh));
        self
    }

    /// Sets the function that changes a closed group before it continues.
    ///
    /// A panic in this function is a failure of the group. If the stage retries the group, the function runs again on
    /// the group as the panic left it.
    pub fn finish(mut self, finish: impl Fn(&mut G) + Send + Sync + 'static) -> Self {
        self.finish = Some(Box::new(finish));
        self
    }

    /// Sets the maximum number of groups that are open at once (default [`DEFAULT_MAX_GROUPS`]; 0 counts as 1). Opening
    /// one more group closes the oldest one early. Groups by parent are never closed for this reason.
    pub fn max_groups(mut self, groups: u64) -> Self {
        self.max_groups = groups.max(1);
        self
    }

    pub(crate) fn rules(&self) -> GroupRules {
        GroupRules {
            by_family: matches!(self.key, KeyOf::Parent(_)),
            by_key: matches!(self.key, KeyOf::By(_)),
            by_code: self.full.is_some(),
            max_units: self.max_units,
            max_bytes: self.max_bytes,
            goes_on_torn: self.goes_on_torn,
            wait_ns: nanos(self.wait),
            max_groups: self.max_groups,
            leads_to: 0,
        }
    }
}
