//! The smallest capacities with which a block runs forever.

use std::convert::Infallible;
use std::sync::Arc;

use crate::net::{EdgeId, Stuck, Tokens, View};

/// The most firings that the check of one block follows, from the start to the end of its first period.
pub const MAX_FIRINGS: u64 = 1 << 20;

/// The reason why there are no capacities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoCapacity {
    /// The period is longer than [`MAX_FIRINGS`].
    TooLong,
    /// No capacity is enough.
    Starved,
}

/// A block to be sized.
pub(super) struct Block {
    pub(super) view: Arc<View>,
    /// Its edges whose capacities are wanted.
    pub(super) edges: Vec<EdgeId>,
    /// Its edges that may grow; they have room without end.
    pub(super) elastic: Vec<EdgeId>,
    /// The bytes of a value, for each edge of the net.
    pub(super) bytes: Vec<u64>,
    /// The actors that give to none of the block or into a queue that may grow, and how often each fires while the others
    /// fire as often as theirs say.
    pub(super) targets: Vec<(usize, u64)>,
}

/// The outcome of a run with some capacities.
enum Run {
    /// It goes on forever, and never holds more than this in an edge.
    Forever(Vec<u64>),
    Deadlock(Stuck),
}

impl Block {
    /// The smallest capacities, for each edge of the net; those of other edges are 0.
    pub(super) fn capacities(&self) -> Result<Vec<u64>, NoCapacity> {
        let without_end = vec![u64::MAX; self.view.ends.len()];
        let Run::Forever(peaks) = self.run(&without_end)? else { return Err(NoCapacity::Starved) };
        let enough = self.with_elastic(peaks);
        let mut least = enough.clone();
        for edge in &self.edges {
            // Alone, with all the room there is elsewhere.
            let mut caps = without_end.clone();
            least[*edge] = self.least(*edge, 1, enough[*edge], &mut caps)?;
        }
        let mut caps = least;
        let mut raised = false;
        while let Run::Deadlock(Stuck(circle)) = self.run(&caps)? {
            let full = circle.iter().filter(|(edge, room)| *room && caps[*edge] < enough[*edge]);
            // Below capacities that are enough, a deadlock has a full edge below its own.
            let (edge, _) = full.min_by_key(|(edge, _)| (self.bytes[*edge], *edge)).ok_or(NoCapacity::Starved)?;
            // A step in proportion is undone below as far as it was too long.
            caps[*edge] = (caps[*edge] + 1 + caps[*edge] / 32).min(enough[*edge]);
            raised = true;
        }
        if raised {
            for edge in self.edges.iter().rev() {
                let most = caps[*edge];
                caps[*edge] = self.least(*edge, 1, most, &mut caps)?;
            }
        }
        let mut of_block = vec![0; caps.len()];
        self.edges.iter().for_each(|edge| of_block[*edge] = caps[*edge]);
        Ok(of_block)
    }

    /// Capacities for edges outside, and for those that may grow, are without end.
    fn with_elastic(&self, mut caps: Vec<u64>) -> Vec<u64> {
        self.elastic.iter().for_each(|edge| caps[*edge] = u64::MAX);
        caps
    }

    /// The least capacity of an edge, from `low` to `high`, with which the block runs forever when the others have `caps`;
    /// with `high` it does.
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

    /// Runs until a state comes back, with at least as many values in the edges that may grow.
    fn run(&self, caps: &[u64]) -> Result<Run, NoCapacity> {
        let mut tokens = Tokens::new(Arc::clone(&self.view), caps.to_vec());
        let mut firings = 0;
        let mut saved = Saved::of(&tokens);
        // Brent's search for a period: the saved state is renewed after twice as many rounds each time.
        let (mut rounds, mut power) = (0_u64, 1_u64);
        loop {
            for (target, times) in &self.targets {
                for _ in 0..*times {
                    let driven = tokens.drive(*target, |tokens, actor, gives| -> Result<(), Infallible> {
                        firings += 1;
                        tokens.fire(actor, gives);
                        Ok(())
                    });
                    if let Err(stuck) = driven {
                        return Ok(Run::Deadlock(stuck));
                    }
                    if firings > MAX_FIRINGS {
                        return Err(NoCapacity::TooLong);
                    }
                }
            }
            rounds += 1;
            if saved.recurs(&tokens, &self.edges, &self.elastic) {
                return Ok(Run::Forever(tokens.peaks));
            }
            if rounds == power {
                saved = Saved::of(&tokens);
                (rounds, power) = (0, power * 2);
            }
        }
    }
}

/// A state to come back to.
struct Saved {
    phases: Vec<u64>,
    counts: Vec<u64>,
}

impl Saved {
    fn of(tokens: &Tokens) -> Self {
        Self { phases: tokens.phases().collect(), counts: tokens.counts.clone() }
    }

    fn recurs(&self, tokens: &Tokens, edges: &[EdgeId], elastic: &[EdgeId]) -> bool {
        edges.iter().all(|edge| self.counts[*edge] == tokens.counts[*edge])
            && elastic.iter().all(|edge| self.counts[*edge] <= tokens.counts[*edge])
            && self.phases.iter().copied().eq(tokens.phases())
    }
}
