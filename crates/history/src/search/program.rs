//! The search for an order that respects each process's own order: sequential consistency.
//!
//! A configuration is the progress of each process, the set of used pending operations, and the state. As in the walk
//! by time, an operation that never changes the state takes effect as soon as its process reaches it and its answer is
//! right.

use rustc_hash::{FxHashMap, FxHashSet};

use super::machine::{Machine, Step};
use super::{Outcome, Reach};
use crate::budget::{Budget, Exhausted, HASH_FACTOR};
use crate::history::PENDING;

/// The operations by process.
struct Threads {
    /// For each process, the positions that returned, in the order of the process.
    returned: Vec<Vec<u32>>,
    /// Pending positions, each with its process, and the number of that process's operations that come before it.
    pending: Vec<(u32, usize, u32)>,
}

/// The progress of each process, followed by a bit for each pending operation.
type Done = Box<[u32]>;

struct Frame {
    done: Done,
    state: u32,
    order: usize,
    next: usize,
    choice: usize,
}

pub(super) struct Program<'a> {
    machine: Machine<'a>,
    threads: Threads,
    seen: FxHashSet<(Done, u32)>,
    stack: Vec<Frame>,
    order: Vec<u32>,
    total: usize,
}

impl<'a> Program<'a> {
    pub(super) fn new(machine: Machine<'a>) -> Self {
        let part = machine.part;
        let mut numbers: FxHashMap<u32, usize> = FxHashMap::default();
        let mut threads = Threads { returned: Vec::new(), pending: Vec::new() };
        let mut total = 0;
        for position in 0..part.len() {
            let process = *numbers.entry(part.process(position)).or_insert(threads.returned.len());
            if process == threads.returned.len() {
                threads.returned.push(Vec::new());
            }
            let returned = &mut threads.returned[process];
            if part.ret(position) != PENDING {
                returned.push(position as u32);
                total += 1;
            } else if !machine.is_pure(position) {
                threads.pending.push((position as u32, process, returned.len() as u32));
            }
        }
        Program { machine, threads, seen: FxHashSet::default(), stack: Vec::new(), order: Vec::new(), total }
    }

    pub(super) fn run(mut self, budget: &mut Budget, reach: &mut Reach) -> Result<Outcome, Exhausted> {
        let decided = self.search(budget, reach);
        reach.configurations += self.seen.len() as u64;
        let row = |position: u32| self.machine.part.row(position as usize);
        Ok(match decided? {
            true => Outcome::Holds(self.order.iter().map(|&position| row(position)).collect()),
            false => Outcome::Fails { culprit: None },
        })
    }

    fn search(&mut self, budget: &mut Budget, reach: &mut Reach) -> Result<bool, Exhausted> {
        let words = self.threads.returned.len() + self.threads.pending.len().div_ceil(32);
        budget.charge(self.machine.part.len() * (size_of::<Frame>() + 4 * (words + 1)))?;
        let state = self.machine.initial(budget)?;
        if self.enter(vec![0; words].into(), state, 0, budget, reach)? {
            return Ok(true);
        }
        while let Some(frame) = self.stack.last() {
            budget.tick()?;
            let (number, choice, state) = (frame.next, frame.choice, frame.state);
            let Some((position, done)) = self.candidate(number) else {
                // This candidate is done or not yet called; later candidates may be possible.
                let ended = number >= self.threads.returned.len() + self.threads.pending.len();
                self.advance(ended);
                continue;
            };
            let step = self.machine.step(state, self.machine.kind(position as usize), budget)?;
            let next = match step {
                Step::Illegal => None,
                Step::To(state) => (choice == 0).then_some(state),
                Step::Choice(states) => self.machine.choice(states).get(choice).copied(),
            };
            let Some(next) = next else {
                self.advance(false);
                continue;
            };
            if let Some(frame) = self.stack.last_mut() {
                frame.choice += 1;
            }
            // A pending operation without effect is as good as one that never happened.
            if next == state && number >= self.threads.returned.len() {
                continue;
            }
            let order = self.order.len();
            self.order.push(position);
            if self.enter(done, next, order, budget, reach)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves to the next candidate, or back to the previous configuration if no candidates remain.
    fn advance(&mut self, ended: bool) {
        if ended {
            let order = self.stack.pop().map_or(0, |frame| frame.order);
            self.order.truncate(order);
        } else if let Some(frame) = self.stack.last_mut() {
            (frame.next, frame.choice) = (frame.next + 1, 0);
        }
    }

    /// Candidate `number` of the configuration on top, and the progress of all processes after it. `None` if this
    /// candidate cannot come next.
    fn candidate(&self, number: usize) -> Option<(u32, Done)> {
        let done = &self.stack.last()?.done;
        let processes = self.threads.returned.len();
        let mut after = done.clone();
        if number < processes {
            let position = *self.threads.returned[number].get(done[number] as usize)?;
            after[number] += 1;
            return Some((position, after));
        }
        let number = number - processes;
        let &(position, process, before) = self.threads.pending.get(number)?;
        let (word, bit) = (processes + number / 32, 1 << (number % 32));
        // A pending operation follows its process's earlier operations, and takes effect once.
        if done[process] < before || done[word] & bit != 0 {
            return None;
        }
        after[word] |= bit;
        Some((position, after))
    }

    fn enter(
        &mut self,
        mut done: Done,
        state: u32,
        order: usize,
        budget: &mut Budget,
        reach: &mut Reach,
    ) -> Result<bool, Exhausted> {
        // An operation that never changes the state excludes no order, so it takes effect now and is never a candidate.
        for process in 0..self.threads.returned.len() {
            while let Some(&position) = self.threads.returned[process].get(done[process] as usize) {
                let kind = self.machine.kind(position as usize);
                if !self.machine.is_pure(position as usize)
                    || self.machine.step(state, kind, budget)? != Step::To(state)
                {
                    break;
                }
                done[process] += 1;
                self.order.push(position);
            }
        }
        let passed = done[..self.threads.returned.len()].iter().map(|&n| n as usize).sum();
        reach.passed = reach.passed.max(passed);
        if passed == self.total {
            return Ok(true);
        }
        if self.seen.contains(&(done.clone(), state)) {
            self.order.truncate(order);
            return Ok(false);
        }
        budget.charge(HASH_FACTOR * size_of::<(Done, u32)>() + size_of_val(&*done) + 2 * size_of::<usize>())?;
        self.seen.insert((done.clone(), state));
        self.stack.push(Frame { done, state, order, next: 0, choice: 0 });
        Ok(false)
    }
}
