//! The rows of the comparison.

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// A coroutine is resumed and suspends itself.
    Switch,
    /// Like [`Switch`](Self::Switch), with 30,000 coroutines in turn. With a scheduler, each of them yields instead.
    Rotate,
    /// Two fibers yield to each other.
    Yield,
    /// A token passes from channel to channel.
    Hop,
    /// [`Hop`](Self::Hop) with a hundred stack frames at each wait, compared with [`Hop`](Self::Hop) without them.
    Deep,
    /// Fibers are spawned and joined one after the other.
    Spawn,
    /// All fibers are spawned before any is joined, so no stack is reused.
    Fresh,
    /// Waiting fibers: the memory of each, the time until all wait, and the mappings.
    Parked,
    /// 10,000 units of the engine wait in fibers, and the others wait for a fiber: the memory of the process per unit.
    Units,
    /// An echo server with 100 connections.
    Echo,
    /// An echo server with 10,000 connections.
    EchoMany,
    /// Reads of 4 KiB at scattered offsets of a cached file, 32 at a time.
    ReadHot,
    /// Like [`ReadHot`](Self::ReadHot), without cached data: each block is read once.
    ReadCold,
    /// The command fetches many pages from slow servers at once.
    Fetch,
}

/// The number of coroutines of [`Row::Rotate`]: with two mappings for each, nearly as many as a process may have.
pub(super) const STACKS: usize = 30_000;

/// The fibers of [`Row::Units`].
pub(super) const WAITING: usize = 10_000;

/// The members of [`Row::Hop`]'s ring.
pub(super) const RING: usize = 403;

impl Row {
    pub(super) const ALL: [Row; 14] = [
        Row::Switch,
        Row::Rotate,
        Row::Yield,
        Row::Hop,
        Row::Deep,
        Row::Spawn,
        Row::Fresh,
        Row::Parked,
        Row::Units,
        Row::Echo,
        Row::EchoMany,
        Row::ReadHot,
        Row::ReadCold,
        Row::Fetch,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Row::Switch => "switch",
            Row::Rotate => "rotate",
            Row::Yield => "yield",
            Row::Hop => "hop",
            Row::Deep => "deep",
            Row::Spawn => "spawn",
            Row::Fresh => "fresh",
            Row::Parked => "parked",
            Row::Units => "units",
            Row::Echo => "echo",
            Row::EchoMany => "echo-many",
            Row::ReadHot => "read-hot",
            Row::ReadCold => "read-cold",
            Row::Fetch => "fetch",
        }
    }

    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|row| row.name() == name)
    }

    /// The title (in lower case) and the unit of each of the row's figures.
    pub(super) fn figures(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Row::Switch => &[("a resume and a suspend", "ns")],
            Row::Rotate => &[("a switch, over 30,000 stacks in turn", "ns")],
            Row::Yield => &[("a yield, two in turn", "ns")],
            Row::Hop => &[("a hop around 403 channels", "ns")],
            Row::Deep => &[("a hop around 403 channels, 100 frames deep", "ns")],
            Row::Spawn => &[("a spawn and a join, one after the other", "ns")],
            Row::Fresh => &[("a spawn and a join, all at once", "ns")],
            Row::Parked => &[
                ("memory of one that waits, with page tables", "bytes"),
                ("a spawn of a million that wait", "ns"),
                ("mappings of a process in which a million wait", "mappings"),
            ],
            Row::Units => &[("memory of a unit, a million of which wait for 10,000 fibers", "bytes")],
            Row::Echo => &[("an echo of 64 bytes, 100 connections", "ns")],
            Row::EchoMany => &[("an echo of 64 bytes, 10,000 connections", "ns")],
            Row::ReadHot => &[
                ("a read of 4 KiB, cached, 32 at a time", "ns"),
                ("processor time of a read of 4 KiB, cached, 32 at a time", "ns"),
            ],
            Row::ReadCold => &[
                ("a read of 4 KiB, not cached, 32 at a time", "ns"),
                ("processor time of a read of 4 KiB, not cached, 32 at a time", "ns"),
            ],
            Row::Fetch => &[
                ("a fetch from 9,000 servers that answer after 10 s", "s"),
                ("memory of a fetch from 9,000 servers, with page tables", "bytes"),
                ("threads of a fetch from 9,000 servers", "threads"),
            ],
        }
    }

    /// The number of steps, fibers or connections of a run.
    pub(super) fn count(self) -> u64 {
        match self {
            Row::Switch | Row::Yield => 5_000_000,
            Row::Rotate => 3_000_000,
            Row::Hop | Row::Deep => 400_000,
            Row::Spawn => 300_000,
            Row::Fresh => 20_000,
            Row::Parked | Row::Units | Row::ReadHot => 1_000_000,
            Row::Echo => 100,
            Row::EchoMany => 10_000,
            // A page needs two descriptors, and some systems permit only 20,000 per process.
            Row::Fetch => 9000,
            Row::ReadCold => 1 << 17,
        }
    }

    pub(super) fn quick_count(self) -> u64 {
        if matches!(self, Row::EchoMany | Row::Fetch) { 200 } else { (self.count() / 1000).max(20) }
    }

    /// The blocks of 4 KiB in the file that is read.
    pub(super) fn file_blocks(self, count: u64) -> Option<u64> {
        match self {
            Row::ReadHot => Some(count.next_power_of_two().min(1 << 14)),
            Row::ReadCold => Some(count.next_power_of_two()),
            _ => None,
        }
    }

    /// Whether the row is about an echo server, with `count` connections.
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
            // The crate `may` maps a stack for each coroutine, and the kernel does not permit the mappings of a million
            // stacks.
            Row::Parked | Row::Units => on_one(&["millstream", "tokio", "go"]),
            Row::Deep => on_one(&["millstream", "shallow"]),
            Row::ReadHot | Row::ReadCold => {
                on_one(&["millstream", "readiness", "nonblocking", "blocking", "threads", "fio"])
            }
            Row::Fetch => on_one(&["millstream", "threads"]),
            Row::Hop => on_one_and_two.chain([("threads", 1)]).collect(),
            Row::Echo => on_one_and_two.chain([("epoll", 1), ("threads", 1)]).collect(),
            // Without threads: this row does not measure the memory of ten thousand threads.
            Row::EchoMany => on_one_and_two.chain([("epoll", 1)]).collect(),
        }
    }
}
