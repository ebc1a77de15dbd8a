//! The latest values of a long history.
//!
//! The values that pending removals take usually matter only near the end. If the whole history has an order, so has
//! the history of a subset of its values. So if the latest values fail, the whole history fails.

use super::super::life::{Core, Life};
use super::super::span::Span;

/// The number of removed values among the latest; small in tests, whose histories are short.
const REMOVED: usize = if cfg!(test) { 2 } else { 2048 };

/// The maximum number of staying values among the latest. If more stay, all values are searched.
const MAX_STAYING: usize = 2 * REMOVED;

/// The values removed last, the values that stay, and the latest empty removals, in the order of the whole history.
pub(super) struct Recent {
    pub(super) lives: Vec<Life>,
    pub(super) empties: Vec<Span>,
    /// The indices of the lives among all lives.
    lives_at: Vec<u32>,
    empties_at: Vec<u32>,
}

impl Recent {
    /// `None` if this would leave out few of the values, or if too many values stay.
    pub(super) fn of(lives: &[Life], empties: &[Span]) -> Option<Self> {
        let mut removed: Vec<u32> = lives.iter().filter(|life| !life.stays()).map(|life| life.remove.ret).collect();
        let staying = lives.len() - removed.len();
        if removed.len() < 2 * REMOVED || staying > MAX_STAYING {
            return None;
        }
        let place = removed.len() - REMOVED;
        let since = *removed.select_nth_unstable(place).1;
        let lives_at: Vec<u32> = (0..lives.len() as u32).filter(|&i| lives[i as usize].remove.ret >= since).collect();
        let empties_at: Vec<u32> = (0..empties.len() as u32).filter(|&e| empties[e as usize].ret >= since).collect();
        Some(Recent::at(lives_at, empties_at, lives, empties))
    }

    fn at(lives_at: Vec<u32>, empties_at: Vec<u32>, lives: &[Life], empties: &[Span]) -> Self {
        Recent {
            lives: lives_at.iter().map(|&i| lives[i as usize]).collect(),
            empties: empties_at.iter().map(|&e| empties[e as usize]).collect(),
            lives_at,
            empties_at,
        }
    }

    /// Adds the values and empty removals of `core`, which is the core of a failure of the whole history.
    pub(super) fn add(&mut self, core: &Core, lives: &[Life], empties: &[Span]) {
        let union = |ours: &[u32], others: &[u32]| {
            let mut all = [ours, others].concat();
            all.sort_unstable();
            all.dedup();
            all
        };
        let (lives_at, empties_at) = (union(&self.lives_at, &core.lives), union(&self.empties_at, &core.empties));
        *self = Recent::at(lives_at, empties_at, lives, empties);
    }

    /// Translates the hinted values from indices among all to indices among the latest.
    pub(super) fn hints(&self, hints: &[Option<u32>]) -> Vec<Option<u32>> {
        let among_latest = |&i: &u32| self.lives_at.binary_search(&i).ok().map(|at| at as u32);
        hints.iter().map(|hint| hint.as_ref().and_then(among_latest)).collect()
    }

    /// Translates the taken values from indices among the latest to indices among all.
    pub(super) fn taken_of_all(&self, taken: &[Option<u32>]) -> Vec<Option<u32>> {
        taken.iter().map(|life| life.map(|i| self.lives_at[i as usize])).collect()
    }

    /// Translates a core from indices among the latest to indices among all.
    pub(super) fn among_all(&self, core: &Core) -> Core {
        Core {
            lives: core.lives.iter().map(|&i| self.lives_at[i as usize]).collect(),
            empties: core.empties.iter().map(|&e| self.empties_at[e as usize]).collect(),
        }
    }
}
