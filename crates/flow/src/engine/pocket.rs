//! Pockets: what a worker keeps at hand between its turns, because it is in its core's cache.
//!
//! Whoever takes the flow's mutex for a turn brings its own pocket, so a unit's row is freed and used again by
//! the same worker, and its payload's cache lines need not come from another core: they are most of what a
//! short unit costs.

use super::column::Row;
use super::queue::Spares;
use super::state::State;

/// More free rows than this are left to all.
const ROWS_MOST: usize = 1024;

#[derive(Default)]
pub(crate) struct Pocket {
    /// Free rows, the one used last at the end.
    pub(crate) rows: Vec<Row>,
    /// Emptied lists.
    pub(crate) spares: Spares,
}

impl State {
    /// Exchanges the pocket at hand for the caller's.
    pub(crate) fn swap_pocket(&mut self, pocket: &mut Pocket) {
        std::mem::swap(&mut self.pocket, pocket);
    }

    /// A row for a new unit.
    pub(crate) fn free_row(&mut self) -> Row {
        self.pocket.rows.pop().or_else(|| self.free_rows.pop()).unwrap_or_else(|| {
            let number = self.rows_made;
            self.rows_made += 1;
            // SAFETY: numbers are given out once, and rows are only moved from then on.
            unsafe { Row::new(number) }
        })
    }

    /// Takes back rows whose units have left.
    pub(crate) fn keep_rows(&mut self, rows: impl Iterator<Item = Row>) {
        self.pocket.rows.extend(rows);
        if self.pocket.rows.len() > ROWS_MOST {
            self.free_rows.extend(self.pocket.rows.drain(..ROWS_MOST / 2));
        }
    }
}
