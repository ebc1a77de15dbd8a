//! Pockets: rows and lists that a worker keeps between its turns, because they are in its core's cache.
//!
//! A worker that takes the flow's mutex for a turn brings its own pocket. A unit's row is thus freed and reused by the
//! same worker, and the cache lines of its payload need not come from another core: such transfers are most of the cost
//! of a short unit.

use super::column::Row;
use super::queue::Spares;
use super::state::State;

/// A pocket with more free rows than this returns half of that number to the flow.
const MAX_ROWS: usize = 1024;

#[derive(Default)]
pub(crate) struct Pocket {
    /// Free rows, the one used last at the end.
    pub(crate) rows: Vec<Row>,
    /// Emptied lists.
    pub(crate) spares: Spares,
}

impl State {
    /// Exchanges the state's current pocket for the caller's.
    pub(crate) fn swap_pocket(&mut self, pocket: &mut Pocket) {
        std::mem::swap(&mut self.pocket, pocket);
    }

    /// Takes a free row, or makes one, for a new unit.
    pub(crate) fn free_row(&mut self) -> Row {
        self.pocket.rows.pop().or_else(|| self.free_rows.pop()).unwrap_or_else(|| {
            let number = self.rows_made;
            self.rows_made += 1;
            // SAFETY: `rows_made` only grows, so each number is given out once, and a `Row` cannot be copied: no other
            // `Row` of this flow has the number.
            unsafe { Row::new(number) }
        })
    }

    /// Takes back the rows of units that have left.
    pub(crate) fn keep_rows(&mut self, rows: impl Iterator<Item = Row>) {
        self.pocket.rows.extend(rows);
        if self.pocket.rows.len() > MAX_ROWS {
            self.free_rows.extend(self.pocket.rows.drain(..MAX_ROWS / 2));
        }
    }
}
