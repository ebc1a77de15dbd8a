//! The order of outputs: a unit's outputs are due when no unit that was admitted before it is in the flow any more.

use std::collections::{BTreeMap, BTreeSet};

/// Units by the number of their admission, and the outputs that wait for those before them.
#[derive(Debug)]
pub(super) struct Order<T> {
    /// The number of the next unit.
    next: u64,
    /// Units in the flow. The cap on units in flight bounds their number.
    inside: BTreeSet<u64>,
    /// Outputs that are not due, by their unit; those of one unit in the order of their arrival.
    held: BTreeMap<u64, Vec<T>>,
}

impl<T> Order<T> {
    pub(super) fn new() -> Self {
        Self { next: 0, inside: BTreeSet::new(), held: BTreeMap::new() }
    }

    /// Admits a unit; its number.
    pub(super) fn enter(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.inside.insert(number);
        number
    }

    /// The unit has left the flow; the outputs that are due by that.
    pub(super) fn leave(&mut self, number: u64) -> Vec<T> {
        self.inside.remove(&number);
        self.due()
    }

    /// Whether outputs of this unit have to wait for no other.
    pub(super) fn is_due(&self, number: u64) -> bool {
        number <= self.first()
    }

    /// Takes an output of a unit in the flow that has to wait.
    pub(super) fn hold(&mut self, number: u64, output: T) {
        self.held.entry(number).or_default().push(output);
    }

    /// The first unit in the flow.
    fn first(&self) -> u64 {
        self.inside.first().copied().unwrap_or(self.next)
    }

    /// All that is held, in order, whether it is due or not.
    pub(super) fn rest(&mut self) -> Vec<T> {
        std::mem::take(&mut self.held).into_values().flatten().collect()
    }

    fn due(&mut self) -> Vec<T> {
        let (mut due, first) = (Vec::new(), self.first());
        while let Some(entry) = self.held.first_entry()
            && *entry.key() <= first
        {
            due.append(&mut entry.remove());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::Order;

    #[test]
    fn outputs_wait_for_the_units_before_theirs() {
        let mut order = Order::new();
        let units: Vec<u64> = (0..4).map(|_| order.enter()).collect();
        assert!(order.is_due(units[0]) && !order.is_due(units[1]) && !order.is_due(units[2]));
        order.hold(units[2], "c");
        order.hold(units[1], "b");
        assert_eq!(order.leave(units[2]), [""; 0]);
        assert_eq!(order.leave(units[0]), ["b"]);
        assert!(order.is_due(units[1]) && !order.is_due(units[3]));
        assert_eq!(order.leave(units[1]), ["c"], "the unit of c has left, and the one after it is the first");
        assert!(order.is_due(units[3]));
    }

    #[test]
    fn a_unit_that_leaves_without_output_holds_none_back() {
        let mut order = Order::new();
        let units: Vec<u64> = (0..1000).map(|_| order.enter()).collect();
        for &unit in &units[1..] {
            order.hold(unit, unit);
            assert!(order.leave(unit).is_empty());
        }
        assert_eq!(order.leave(units[0]), units[1..]);
        assert!(order.rest().is_empty());
    }

    #[test]
    fn the_rest_comes_in_order() {
        let mut order = Order::new();
        let units: Vec<u64> = (0..3).map(|_| order.enter()).collect();
        order.hold(units[2], 2);
        order.hold(units[1], 1);
        assert_eq!(order.rest(), [1, 2]);
    }
}
