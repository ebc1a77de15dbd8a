//! Removals that never returned: each may have taken any value, or none.
//!
//! To take a value that nothing else removes only widens what is possible for that value, so the question is
//! which values the pending removals should take.
//!
//! For a *queue* the answer is plain: the values that stay, in order of their insertions' returns, are taken by
//! the pending removals in order of their calls. A value that is needed gone draws those inserted before it
//! along, and the time by which a value must be gone never falls along that order.
//!
//! For a *priority queue* deadlines tell (see [`deadlines`](super::deadlines)).
//!
//! For a *stack* the core of a failure tells: one of its values must be taken, whatever else is done, or the
//! failure remains. The alternatives are tried in turn, within bounds; a history that needs more is left to the
//! general search. In the prefix of a longer history it is known what each removal took in the end, and that is
//! tried first. In a long history the alternatives are tried on its latest values (see [`recent`](super::recent)):
//! what fails there fails, what stays open there is open, and what holds is tried on all. If that fails, what it fails with
//! belongs to the few from then on.

use super::Undecided;
use super::life::{Core, Life, Outcome, Step};
use super::recent::Recent;
use super::span::Span;
use super::{queue, stack};
use crate::budget::{Budget, Exhausted};

/// Runs of the procedure before the question is left open.
const ATTEMPTS_MOST: usize = 512;

/// How often all values are gone through before the question is left open.
const ROUNDS_MOST: usize = 8;

/// Lives and removals that found nothing that the procedure is run on, over all attempts, before the question is left open.
const LIVES_MOST: usize = 1_000_000;

/// Pending removals, in order of their calls.
pub(crate) struct Pending<'a> {
    /// The ranks of their calls.
    pub(crate) calls: &'a [u32],
    /// The rank after the last event.
    pub(crate) end: u32,
    /// For each, the value to try first: in the prefix of a history, what it took later on.
    pub(crate) hints: &'a [Option<u32>],
}

/// What was decided, and which value each pending removal takes.
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) taken: Vec<Option<u32>>,
}

impl Pending<'_> {
    /// Gives the value that stays to a removal, or finds it staying.
    fn take(&self, life: &Life, removal: usize) -> Life {
        Life::new(life.insert, Span { call: self.calls[removal], ret: self.end })
    }

    /// What the hints say, of values that stay, to one removal each.
    pub(super) fn hinted(&self, lives: &[Life]) -> Vec<Option<u32>> {
        let mut taken = vec![None; self.calls.len()];
        for (removal, &hint) in self.hints.iter().enumerate() {
            taken[removal] = hint.filter(|&i| lives[i as usize].stays() && !taken.contains(&hint));
        }
        taken
    }

    /// The lives when the removals have taken these.
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
        // Without the values that were taken, the removals would be free to take those of the core.
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
        for _ in 0..ROUNDS_MOST {
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

    /// Tries what the hints say first, and then the alternatives.
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
        // If it fails even when every value that stays is taken by the first of the removals, it fails.
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
    /// All that took part in a failure.
    core: Core,
}

enum Branch {
    Holds(Vec<Step>),
    Fails,
    Open,
}

impl Search<'_> {
    /// Leaves untaken what takes part in a failure.
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
        if self.attempts > ATTEMPTS_MOST || self.attempts * (self.lives.len() + self.empties.len()) > LIVES_MOST {
            return Ok(Branch::Open);
        }
        match stack::decide(&self.lives, self.empties) {
            Ok(steps) => Ok(Branch::Holds(steps)),
            Err(core) => self.take_one_of(core, taken),
        }
    }
}
