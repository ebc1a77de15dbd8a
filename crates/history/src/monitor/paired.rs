//! Containers with distinct values: converts operations to lives, and an order of lives to an order of operations.

use super::container::Container;
use super::life::{Core, Life, Step, after_the_end};
use super::numbers::Numbers;
use super::pending::{self, Pending};
use super::shrink::shrink;
use super::span::{MAX_OPERATIONS, Span, Spans};
use super::{Attempt, Decision, Undecided, Violation};
use crate::budget::Budget;
use crate::history::PENDING;
use crate::part::Part;
use crate::value::Value;

/// Decides a history in which no value is inserted twice. Leaves any other history open.
pub(super) fn decide(container: Container, part: &Part<'_>, budget: &mut Budget) -> Attempt {
    let paired = match Paired::of(container, part, budget)? {
        Ok(paired) => paired,
        Err(violation) => return Ok(Decision::Fails(violation)),
    };
    budget.look_at_the_clock()?;
    paired.decide(part, budget)
}

/// No position.
const NONE: u32 = u32::MAX;

/// The lives of a history's values, with the positions of the operations that delimit them.
struct Paired {
    container: Container,
    lives: Vec<Life>,
    inserted_at: Vec<u32>,
    /// [`NONE`] for a value that stays.
    removed_at: Vec<u32>,
    empties: Vec<Span>,
    empty_at: Vec<u32>,
    /// The calls of the pending removals.
    pending: Vec<u32>,
    pending_at: Vec<u32>,
    /// For each pending removal, the life that it ends later, if that is known.
    hints: Vec<Option<u32>>,
    end: u32,
}

impl Paired {
    /// Finds each value's insertion and removal. Leaves the history open if a value is inserted twice, or if an
    /// operation is neither an insertion nor a removal. Returns a violation if an insertion was refused (the container
    /// has no bound), or if a removal has no legal cause.
    fn of(container: Container, part: &Part<'_>, budget: &mut Budget) -> Result<Result<Self, Violation>, Undecided> {
        if part.len() > MAX_OPERATIONS {
            return Err(Undecided::Open);
        }
        let (insert, _) = container.operations();
        let is_refused = |&p: &usize| part.op(p) == insert && part.output(p) == Some(Value::FALSE);
        if let Some(p) = (0..part.len()).find(is_refused) {
            return Ok(Err(
                Violation::new(part, [p as u32], "finds no room, although there is no bound").about(part, p as u32)
            ));
        }
        let inserted = insertions(container, part)?;
        budget.look_at_the_clock()?;
        let Spans { spans, end } = Spans::of(part);
        budget.look_at_the_clock()?;
        let mut paired = Paired {
            container,
            lives: Vec::new(),
            inserted_at: Vec::new(),
            removed_at: Vec::new(),
            empties: Vec::new(),
            empty_at: Vec::new(),
            pending: Vec::new(),
            pending_at: Vec::new(),
            hints: Vec::new(),
            end,
        };
        Ok(match paired.find_removals(container, part, &spans, &inserted) {
            Ok(removal) => {
                budget.look_at_the_clock()?;
                paired.live(container, part, &spans, &removal);
                paired.hint(part, &inserted);
                Ok(paired)
            }
            Err(violation) => Err(violation),
        })
    }

    /// For each position that inserts a value, the position of the value's removal.
    fn find_removals(
        &mut self,
        container: Container,
        part: &Part<'_>,
        spans: &[Span],
        inserted: &Numbers,
    ) -> Result<Vec<u32>, Violation> {
        let (_, remove) = container.operations();
        let mut removal = vec![NONE; part.len()];
        for p in (0..part.len() as u32).filter(|&p| part.op(p as usize) == remove) {
            let span = spans[p as usize];
            let value = match part.output(p as usize) {
                None => {
                    self.pending.push(span.call);
                    self.pending_at.push(p);
                    continue;
                }
                Some(Value::NULL) => {
                    self.empties.push(span);
                    self.empty_at.push(p);
                    continue;
                }
                Some(value) => value,
            };
            let Some(i) = inserted.get(value) else {
                return Err(Violation::new(part, [p], "returns a value that was never inserted").about(part, p));
            };
            let before = std::mem::replace(&mut removal[i as usize], p);
            if before != NONE {
                return Err(
                    Violation::new(part, [i, before, p], "returns a value that was removed before").about(part, p)
                );
            }
            if span.ret < spans[i as usize].call {
                return Err(Violation::new(part, [i, p], "returns a value before its insertion began").about(part, p));
            }
        }
        Ok(removal)
    }

    /// Builds the lives; for a priority queue, in order of priority.
    fn live(&mut self, container: Container, part: &Part<'_>, spans: &[Span], removal: &[u32]) {
        let (insert, _) = container.operations();
        // A pending insertion of a value that is never removed can be ignored.
        self.inserted_at = (0..part.len() as u32)
            .filter(|&p| part.op(p as usize) == insert)
            .filter(|&p| part.ret(p as usize) != PENDING || removal[p as usize] != NONE)
            .collect();
        if container == Container::PriorityQueue {
            self.inserted_at = by_priority(part, &self.inserted_at);
        }
        self.removed_at = self.inserted_at.iter().map(|&p| removal[p as usize]).collect();
        let mut staying = 0;
        let lives = self.inserted_at.iter().zip(&self.removed_at).map(|(&i, &r)| {
            let remove = spans.get(r as usize).copied().unwrap_or_else(|| {
                staying += 1;
                after_the_end(self.end, staying - 1)
            });
            Life::new(spans[i as usize], remove)
        });
        self.lives = lives.collect();
    }

    /// Looks up the values that the part's pending removals return after the cut.
    fn hint(&mut self, part: &Part<'_>, inserted: &Numbers) {
        let history = part.history();
        let later = |&p: &u32| {
            let row = part.row(p as usize) as usize;
            let value = (history.ret(row) != PENDING).then(|| history.output(row))?;
            let inserted_at = inserted.get(value)?;
            self.inserted_at.iter().position(|&at| at == inserted_at).map(|i| i as u32)
        };
        self.hints = self.pending_at.iter().map(later).collect();
    }

    /// Decides all lives. If no removal is pending, a failure also has the time before which the history is legal.
    fn decide(&self, part: &Part<'_>, budget: &mut Budget) -> Attempt {
        let (lives, empties) = (&self.lives, &self.empties);
        let mut in_order_before = 0;
        let (outcome, taken) = if self.pending.is_empty() {
            let outcome = self.container.decide_and_tell(lives, empties).map_err(|failure| {
                if let Some(window) = failure.window {
                    let first = pending::first_failure(self.container, lives, empties, &window, budget);
                    let position = self.position(first, &self.removed_at);
                    in_order_before = position.map_or(0, |p| part.ret(p as usize));
                }
                failure.core
            });
            (outcome, Vec::new())
        } else {
            let answer = pending::decide(self.container, &self.pending(), lives, empties, budget)?;
            (answer.outcome, answer.taken)
        };
        budget.look_at_the_clock()?;
        Ok(match outcome {
            Ok(steps) => Decision::Holds(self.rows(part, &steps, &taken)),
            Err(core) => Decision::Fails(Violation { in_order_before, ..self.violation(part, &core, budget) }),
        })
    }

    fn pending(&self) -> Pending<'_> {
        Pending { calls: &self.pending, end: self.end, hints: &self.hints }
    }

    /// The rows of the `steps`. The removal of a value that stays is left out, because it is not an operation of the
    /// history.
    fn rows(&self, part: &Part<'_>, steps: &[Step], taken: &[Option<u32>]) -> Vec<u32> {
        let mut removed_at = self.removed_at.clone();
        for (&pending, life) in self.pending_at.iter().zip(taken) {
            if let Some(i) = life {
                removed_at[*i as usize] = pending;
            }
        }
        steps.iter().filter_map(|&step| self.position(step, &removed_at)).map(|p| part.row(p as usize)).collect()
    }

    fn violation(&self, part: &Part<'_>, core: &Core, budget: &mut Budget) -> Violation {
        let empties = core.empties.iter().map(|&e| Step::Empty(e));
        let core = shrink(empties.chain(core.lives.iter().map(|&i| Step::Insert(i))).collect(), |core| {
            let mut lives = Vec::new();
            let mut empties = Vec::new();
            for &step in core {
                match step {
                    Step::Insert(i) | Step::Remove(i) => lives.push(self.lives[i as usize]),
                    Step::Empty(e) => empties.push(self.empties[e as usize]),
                }
            }
            // When the time is used up, the operations not yet tried remain in the core.
            let answer = budget.look_at_the_clock().map_err(Undecided::from);
            let pending = Pending { hints: &[], ..self.pending() };
            let answer = answer.and_then(|()| pending::decide(self.container, &pending, &lives, &empties, budget));
            answer.is_ok_and(|answer| answer.outcome.is_err())
        });
        let (reason, subject) = self.reason(&core);
        let mut positions = Vec::new();
        for step in core {
            match step {
                Step::Insert(i) | Step::Remove(i) => {
                    positions.push(self.inserted_at[i as usize]);
                    positions.extend(Some(self.removed_at[i as usize]).filter(|&p| p != NONE));
                }
                Step::Empty(e) => positions.push(self.empty_at[e as usize]),
            }
        }
        // Pending removals belong to the violation, except those called after all its other operations returned: these
        // change nothing.
        let over = positions.iter().map(|&p| part.ret(p as usize)).filter(|&ret| ret != PENDING).max().unwrap_or(0);
        positions.extend(self.pending_at.iter().filter(|&&p| part.call(p as usize) <= over));
        Violation::new(part, positions, reason).about(part, subject)
    }

    /// The reason why the core fails, and the position that the reason is about.
    fn reason(&self, core: &[Step]) -> (&'static str, Option<u32>) {
        let empty = core.iter().find(|step| matches!(step, Step::Empty(_)));
        let removed = |i: u32| Some(self.removed_at[i as usize]).filter(|&p| p != NONE);
        let lives = || core.iter().filter_map(|step| if let Step::Insert(i) = *step { Some(i) } else { None });
        match self.container {
            _ if empty.is_some() => (
                "finds nothing, although some value was there at every moment",
                empty.and_then(|&step| self.position(step, &self.removed_at)),
            ),
            Container::Queue => {
                let life = |i: u32| self.lives[i as usize];
                let is_overtaken = |a: u32, b: u32| {
                    life(a).insert.ret < life(b).insert.call && life(b).remove.ret < life(a).remove.call
                };
                match lives().find_map(|b| lives().find(|&a| is_overtaken(a, b)).map(|a| (a, b))) {
                    Some((a, b)) if removed(a).is_some() => {
                        ("a value is removed before one that was inserted earlier", removed(b))
                    }
                    Some((_, b)) => {
                        ("a value is removed, and one that was inserted earlier is still there", removed(b))
                    }
                    None => ("no order removes these values as they were inserted", None),
                }
            }
            Container::Stack => ("no order puts each value above those that are removed after it", None),
            Container::PriorityQueue => (
                "a value is removed, although some smaller one was there at every moment",
                // Lives are in order of priority.
                lives().filter(|&i| removed(i).is_some()).max().and_then(removed),
            ),
        }
    }

    /// The position of the step's operation; `None` for the removal of a value that stays, which is not an operation of
    /// the history.
    fn position(&self, step: Step, removed_at: &[u32]) -> Option<u32> {
        match step {
            Step::Insert(i) => Some(self.inserted_at[i as usize]),
            Step::Remove(i) => Some(removed_at[i as usize]).filter(|&p| p != NONE),
            Step::Empty(e) => Some(self.empty_at[e as usize]),
        }
    }
}

/// The positions of the insertions, sorted by value.
fn by_priority(part: &Part<'_>, inserted_at: &[u32]) -> Vec<u32> {
    let mut values: Vec<(Value, u32)> = inserted_at.iter().map(|&p| (part.input(p as usize), p)).collect();
    if values.iter().all(|(value, _)| value.as_int().is_some()) {
        // Integers within the word are sorted as words, without lookups in the table.
        values.sort_unstable();
    } else {
        values.sort_unstable_by(|(a, _), (b, _)| part.history().values().compare(*a, *b));
    }
    values.into_iter().map(|(_, p)| p).collect()
}

/// The position of each value's insertion. Leaves the history open if a value has two insertions, or if an operation
/// does not belong to the container.
fn insertions(container: Container, part: &Part<'_>) -> Result<Numbers, Undecided> {
    let (insert, remove) = container.operations();
    let mut inserted = Numbers::of((0..part.len()).filter(|&p| part.op(p) == insert).map(|p| part.input(p)));
    for p in 0..part.len() {
        let (op, input) = (part.op(p), part.input(p));
        if op == insert {
            let done = matches!(part.output(p), None | Some(Value::NULL | Value::TRUE));
            if !done || input.is_null() || !inserted.insert(input, p as u32) {
                return Err(Undecided::Open);
            }
        } else if op != remove {
            return Err(Undecided::Open);
        }
    }
    Ok(inserted)
}
