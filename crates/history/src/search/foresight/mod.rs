//! What answers tell of earlier operations, so that the search turns back before it meets the answer.

mod broadcast;
mod container;

use crate::budget::{Budget, Exhausted};
use crate::part::Part;
use crate::spec::{Discipline, Spec};

use broadcast::Broadcast;
use container::Container;

/// What is foreseen, by the object's discipline.
pub(super) enum Foresight {
    Container(Container),
    Broadcast(Broadcast),
}

impl Foresight {
    pub(super) fn new<S: Spec>(part: &Part<'_>, spec: &S, budget: &mut Budget) -> Result<Option<Self>, Exhausted> {
        Ok(match spec.discipline() {
            None => None,
            Some(Discipline::Broadcast) => Some(Foresight::Broadcast(Broadcast::new(part, spec, budget)?)),
            Some(discipline) => Container::new(part, discipline, budget)?.map(Foresight::Container),
        })
    }

    /// Whether there is an answer that nothing can have brought about.
    pub(super) fn contradicts(&self) -> bool {
        match self {
            Foresight::Container(container) => container.contradicts(),
            Foresight::Broadcast(broadcast) => broadcast.contradicts(),
        }
    }

    /// Whether the search turns back before the event that cannot be explained.
    pub(super) fn turns_back(&self) -> bool {
        match self {
            Foresight::Container(container) => container.turns_back(),
            Foresight::Broadcast(_) => true,
        }
    }

    /// The number under which the walk counts what the position brings; `None` if it brings nothing.
    #[inline]
    pub(super) fn brings(&self, position: u32) -> Option<usize> {
        match self {
            Foresight::Container(container) => container.brings(position),
            Foresight::Broadcast(broadcast) => broadcast.brings(position).map(|_| 0),
        }
    }

    /// How many such numbers there are.
    pub(super) fn numbers(&self) -> usize {
        match self {
            Foresight::Container(container) => container.values(),
            Foresight::Broadcast(_) => 1,
        }
    }

    /// The position brings what `count` operations of its `number` brought before. The result is what `latest` is then, a moment
    /// before which not everything that is in can be out; `None` if the position cannot come next.
    pub(super) fn bring(&self, position: u32, number: usize, count: u32, latest: u64) -> Option<u64> {
        match self {
            Foresight::Container(container) => container.bring(number, count, latest),
            Foresight::Broadcast(broadcast) => broadcast.allows(position, count).then_some(latest),
        }
    }

    /// The rank of each position that returns; the lowest is tried first. `returns` are in order of time.
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
