//! The walk: a depth-first search of the configurations, from return to return.

use rustc_hash::{FxHashMap, FxHashSet};

use super::events::{Events, Place};
use super::foresight::Foresight;
use super::machine::{Machine, Step};
use super::mask::Mask;
use super::memo::{Key, Memo};
use super::used::UsedSets;
use super::{Entered, Entry, Outcome, Reach};
use crate::budget::{Budget, Exhausted, HASH_FACTOR};

/// A configuration, and the candidates that remain to be tried in it.
struct Frame<const N: usize> {
    key: Key<N>,
    used: u32,
    /// The length of the order before the operations that led to this configuration.
    order: u32,
    /// All candidates of lower numbers were tried. The candidates are numbered by the ranks of open operations, then by
    /// the kinds of pending ones.
    next: u32,
    /// The number of tried choices of the candidate `next`.
    choice: u32,
    /// A lower bound on the time at which the last of the values brought so far comes out: see [`Foresight::bring`].
    latest: u64,
}

/// A candidate that can come next, and the configuration to which it leads.
struct Candidate {
    position: u32,
    state: u32,
    used: u32,
    slot: Option<u32>,
    latest: u64,
}

/// The state of a search.
pub(super) struct Walk<'a, const N: usize> {
    machine: Machine<'a>,
    events: Events,
    foresight: Option<Foresight>,
    /// For each value that the foresight numbers, the number of operations in the order that bring the value.
    brought: Vec<u32>,
    sets: UsedSets,
    memo: Memo<N>,
    stack: Vec<Frame<N>>,
    /// The open operations at the current level, by slot.
    open: Vec<u32>,
    /// The number of pending operations of each kind called so far.
    pending: Vec<u32>,
    level: usize,
    /// The positions linearized so far.
    order: Vec<u32>,
    /// The configurations in which each return was passed, if the caller asks for them.
    entries: Option<Entries<N>>,
}

/// For each number of returns passed, the configurations, each with its set of used pending operations.
type Entries<const N: usize> = Vec<FxHashSet<(Key<N>, u32)>>;

const VACANT: u32 = u32::MAX;

impl<'a, const N: usize> Walk<'a, N> {
    pub(super) fn new(machine: Machine<'a>, events: Events, foresight: Option<Foresight>) -> Self {
        Walk {
            brought: vec![0; foresight.as_ref().map_or(0, Foresight::numbers)],
            foresight,
            sets: UsedSets::new(),
            memo: Memo::new(),
            stack: Vec::new(),
            open: vec![VACANT; events.slots() as usize],
            pending: vec![0; events.pending.len()],
            level: 0,
            order: Vec::new(),
            entries: None,
            machine,
            events,
        }
    }

    pub(super) fn run(mut self, budget: &mut Budget, reach: &mut Reach) -> Result<Outcome, Exhausted> {
        let decided = self.search(budget, reach);
        reach.configurations += self.memo.situations();
        Ok(match decided? {
            true => {
                Outcome::Holds(self.order.iter().map(|&position| self.machine.part.row(position as usize)).collect())
            }
            false => {
                let position = self.events.returns[reach.passed] as usize;
                // If the foresight can turn back early, the walk may stop before the return that no order passes.
                let exact = !self.foresight.as_ref().is_some_and(Foresight::turns_back);
                Outcome::Fails { culprit: exact.then(|| self.machine.part.row(position)) }
            }
        })
    }

    /// For each number of returns passed, the configurations of a failing part right after them. If the part is legal,
    /// there are no levels.
    pub(super) fn entries(mut self, budget: &mut Budget) -> Result<Entered<'a>, Exhausted> {
        let mut reach = Reach::default();
        self.entries = Some(vec![FxHashSet::default()]);
        if self.search(budget, &mut reach)? {
            return Ok(Entered { levels: Vec::new(), states: self.machine.into_states() });
        }
        let entries = self.entries.take().unwrap_or_default();
        // Return to the start and pass the levels again, because `entry` needs the operations that are open at each
        // level.
        self.go_back_to(0);
        let mut levels = Vec::new();
        for (level, entries) in entries.into_iter().enumerate() {
            if level > 0 {
                let Place::Slot(slot) = self.events.places[self.events.returns[level - 1] as usize] else { continue };
                self.advance(slot);
            }
            levels.push(entries.into_iter().map(|(key, used)| self.entry(key, used)).collect());
        }
        Ok(Entered { levels, states: self.machine.into_states() })
    }

    /// The configuration in the specification's terms. The walk must be at its level.
    fn entry(&self, key: Key<N>, used: u32) -> Entry {
        let row = |position: u32| self.machine.part.row(position as usize);
        let open = (0..self.open.len() as u32).filter(|&slot| key.mask.has(slot));
        let mut done: Vec<u32> = open.map(|slot| row(self.open[slot as usize])).collect();
        let mut counts = FxHashMap::default();
        done.extend(self.sets.kinds(used).iter().map(|&kind| {
            let count = counts.entry(kind).or_insert(0);
            *count += 1;
            row(self.events.pending[kind as usize][*count - 1])
        }));
        Entry { state: key.state, done }
    }

    fn search(&mut self, budget: &mut Budget, reach: &mut Reach) -> Result<bool, Exhausted> {
        // The maximum sizes of the order and of the stack: an operation is in the order at most once, and each frame
        // adds at least one.
        budget.charge(self.machine.part.len() * (size_of::<u32>() + size_of::<Frame<N>>()))?;
        let state = self.machine.initial(budget)?;
        reach.passed = 0;
        self.call_until(0);
        let start = Key { level: 0, state, mask: Mask::EMPTY };
        if self.enter(start, 0, 0, 0, budget, reach)? {
            return Ok(true);
        }
        while let Some(frame) = self.stack.last() {
            budget.tick()?;
            let (key, used) = (frame.key, frame.used);
            // The last attempt may have passed returns before it failed.
            self.go_back_to(key.level as usize);
            let Some(Candidate { position, state, used, slot, latest }) = self.candidate(key, used, budget)? else {
                // Every continuation of this configuration fails. The memo records it, so no other path tries it again.
                let order = self.stack.pop().map_or(0, |frame| frame.order);
                self.shorten(order);
                continue;
            };
            let order = self.order.len() as u32;
            self.linearize(position);
            let mut mask = key.mask;
            if let Some(slot) = slot {
                mask.set(slot);
            }
            if self.enter(Key { level: key.level, state, mask }, used, order, latest, budget, reach)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Absorbs operations and passes returns as far as possible, and pushes the resulting configuration if it is new.
    /// Returns `true` when all returns are passed.
    fn enter(
        &mut self,
        mut key: Key<N>,
        used: u32,
        order: u32,
        latest: u64,
        budget: &mut Budget,
        reach: &mut Reach,
    ) -> Result<bool, Exhausted> {
        // Passing a return opens further operations, which may be absorbed in turn, so this is a loop.
        loop {
            self.absorb(&mut key, budget)?;
            let level = self.level;
            while self.level < self.events.returns.len() {
                let Place::Slot(slot) = self.events.places[self.events.returns[self.level] as usize] else { break };
                if !key.mask.has(slot) {
                    break;
                }
                // A later call reuses the slot; with a stale bit it would count as linearized.
                key.mask.clear(slot);
                self.advance(slot);
                self.note_entry(key, used, budget)?;
            }
            if self.level == level {
                break;
            }
        }
        key.level = self.level as u32;
        // The furthest level of any path. If all paths fail, the culprit is the return after it.
        reach.passed = reach.passed.max(self.level);
        if self.level == self.events.returns.len() {
            return Ok(true);
        }
        if self.memo.note(key, used, &self.sets, budget)? {
            self.stack.push(Frame { key, used, order, next: 0, choice: 0, latest });
        } else {
            self.shorten(order);
        }
        Ok(false)
    }

    fn note_entry(&mut self, key: Key<N>, used: u32, budget: &mut Budget) -> Result<(), Exhausted> {
        let Some(entries) = &mut self.entries else { return Ok(()) };
        if entries.len() <= self.level {
            entries.resize_with(self.level + 1, FxHashSet::default);
        }
        budget.charge(HASH_FACTOR * size_of::<(Key<N>, u32)>())?;
        entries[self.level].insert((Key { level: self.level as u32, ..key }, used));
        Ok(())
    }

    /// Linearizes the open operations that never change the state and whose answer is right.
    fn absorb(&mut self, key: &mut Key<N>, budget: &mut Budget) -> Result<(), Exhausted> {
        // The state remains the same, so a single pass finds all of them. If an answer is not right in this state, it
        // may be right in a later one.
        for slot in 0..self.open.len() as u32 {
            let position = self.open[slot as usize];
            if position == VACANT || key.mask.has(slot) || !self.machine.is_pure(position as usize) {
                continue;
            }
            let kind = self.machine.kind(position as usize);
            if self.machine.step(key.state, kind, budget)? == Step::To(key.state) {
                key.mask.set(slot);
                self.linearize(position);
            }
        }
        Ok(())
    }

    /// The next candidate of the configuration on top of the stack.
    fn candidate(&mut self, key: Key<N>, used: u32, budget: &mut Budget) -> Result<Option<Candidate>, Exhausted> {
        let ranks = self.events.returns.len() as u32;
        loop {
            let Some(&Frame { next, choice, latest, .. }) = self.stack.last() else { return Ok(None) };
            // Open operations are tried before pending ones, because a configuration with fewer used pending operations
            // makes more others superfluous.
            let (number, slot, position, used) = if let Some((rank, slot)) = self.open_from(next, key.mask) {
                (rank, Some(slot), self.open[slot as usize], used)
            } else {
                let Some((kind, position)) = self.pending_from(next.saturating_sub(ranks), used) else {
                    return Ok(None);
                };
                (ranks + kind, None, position, self.sets.with(used, kind, budget)?)
            };
            // `choice` belongs to the candidate `next`. If `next` is not a candidate here, `number` is a later
            // candidate, and none of its choices was tried.
            let choice = if number == next { choice } else { 0 };
            let latest = self.foresee(position, latest);
            let step = self.machine.step(key.state, self.machine.kind(position as usize), budget)?;
            let state = match step {
                Step::Illegal => None,
                Step::To(state) => (choice == 0).then_some(state),
                Step::Choice(states) => self.machine.choice(states).get(choice as usize).copied(),
            };
            let Some(frame) = self.stack.last_mut() else { return Ok(None) };
            let (Some(state), Some(latest)) = (state, latest) else {
                (frame.next, frame.choice) = (number + 1, 0);
                continue;
            };
            // The same candidate is tried again with its next choice. If it has none, the code above goes on to the
            // next candidate.
            (frame.next, frame.choice) = (number, choice + 1);
            // A pending operation without effect is as good as one that never happened.
            if slot.is_none() && state == key.state {
                continue;
            }
            return Ok(Some(Candidate { position, state, used, slot, latest }));
        }
    }

    /// The new [`Frame::latest`] after the operation; `None` if the operation cannot come next.
    fn foresee(&self, position: u32, latest: u64) -> Option<u64> {
        let Some(foresight) = &self.foresight else { return Some(latest) };
        let Some(number) = foresight.brings(position) else { return Some(latest) };
        foresight.bring(position, number, self.brought[number], latest)
    }

    /// Appends the operation to the order.
    fn linearize(&mut self, position: u32) {
        self.order.push(position);
        if let Some(value) = self.foresight.as_ref().and_then(|foresight| foresight.brings(position)) {
            self.brought[value] += 1;
        }
    }

    /// Truncates the order to a length.
    fn shorten(&mut self, order: u32) {
        if let Some(foresight) = &self.foresight {
            for value in self.order[order as usize..].iter().filter_map(|&position| foresight.brings(position)) {
                self.brought[value] -= 1;
            }
        }
        self.order.truncate(order as usize);
    }

    /// The open operation with the lowest rank from `next` on that is not linearized and can change the state.
    fn open_from(&self, next: u32, mask: Mask<N>) -> Option<(u32, u32)> {
        // A linear scan suffices: there are at most as many open operations as clients, and the set changes at each
        // step.
        let open = self.open.iter().enumerate().filter(|&(slot, &position)| {
            position != VACANT && !mask.has(slot as u32) && !self.machine.is_pure(position as usize)
        });
        let ranked = open.map(|(slot, &position)| (self.events.ranks[position as usize], slot as u32));
        ranked.filter(|&(rank, _)| rank >= next).min()
    }

    /// The first kind from `next` on with a called, unused pending operation, and that operation.
    fn pending_from(&self, next: u32, used: u32) -> Option<(u32, u32)> {
        (next..self.pending.len() as u32).find_map(|kind| {
            // Pending operations of a kind are used in the order of their calls, so the number of used ones is the
            // index of the next.
            let count = self.sets.count(used, kind);
            (count < self.pending[kind as usize]).then(|| (kind, self.events.pending[kind as usize][count as usize]))
        })
    }

    /// Opens the operations called before the return of this level, or at its time.
    fn call_until(&mut self, level: usize) {
        let before = if level == 0 { 0 } else { self.events.called[level - 1] };
        let Some(&called) = self.events.called.get(level) else { return };
        for position in before..called {
            match self.events.places[position as usize] {
                Place::Slot(slot) => self.open[slot as usize] = position,
                Place::Pending(kind) => self.pending[kind as usize] += 1,
                Place::Nowhere => {}
            }
        }
    }

    /// Passes the next return.
    fn advance(&mut self, slot: u32) {
        self.open[slot as usize] = VACANT;
        self.level += 1;
        self.call_until(self.level);
    }

    /// Undoes the returns from `level` on.
    fn go_back_to(&mut self, level: usize) {
        while self.level > level {
            // The calls of this level are undone first, and then the return before them, because a call may have reused
            // the slot of that return.
            if self.level < self.events.called.len() {
                for position in (self.events.called[self.level - 1]..self.events.called[self.level]).rev() {
                    match self.events.places[position as usize] {
                        Place::Slot(slot) => self.open[slot as usize] = VACANT,
                        Place::Pending(kind) => self.pending[kind as usize] -= 1,
                        Place::Nowhere => {}
                    }
                }
            }
            self.level -= 1;
            let position = self.events.returns[self.level];
            if let Place::Slot(slot) = self.events.places[position as usize] {
                self.open[slot as usize] = position;
            }
        }
    }
}
