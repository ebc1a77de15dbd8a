//! Pending removals: each may have taken any value, or none.
//!
//! To take a value that no other operation removes only widens the possibilities of that value, so the question is
//! which values the pending removals should take.
//!
//! For a *queue* the answer is simple: the values that stay, in order of their insertions' returns, are taken by the
//! pending removals in order of their calls. If a value has to be gone, the values inserted before it have to be, too,
//! and the time by which a value must be gone never decreases along that order.
//!
//! For a *priority queue* deadlines decide (see [`deadlines`](super::deadlines)).
//!
//! For a *stack* the core of a failure decides: one of its values must be taken, or the failure remains. The
//! alternatives are tried in turn, within limits; a history that needs more is left to the general search. In the
//! prefix of a longer history the value that each removal took in the end is known, and is tried first. In a long
//! history the alternatives are tried on its latest values (see [`recent`](super::recent)): a failure there is a
//! failure of the whole, an open question there stays open, and an assignment that holds is tried on the whole. If it
//! fails there, the values of that failure join the latest ones from then on.

use super::Undecided;
use super::life::{Core, Life, Outcome, Step};
use super::recent::Recent;
use super::span::Span;
use super::{queue, stack};
use crate::budget::{Budget, Exhausted};

/// The maximum number of runs of the procedure before the question is left open.
const MAX_ATTEMPTS: usize = 512;

/// The maximum number of passes over all values before the question is left open.
const MAX_ROUNDS: usize = 8;

/// The maximum number of lives and empty removals in all runs together before the question is left open.
const MAX_LIVES: usize = 1_000_000;

/// Pending removals, in order of their calls.
pub(crate) struct Pending<'a> {
    /// The ranks of their calls.
    pub(crate) calls: &'a [u32],
    /// The rank after the last event.
    pub(crate) end: u32,
    /// For each, the value to try first: in the prefix of a history, the value that it took later.
    pub(crate) hints: &'a [Option<u32>],
}

/// The decision, and the value that each pending removal takes.
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) taken: Vec<Option<u32>>,
}

impl Pending<'_> {
    /// The life of a value that stays, given to a removal.
    fn take(&self, life: &Life, removal: usize) -> Life {
        Life::new(life.insert, Span { call: self.calls[removal], ret: self.end })
    }

    /// The hinted values, if they stay, each for one removal.
    pub(super) fn hinted(&self, lives: &[Life]) -> Vec<Option<u32>> {
        let mut taken = vec![None; self.calls.len()];
        for (removal, &hint) in self.hints.iter().enumerate() {
            taken[removal] = hint.filter(|&i| lives[i as usize].stays() && !taken.contains(&hint));
        }
        taken
    }

    /// The lives after the removals have taken these.
    pub(super) fn without(&self, lives: &[Life], taken: &[Option<u32>]) -> Vec<Life> {
        let mut lives = lives.to_vec();
        for (removal, &i) in taken.iter().enumerate() {
            if let Some(i) = i {
                lives[i as usize] = self.take(&lives[i as usize], removal);
            }
        }
        lives
    }

    /// Decides a history of a queue.
    pub(crate) fn decide_in_order(&self, lives: &[Life], empties: &[Span]) -> Answer {
        let mut lives = lives.to_vec();
        let mut staying: Vec<u32> = (0..lives.len() as u32).filter(|&i| lives[i as usize].stays()).collect();
        staying.sort_unstable_by_key(|&i| lives[i as usize].insert.ret);
        let mut taken = vec![None; self.calls.len()];
        for (removal, &i) in staying.iter().take(self.calls.len()).enumerate() {
            lives[i as usize] = self.take(&lives[i as usize], removal);
            taken[removal] = Some(i);
        }
        // Without the taken values, the removals would be free to take those of the core.
        let outcome = queue::decide(&lives, empties).map_err(|mut core| {
            core.lives.extend(taken.iter().flatten());
            core.lives.sort_unstable();
            core.lives.dedup();
            core
        });
        Answer { outcome, taken }
    }

    /// Decides a history of a stack, or leaves the question open.
    pub(crate) fn decide_by_search(
        &self,
        lives: &[Life],
        empties: &[Span],
        budget: &mut Budget,
    ) -> Result<Answer, Undecided> {
        if self.calls.is_empty() {
            return Ok(Answer { outcome: stack::decide(lives, empties), taken: Vec::new() });
        }
        let Some(mut recent) = Recent::of(lives, empties) else { return self.try_all(lives, empties, budget) };
        let hints = recent.hints(self.hints);
        let mut few = Pending { hints: &hints, ..*self }.try_all(&recent.lives, &recent.empties, budget)?;
        for _ in 0..MAX_ROUNDS {
            if let Err(core) = &few.outcome {
                return Ok(Answer { outcome: Err(recent.among_all(core)), taken: vec![None; self.calls.len()] });
            }
            let taken = recent.taken_of_all(&few.taken);
            match stack::decide(&self.without(lives, &taken), empties) {
                Ok(steps) => return Ok(Answer { outcome: Ok(steps), taken }),
                Err(core) => recent.add(&core, lives, empties),
            }
            budget.look_at_the_clock()?;
            let hints = recent.hints(&taken);
            few = Pending { hints: &hints, ..*self }.try_all(&recent.lives, &recent.empties, budget)?;
        }
        Err(Undecided::Open)
    }

    /// Tries the hints first, and then the alternatives.
    fn try_all(&self, lives: &[Life], empties: &[Span], budget: &mut Budget) -> Result<Answer, Undecided> {
        let mut taken = self.hinted(lives);
        let mut search = Search {
            pending: self,
            lives: self.without(lives, &taken),
            empties,
            budget,
            attempts: 0,
            core: Core::default(),
        };
        let core = match stack::decide(&search.lives, empties) {
            Ok(steps) => return Ok(Answer { outcome: Ok(steps), taken }),
            Err(core) => core,
        };
        search.budget.look_at_the_clock()?;
        // If it fails even when the first of the removals takes every value that stays, it fails.
        let every = lives.iter().map(|life| if life.stays() { self.take(life, 0) } else { *life });
        if let Err(core) = stack::decide(&every.collect::<Vec<_>>(), empties) {
            return Ok(Answer { outcome: Err(core), taken });
        }
        search.give_up(&core, lives, &mut taken);
        let is_whole = taken.iter().all(Option::is_none);
        let mut found = search.branch(&mut taken)?;
        if !is_whole && !matches!(found, Branch::Holds(_)) {
            search.lives.copy_from_slice(lives);
            search.core = Core::default();
            search.attempts = 0;
            taken.fill(None);
            found = search.branch(&mut taken)?;
        }
        match found {
            Branch::Holds(steps) => Ok(Answer { outcome: Ok(steps), taken }),
            Branch::Fails => Ok(Answer { outcome: Err(search.core), taken }),
            Branch::Open => Err(Undecided::Open),
        }
    }
}

struct Search<'a> {
    pending: &'a Pending<'a>,
    lives: Vec<Life>,
    empties: &'a [Span],
    budget: &'a mut Budget,
    attempts: usize,
    /// All lives that took part in a failure.
    core: Core,
}

enum Branch {
    Holds(Vec<Step>),
    Fails,
    Open,
}

impl Search<'_> {
    /// Takes back from the removals the values that take part in a failure.
    fn give_up(&mut self, core: &Core, lives: &[Life], taken: &mut [Option<u32>]) {
        for value in taken {
            if let Some(i) = value.filter(|i| core.lives.contains(i)) {
                self.lives[i as usize] = lives[i as usize];
                *value = None;
            }
        }
    }

    /// Tries every way to take a value of the core, which fails as long as none is taken.
    fn take_one_of(&mut self, core: Core, taken: &mut [Option<u32>]) -> Result<Branch, Exhausted> {
        for &i in &core.lives {
            let whole = self.lives[i as usize];
            if !whole.stays() {
                continue;
            }
            for removal in (0..taken.len()).rev() {
                if taken[removal].is_some() {
                    continue;
                }
                self.lives[i as usize] = self.pending.take(&whole, removal);
                taken[removal] = Some(i);
                match self.branch(taken)? {
                    Branch::Fails => {}
                    answer => return Ok(answer),
                }
                taken[removal] = None;
            }
            self.lives[i as usize] = whole;
        }
        for (all, new) in [(&mut self.core.lives, core.lives), (&mut self.core.empties, core.empties)] {
            all.extend(new);
            all.sort_unstable();
            all.dedup();
        }
        Ok(Branch::Fails)
    }

    fn branch(&mut self, taken: &mut [Option<u32>]) -> Result<Branch, Exhausted> {
        self.budget.look_at_the_clock()?;
        self.attempts += 1;
        if self.attempts > MAX_ATTEMPTS || self.attempts * (self.lives.len() + self.empties.len()) > MAX_LIVES {
            return Ok(Branch::Open);
        }
        match stack::decide(&self.lives, self.empties) {
            Ok(steps) => Ok(Branch::Holds(steps)),
            Err(core) => self.take_one_of(core, taken),
        }
    }
}
