//! The graph that the checks examine.

/// The graph that the checks examine: stages, their needs and edges.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) entry: u16,
    /// The resource that bounds the entry's queue: admission gives every unit one place of it.
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
    /// The stage until which the need is held; `None` means for the asking stage's own run.
    pub(crate) until: Option<u16>,
    /// The need is a place in that stage's queue: a unit that goes elsewhere gives it back at once.
    pub(crate) place: bool,
}
