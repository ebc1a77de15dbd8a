//! A stage's queue: units in the order of their arrival. Units that arrived together stay together.
//!
//! Workers pass on whole batches, so a queue is a list of *arrivals*: rows with one arrival time. A batch that takes a
//! whole arrival takes over its list, so no unit is touched on the way from one stage to the next. Moving 64 units
//! through a stage without needs therefore costs one list operation instead of 64.
//!
//! Units that arrive one at a time share a list, in which each has a time of its own. Such a unit takes 16 bytes; with
//! a list of its own, it would take five times as much.
//!
//! From the front of the queue to its end, the times of arrivals never decrease, so the first arrival is the oldest. A
//! worker reads the clock before it locks the state, so a worker with a later time may lock the state first. If units
//! then come with an earlier time, they get the time of the last arrival instead.

use std::collections::VecDeque;

use crate::engine::units::column::Row;
use crate::engine::units::pocket::Spares;
use crate::engine::units::walk::Walk;

/// A part of the queue.
#[derive(Debug)]
enum Arrival {
    /// Units that arrived together. `plain` says that all of them are plain (see `Record`).
    Together { queued_ns: u64, rows: VecDeque<Row>, plain: bool },
    /// Units that arrived one at a time, one after the other.
    Alone(VecDeque<Lone>),
}

/// A unit that arrived alone.
#[derive(Debug)]
struct Lone {
    queued_ns: u64,
    row: Row,
    plain: bool,
}

impl Arrival {
    fn len(&self) -> usize {
        match self {
            Arrival::Together { rows, .. } => rows.len(),
            Arrival::Alone(units) => units.len(),
        }
    }

    /// The arrival time of the first unit.
    fn oldest_ns(&self) -> Option<u64> {
        match self {
            Arrival::Together { queued_ns, .. } => Some(*queued_ns),
            Arrival::Alone(units) => units.front().map(|unit| unit.queued_ns),
        }
    }

    /// The arrival time of the last unit.
    fn newest_ns(&self) -> Option<u64> {
        match self {
            Arrival::Together { queued_ns, .. } => Some(*queued_ns),
            Arrival::Alone(units) => units.back().map(|unit| unit.queued_ns),
        }
    }
}

/// Units that were taken from an arrival: their number, their arrival time, and whether all of them are plain.
pub(super) struct Taken {
    pub(super) units: usize,
    pub(super) queued_ns: u64,
    pub(super) plain: bool,
}

/// Waiting units, first come, first served.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// No arrival in this list is empty.
    arrivals: VecDeque<Arrival>,
    /// The number of arrivals that were ever added at the end; wraps around.
    joined: usize,
    units: usize,
    /// An empty list for units that arrive alone, kept so that its memory is reused.
    spare: VecDeque<Lone>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.units
    }

    pub(super) fn is_empty(&self) -> bool {
        self.units == 0
    }

    /// The arrival time of the first unit, which is the oldest.
    pub(super) fn oldest_ns(&self) -> Option<u64> {
        self.arrivals.front()?.oldest_ns()
    }

    /// Adds units that arrive together; `rows` must not be empty.
    #[inline]
    pub(super) fn push_all(&mut self, queued_ns: u64, mut rows: VecDeque<Row>, plain: bool, spares: &mut Spares) {
        debug_assert!(!rows.is_empty());
        if rows.len() == 1
            && let Some(row) = rows.pop_front()
        {
            spares.keep(rows);
            return self.push_alone(queued_ns, row, plain);
        }
        let queued_ns = self.not_before_the_last(queued_ns);
        self.units += rows.len();
        self.join(Arrival::Together { queued_ns, rows, plain });
    }

    /// Adds a unit that may not be plain.
    pub(super) fn push_back(&mut self, queued_ns: u64, row: Row) {
        self.push_alone(queued_ns, row, false);
    }

    fn push_alone(&mut self, queued_ns: u64, row: Row, plain: bool) {
        let unit = Lone { queued_ns: self.not_before_the_last(queued_ns), row, plain };
        self.units += 1;
        if let Some(Arrival::Alone(units)) = self.arrivals.back_mut() {
            units.push_back(unit);
        } else {
            let units = self.list_of(unit);
            self.join(units);
        }
    }

    #[inline]
    fn join(&mut self, arrival: Arrival) {
        self.arrivals.push_back(arrival);
        self.joined = self.joined.wrapping_add(1);
    }

    /// The later of this time and the time of the last arrival.
    fn not_before_the_last(&self, queued_ns: u64) -> u64 {
        self.arrivals.back().and_then(Arrival::newest_ns).map_or(queued_ns, |last| last.max(queued_ns))
    }

    fn list_of(&mut self, unit: Lone) -> Arrival {
        let mut units = std::mem::take(&mut self.spare);
        units.push_back(unit);
        Arrival::Alone(units)
    }

    /// Puts a unit back at the front of the queue, behind the units that arrived before it.
    pub(super) fn push_front(&mut self, queued_ns: u64, row: Row) {
        let unit = Lone { queued_ns, row, plain: false };
        self.units += 1;
        // Nearly always, the unit is the oldest. Other units are older only if they were put back, too.
        let older = self.arrivals.iter().take_while(|arrival| arrival.newest_ns() < Some(queued_ns)).count();
        if let Some(Arrival::Alone(units)) = self.arrivals.get_mut(older) {
            let older = units.partition_point(|unit| unit.queued_ns < queued_ns);
            units.insert(older, unit);
        } else if let Some(Arrival::Alone(units)) = older.checked_sub(1).and_then(|last| self.arrivals.get_mut(last)) {
            units.push_back(unit);
        } else {
            let units = self.list_of(unit);
            self.arrivals.insert(older, units);
        }
    }

    /// Takes the first unit, with its arrival time.
    pub(super) fn pop_front(&mut self, spares: &mut Spares) -> Option<(Row, u64)> {
        let (row, queued_ns) = match self.arrivals.front_mut()? {
            Arrival::Together { queued_ns, rows, .. } => (rows.pop_front()?, *queued_ns),
            Arrival::Alone(units) => units.pop_front().map(|unit| (unit.row, unit.queued_ns))?,
        };
        self.units -= 1;
        self.drop_first_if_empty(spares);
        Some((row, queued_ns))
    }

    /// Moves up to `most` units of the first arrival to the end of `rows`.
    #[inline]
    pub(super) fn take_first(&mut self, rows: &mut VecDeque<Row>, most: usize, spares: &mut Spares) -> Taken {
        let before = rows.len();
        let (queued_ns, plain) = match self.arrivals.front_mut() {
            None => (0, true),
            Some(Arrival::Together { queued_ns, rows: first, plain }) => {
                if first.len() > most {
                    rows.extend(first.drain(..most));
                } else if rows.is_empty() {
                    std::mem::swap(rows, first);
                } else {
                    rows.append(first);
                }
                (*queued_ns, *plain)
            }
            Some(Arrival::Alone(units)) => {
                let (queued_ns, plain) = units.front().map_or((0, true), |unit| (unit.queued_ns, unit.plain));
                let alike =
                    units.iter().take(most).take_while(|u| (u.queued_ns, u.plain) == (queued_ns, plain)).count();
                rows.extend(units.drain(..alike).map(|unit| unit.row));
                (queued_ns, plain)
            }
        };
        self.drop_first_if_empty(spares);
        let units = rows.len() - before;
        self.units -= units;
        Taken { units, queued_ns, plain }
    }

    /// Drops the first arrival if all its units were taken. Keeps the memory of its list for reuse.
    fn drop_first_if_empty(&mut self, spares: &mut Spares) {
        if self.arrivals.front().is_none_or(|first| first.len() > 0) {
            return;
        }
        match self.arrivals.pop_front() {
            Some(Arrival::Together { rows, .. }) => spares.keep(rows),
            Some(Arrival::Alone(units)) => self.spare = units,
            None => {}
        }
    }

    /// Passes the units to `see`, from the last to the first. `see` gets the arrival time of each unit and two indices,
    /// both counted from the end. The first is the index of the unit's [`Arrival`] in the queue; the second is the
    /// index of the unit in this arrival.
    pub(super) fn walk<'a>(&'a self, walk: &mut Walk, mut see: impl FnMut(&'a Row, u64, usize, usize)) {
        let arrival = |run: usize| &self.arrivals[self.arrivals.len() - 1 - run];
        walk.next_runs(
            self.arrivals.len(),
            self.joined,
            |run| arrival(run).len(),
            |run, place| match arrival(run) {
                Arrival::Together { rows, queued_ns, .. } => see(&rows[rows.len() - 1 - place], *queued_ns, run, place),
                Arrival::Alone(units) => {
                    let unit = &units[units.len() - 1 - place];
                    see(&unit.row, unit.queued_ns, run, place);
                }
            },
        );
    }

    /// The number of units ahead of a unit, given the two indices that `walk` has passed to `see`.
    pub(super) fn ahead_of(&self, run: usize, place: usize) -> usize {
        let behind: usize = self.arrivals.iter().rev().take(run).map(Arrival::len).sum();
        self.units - 1 - behind - place
    }

    /// Takes all units out of the queue.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Row> {
        self.units = 0;
        std::mem::take(&mut self.arrivals).into_iter().flat_map(|arrival| match arrival {
            Arrival::Together { rows, .. } => rows,
            Arrival::Alone(units) => units.into_iter().map(|unit| unit.row).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::units::walk::WalkedTo;

    fn rows(numbers: std::ops::Range<u32>) -> VecDeque<Row> {
        // SAFETY: each test makes one row of each number.
        numbers.map(|number| unsafe { Row::new(number) }).collect()
    }

    fn numbers(rows: &VecDeque<Row>) -> Vec<u32> {
        rows.iter().map(Row::number).collect()
    }

    #[test]
    fn a_batch_takes_a_whole_arrival_or_a_part_of_one_and_never_two() {
        let (mut queue, mut spares, mut batch) = (Queue::default(), Spares::default(), VecDeque::new());
        queue.push_all(10, rows(0..4), true, &mut spares);
        queue.push_all(20, rows(4..6), false, &mut spares);
        let taken = queue.take_first(&mut batch, 3, &mut spares);
        assert!(taken.units == 3 && taken.queued_ns == 10 && taken.plain);
        let taken = queue.take_first(&mut batch, 3, &mut spares);
        assert!(taken.units == 1 && taken.queued_ns == 10);
        let taken = queue.take_first(&mut batch, 3, &mut spares);
        assert!(taken.units == 2 && taken.queued_ns == 20 && !taken.plain);
        assert_eq!(numbers(&batch), [0, 1, 2, 3, 4, 5]);
        assert!(queue.is_empty() && queue.oldest_ns().is_none());
    }

    #[test]
    fn a_unit_that_is_put_back_is_the_first_again_with_its_time() {
        let (mut queue, mut spares) = (Queue::default(), Spares::default());
        queue.push_all(10, rows(0..2), true, &mut spares);
        let (row, at) = queue.pop_front(&mut spares).unwrap();
        queue.push_front(at, row);
        queue.push_back(30, rows(2..3).pop_front().unwrap());
        assert_eq!((queue.oldest_ns(), queue.len()), (Some(10), 3));
        assert_eq!(queue.drain().map(|row| row.number()).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn the_first_unit_is_the_oldest_whatever_clocks_and_lines_bring() {
        let (mut queue, mut spares) = (Queue::default(), Spares::default());
        queue.push_all(20, rows(0..2), true, &mut spares);
        queue.push_all(10, rows(2..4), true, &mut spares);
        queue.push_back(15, rows(4..5).pop_front().unwrap());
        assert_eq!(queue.oldest_ns(), Some(20), "a late worker's units came with those ahead of them");
        for (at, number) in [(5, 5), (7, 6), (5, 7)] {
            queue.push_front(at, rows(number..number + 1).pop_front().unwrap());
        }
        let came: Vec<_> =
            std::iter::from_fn(|| queue.pop_front(&mut spares)).map(|(row, at)| (row.number(), at)).collect();
        assert_eq!(came, [(7, 5), (5, 5), (6, 7), (0, 20), (1, 20), (2, 20), (3, 20), (4, 20)]);
    }

    #[test]
    fn units_that_arrive_alone_share_a_list_and_keep_their_times() {
        assert_eq!(size_of::<Lone>(), 16);
        let (mut queue, mut spares) = (Queue::default(), Spares::default());
        for (at, number, plain) in [(10, 0, true), (10, 1, true), (10, 2, false), (30, 3, true)] {
            queue.push_all(at, rows(number..number + 1), plain, &mut spares);
        }
        queue.push_all(40, rows(4..6), true, &mut spares);
        queue.push_back(35, rows(6..7).pop_front().unwrap());
        queue.push_front(20, rows(7..8).pop_front().unwrap());
        assert_eq!((queue.arrivals.len(), queue.len()), (3, 8));

        let mut walked = Vec::new();
        let mut walk = Walk::step(WalkedTo::default(), 100);
        queue.walk(&mut walk, |row, at, run, place| walked.push((row.number(), at, run, place)));
        let ahead: Vec<_> =
            walked.iter().map(|&(number, at, run, place)| (number, at, queue.ahead_of(run, place))).collect();
        let expected = [(6, 40), (5, 40), (4, 40), (3, 30), (7, 20), (2, 10), (1, 10), (0, 10)];
        let expected: Vec<_> = (0..8).rev().zip(expected).map(|(ahead, (number, at))| (number, at, ahead)).collect();
        assert_eq!(ahead, expected);

        let mut batches = Vec::new();
        while !queue.is_empty() {
            let mut batch = VecDeque::new();
            let taken = queue.take_first(&mut batch, 8, &mut spares);
            assert_eq!(taken.units, batch.len());
            batches.push((numbers(&batch), taken.queued_ns, taken.plain));
        }
        let expected: [(&[u32], _, _); 6] = [
            (&[0, 1], 10, true),
            (&[2], 10, false),
            (&[7], 20, false),
            (&[3], 30, true),
            (&[4, 5], 40, true),
            (&[6], 40, false),
        ];
        assert!(batches.iter().map(|(rows, at, plain)| (&rows[..], *at, *plain)).eq(expected), "{batches:?}");
        assert!(queue.oldest_ns().is_none() && queue.pop_front(&mut spares).is_none());
    }

    #[test]
    fn a_walk_in_steps_gets_on_although_arrivals_join_between_its_steps() {
        let (mut queue, mut spares) = (Queue::default(), Spares::default());
        for number in 0..10_000 {
            queue.push_all(u64::from(number), rows(number..number + 1), true, &mut spares);
        }
        let (mut at, mut seen, mut steps, mut next) = (Some(WalkedTo::default()), vec![0; 10_000], 0, 10_000);
        while let Some(from) = at {
            let mut walk = Walk::step(from, 1_000);
            queue.walk(&mut walk, |row, _, _, _| {
                if let Some(times) = seen.get_mut(row.number() as usize) {
                    *times += 1;
                }
            });
            at = walk.end();
            steps += 1;
            assert!(steps < 20, "the walk gets on");
            for units in [2, 1] {
                queue.push_all(u64::from(next), rows(next..next + units), true, &mut spares);
                next += units;
            }
        }
        assert!(seen.iter().all(|&times| times == 1), "each unit that stays is seen once");
    }

    #[test]
    fn random_arrivals_put_backs_and_batches_leave_in_the_order_of_a_sorted_list() {
        let mut random = millstream_verify_random::Random::seeded();
        let (mut queue, mut spares) = (Queue::default(), Spares::default());
        // The expected units, each with its time and whether it must not count as plain.
        let mut expected: VecDeque<(u32, u64, bool)> = VecDeque::new();
        let (mut next, mut taken): (u32, Vec<(Row, u64)>) = (0, Vec::new());
        for step in 0..20_000_u64 {
            let at = (step / 4 + random.below(3)).max(expected.back().map_or(0, |&(_, at, _)| at));
            match random.below(7) {
                0..3 if expected.len() < 200 => {
                    let (units, plain) = (1 + random.below(3) as u32, random.below(2) == 0);
                    queue.push_all(at, rows(next..next + units), plain, &mut spares);
                    expected.extend((next..next + units).map(|number| (number, at, !plain)));
                    next += units;
                }
                3 if expected.len() < 200 => {
                    queue.push_back(at, rows(next..next + 1).pop_front().unwrap());
                    expected.push_back((next, at, true));
                    next += 1;
                }
                4 => {
                    let first = queue.pop_front(&mut spares);
                    assert_eq!(
                        first.as_ref().map(|(row, at)| (row.number(), *at)),
                        expected.pop_front().map(|e| (e.0, e.1))
                    );
                    taken.extend(first);
                }
                5 if !taken.is_empty() => {
                    let (row, at) = taken.swap_remove(random.below(taken.len() as u64) as usize);
                    let place = expected.partition_point(|&(_, other, _)| other < at);
                    expected.insert(place, (row.number(), at, true));
                    queue.push_front(at, row);
                }
                _ => {
                    let (mut batch, most) = (VecDeque::new(), 1 + random.below(5) as usize);
                    let batch_taken = queue.take_first(&mut batch, most, &mut spares);
                    assert!(batch_taken.units == batch.len() && batch.len() <= most);
                    assert_eq!(batch.is_empty(), expected.is_empty());
                    for row in &batch {
                        let (number, at, must_not) = expected.pop_front().unwrap();
                        assert_eq!((row.number(), batch_taken.queued_ns), (number, at));
                        assert!(!(must_not && batch_taken.plain), "a unit that is not plain passes for one");
                    }
                }
            }
            assert_eq!((queue.len(), queue.oldest_ns()), (expected.len(), expected.front().map(|e| e.1)));
            if step % 16 == 0 {
                let (mut at, mut walked) = (Some(WalkedTo::default()), Vec::new());
                while let Some(from) = at {
                    let mut walk = Walk::step(from, 1 + random.below(9) as usize);
                    queue.walk(&mut walk, |row, at, run, place| {
                        walked.push((row.number(), at, queue.ahead_of(run, place)));
                    });
                    at = walk.end();
                }
                let all = expected.iter().enumerate().rev().map(|(ahead, &(number, at, _))| (number, at, ahead));
                assert!(walked.into_iter().eq(all));
            }
        }
    }
}
