//! A stage's queue: units in the order of their arrival, with those that arrived together kept together.
//!
//! Workers hand over whole batches, so a queue is a list of *runs*: rows with one time of arrival. A batch that takes a
//! whole run takes its list, and no unit is touched on the way from one stage to the next.

use std::collections::VecDeque;

use super::column::Row;

/// Units that arrived together.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) queued_ns: u64,
    pub(crate) rows: VecDeque<Row>,
    /// All its units are plain (see `Unit`).
    pub(crate) plain: bool,
}

/// The size, arrival and kind of the units that were taken from a run.
pub(crate) struct Taken {
    pub(crate) units: usize,
    pub(crate) queued_ns: u64,
    pub(crate) plain: bool,
}

/// Waiting units, first come, first served.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    runs: VecDeque<Run>,
    units: usize,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.units
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.units == 0
    }

    /// The arrival time of the first unit.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        self.runs.front().map(|run| run.queued_ns)
    }

    /// Adds units that arrive together; `rows` must not be empty.
    pub(crate) fn push_run(&mut self, queued_ns: u64, rows: VecDeque<Row>, plain: bool) {
        debug_assert!(!rows.is_empty());
        self.units += rows.len();
        self.runs.push_back(Run { queued_ns, rows, plain });
    }

    /// Adds a unit that may not be plain.
    pub(crate) fn push_back(&mut self, queued_ns: u64, row: Row, spares: &mut Spares) {
        self.units += 1;
        match self.runs.back_mut().filter(|run| run.queued_ns == queued_ns && !run.plain) {
            Some(run) => run.rows.push_back(row),
            None => {
                let mut rows = spares.take();
                rows.push_back(row);
                self.runs.push_back(Run { queued_ns, rows, plain: false });
            }
        }
    }

    /// Puts a unit back at the front, where it was taken from.
    pub(crate) fn push_front(&mut self, queued_ns: u64, row: Row, spares: &mut Spares) {
        self.units += 1;
        match self.runs.front_mut().filter(|run| run.queued_ns == queued_ns && !run.plain) {
            Some(run) => run.rows.push_front(row),
            None => {
                let mut rows = spares.take();
                rows.push_back(row);
                self.runs.push_front(Run { queued_ns, rows, plain: false });
            }
        }
    }

    /// Takes the first unit, with the time of its arrival.
    pub(crate) fn pop_front(&mut self, spares: &mut Spares) -> Option<(Row, u64)> {
        let run = self.runs.front_mut()?;
        let queued_ns = run.queued_ns;
        let row = run.rows.pop_front();
        if run.rows.is_empty()
            && let Some(run) = self.runs.pop_front()
        {
            spares.keep(run.rows);
        }
        self.units -= 1;
        row.map(|row| (row, queued_ns))
    }

    /// Moves up to `most` units of the first run to the end of `rows`.
    pub(crate) fn take_run(&mut self, rows: &mut VecDeque<Row>, most: usize, spares: &mut Spares) -> Taken {
        let Some(run) = self.runs.front_mut() else { return Taken { units: 0, queued_ns: 0, plain: true } };
        let Run { queued_ns, plain, .. } = *run;
        let taken = run.rows.len().min(most);
        if taken == run.rows.len() {
            if let Some(run) = self.runs.pop_front() {
                if rows.is_empty() {
                    spares.keep(std::mem::replace(rows, run.rows));
                } else {
                    rows.extend(run.rows);
                }
            }
        } else {
            rows.extend(run.rows.drain(..taken));
        }
        self.units -= taken;
        Taken { units: taken, queued_ns, plain }
    }

    /// Takes all units.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Row> {
        self.units = 0;
        std::mem::take(&mut self.runs).into_iter().flat_map(|run| run.rows)
    }
}

/// Emptied lists, kept for their memory.
#[derive(Debug, Default)]
pub(crate) struct Spares(Vec<VecDeque<Row>>);

impl Spares {
    const MAX: usize = 64;

    pub(crate) fn take(&mut self) -> VecDeque<Row> {
        self.0.pop().unwrap_or_default()
    }

    pub(crate) fn keep(&mut self, rows: VecDeque<Row>) {
        debug_assert!(rows.is_empty());
        if self.0.len() < Self::MAX && rows.capacity() > 0 {
            self.0.push(rows);
        }
    }
}
