//! The order of outputs: the outputs of a unit are due when all units before it have left the flow.
//!
//! Units are ordered by their admission. The pieces of a unit take its place, in the order in which they were cut.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A place in the order, as a list of numbers. A unit that is not a piece has one number, for example 5. The keys of
/// its pieces are 5-0-0, 5-1-0 and so on. After two pieces, the key of the unit itself is 5-2, so the unit comes after
/// these pieces and before unit 6. A piece of a piece has two more numbers in the same way.
type Key = Vec<u64>;

/// Units by their places, and the outputs that wait for earlier units.
#[derive(Debug)]
pub(super) struct Order<T> {
    /// The number of the next unit.
    next: u64,
    /// The number that serves as the name of the next place.
    next_name: u64,
    /// The keys of units in the flow, by the names of their places.
    keys: HashMap<u64, Key>,
    /// The same keys in their order. The cap on units in flight bounds their number.
    inside: BTreeSet<Key>,
    /// Outputs that are not due, by unit; the outputs of one unit are in the order of their arrival.
    held: BTreeMap<Key, Vec<T>>,
}

impl<T> Order<T> {
    pub(super) fn new() -> Self {
        Self { next: 0, next_name: 0, keys: HashMap::new(), inside: BTreeSet::new(), held: BTreeMap::new() }
    }

    /// Admits a unit; returns the name of its place.
    pub(super) fn enter(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.insert(vec![number])
    }

    /// Adds the next piece of a unit in the flow; returns the name of the piece's place. The unit itself then comes
    /// after the piece.
    pub(super) fn split(&mut self, name: u64) -> u64 {
        let Some(key) = self.keys.get_mut(&name) else { return self.enter() };
        self.inside.remove(key);
        // The length of a key is odd until the first split. From then on it is even, and the last number is that of the
        // next piece.
        let is_first = key.len() % 2 == 1;
        if is_first {
            key.push(0);
        }
        let mut piece = key.clone();
        piece.push(0);
        *key.last_mut().expect("the unit has a place") += 1;
        self.inside.insert(key.clone());
        self.insert(piece)
    }

    fn insert(&mut self, key: Key) -> u64 {
        let name = self.next_name;
        self.next_name += 1;
        self.inside.insert(key.clone());
        self.keys.insert(name, key);
        name
    }

    /// Notes that the unit has left the flow; returns the outputs that become due.
    pub(super) fn leave(&mut self, name: u64) -> Vec<T> {
        if let Some(key) = self.keys.remove(&name) {
            self.inside.remove(&key);
        }
        self.due()
    }

    /// Whether an output of this unit is due now, because no earlier unit is in the flow.
    pub(super) fn is_due(&self, name: u64) -> bool {
        self.keys.get(&name).is_none_or(|key| self.inside.first().is_none_or(|first| key <= first))
    }

    /// Keeps an output until it is due. The unit that has produced it is still in the flow.
    pub(super) fn hold(&mut self, name: u64, output: T) {
        let key = self.keys.get(&name).cloned().unwrap_or_default();
        self.held.entry(key).or_default().push(output);
    }

    /// Removes all held outputs and returns them in order, whether they are due or not.
    pub(super) fn rest(&mut self) -> Vec<T> {
        std::mem::take(&mut self.held).into_values().flatten().collect()
    }

    fn due(&mut self) -> Vec<T> {
        let mut due = Vec::new();
        while let Some(entry) = self.held.first_entry()
            && self.inside.first().is_none_or(|first| entry.key() <= first)
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
    fn pieces_take_the_place_of_their_unit_and_wait_for_no_later_piece() {
        let mut order = Order::new();
        let [first, second] = [order.enter(), order.enter()];
        let [a, b] = [order.split(first), order.split(first)];
        assert!(order.is_due(a) && !order.is_due(b) && !order.is_due(second));
        let [b1, b2] = [order.split(b), order.split(b)];
        order.hold(second, "second");
        order.hold(b2, "b2");
        order.hold(b1, "b1");
        assert_eq!(order.leave(a), ["b1"]);
        let c = order.split(first);
        assert!(!order.is_due(c), "b is in the flow, and may have further pieces");
        assert_eq!(order.leave(b1), ["b2"]);
        assert!(order.leave(b2).is_empty());
        assert!(order.leave(b).is_empty() && order.is_due(c));
        assert!(order.leave(first).is_empty());
        assert_eq!(order.leave(c), ["second"]);
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
