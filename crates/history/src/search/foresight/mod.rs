//! Foresight: answers constrain earlier operations, so the search can turn back long before it reaches the answer.

mod broadcast;
mod container;

use crate::budget::{Budget, Exhausted};
use crate::part::Part;
use crate::spec::{Discipline, DynSpec};

use broadcast::Broadcast;
use container::Container;

/// The foresight for the object's discipline.
pub(super) enum Foresight {
    Container(Container),
    Broadcast(Broadcast),
}

impl Foresight {
    pub(super) fn new(part: &Part<'_>, spec: &dyn DynSpec, budget: &mut Budget) -> Result<Option<Self>, Exhausted> {
        Ok(match spec.discipline() {
            None => None,
            Some(Discipline::Broadcast) => Some(Foresight::Broadcast(Broadcast::new(part, spec, budget)?)),
            Some(discipline) => Container::new(part, discipline, budget)?.map(Foresight::Container),
        })
    }

    /// Whether some answer has no operation that can have caused it, so that every order fails.
    pub(super) fn contradicts(&self) -> bool {
        match self {
            Foresight::Container(container) => container.contradicts(),
            Foresight::Broadcast(broadcast) => broadcast.contradicts(),
        }
    }

    /// Whether the search may turn back before the first event that no order explains.
    pub(super) fn turns_back(&self) -> bool {
        match self {
            Foresight::Container(container) => container.turns_back(),
            Foresight::Broadcast(_) => true,
        }
    }

    /// The number of the value that the position brings; `None` if it brings none. The walk counts how often each
    /// number was brought.
    #[inline]
    pub(super) fn brings(&self, position: u32) -> Option<usize> {
        match self {
            Foresight::Container(container) => container.brings(position),
            Foresight::Broadcast(broadcast) => broadcast.brings(position).map(|_| 0),
        }
    }

    /// The number of distinct values. The values are numbered from 0, so every number is below this.
    pub(super) fn numbers(&self) -> usize {
        match self {
            Foresight::Container(container) => container.values(),
            Foresight::Broadcast(_) => 1,
        }
    }

    /// The new `latest` after the operation at `position` brings the value with this `number`. `count` earlier
    /// operations brought the same value. `latest` is a lower bound: the last of the values brought so far comes out at
    /// `latest` or later. `None` if the operation cannot come next.
    pub(super) fn bring(&self, position: u32, number: usize, count: u32, latest: u64) -> Option<u64> {
        match self {
            Foresight::Container(container) => container.bring(number, count, latest),
            Foresight::Broadcast(broadcast) => broadcast.allows(position, count).then_some(latest),
        }
    }

    /// The rank of each position that returns: the lowest rank is tried first. `returns` are in order of time.
    pub(super) fn ranks(&self, part: &Part<'_>, returns: &[u32]) -> Vec<u32> {
        let keys = match self {
            Foresight::Container(container) => container.keys(part),
            Foresight::Broadcast(_) => (0..part.len()).map(|position| part.ret(position)).collect(),
        };
        let mut order = returns.to_vec();
        order.sort_by_key(|&position| (keys[position as usize], part.ret(position as usize)));
        let mut ranks = vec![u32::MAX; part.len()];
        for (rank, &position) in order.iter().enumerate() {
            ranks[position as usize] = rank as u32;
        }
        ranks
    }
}
