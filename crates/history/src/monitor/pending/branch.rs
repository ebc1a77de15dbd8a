//! The search for the values that pending removals take: the steps that [`pending`](super) describes.
//!
//! The search is exhaustive. Suppose that the current choice fails with some core, and that an extension of the choice
//! has a legal order. That order contains a legal order of the core's values, so in the extension some removal takes a
//! staying value of the core. The search tries each of these values. Conversely, if a choice has a legal order, the
//! pending removals may have taken its values.

use super::super::Undecided;
use super::super::container::Container;
use super::super::life::{Core, Life, Step};
use super::super::span::Span;
use super::{Answer, Pending};
use crate::budget::{Budget, Exhausted};

/// The maximum number of runs of the procedure before the question is left open.
const MAX_ATTEMPTS: usize = 512;

/// The maximum number of lives and empty removals in all runs together before the question is left open.
const MAX_LIVES: usize = 1_000_000;

/// Decides a history of a container other than a queue, or leaves it open.
pub(super) fn branch(
    container: Container,
    pending: &Pending<'_>,
    lives: &[Life],
    empties: &[Span],
    budget: &mut Budget,
) -> Result<Answer, Undecided> {
    let mut taken = pending.hinted(lives);
    let hinted = pending.without(lives, &taken);
    let core = match container.decide(&hinted, empties) {
        Ok(steps) => return Ok(Answer { outcome: Ok(steps), taken }),
        Err(core) => core,
    };
    budget.look_at_the_clock()?;
    let all_gone: Vec<Life> =
        lives.iter().map(|life| if life.stays() { pending.take(life, 0) } else { *life }).collect();
    if let Err(core) = container.decide(&all_gone, empties) {
        return Ok(Answer { outcome: Err(core), taken });
    }

    let mut search = Search { container, pending, lives: hinted, empties, budget, attempts: 0, core: Core::default() };
    search.give_up(&core, lives, &mut taken);
    let is_whole = taken.iter().all(Option::is_none);
    let mut found = search.attempt(&mut taken)?;
    if !is_whole && !matches!(found, Found::Order(_)) {
        // This failure applies only to the values that the removals already have. With other values there may be an
        // order.
        search.lives.copy_from_slice(lives);
        search.core = Core::default();
        search.attempts = 0;
        taken.fill(None);
        found = search.attempt(&mut taken)?;
    }
    match found {
        Found::Order(steps) => Ok(Answer { outcome: Ok(steps), taken }),
        Found::None => Ok(Answer { outcome: Err(search.core), taken }),
        Found::LimitReached => Err(Undecided::Open),
    }
}

struct Search<'a> {
    container: Container,
    pending: &'a Pending<'a>,
    /// The lives, with the current choice of values for the removals.
    lives: Vec<Life>,
    empties: &'a [Span],
    budget: &'a mut Budget,
    attempts: usize,
    /// All lives and empty removals in the core of some failure.
    core: Core,
}

/// The result of trying a choice and all its extensions.
enum Found {
    Order(Vec<Step>),
    None,
    LimitReached,
}

impl Search<'_> {
    /// Removes the values of a failure's core from the choice.
    fn give_up(&mut self, core: &Core, lives: &[Life], taken: &mut [Option<u32>]) {
        for value in taken {
            if let Some(i) = value.filter(|i| core.lives.contains(i)) {
                self.lives[i as usize] = lives[i as usize];
                *value = None;
            }
        }
    }

    /// Tries the choice and all its extensions.
    fn attempt(&mut self, taken: &mut [Option<u32>]) -> Result<Found, Exhausted> {
        self.budget.look_at_the_clock()?;
        self.attempts += 1;
        if self.attempts > MAX_ATTEMPTS || self.attempts * (self.lives.len() + self.empties.len()) > MAX_LIVES {
            return Ok(Found::LimitReached);
        }
        match self.container.decide(&self.lives, self.empties) {
            Ok(steps) => Ok(Found::Order(steps)),
            Err(core) => self.take_one_of(core, taken),
        }
    }

    /// The last return of the core's removals.
    fn over(&self, core: &Core) -> u32 {
        let removals = core.lives.iter().map(|&i| self.lives[i as usize]).filter(|life| !life.stays());
        let returns = removals.map(|life| life.remove.ret);
        returns.chain(core.empties.iter().map(|&e| self.empties[e as usize].ret)).max().unwrap_or(u32::MAX)
    }

    /// Tries each pending removal without a value with each staying value of the core in turn. As long as none of these
    /// values is taken, the core fails.
    fn take_one_of(&mut self, core: Core, taken: &mut [Option<u32>]) -> Result<Found, Exhausted> {
        // A pending removal cannot help if it is called after all removals of the core have returned.
        let over = self.over(&core);
        for &i in &core.lives {
            let whole = self.lives[i as usize];
            if !whole.stays() {
                continue;
            }
            // The latest removal is tried first. An earlier one can take more of the values, so it is kept for them.
            for removal in (0..taken.len()).rev() {
                if taken[removal].is_some() || self.pending.calls[removal] > over {
                    continue;
                }
                self.lives[i as usize] = self.pending.take(&whole, removal);
                taken[removal] = Some(i);
                match self.attempt(taken)? {
                    Found::None => {}
                    found => return Ok(found),
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
        Ok(Found::None)
    }
}
