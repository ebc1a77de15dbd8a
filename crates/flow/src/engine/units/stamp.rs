//! The stamp of a unit: its number, and the time from which its latency counts.
//!
//! The latency of a unit counts from its admission, with two exceptions. The latency of a child counts from the
//! beginning of its parent's run. The latency of a pulled unit counts from the beginning of its pull, unless the pull
//! lasted long or there was no room for all its units (see `pulling`).

use std::num::NonZeroU64;

use super::column::{Column, Row};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    id: u64,
    admitted_ns: NonZeroU64,
}

impl Stamp {
    #[inline]
    pub(crate) fn new(id: u64, now: u64) -> Self {
        Stamp { id, admitted_ns: NonZeroU64::new(now).unwrap_or(NonZeroU64::MIN) }
    }

    /// The stamp of the next unit that is admitted at the same time.
    #[inline]
    pub(crate) fn next(self) -> Self {
        Stamp { id: self.id + 1, ..self }
    }

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    #[inline]
    pub(crate) fn admitted_ns(&self) -> u64 {
        self.admitted_ns.get()
    }
}

impl Column<Stamp> {
    #[inline]
    pub(crate) fn stamp(&self, row: &Row) -> Stamp {
        // SAFETY: the column of stamps is private to its flow's engine, which sees no rows but the flow's own.
        *unsafe { self.peek(row) }.expect("a unit is stamped when it is pulled or admitted")
    }

    /// The unit's number; 0 if it has none yet.
    #[inline]
    pub(crate) fn id(&self, row: &Row) -> u64 {
        // SAFETY: the column of stamps is private to its flow's engine, which sees no rows but the flow's own.
        unsafe { self.peek(row) }.map_or(0, Stamp::id)
    }

    #[inline]
    pub(crate) fn set(&self, row: &mut Row, stamp: Stamp) {
        // SAFETY: the column of stamps is private to its flow's engine, which sees no rows but the flow's own.
        *unsafe { self.cell(row) } = Some(stamp);
    }
}
