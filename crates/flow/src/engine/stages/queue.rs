//! A stage's queue: units in the order of their arrival. Units that arrived together stay together.
//!
//! Workers pass on whole batches, so a queue is a list of *arrivals*: rows with one arrival time. A batch that takes a
//! whole arrival takes over its list, so no unit is touched on the way from one stage to the next. Moving 64 units
//! through a stage without needs therefore costs one list operation instead of 64.
//!
//! From the front of the queue to its end, the times of arrivals never decrease, so the first arrival is the oldest. A
//! worker reads the clock before it locks the state, so a worker with a later time may lock the state first. If units
//! then come with an earlier time, they get the time of the last arrival instead.

use std::collections::VecDeque;

use crate::engine::units::column::Row;
use crate::engine::units::pocket::Spares;
use crate::engine::units::walk::Walk;

/// Units that arrived together.
#[derive(Debug)]
struct Arrival {
    queued_ns: u64,
    rows: VecDeque<Row>,
    /// All its units are plain (see `Record`).
    plain: bool,
}

/// The number, arrival time and kind of the units that were taken from an arrival.
pub(super) struct Taken {
    pub(super) units: usize,
    pub(super) queued_ns: u64,
    pub(super) plain: bool,
}

/// Waiting units, first come, first served.
#[derive(Debug, Default)]
pub(super) struct Queue {
    arrivals: VecDeque<Arrival>,
    units: usize,
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
        self.arrivals.front().map(|arrival| arrival.queued_ns)
    }

    /// Adds units that arrive together; `rows` must not be empty.
    pub(super) fn push_all(&mut self, queued_ns: u64, rows: VecDeque<Row>, plain: bool) {
        debug_assert!(!rows.is_empty());
        let queued_ns = self.not_before_the_last(queued_ns);
        self.units += rows.len();
        self.arrivals.push_back(Arrival { queued_ns, rows, plain });
    }

    /// The later of this time and the time of the last arrival.
    fn not_before_the_last(&self, queued_ns: u64) -> u64 {
        self.arrivals.back().map_or(queued_ns, |last| last.queued_ns.max(queued_ns))
    }

    /// Adds a unit that may not be plain.
    pub(super) fn push_back(&mut self, queued_ns: u64, row: Row, spares: &mut Spares) {
        let queued_ns = self.not_before_the_last(queued_ns);
        self.units += 1;
        match self.arrivals.back_mut().filter(|arrival| arrival.queued_ns == queued_ns && !arrival.plain) {
            Some(arrival) => arrival.rows.push_back(row),
            None => {
                let mut rows = spares.take();
                rows.push_back(row);
                self.arrivals.push_back(Arrival { queued_ns, rows, plain: false });
            }
        }
    }

    /// Puts a unit back at the front of the queue, behind the units that arrived before it.
    pub(super) fn push_front(&mut self, queued_ns: u64, row: Row, spares: &mut Spares) {
        self.units += 1;
        // Nearly always, the unit is the oldest. Other units are older only if they were put back, too.
        let place = self.arrivals.iter().take_while(|arrival| arrival.queued_ns < queued_ns).count();
        match self.arrivals.get_mut(place).filter(|arrival| arrival.queued_ns == queued_ns && !arrival.plain) {
            Some(arrival) => arrival.rows.push_front(row),
            None => {
                let mut rows = spares.take();
                rows.push_back(row);
                self.arrivals.insert(place, Arrival { queued_ns, rows, plain: false });
            }
        }
    }

    /// Takes the first unit, with its arrival time.
    pub(super) fn pop_front(&mut self, spares: &mut Spares) -> Option<(Row, u64)> {
        let arrival = self.arrivals.front_mut()?;
        let queued_ns = arrival.queued_ns;
        let row = arrival.rows.pop_front();
        if arrival.rows.is_empty()
            && let Some(arrival) = self.arrivals.pop_front()
        {
            spares.keep(arrival.rows);
        }
        self.units -= 1;
        row.map(|row| (row, queued_ns))
    }

    /// Moves up to `most` units, all from the first arrival, to the end of `rows`.
    pub(super) fn take_first(&mut self, rows: &mut VecDeque<Row>, most: usize, spares: &mut Spares) -> Taken {
        let Some(arrival) = self.arrivals.front_mut() else { return Taken { units: 0, queued_ns: 0, plain: true } };
        let Arrival { queued_ns, plain, .. } = *arrival;
        let taken = arrival.rows.len().min(most);
        if taken == arrival.rows.len() {
            if let Some(arrival) = self.arrivals.pop_front() {
                if rows.is_empty() {
                    spares.keep(std::mem::replace(rows, arrival.rows));
                } else {
                    rows.extend(arrival.rows);
                }
            }
        } else {
            rows.extend(arrival.rows.drain(..taken));
        }
        self.units -= taken;
        Taken { units: taken, queued_ns, plain }
    }

    /// Passes the units to `see`, from the last to the first. `see` gets the arrival time of each unit and two indices,
    /// both counted from the end. The first is the index of the unit's [`Arrival`] in the queue; the second is the
    /// index of the unit in this arrival.
    pub(super) fn walk<'a>(&'a self, walk: &mut Walk, mut see: impl FnMut(&'a Row, u64, usize, usize)) {
        let arrival = |run: usize| &self.arrivals[self.arrivals.len() - 1 - run];
        let len = |run: usize| arrival(run).rows.len();
        walk.next_runs(self.arrivals.len(), len, |run, place| {
            let Arrival { rows, queued_ns, .. } = arrival(run);
            see(&rows[rows.len() - 1 - place], *queued_ns, run, place);
        });
    }

    /// The number of units ahead of a unit, given the two indices that `walk` has passed to `see`.
    pub(super) fn ahead_of(&self, run: usize, place: usize) -> usize {
        let behind: usize = self.arrivals.iter().rev().take(run).map(|arrival| arrival.rows.len()).sum();
        self.units - 1 - behind - place
    }

    /// Takes all units.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Row> {
        self.units = 0;
        std::mem::take(&mut self.arrivals).into_iter().flat_map(|arrival| arrival.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        queue.push_all(10, rows(0..4), true);
        queue.push_all(20, rows(4..6), false);
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
        queue.push_all(10, rows(0..2), true);
        let (row, at) = queue.pop_front(&mut spares).unwrap();
        queue.push_front(at, row, &mut spares);
        queue.push_back(30, rows(2..3).pop_front().unwrap(), &mut spares);
        assert_eq!((queue.oldest_ns(), queue.len()), (Some(10), 3));
        assert_eq!(queue.drain().map(|row| row.number()).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn the_first_unit_is_the_oldest_whatever_clocks_and_lines_bring() {
        let (mut queue, mut spares) = (Queue::default(), Spares::default());
        queue.push_all(20, rows(0..2), true);
        queue.push_all(10, rows(2..4), true);
        queue.push_back(15, rows(4..5).pop_front().unwrap(), &mut spares);
        assert_eq!(queue.oldest_ns(), Some(20), "a late worker's units came with those ahead of them");
        for (at, number) in [(5, 5), (7, 6), (5, 7)] {
            queue.push_front(at, rows(number..number + 1).pop_front().unwrap(), &mut spares);
        }
        let came: Vec<_> =
            std::iter::from_fn(|| queue.pop_front(&mut spares)).map(|(row, at)| (row.number(), at)).collect();
        assert_eq!(came, [(7, 5), (5, 5), (6, 7), (0, 20), (1, 20), (2, 20), (3, 20), (4, 20)]);
    }
}
