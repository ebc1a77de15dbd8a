//! The graph of a flow, without its code.

/// The graph that the checks examine: stages, needs and edges.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) entry: u16,
    /// The resource that bounds the entry's queue. Admission gives every unit one slot of that queue.
    pub(crate) entry_place: Option<u16>,
    pub(crate) stages: Vec<Node>,
    /// Names of the resources.
    pub(crate) resources: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) next: Vec<u16>,
    pub(crate) retires: bool,
    /// The stage splits its units, which hold nothing from then on.
    pub(crate) splits: bool,
    /// The stage gathers its units, which hold nothing in their groups.
    pub(crate) gathers: bool,
    pub(crate) asks: Vec<Asked>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) resource: u16,
    /// The need is released when the unit leaves this stage; if `None`, when the unit's run in the asking stage ends.
    pub(crate) until: Option<u16>,
    /// Whether the need is for a slot in the queue of the stage `until`. A unit that goes to another stage releases the slot
    /// at once.
    pub(crate) place: bool,
}
