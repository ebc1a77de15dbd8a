//! Pockets: rows and lists that a worker keeps between its turns, because they are in its core's cache.
//!
//! A worker that takes the flow's mutex for a turn brings its own pocket. So the worker that frees a unit's row reuses
//! it, and the cache lines of the payload need not come from another core. Such transfers are most of the cost of a
//! short unit.

use std::collections::VecDeque;

use super::column::Row;

/// A pocket with more free rows than this gives half of this number to the flow.
const MAX_ROWS: usize = 1024;

#[derive(Default)]
pub(crate) struct Pocket {
    /// Free rows; the row used last is at the end.
    rows: Vec<Row>,
    spares: Spares,
}

impl Pocket {
    /// Keeps the rows of units that have left.
    #[inline]
    pub(crate) fn keep(&mut self, rows: impl Iterator<Item = Row>) {
        self.rows.extend(rows);
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<Row> {
        self.rows.pop()
    }

    /// Takes rows out of a pocket that has too many.
    #[inline]
    pub(super) fn surplus(&mut self) -> Option<impl Iterator<Item = Row>> {
        (self.rows.len() > MAX_ROWS).then(|| self.rows.drain(..MAX_ROWS / 2))
    }

    pub(super) fn empty(&mut self) -> impl Iterator<Item = Row> {
        self.rows.drain(..)
    }

    #[inline]
    pub(super) fn spares(&mut self) -> &mut Spares {
        &mut self.spares
    }
}

/// Empty lists, kept for their memory.
#[derive(Debug, Default)]
pub(crate) struct Spares(Vec<VecDeque<Row>>);

impl Spares {
    const MAX: usize = 64;

    #[inline]
    pub(crate) fn take(&mut self) -> VecDeque<Row> {
        self.0.pop().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn keep(&mut self, rows: VecDeque<Row>) {
        debug_assert!(rows.is_empty());
        if self.0.len() < Self::MAX && rows.capacity() > 0 {
            self.0.push(rows);
        }
    }
}
