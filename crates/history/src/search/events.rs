//! The part as a sequence of events: returns in order of time, and the calls between them.

use rustc_hash::FxHashMap;

use super::foresight::Foresight;
use super::machine::Machine;
use crate::budget::{Budget, Exhausted};
use crate::history::PENDING;
use crate::part::Part;

/// Where the search represents an open operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The operation returns, and occupies this slot until then.
    Slot(u32),
    /// The operation is pending to the end. The number identifies its kind among the kinds of pending operations.
    Pending(u32),
    /// The operation is pending to the end and has no effect: it is left out.
    Nowhere,
}

/// Events of a part, and the slots of its operations.
pub(super) struct Events {
    /// Positions in order of their returns.
    pub(super) returns: Vec<u32>,
    /// For each return, the number of operations called before it or at the same time.
    pub(super) called: Vec<u32>,
    pub(super) places: Vec<Place>,
    /// For each kind of pending operation, the positions of that kind.
    pub(super) pending: Vec<Vec<u32>>,
    /// For each position that returns, its rank: candidates are tried in order of rank.
    pub(super) ranks: Vec<u32>,
    slots: u32,
}

impl Events {
    pub(super) fn new(
        part: &Part<'_>,
        foresight: Option<&Foresight>,
        machine: &Machine<'_>,
        budget: &mut Budget,
    ) -> Result<Self, Exhausted> {
        budget.charge(part.len() * (5 * size_of::<u32>() + size_of::<u64>() + size_of::<Place>()))?;
        let mut returns: Vec<u32> = (0..part.len() as u32).filter(|&p| part.ret(p as usize) != PENDING).collect();
        returns.sort_by_key(|&p| part.ret(p as usize));
        let mut events = Events {
            returns: Vec::new(),
            called: Vec::with_capacity(returns.len()),
            places: Vec::with_capacity(part.len()),
            pending: Vec::new(),
            ranks: ranks(part, foresight, &returns),
            slots: 0,
        };
        let mut free = Vec::new();
        let mut kinds = FxHashMap::default();
        for &position in &returns {
            // An operation called at the time of the return overlaps the one that returns, so it opens before the
            // return is passed.
            while events.places.len() < part.len() && part.call(events.places.len()) <= part.ret(position as usize) {
                let place = events.place(part, machine, &mut free, &mut kinds);
                events.places.push(place);
            }
            events.called.push(events.places.len() as u32);
            let Place::Slot(slot) = events.places[position as usize] else { unreachable!("it returns") };
            // The next call reuses the slot. So there are only as many slots as operations open at once, which keeps
            // masks small.
            free.push(slot);
        }
        events.returns = returns;
        Ok(events)
    }

    /// The place of the operation at the first position that has no place yet.
    fn place(
        &mut self,
        part: &Part<'_>,
        machine: &Machine<'_>,
        free: &mut Vec<u32>,
        kinds: &mut FxHashMap<u32, u32>,
    ) -> Place {
        let position = self.places.len();
        if part.ret(position) != PENDING {
            return Place::Slot(free.pop().unwrap_or_else(|| {
                self.slots += 1;
                self.slots - 1
            }));
        }
        // A pure operation without an answer changes nothing that any operation could observe.
        if machine.is_pure(position) {
            return Place::Nowhere;
        }
        let kind = *kinds.entry(machine.kind(position)).or_insert(self.pending.len() as u32);
        if kind as usize == self.pending.len() {
            self.pending.push(Vec::new());
        }
        self.pending[kind as usize].push(position as u32);
        Place::Pending(kind)
    }

    /// The maximum number of operations open at once, without those that never return.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }
}

/// Ranks the positions. Without foresight, the operation that returns first is tried first.
fn ranks(part: &Part<'_>, foresight: Option<&Foresight>, returns: &[u32]) -> Vec<u32> {
    if let Some(foresight) = foresight {
        return foresight.ranks(part, returns);
    }
    let mut ranks = vec![u32::MAX; part.len()];
    for (rank, &position) in returns.iter().enumerate() {
        ranks[position as usize] = rank as u32;
    }
    ranks
}
