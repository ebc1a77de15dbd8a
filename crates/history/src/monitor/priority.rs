//! The least first.
//!
//! A removal needs a moment at which nothing smaller is surely there; larger values do not matter to it. So the
//! history is linearizable exactly when each value has such a moment in its removal's span, and each removal
//! that found nothing has one at which nothing at all is there.
//!
//! Why that is enough: take the largest value. At the moment of its removal nothing else is surely there, so the
//! rest of the history can be cut in two there without loss (see [`cover`](super::cover)); the rest is smaller.
//! The earliest such moments do: every value is removed at its own, inserted as late as that or its return
//! allows, and equal moments serve in order of size.
//!
//! The sets of covered moments only grow from value to value, so a union-find structure keeps, for each moment,
//! the next one that is free. O(n log n).

use super::cover::chain;
use super::life::{Core, Life, Outcome, Step};
use super::span::Span;

/// Decides a history of a priority queue; `lives` ascend in priority.
pub(crate) fn decide(lives: &[Life], empties: &[Span]) -> Outcome {
    let last = lives.iter().map(|life| life.remove.call).chain(empties.iter().map(|span| span.ret)).max();
    let mut free = Free::new(last.unwrap_or(0));
    let core = |smaller: u32, span| chain(lives, 0..smaller, span);

    let mut timed: Vec<(u32, u32, Step)> = Vec::with_capacity(2 * lives.len() + empties.len());
    for (i, life) in (0..).zip(lives) {
        let moment = free.next(life.remove.call);
        if moment > life.remove.ret {
            let mut lives = core(i, life.remove);
            lives.push(i);
            return Err(Core { lives, empties: Vec::new() });
        }
        // Removals stand at calls and at moments when another's removal was called; insertions at returns,
        // or right before their own removal. So only removals ever share a moment, and they go by size.
        timed.push((life.insert.ret.min(moment), 2 * i, Step::Insert(i)));
        timed.push((moment, 2 * i + 1, Step::Remove(i)));
        free.cover(life.insert.ret, life.remove.call);
    }
    let after_all = 2 * lives.len() as u32;
    for (e, empty) in (0..).zip(empties) {
        let moment = free.next(empty.call);
        if moment > empty.ret {
            return Err(Core { lives: core(lives.len() as u32, *empty), empties: vec![e] });
        }
        timed.push((moment, after_all + e, Step::Empty(e)));
    }
    timed.sort_unstable_by_key(|&(moment, turn, _)| u64::from(moment) << 32 | u64::from(turn));
    Ok(timed.into_iter().map(|(_, _, step)| step).collect())
}

/// The moments that nothing covers yet.
struct Free {
    /// Leads to a later moment if this one is covered, to itself if not.
    next: Vec<u32>,
}

impl Free {
    fn new(last: u32) -> Self {
        Free { next: (0..=last + 1).collect() }
    }

    /// The first free moment at or after `moment`.
    fn next(&mut self, mut moment: u32) -> u32 {
        while self.next[moment as usize] != moment {
            let skipped = self.next[self.next[moment as usize] as usize];
            self.next[moment as usize] = skipped;
            moment = skipped;
        }
        moment
    }

    /// Covers the moments strictly between two.
    fn cover(&mut self, after: u32, before: u32) {
        if after >= before {
            return;
        }
        let mut moment = self.next(after + 1);
        while moment < before {
            // All in between will be covered, too: one step leads past them.
            self.next[moment as usize] = before;
            moment = self.next(moment + 1);
        }
    }
}
