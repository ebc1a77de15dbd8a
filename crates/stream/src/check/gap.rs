//! The growth of the queue in front of a refused join. It predicts at which value of the fork a buffer overflows.

use std::sync::Arc;

use crate::clock::Pass;
use crate::net::{EdgeId, Fire, Net, Stuck, Tokens, View};

use super::cycle::{Cycle, Silent};

/// The maximum number of firings that are followed in search of the period of the growth.
const MAX_FIRINGS: u64 = 1 << 20;

/// The growth of one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Gap {
    /// A record for each time that the queue became longer than ever before: the number of the fork's values so far, and the
    /// queue's length.
    records: Vec<(u64, u64)>,
    /// The number of the fork's values in a period, and the number of values by which the queue grows in each period.
    period: Option<(u64, u64)>,
}

impl Gap {
    /// Returns the number of the fork's values after which the queue has held more than `buffer` values; `None` if this is
    /// unknown.
    pub(super) fn overflows_at(&self, buffer: u64) -> Option<u128> {
        let first = |buffer: u64| self.records.iter().find(|(_, held)| *held > buffer).map(|(n, _)| u128::from(*n));
        if let Some(n) = first(buffer) {
            return Some(n);
        }
        let (length, growth) = self.period?;
        let (_, most) = self.records.last()?;
        let periods = (buffer - most) / growth + 1;
        // If the growth over these periods exceeds `buffer`, the result stays unknown.
        let rest = u128::from(buffer).checked_sub(u128::from(periods) * u128::from(growth));
        let rest = rest.and_then(|rest| u64::try_from(rest).ok())?;
        Some(first(rest)? + u128::from(periods) * u128::from(length))
    }

    /// Returns the growth of the queue between the path `growing` and the cycle's join. If the data decide, this assumes the
    /// worst case: on `growing` every value passes, and on the other path no value passes.
    pub(super) fn of(net: &Net, cycle: &Cycle, growing: usize) -> Self {
        let grows = cycle.last_edge(growing);
        let silent = cycle.silent(net).map(|(_, silent)| silent);
        let shared: Vec<usize> =
            std::iter::successors(cycle.shared, |branch| net.actors[cycle.fork].tree[*branch].parent).collect();
        let edges: Vec<EdgeId> = cycle.paths.iter().flatten().map(|(edge, _)| *edge).collect();
        let view = Arc::new(View::new(net, &edges, |actor, branch| {
            if silent == Some(Silent::Branch(actor, branch)) {
                return Some(Pass::Word { prefix: Vec::new(), cycle: vec![false] });
            }
            let counted = actor == cycle.fork && shared.contains(&branch);
            (counted || net.actors[actor].tree[branch].pass == Pass::Data).then_some(Pass::ALL)
        }));
        let grows = edges.iter().position(|edge| *edge == grows).expect("it is on the cycle");
        let (fork, join) = (view.actor(cycle.fork), view.actor(cycle.join));
        let mut caps = vec![1; edges.len()];
        caps[grows] = u64::MAX;
        loop {
            let mut watch = Watch::new(fork, grows);
            let mut tokens = Tokens::new(Arc::clone(&view), caps.clone());
            let stuck = loop {
                match tokens.drive(join, |tokens, actor, fire| watch.fire(tokens, actor, fire)) {
                    Ok(Ok(_)) => {}
                    Ok(Err(Over)) => return watch.gap,
                    Err(stuck) => break stuck,
                }
            };
            let Stuck(edges) = stuck;
            let full: Vec<EdgeId> = edges.into_iter().filter_map(|(edge, room)| room.then_some(edge)).collect();
            if full.is_empty() {
                return watch.gap;
            }
            full.into_iter().for_each(|edge| caps[edge] *= 2);
        }
    }
}

/// The error that ends the run: the growth is known, or the run is too long.
struct Over;

/// Observes one queue during a run, after each firing.
struct Watch {
    fork: usize,
    grows: EdgeId,
    firings: u64,
    /// The number of the fork's values so far.
    given: u64,
    gap: Gap,
    most: u64,
    /// An earlier state.
    saved: Option<Saved>,
    power: u64,
    /// The minimum number of values in the queue since the saved state.
    fewest: u64,
}

struct Saved {
    given: u64,
    most: u64,
    held: u64,
    /// The state without the observed queue: the phases, the waiting actors, and all other queues.
    rest: Vec<u64>,
}

impl Watch {
    fn new(fork: usize, grows: EdgeId) -> Self {
        Self { fork, grows, firings: 0, given: 0, gap: Gap::default(), most: 0, saved: None, power: 1, fewest: 0 }
    }

    fn fire(&mut self, tokens: &mut Tokens, actor: usize, fire: Fire) -> Result<(), Over> {
        tokens.fire(actor, fire);
        self.firings += 1;
        self.given += u64::from(actor == self.fork);
        let held = tokens.counts[self.grows];
        self.fewest = self.fewest.min(held);
        if held > self.most {
            self.most = held;
            // Values in the queue before the fork's first value count as if they came after it.
            self.gap.records.push((self.given.max(1), held));
        }
        if actor == self.fork {
            self.look(tokens, held)?;
        }
        if self.firings > MAX_FIRINGS { Err(Over) } else { Ok(()) }
    }

    /// Checks whether the state, except for the observed queue, is the same as the saved state. If so, the run repeats from here,
    /// provided that the queue never became empty in between.
    fn look(&mut self, tokens: &Tokens, held: u64) -> Result<(), Over> {
        let grows = self.grows;
        let rest = || {
            let others = tokens.counts.iter().enumerate().filter(move |(edge, _)| *edge != grows);
            let waiting = tokens.waiting().map(|actor| actor as u64);
            tokens.phases().chain(waiting).chain(others.map(|(_, count)| *count))
        };
        if let Some(saved) = &self.saved
            && self.fewest > 0
            && held > saved.held
            && self.most == saved.most + (held - saved.held)
            && saved.rest.iter().copied().eq(rest())
        {
            self.gap.period = Some((self.given - saved.given, held - saved.held));
            return Err(Over);
        }
        if self.given == self.power {
            self.power *= 2;
            self.saved = Some(Saved { given: self.given, most: self.most, held, rest: rest().collect() });
            self.fewest = held;
        }
        Ok(())
    }
}
