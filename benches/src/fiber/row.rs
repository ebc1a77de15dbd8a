//! The rows of the comparison.

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// A coroutine is resumed and suspends itself.
    Switch,
    /// As [`Switch`](Self::Switch), with 30,000 coroutines in turn, or, where there is a scheduler, a yield of each.
    Rotate,
    /// Two fibers yield to each other.
    Yield,
    /// A token passes from channel to channel.
    Hop,
    /// A fiber is spawned and joined, one after the other.
    Spawn,
    /// Fibers are spawned together, and joined when all are there: no stack is used again.
    Fresh,
    /// Fibers wait; the figure is the memory of each.
    Parked,
    /// An echo server with 100 connections.
    Echo,
    /// An echo server with 10,000 connections.
    EchoMany,
}

/// The coroutines of [`Row::Rotate`]: nearly as many as the mappings of a process allow where each has two.
pub(super) const STACKS: usize = 30_000;

/// The members of [`Row::Hop`]'s ring.
pub(super) const RING: usize = 403;

impl Row {
    pub(super) const ALL: [Row; 9] =
        [Row::Switch, Row::Rotate, Row::Yield, Row::Hop, Row::Spawn, Row::Fresh, Row::Parked, Row::Echo, Row::EchoMany];

    pub(super) fn name(self) -> &'static str {
        match self {
            Row::Switch => "switch",
            Row::Rotate => "rotate",
            Row::Yield => "yield",
            Row::Hop => "hop",
            Row::Spawn => "spawn",
            Row::Fresh => "fresh",
            Row::Parked => "parked",
            Row::Echo => "echo",
            Row::EchoMany => "echo-many",
        }
    }

    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|row| row.name() == name)
    }

    /// The title, in lower case.
    pub(super) fn title(self) -> &'static str {
        match self {
            Row::Switch => "a resume and a suspend",
            Row::Rotate => "a switch, over 30,000 stacks in turn",
            Row::Yield => "a yield, two in turn",
            Row::Hop => "a hop around 403 channels",
            Row::Spawn => "a spawn and a join, one after the other",
            Row::Fresh => "a spawn and a join, all at once",
            Row::Parked => "memory of one that waits, with page tables",
            Row::Echo => "an echo of 64 bytes, 100 connections",
            Row::EchoMany => "an echo of 64 bytes, 10,000 connections",
        }
    }

    pub(super) fn unit(self) -> &'static str {
        if self == Row::Parked { "bytes" } else { "ns" }
    }

    /// The steps of a run, the fibers of one, or its connections.
    pub(super) fn count(self) -> u64 {
        match self {
            Row::Switch | Row::Yield => 5_000_000,
            Row::Rotate => 3_000_000,
            Row::Hop => 400_000,
            Row::Spawn => 300_000,
            Row::Fresh => 20_000,
            Row::Parked => 1_000_000,
            Row::Echo => 100,
            Row::EchoMany => 10_000,
        }
    }

    pub(super) fn quick_count(self) -> u64 {
        if self == Row::EchoMany { 200 } else { (self.count() / 1000).max(20) }
    }

    /// Whether it is an echo server's, with `count` connections.
    pub(super) fn is_echo(self) -> bool {
        matches!(self, Row::Echo | Row::EchoMany)
    }

    /// The competitors, each with its number of threads.
    pub(super) fn competitors(self) -> Vec<(&'static str, u32)> {
        let on_one = |peers: &[&'static str]| peers.iter().map(|&peer| (peer, 1)).collect();
        let schedulers = ["millstream", "may", "tokio", "go"];
        let on_one_and_two = schedulers.iter().flat_map(|&peer| [(peer, 1), (peer, 2)]);
        match self {
            Row::Switch => on_one(&["corosensei", "generator"]),
            Row::Rotate => on_one(&["millstream", "corosensei"]),
            Row::Yield | Row::Spawn => on_one(&["millstream", "may", "tokio", "go", "threads"]),
            Row::Fresh => on_one(&schedulers),
            // may maps a stack for each, and the kernel has no room for the mappings of a million.
            Row::Parked => on_one(&["millstream", "tokio", "go"]),
            Row::Hop => on_one_and_two.chain([("threads", 1)]).collect(),
            Row::Echo => on_one_and_two.chain([("epoll", 1), ("threads", 1)]).collect(),
            // The memory of ten thousand threads is not what the row is about.
            Row::EchoMany => on_one_and_two.chain([("epoll", 1)]).collect(),
        }
    }
}
