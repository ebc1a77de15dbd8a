//! Finds the smallest capacities with which a block runs forever.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

use crate::net::{EdgeId, Stuck, Tokens, View};

/// The maximum number of firings from the start of a block to the end of its first period. The check does not follow further
/// firings.
pub const MAX_FIRINGS: u64 = 1 << 20;

/// The search for the smallest sum of a block's capacities ends after this number of firings, over all of its runs.
const MAX_SEARCH: u64 = 1 << 18;

/// The reason why a block has no capacities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoCapacity {
    /// The period is longer than [`MAX_FIRINGS`].
    TooLong,
    /// No capacity is enough, however large.
    Starved,
}

/// A block to be sized.
pub(super) struct Block {
    pub(super) view: Arc<View>,
    /// The number of edges to be sized, which come first. The other edges may grow, and have unlimited room.
    pub(super) firm: usize,
    /// The size in bytes of a value in each edge.
    pub(super) bytes: Vec<u64>,
    /// The actors from which the run demands values: those that feed no other actor of the block, and those that feed a
    /// queue that may grow. They are in the order of their numbers, each with its number of firings per period.
    pub(super) targets: Vec<(usize, u64)>,
    /// The firings of all runs so far.
    pub(super) firings: Cell<u64>,
}

/// The outcome of a run with some capacities.
enum Run {
    /// The run never stops. For each edge, the maximum number of values that it holds.
    Forever(Vec<u64>),
    Deadlock(Stuck),
}

impl Block {
    /// Returns the smallest capacities of the firm edges.
    pub(super) fn capacities(&self) -> Result<Vec<u64>, NoCapacity> {
        let without_end = vec![u64::MAX; self.view.ends.len()];
        let Run::Forever(peaks) = self.run(&without_end)? else { return Err(NoCapacity::Starved) };
        let mut enough = peaks;
        enough[self.firm..].fill(u64::MAX);
        let mut caps = enough.clone();
        for edge in 0..self.firm {
            // The least capacity of an edge is the one that it needs when all other edges have unlimited room.
            let mut elsewhere = without_end.clone();
            caps[edge] = self.least(edge, 1, enough[edge], &mut elsewhere)?;
        }
        let caps = match self.smallest_sum(&caps)? {
            Some(found) => found,
            None => self.smallest_one_by_one(caps)?,
        };
        Ok(caps[..self.firm].to_vec())
    }

    /// Of all capacities that are at least `least` and with which the block runs forever, returns those with the smallest sum in
    /// bytes. `None` means that the search has reached its limit of firings.
    ///
    /// A deadlock is a cycle of waits. Larger capacities of other edges do not help: if the full edges of the cycle stay as they
    /// are, none of its actors can be the first to fire again. So one of the full edges must become larger. The search tries each
    /// of them, and always continues from the smallest sum. The first capacities with which the block runs forever are therefore
    /// the smallest.
    fn smallest_sum(&self, least: &[u64]) -> Result<Option<Vec<u64>>, NoCapacity> {
        let spent = self.firings.get();
        let mut open = BinaryHeap::from([Reverse((self.sums(least), least.to_vec()))]);
        let mut seen = HashSet::new();
        while let Some(Reverse((_, mut caps))) = open.pop() {
            let cycle = match self.run(&caps) {
                Ok(Run::Forever(_)) => return Ok(Some(caps)),
                Ok(Run::Deadlock(Stuck(cycle))) if self.firings.get() - spent <= MAX_SEARCH => cycle,
                Ok(Run::Deadlock(_)) | Err(NoCapacity::TooLong) => return Ok(None),
                Err(NoCapacity::Starved) => return Err(NoCapacity::Starved),
            };
            for (edge, _) in cycle.into_iter().filter(|(_, is_full)| *is_full) {
                caps[edge] += 1;
                if seen.insert(caps.clone()) {
                    open.push(Reverse((self.sums(&caps), caps.clone())));
                }
                caps[edge] -= 1;
            }
        }
        Err(NoCapacity::Starved)
    }

    /// Returns the sums of the firm edges' capacities, in bytes and in values.
    fn sums(&self, caps: &[u64]) -> (u128, u128) {
        let values = caps[..self.firm].iter().map(|cap| u128::from(*cap));
        let bytes = values.clone().zip(&self.bytes).map(|(cap, bytes)| cap * u128::from(*bytes));
        (bytes.sum(), values.sum())
    }

    /// Increases `caps` until the block runs forever, and then reduces each capacity as far as possible. In the result, no
    /// capacity can be reduced on its own.
    ///
    /// Only edges that are full in a deadlock become larger. No edge grows forever: with unlimited room in some edges, either the
    /// state of the run recurs, or the run is stuck at other edges.
    fn smallest_one_by_one(&self, mut caps: Vec<u64>) -> Result<Vec<u64>, NoCapacity> {
        while let Run::Deadlock(Stuck(cycle)) = self.run(&caps)? {
            let full = cycle.iter().filter(|(_, is_full)| *is_full);
            let (edge, _) = full.min_by_key(|(edge, _)| (self.bytes[*edge], *edge)).ok_or(NoCapacity::Starved)?;
            // Large capacities grow in larger steps. The search below undoes any excess.
            caps[*edge] += 1 + caps[*edge] / 32;
        }
        let mut edges: Vec<EdgeId> = (0..self.firm).collect();
        edges.sort_by_key(|edge| Reverse((self.bytes[*edge], *edge)));
        for edge in edges {
            let most = caps[edge];
            caps[edge] = self.least(edge, 1, most, &mut caps)?;
        }
        Ok(caps)
    }

    /// Returns the least capacity of an edge with which the block runs forever, while the other edges have `caps`. The capacity
    /// is between `low` and `high`; with `high` the block must run forever.
    fn least(&self, edge: EdgeId, mut low: u64, mut high: u64, caps: &mut [u64]) -> Result<u64, NoCapacity> {
        high = high.max(low);
        while low < high {
            let middle = low + (high - low) / 2;
            caps[edge] = middle;
            if let Run::Forever(_) = self.run(caps)? { high = middle } else { low = middle + 1 }
        }
        caps[edge] = high;
        Ok(high)
    }

    /// Runs until no actor can fire, or until a state recurs. In a recurring state, the edges that may grow hold at least as many
    /// values as before.
    fn run(&self, caps: &[u64]) -> Result<Run, NoCapacity> {
        let mut tokens = Tokens::new(Arc::clone(&self.view), caps.to_vec());
        let mut firings = 0;
        // For each target, the number of its firings beyond its share so far. They were made because other targets needed them.
        let mut ahead = vec![0_u64; self.targets.len()];
        let mut saved = Saved::of(&tokens, &ahead);
        // Brent's algorithm finds the period: a state is saved after a number of rounds that doubles each time, and each later
        // state is compared with it.
        let (mut rounds, mut power) = (0_u64, 1_u64);
        loop {
            for at in 0..self.targets.len() {
                let (target, times) = self.targets[at];
                while ahead[at] < times {
                    let driven = tokens.drive(target, |tokens, actor, fire| {
                        firings += 1;
                        self.firings.set(self.firings.get() + 1);
                        tokens.fire(actor, fire);
                        if let Ok(at) = self.targets.binary_search_by_key(&actor, |(target, _)| *target) {
                            ahead[at] += 1;
                        }
                        if firings > MAX_FIRINGS { Err(NoCapacity::TooLong) } else { Ok(()) }
                    });
                    match driven {
                        Ok(driven) => driven.map(|_| ())?,
                        Err(stuck) => return Ok(Run::Deadlock(stuck)),
                    }
                }
                ahead[at] -= times;
            }
            rounds += 1;
            if saved.recurs(&tokens, &ahead, self.firm) {
                return Ok(Run::Forever(tokens.peaks));
            }
            if rounds == power {
                saved = Saved::of(&tokens, &ahead);
                (rounds, power) = (0, power * 2);
            }
        }
    }
}

/// A saved state, to detect its recurrence.
struct Saved {
    phases: Vec<u64>,
    counts: Vec<u64>,
    ahead: Vec<u64>,
}

impl Saved {
    fn of(tokens: &Tokens, ahead: &[u64]) -> Self {
        Self { phases: tokens.phases().collect(), counts: tokens.counts.clone(), ahead: ahead.to_vec() }
    }

    fn recurs(&self, tokens: &Tokens, ahead: &[u64], firm: usize) -> bool {
        self.ahead == ahead
            && self.counts[..firm] == tokens.counts[..firm]
            && self.counts[firm..].iter().zip(&tokens.counts[firm..]).all(|(before, now)| before <= now)
            && self.phases.iter().copied().eq(tokens.phases())
    }
}
