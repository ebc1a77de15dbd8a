//! The units of a stage that wait in lines: what they wait for, and when the oldest of them came to the stage's queue.
//!
//! There may be a line for each of a hundred thousand keys, and the oldest unit may be in any of them. To find its age
//! without a search of the lines, the stage keeps a sorted list of the arrival times of all its units in lines. For
//! each time, the list also stores the number of units that arrived at that time. Units join lines in the order of
//! their arrival, up to the jitter of the workers' clocks, so most new times go to the end of the list. A time whose
//! units have all left stays in the list until it becomes the first, or until more than half of the list consists of
//! such times.
//!
//! When a unit leaves, finding its time costs O(log n), or O(1) if the unit is the oldest. The length of the
//! list is at most twice the number of units, plus [`FEW`].

use std::collections::VecDeque;

/// A list with no more times than this is not worth a clean-up.
const FEW: usize = 64;

/// See the [module](self).
pub(super) struct Parked {
    /// The number of waiting units, by resource.
    by_resource: Vec<u32>,
    /// The sum of `by_resource`.
    for_resources: usize,
    /// The number of units that wait for room for their children.
    for_room: usize,
    since: Arrivals,
}

impl Parked {
    pub(super) fn new(resources: usize) -> Self {
        Parked { by_resource: vec![0; resources], for_resources: 0, for_room: 0, since: Arrivals::default() }
    }

    /// The number of units in lines for resources.
    pub(super) fn for_resources(&self) -> usize {
        self.for_resources
    }

    /// The number of units in lines for one resource.
    pub(super) fn for_resource(&self, resource: usize) -> u32 {
        self.by_resource[resource]
    }

    /// The number of units in the line for room.
    pub(super) fn for_room(&self) -> usize {
        self.for_room
    }

    /// The resource that most units wait for.
    pub(super) fn longest(&self) -> Option<usize> {
        self.by_resource.iter().enumerate().max_by_key(|&(_, units)| units).map(|(resource, _)| resource)
    }

    /// The arrival time of the unit that has been in the queue longest.
    pub(super) fn oldest_ns(&self) -> Option<u64> {
        self.since.oldest_ns()
    }

    /// Counts a unit that waits for a resource; it came to the queue at `queued_ns`.
    pub(super) fn begin(&mut self, resource: u16, queued_ns: u64) {
        self.by_resource[usize::from(resource)] += 1;
        self.for_resources += 1;
        self.since.add(queued_ns);
    }

    /// Counts a unit as no longer waiting for a resource.
    pub(super) fn end(&mut self, resource: u16, queued_ns: u64) {
        self.by_resource[usize::from(resource)] -= 1;
        self.for_resources -= 1;
        self.since.remove(queued_ns);
    }

    /// Counts a unit that waits for room.
    pub(super) fn begin_for_room(&mut self, queued_ns: u64) {
        self.for_room += 1;
        self.since.add(queued_ns);
    }

    /// Counts a unit as no longer waiting for room.
    pub(super) fn end_for_room(&mut self, queued_ns: u64) {
        self.for_room -= 1;
        self.since.remove(queued_ns);
    }

    /// Forgets all units.
    pub(super) fn clear(&mut self) {
        *self = Parked::new(self.by_resource.len());
    }
}

/// The times of arrival of some units.
#[derive(Default)]
struct Arrivals {
    /// Times, ascending, each with its number of units. The first time always has units.
    times: VecDeque<(u64, u32)>,
    /// The number of entries in `times` whose units have all left.
    vacant: usize,
}

impl Arrivals {
    fn oldest_ns(&self) -> Option<u64> {
        self.times.front().map(|&(at, _)| at)
    }

    fn add(&mut self, at: u64) {
        if self.times.back().is_none_or(|&(last, _)| last < at) {
            return self.times.push_back((at, 1));
        }
        match self.place_of(at) {
            Ok(place) => {
                let units = &mut self.times[place].1;
                self.vacant -= usize::from(*units == 0);
                *units += 1;
            }
            Err(place) => self.times.insert(place, (at, 1)),
        }
    }

    /// Removes one unit with this time, which must be in the list.
    fn remove(&mut self, at: u64) {
        let Ok(place) = self.place_of(at) else {
            debug_assert!(false, "a unit leaves that never came");
            return;
        };
        let units = &mut self.times[place].1;
        *units -= 1;
        self.vacant += usize::from(*units == 0);
        while self.times.front().is_some_and(|&(_, units)| units == 0) {
            self.times.pop_front();
            self.vacant -= 1;
        }
        if self.times.len() > FEW && 2 * self.vacant > self.times.len() {
            self.times.retain(|&(_, units)| units > 0);
            self.vacant = 0;
        }
    }

    /// The index of a time, or the index at which it would be inserted.
    fn place_of(&self, at: u64) -> Result<usize, usize> {
        if self.times.front().is_some_and(|&(first, _)| first == at) {
            return Ok(0);
        }
        self.times.binary_search_by_key(&at, |&(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use millstream_verify_random::Random;

    use super::*;

    #[test]
    fn the_oldest_is_that_of_a_sorted_multiset_however_units_come_and_leave() {
        let mut random = Random::seeded();
        for round in (0..60).step_by(3) {
            let (mut arrivals, mut units, mut now) = (Arrivals::default(), BTreeMap::<u64, u32>::new(), 1_000);
            for _ in 0..2_000 {
                // Rounds differ in how many units there are.
                if units.is_empty() || random.below(100) < 20 + round {
                    now += random.below(3);
                    let at = now - random.below(20).saturating_sub(15);
                    arrivals.add(at);
                    *units.entry(at).or_default() += 1;
                } else {
                    let nth = random.below(units.len() as u64) as usize;
                    let at = *units.keys().nth(nth).unwrap();
                    arrivals.remove(at);
                    *units.get_mut(&at).unwrap() -= 1;
                    units.retain(|_, units| *units > 0);
                }
                assert_eq!(arrivals.oldest_ns(), units.keys().next().copied());
                assert!(arrivals.times.len() <= FEW + 2 * units.len(), "{} times", arrivals.times.len());
            }
        }
    }
}
