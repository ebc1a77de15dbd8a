//! Stacks: last in, first out.
//!
//! The history is decomposed from the outside. If at some moment no value is certainly present, the history is cut in
//! two there (see [`cover`](super::cover)). Suppose that no such moment exists between the first and the last moment at
//! which a value is certainly present. Then one value must lie at the bottom all the time: it is pushed no later than
//! any push returns, and popped no earlier than any pop is called. Any value that meets this condition may lie there,
//! because moving its push and pop outwards disturbs no other value. That value is removed, and the remaining history
//! is decomposed in the same way. If no value can lie at the bottom, the history is not linearizable.
//!
//! The values are in order of their pops' calls, so a piece of the history is a range of places. While a piece is
//! decomposed, its earliest return of a push only grows, and its latest call of a pop only shrinks. So once a value
//! meets one side of the condition in its piece, it always does, and each value is found once per side. O(n log n).
//! Most pieces have few values, which are decomposed without a search structure (see [`few`]).
//!
//! A piece in which no value can lie at the bottom is *stuck*. The other pieces are still decomposed, to find when the
//! history first fails. As long as no pop of the stuck piece has returned, the history is legal. In its order, those
//! pushes and pops of the piece that were called by then take the place of the whole piece, and the other steps
//! surround them as before. This gives the [`window`](super::window) of the failure.
//!
//! The method is the decrease-and-conquer scheme of Lee and Mathur ("Efficient decrease-and-conquer linearizability
//! monitoring", 2024).

mod few;
mod min_tree;
mod zero_tree;

use super::cover::{Cover, chain};
use super::life::{Core, Life, Outcome, Step};
use super::span::{NEVER, Span, by_rank};
use super::window::{Failure, Window, answered, done_before, first_call_among_open};
use few::{Found, SMALL};
use min_tree::MinTree;
use zero_tree::ZeroTree;

/// Decides a history of a last-in-first-out stack.
pub(super) fn decide(lives: &[Life], empties: &[Span]) -> Outcome {
    let (steps, stuck) = take_apart(lives, empties)?;
    stuck.first().map_or(Ok(steps), |piece| Err(core(lives, piece)))
}

/// Decides a history whose pops have all returned, and finds the time around a failure.
pub(super) fn decide_and_tell(lives: &[Life], empties: &[Span]) -> Result<Vec<Step>, Failure> {
    let (steps, stuck) = take_apart(lives, empties)?;
    let first_return = |piece: &Stuck| piece.iter().map(|&i| lives[i as usize].remove.ret).min().unwrap_or(NEVER);
    let Some(piece) = stuck.iter().min_by_key(|piece| first_return(piece)) else { return Ok(steps) };

    let returns = piece.iter().map(|&i| lives[i as usize].remove.ret).filter(|&ret| ret != NEVER);
    let answered = answered(lives, empties, returns.max().unwrap_or(0));
    let calls = stuck.iter().flatten().map(|&i| lives[i as usize].insert.call).filter(|&call| call <= answered);
    let from = first_call_among_open(lives, empties, calls.min().unwrap_or(0));
    let done = done_before(from, steps, lives, empties);
    let during = first_return(piece)..=answered;
    Err(Failure { core: core(lives, piece), window: Some(Window { done, from, during }) })
}

/// The steps in order, without the pieces that are stuck.
fn take_apart(lives: &[Life], empties: &[Span]) -> Result<(Vec<Step>, Vec<Stuck>), Core> {
    let cover = Cover::of(lives);
    let mut moments = Vec::with_capacity(empties.len());
    for (e, empty) in (0..).zip(empties) {
        match cover.gap(*empty) {
            Some(moment) => moments.push((moment, e)),
            None => {
                return Err(Core { lives: chain(lives, 0..lives.len() as u32, *empty), empties: vec![e] });
            }
        }
    }
    moments.sort_unstable();

    let mut pieces = Pieces::of(lives);
    let mut from = 0;
    for (moment, empty) in moments {
        // The moment is uncovered, so the places before it are a separate piece.
        let to = from + pieces.lives[from..].partition_point(|life| life.remove.call <= moment);
        pieces.take_apart(from, to);
        pieces.steps.push(Step::Empty(empty));
        from = to;
    }
    pieces.take_apart(from, lives.len());
    Ok((pieces.steps, pieces.stuck))
}

/// The values of a stuck piece: none can lie at the bottom, although some value is present at every moment.
type Stuck = Vec<u32>;

/// A few values of a stuck piece that together cover its whole time.
fn core(lives: &[Life], piece: &Stuck) -> Core {
    let of_piece = || piece.iter().map(|&i| lives[i as usize]);
    let first = of_piece().map(|life| life.insert.ret).min().expect("a piece is not empty");
    let last = of_piece().map(|life| life.remove.call).max().expect("a piece is not empty");
    let span = Span { call: first + 1, ret: last - 1 };
    let chain = chain(lives, piece.iter().copied(), span);
    Core { lives: stuck_window(lives, &chain).to_vec(), empties: Vec::new() }
}

/// The values by place, and which of them remain.
struct Pieces {
    /// The values in order of their pops' calls. A place is an index into this order.
    order: Vec<u32>,
    /// Their lives, in the same order.
    lives: Vec<Life>,
    left: Vec<bool>,
    /// The returns of the remaining values' pushes.
    push_return: MinTree,
    /// The calls of the pushes, for values whose push is not yet known to come early enough for the bottom.
    push_call: MinTree,
    /// The negated returns of the pops, for values whose pop is not yet known to come late enough for the bottom.
    pop_return: MinTree,
    /// For each place, the number of sides (push and pop) on which the value does not yet fit at the bottom.
    unfit: MinTree,
    /// For each place, the number of values that are certainly present when its pop is called.
    covering: ZeroTree,
    /// The steps found so far, in order.
    steps: Vec<Step>,
    /// The stuck pieces.
    stuck: Vec<Stuck>,
}

/// The key of a removed entry: larger than every limit.
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
            steps: Vec::with_capacity(2 * lives.len()),
            stuck: Vec::new(),
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

    /// The first place, up to `place` itself, whose pop is called while the value at `place` is certainly present.
    fn covered_from(&self, place: usize) -> usize {
        let pushed = self.lives[place].insert.ret;
        let covered = |life: &Life| life.remove.call >= pushed;
        // Most values stay for a short time, so the place is usually near. Steps of doubling width then need fewer
        // comparisons than a bisection of all places.
        let mut width = 1;
        while width < place && covered(&self.lives[place - width]) {
            width *= 2;
        }
        let start = place - width.min(place);
        start + self.lives[start..place].partition_point(|life| !covered(life))
    }

    /// Decomposes the places `from..to`.
    fn take_apart(&mut self, from: usize, to: usize) {
        let mut tasks = vec![Task::TakeApart { from, to }];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Pop(i) => self.steps.push(Step::Remove(i)),
                Task::TakeApart { from, to } => {
                    let Some((from, last)) = self.trim(from, to) else { continue };
                    if last - from < SMALL {
                        self.peel(from, last);
                        continue;
                    }
                    if let Some(cut) = self.covering.first_zero(from, last) {
                        tasks.push(Task::TakeApart { from: cut + 1, to: last + 1 });
                        tasks.push(Task::TakeApart { from, to: cut + 1 });
                        continue;
                    }
                    let Some(bottom) = self.bottom(from, last) else {
                        let left = (from..=last).filter(|&place| self.left[place]);
                        self.stuck.push(left.map(|place| self.order[place]).collect());
                        continue;
                    };
                    self.remove(bottom);
                    let i = self.order[bottom];
                    self.steps.push(Step::Insert(i));
                    tasks.push(Task::Pop(i));
                    tasks.push(Task::TakeApart { from, to: last + 1 });
                }
            }
        }
    }

    /// Decomposes a few places without a search structure.
    fn peel(&mut self, from: usize, last: usize) {
        let Pieces { order, lives, left, steps, stuck, .. } = self;
        let mut places: Vec<u32> = (from as u32..=last as u32).filter(|&place| left[place as usize]).collect();
        let value = |place: u32| order[place as usize];
        few::take_apart(lives, &mut places, &mut |found| match found {
            Found::Step(Step::Insert(place)) => steps.push(Step::Insert(value(place))),
            Found::Step(Step::Remove(place)) => steps.push(Step::Remove(value(place))),
            Found::Step(empty) => steps.push(empty),
            Found::Stuck(piece) => stuck.push(piece.iter().map(|&place| value(place)).collect()),
        });
    }

    /// The first and the last remaining place in `from..to`.
    fn trim(&self, mut from: usize, mut to: usize) -> Option<(usize, usize)> {
        while from < to && !self.left[from] {
            from += 1;
        }
        while from < to && !self.left[to - 1] {
            to -= 1;
        }
        (from < to).then(|| (from, to - 1))
    }

    /// A place whose value can lie below all other values in `from..=last`.
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
}

/// The shortest window of the chain in which no value can lie at the bottom, or the whole chain if no short window
/// exists.
fn stuck_window<'a>(lives: &[Life], chain: &'a [u32]) -> &'a [u32] {
    const MAX_WINDOW: usize = 6;
    let stuck = |window: &&[u32]| {
        let first = lives[window[0] as usize].insert.ret;
        let last = lives[window[window.len() - 1] as usize].remove.call;
        window.iter().map(|&i| &lives[i as usize]).all(|life| life.insert.call > first || life.remove.ret < last)
    };
    let short = (2..=MAX_WINDOW.min(chain.len())).find_map(|width| chain.windows(width).find(stuck));
    short.unwrap_or(chain)
}
