//! Broadcasts: each consumer takes all events in the order of publication, so its answers show that order.
//!
//! Operations of a consumer that do not overlap show which event is the first, the second, and so on. Where operations
//! overlap, only their number is known, which suffices to continue counting after them. After a pending operation, the
//! count of its consumer is unknown.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::budget::{Budget, Exhausted};
use crate::part::Part;
use crate::spec::DynSpec;
use crate::value::Value;

/// The known part of the order of events.
pub(in crate::search) struct Broadcast {
    /// For each position, the event that it brings; null if it brings none.
    brings: Vec<Value>,
    /// The events whose place in the order of publication is known, by place.
    places: FxHashMap<u32, Value>,
    contradicts: bool,
}

/// The state of a consumer after its operations up to a position.
#[derive(Default)]
struct Consumer {
    /// The number of events taken before the current group of overlapping operations.
    taken: u32,
    /// The events taken by the current group.
    overlapping: Vec<Value>,
    /// The latest return of the consumer's operations.
    until: u64,
    /// Whether the consumer had a pending operation.
    is_lost: bool,
}

impl Broadcast {
    pub(super) fn new(part: &Part<'_>, spec: &dyn DynSpec, budget: &mut Budget) -> Result<Self, Exhausted> {
        budget.charge(part.len() * 4 * size_of::<Value>())?;
        let mut broadcast =
            Broadcast { brings: vec![Value::NULL; part.len()], places: FxHashMap::default(), contradicts: false };
        let mut consumers: FxHashMap<Value, Consumer> = FxHashMap::default();
        for position in 0..part.len() {
            let call = part.call_at(position);
            let Some(name) = spec.consumer(&call) else {
                if call.agrees() {
                    broadcast.brings[position] = call.input;
                }
                continue;
            };
            let consumer = consumers.entry(name).or_default();
            // All earlier operations of the consumer have returned: the group ends.
            if consumer.until < part.call(position) {
                broadcast.settle(consumer);
            }
            consumer.until = consumer.until.max(part.ret(position));
            match call.output {
                None => consumer.is_lost = true,
                Some(Value::NULL) => {}
                Some(event) => consumer.overlapping.push(event),
            }
        }
        consumers.values_mut().for_each(|consumer| broadcast.settle(consumer));
        broadcast.contradicts |= broadcast.lacks_an_event();
        Ok(broadcast)
    }

    /// Ends the current group of the consumer.
    fn settle(&mut self, consumer: &mut Consumer) {
        if consumer.is_lost {
            return;
        }
        // The place of an event is certain only in a group of one.
        if let [event] = *consumer.overlapping {
            match self.places.entry(consumer.taken) {
                Entry::Occupied(known) => self.contradicts |= *known.get() != event,
                Entry::Vacant(place) => {
                    place.insert(event);
                }
            }
        }
        consumer.taken += consumer.overlapping.len() as u32;
        consumer.overlapping.clear();
    }

    /// Whether an event has more places than it has publications.
    fn lacks_an_event(&self) -> bool {
        let mut left: FxHashMap<Value, usize> = FxHashMap::default();
        for &event in &self.brings {
            *left.entry(event).or_default() += 1;
        }
        !self.places.values().all(|event| match left.get_mut(event) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        })
    }

    pub(super) fn contradicts(&self) -> bool {
        self.contradicts
    }

    /// The event that the operation at the position publishes.
    #[inline]
    pub(super) fn brings(&self, position: u32) -> Option<Value> {
        Some(self.brings[position as usize]).filter(|event| !event.is_null())
    }

    /// Whether the operation at the position may publish its event as number `count`, counted from 0.
    pub(super) fn allows(&self, position: u32, count: u32) -> bool {
        self.places.get(&count).is_none_or(|&event| event == self.brings[position as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Options;
    use crate::builder::Builder;
    use crate::operation::{Op, Operation};
    use crate::spec::Ring;

    /// The known places after five publications, in a history of consumers given as (consumer, event or none, call,
    /// return).
    fn known(consumed: &[(u32, Option<u32>, u64, Option<u64>)]) -> (Vec<(u32, u32)>, bool) {
        let mut builder = Builder::new();
        for event in 1..=5 {
            builder.push(Operation { ret: Some(1), ..Operation::new(100 + event, Op::PUBLISH, event.into()) }).unwrap();
        }
        for (number, &(consumer, event, call, ret)) in (0..).zip(consumed) {
            let output = event.map_or(Value::NULL, Value::from);
            let consume = Operation::new(number, Op::CONSUME, consumer.into());
            builder.push(Operation { output, call, ret, ..consume }).unwrap();
        }
        let history = builder.finish().unwrap();
        let part = Part::whole(&history);
        let broadcast = Broadcast::new(&part, &Ring::new(None, &part), &mut Budget::new(&Options::default())).unwrap();
        let place = |(&place, event): (&u32, &Value)| (place, event.as_int().unwrap() as u32);
        let mut places: Vec<(u32, u32)> = broadcast.places.iter().map(place).collect();
        places.sort_unstable();
        (places, broadcast.contradicts())
    }

    #[test]
    fn operations_one_after_the_other_tell_the_order() {
        let one = [(7, Some(3), 10, Some(11)), (7, None, 12, Some(13)), (7, Some(1), 14, Some(15))];
        assert_eq!(known(&one), (vec![(0, 3), (1, 1)], false));
        let touching = [(7, Some(3), 10, Some(11)), (7, Some(1), 11, Some(12)), (7, Some(2), 20, Some(21))];
        assert_eq!(known(&touching), (vec![(2, 2)], false), "equal times leave the order open");
        let beside_none = [(7, Some(3), 10, Some(20)), (7, None, 11, Some(12))];
        assert_eq!(known(&beside_none), (vec![(0, 3)], false));
        let open = [(7, Some(3), 10, Some(11)), (7, None, 12, None), (7, Some(1), 14, Some(15))];
        assert_eq!(known(&open), (vec![(0, 3)], false), "a pending operation may have taken an event");
    }

    #[test]
    fn consumers_that_saw_two_orders_contradict() {
        let orders = |last| [(7, Some(3), 10, Some(11)), (8, Some(last), 10, Some(11))];
        assert!(!known(&orders(3)).1);
        assert!(known(&orders(4)).1);
        assert!(known(&[(7, Some(9), 10, Some(11))]).1, "no operation brings 9");
        assert!(known(&[(7, Some(3), 10, Some(11)), (7, Some(3), 12, Some(13))]).1, "one operation brings 3");
    }
}
