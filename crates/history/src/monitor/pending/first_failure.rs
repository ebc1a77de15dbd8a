//! The time up to which a failing history is certainly legal.
//!
//! As long as a removal is pending, it may have taken the value that blocks another removal. This is ruled out once the
//! removal answers that it took a different value. So a failure is certain only when the pending removals have
//! answered, which may be later than the time at which the procedure gets stuck.
//!
//! Suppose that a legal order of the history up to some earlier moment is known. The values present at that moment and
//! the later operations form a separate history, the *rest*, which is short if it ends after the next few answers. A
//! legal order of the rest continues the known order. So the history is legal up to the same time as the rest.

use super::super::container::Container;
use super::super::life::{Life, Step, after_the_end};
use super::super::span::{NEVER, Span};
use super::super::window::{Window, removals};
use super::{Pending, decide};
use crate::budget::Budget;

/// The maximum size of a rest, in values and empty removals; small in tests, whose histories are short.
const MAX_REST: usize = if cfg!(test) { 5 } else { 1 << 16 };

/// Finds the last removal, among those that return during the window, such that the history before its return is
/// certainly legal. If there are too many operations to check, the result is the first removal that returns during the
/// window.
pub(crate) fn first_failure(
    container: Container,
    lives: &[Life],
    empties: &[Span],
    window: &Window,
    budget: &mut Budget,
) -> Step {
    let returning = removals(lives, empties).filter(|(span, _)| window.during.contains(&span.ret));
    let mut returning: Vec<(u32, Step)> = returning.map(|(span, step)| (span.ret, step)).collect();
    returning.sort_unstable_by_key(|&(ret, _)| ret);
    let Some(rest) = Rest::of(lives, empties, window) else { return returning[0].1 };
    let (mut in_order, mut fails) = (0, returning.len());
    while in_order + 1 < fails {
        let middle = (in_order + fails) / 2;
        if rest.holds_before(returning[middle].0, container, budget) { in_order = middle } else { fails = middle }
    }
    returning[in_order].1
}

/// The history from a rank on, as a separate history with its own ranks, which begin at 0.
struct Rest {
    /// In the order of the whole history. The values present at the start are inserted first, one at a time.
    lives: Vec<Life>,
    empties: Vec<Span>,
    from: u32,
    /// The number of values present at the start.
    there: u32,
}

impl Rest {
    /// `None` if the rest would be too large.
    fn of(lives: &[Life], empties: &[Span], window: &Window) -> Option<Self> {
        let to = *window.during.end();
        // For each inserted value, the index of its insertion in the order.
        let mut turn: Vec<Option<u32>> = vec![None; lives.len()];
        let mut is_gone = vec![false; lives.len()];
        let mut is_told = vec![false; empties.len()];
        for (at, step) in (0..).zip(&window.done) {
            match *step {
                Step::Insert(i) => turn[i as usize] = Some(at),
                Step::Remove(i) => is_gone[i as usize] = true,
                Step::Empty(e) => is_told[e as usize] = true,
            }
        }
        let left = |&i: &usize| !is_gone[i] && lives[i].insert.call <= to;
        let left: Vec<usize> = (0..lives.len()).filter(left).collect();
        let untold: Vec<usize> = (0..empties.len()).filter(|&e| !is_told[e] && empties[e].call <= to).collect();
        if left.len() + untold.len() > MAX_REST {
            return None;
        }
        let mut turns: Vec<u32> = left.iter().filter_map(|&i| turn[i]).collect();
        turns.sort_unstable();
        let mut rest = Rest { lives: Vec::new(), empties: Vec::new(), from: window.from, there: turns.len() as u32 };
        for i in left {
            let there = turn[i].map(|turn| turns.partition_point(|&other| other < turn) as u32);
            let insert = there.map_or_else(|| rest.span(lives[i].insert), |rank| Span { call: rank, ret: rank });
            rest.lives.push(Life { insert, remove: rest.span(lives[i].remove) });
        }
        rest.empties = untold.into_iter().map(|e| rest.span(empties[e])).collect();
        Some(rest)
    }

    /// The rank in the rest for a rank in the whole history. All operations of the rest take effect after `from`, so a
    /// call before `from` moves to the start of the rest.
    fn rank(&self, rank: u32) -> u32 {
        if rank == NEVER { NEVER } else { rank.max(self.from) - self.from + self.there }
    }

    fn span(&self, span: Span) -> Span {
        Span { call: self.rank(span.call), ret: self.rank(span.ret) }
    }

    /// Whether the rest is legal without the return `ret` and all later returns.
    fn holds_before(&self, ret: u32, container: Container, budget: &mut Budget) -> bool {
        let end = self.rank(ret);
        let (mut lives, mut staying) = (Vec::new(), 0);
        let mut pending: Vec<(u32, Option<u32>)> = Vec::new();
        for life in &self.lives {
            let mut hint = None;
            if life.remove.ret < end {
                lives.push(*life);
            } else if life.insert.ret < end {
                hint = Some(lives.len() as u32);
                lives.push(Life::new(life.insert, after_the_end(end, staying)));
                staying += 1;
            }
            if life.remove.call < end && life.remove.ret >= end {
                pending.push((life.remove.call, hint));
            }
        }
        let called = self.empties.iter().filter(|empty| empty.call < end);
        let (empties, open): (Vec<Span>, Vec<Span>) = called.partition(|empty| empty.ret < end);
        pending.extend(open.iter().map(|empty| (empty.call, None)));
        pending.sort_unstable();
        let (calls, hints): (Vec<u32>, Vec<Option<u32>>) = pending.into_iter().unzip();
        let pending = Pending { calls: &calls, end, hints: &hints };
        decide(container, &pending, &lives, &empties, budget).is_ok_and(|answer| answer.outcome.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Options};

    #[test]
    fn values_present_before_are_inserted_in_turn() {
        let lives = [(0, 1), (2, 3), (4, 5)].map(|(call, ret)| Life::new(Span { call, ret }, Span { call: 8, ret: 9 }));
        // The second value was inserted and removed. The first was inserted last, although its insertion was called
        // first.
        let done = vec![Step::Insert(1), Step::Insert(2), Step::Remove(1), Step::Insert(0)];
        let rest = Rest::of(&lives, &[], &Window { done, from: 7, during: 9..=9 }).expect("few");
        let spans: Vec<(u32, u32)> = rest.lives.iter().map(|life| (life.insert.call, life.remove.call)).collect();
        assert_eq!(spans, [(1, 3), (0, 3)], "two are present, and the third's turn precedes the first's");
    }

    #[test]
    fn a_pending_removal_excuses_a_stuck_one_until_it_answers() {
        let span = |call, ret| Span { call, ret };
        let lives = [
            Life::new(span(0, 1), span(12, 13)),
            Life::new(span(2, 3), span(4, 7)),
            // Until the removal of this value returns, it may have taken the first value.
            Life::new(span(6, 8), span(5, 11)),
        ];
        let of_a_stack = [lives[1], lives[0], lives[2]].map(|life| life.remove);
        let stack: Vec<Life> =
            lives.iter().zip(of_a_stack).map(|(life, remove)| Life::new(life.insert, remove)).collect();
        for (container, lives) in
            [(Container::PriorityQueue, &lives[..]), (Container::Stack, &stack), (Container::Queue, &lives)]
        {
            let window = container.decide_and_tell(lives, &[]).unwrap_err().window.expect("a value is stuck");
            let budget = &mut Budget::new(&Options::default());
            assert_eq!(first_failure(container, lives, &[], &window, budget), Step::Remove(2), "{container:?}");
        }
    }
}
