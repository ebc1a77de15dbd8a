//! Last in, first out.
//!
//! The history is taken apart from the outside. If at some moment nothing is surely there, it is cut in two
//! (see [`cover`](super::cover)). If there is none between the first moment at which something is surely there
//! and the last, then one value lies at the bottom throughout: it is pushed no later than any push returns and
//! popped no earlier than any pop is called. Any value that can be so may be, since moving it outwards disturbs
//! nothing above it; it is taken out, and what is left goes on in the same way. If no value can lie at the
//! bottom, the history is not linearizable.
//!
//! Taken in order of their pops' calls, a piece of the history is a range of places, and its earliest return
//! only grows and its latest call only shrinks as it is taken apart. So a value that once could be first, or
//! last, of its piece always can, and each value is found once for each side. O(n log n). Most pieces are of a
//! few values, and those are taken apart without looking up anything (see [`peel`]).
//!
//! The scheme is the decrease and conquer of Lee and Mathur ("Efficient decrease-and-conquer linearizability
//! monitoring", 2024).

use super::cover::{Cover, chain};
use super::life::{Core, Life, Outcome, Step};
use super::min_tree::MinTree;
use super::peel::{self, SMALL};
use super::span::{Span, by_rank};
use super::zero_tree::ZeroTree;

/// Decides a history of a last-in-first-out stack.
pub(crate) fn decide(lives: &[Life], empties: &[Span]) -> Outcome {
    let cover = Cover::of(lives);
    let mut moments = Vec::with_capacity(empties.len());
    for (e, empty) in (0..).zip(empties) {
        match cover.gap(*empty) {
            Some(moment) => moments.push((moment, e)),
            None => {
                return Err(Core { lives: chain(lives, 0..lives.len() as u32, *empty), empties: vec![e], first: None });
            }
        }
    }
    moments.sort_unstable();

    let mut pieces = Pieces::of(lives);
    let mut steps = Vec::with_capacity(2 * lives.len() + empties.len());
    let mut from = 0;
    for (moment, empty) in moments {
        // The moment is uncovered, so the places on its left are a piece of their own.
        let to = from + pieces.lives[from..].partition_point(|life| life.remove.call <= moment);
        pieces.take_apart(from, to, &mut steps)?;
        steps.push(Step::Empty(empty));
        from = to;
    }
    pieces.take_apart(from, lives.len(), &mut steps)?;
    Ok(steps)
}

/// The values at their places, and what is left of them.
struct Pieces {
    /// The values in order of their pops' calls; a place is an index into this.
    order: Vec<u32>,
    /// Their lives, in the same order.
    lives: Vec<Life>,
    left: Vec<bool>,
    /// When the pushes of what is left return.
    push_return: MinTree,
    /// When the pushes are called, of values not yet known to fit first.
    push_call: MinTree,
    /// When the pops return, negated, of values not yet known to fit last.
    pop_return: MinTree,
    /// For each place, on how many sides the value there is still unfit to lie at the bottom.
    unfit: MinTree,
    /// How many values are surely there when the pop at a place is called.
    covering: ZeroTree,
}

/// No rank: larger than all that are compared with it.
const GONE: u32 = u32::MAX;

enum Task {
    TakeApart { from: usize, to: usize },
    Pop(u32),
}

impl Pieces {
    fn of(lives: &[Life]) -> Self {
        let order = by_rank(lives.len(), |i| lives[i].remove.call);
        let lives: Vec<Life> = order.iter().map(|&i| lives[i as usize]).collect();
        let mut pieces = Pieces {
            left: vec![true; lives.len()],
            push_return: MinTree::of(lives.iter().map(|life| life.insert.ret)),
            push_call: MinTree::of(lives.iter().map(|life| life.insert.call)),
            pop_return: MinTree::of(lives.iter().map(|life| !life.remove.ret)),
            unfit: MinTree::of(lives.iter().map(|_| 2)),
            covering: ZeroTree::of(&[]),
            order,
            lives,
        };
        let mut covering = vec![0; pieces.lives.len() + 1];
        for place in 0..pieces.lives.len() {
            covering[pieces.covered_from(place)] += 1;
            covering[place] -= 1;
        }
        let mut sum = 0;
        for count in &mut covering {
            sum += *count;
            *count = sum;
        }
        covering.pop();
        pieces.covering = ZeroTree::of(&covering);
        pieces
    }

    /// The first of the places up to this one whose pops are called while the value here is surely there.
    fn covered_from(&self, place: usize) -> usize {
        let pushed = self.lives[place].insert.ret;
        let covered = |life: &Life| life.remove.call >= pushed;
        // Most values stay for a short time: steps that double find the neighbourhood sooner than halves of all.
        let mut width = 1;
        while width < place && covered(&self.lives[place - width]) {
            width *= 2;
        }
        let start = place - width.min(place);
        start + self.lives[start..place].partition_point(|life| !covered(life))
    }

    /// Takes the places `from..to` apart and appends their steps.
    fn take_apart(&mut self, from: usize, to: usize, steps: &mut Vec<Step>) -> Result<(), Core> {
        let mut tasks = vec![Task::TakeApart { from, to }];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Pop(i) => steps.push(Step::Remove(i)),
                Task::TakeApart { from, to } => {
                    let Some((from, last)) = self.trim(from, to) else { continue };
                    if last - from < SMALL {
                        self.peel(from, last, steps)?;
                        continue;
                    }
                    if let Some(cut) = self.covering.first_zero(from, last) {
                        tasks.push(Task::TakeApart { from: cut + 1, to: last + 1 });
                        tasks.push(Task::TakeApart { from, to: cut + 1 });
                        continue;
                    }
                    let Some(bottom) = self.bottom(from, last) else {
                        return Err(self.core((from..=last).filter(|&place| self.left[place])));
                    };
                    self.remove(bottom);
                    let i = self.order[bottom];
                    steps.push(Step::Insert(i));
                    tasks.push(Task::Pop(i));
                    tasks.push(Task::TakeApart { from, to: last + 1 });
                }
            }
        }
        Ok(())
    }

    /// Takes a few places apart.
    fn peel(&mut self, from: usize, last: usize, steps: &mut Vec<Step>) -> Result<(), Core> {
        let mut places: Vec<u32> = (from as u32..=last as u32).filter(|&place| self.left[place as usize]).collect();
        peel::take_apart(&self.lives, &mut places, &mut |step| {
            steps.push(match step {
                Step::Insert(place) => Step::Insert(self.order[place as usize]),
                Step::Remove(place) => Step::Remove(self.order[place as usize]),
                empty => empty,
            });
        })
        .map_err(|stuck| self.core(stuck.iter().map(|&place| place as usize)))
    }

    /// The first and the last place in `from..to` that is left.
    fn trim(&self, mut from: usize, mut to: usize) -> Option<(usize, usize)> {
        while from < to && !self.left[from] {
            from += 1;
        }
        while from < to && !self.left[to - 1] {
            to -= 1;
        }
        (from < to).then(|| (from, to - 1))
    }

    /// A place whose value can lie below all others in `from..=last`.
    fn bottom(&mut self, from: usize, last: usize) -> Option<usize> {
        let earliest_return = self.push_return.min(from, last + 1);
        let latest_call = self.lives[last].remove.call;
        for (tree, limit) in [(&mut self.push_call, earliest_return), (&mut self.pop_return, !latest_call)] {
            while let Some(fit) = tree.first_at_most(from, last + 1, limit) {
                tree.set(fit, GONE);
                self.unfit.set(fit, self.unfit.get(fit) - 1);
            }
        }
        self.unfit.first_at_most(from, last + 1, 0)
    }

    fn remove(&mut self, place: usize) {
        self.left[place] = false;
        self.push_return.set(place, GONE);
        self.unfit.set(place, GONE);
        self.covering.decrement(self.covered_from(place), place);
    }

    /// Few of the values at these places, none of which can lie at the bottom, that cover the whole of their time.
    fn core(&self, places: impl Iterator<Item = usize> + Clone) -> Core {
        let lives = || places.clone().map(|place| self.lives[place]);
        let first = lives().map(|life| life.insert.ret).min().expect("a piece is not empty");
        let last = lives().map(|life| life.remove.call).max().expect("a piece is not empty");
        let span = Span { call: first + 1, ret: last - 1 };
        let chain = chain(&self.lives, places.map(|place| place as u32), span);
        let stuck = stuck_window(&self.lives, &chain).iter().map(|&place| self.order[place as usize]).collect();
        Core { lives: stuck, empties: Vec::new(), first: None }
    }
}

/// The shortest stretch of a chain in which no value can lie at the bottom, if a short one has none.
fn stuck_window<'a>(lives: &[Life], chain: &'a [u32]) -> &'a [u32] {
    const LONGEST: usize = 6;
    let stuck = |window: &&[u32]| {
        let first = lives[window[0] as usize].insert.ret;
        let last = lives[window[window.len() - 1] as usize].remove.call;
        window.iter().map(|&i| &lives[i as usize]).all(|life| life.insert.call > first || life.remove.ret < last)
    };
    let short = (2..=LONGEST.min(chain.len())).find_map(|width| chain.windows(width).find(stuck));
    short.unwrap_or(chain)
}
