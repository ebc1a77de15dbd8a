//! The staging: rows on their way from the worker that pulls the source to the thread that holds the flow's mutex.
//!
//! The staging is a ring. Its one writer, the puller, takes no lock. It has one reader at a time: the thread that holds
//! the flow's mutex. Each worker has a staging of its own, so its cache lines stay with that worker's core.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::engine::units::column::Row;

pub(crate) struct Staging {
    /// The rows, each at its position modulo the length. An entry is twice the row's number, plus one if the unit is
    /// plain.
    slots: Box<[AtomicU64]>,
    /// The number of rows ever pushed.
    pushed: AtomicU64,
    /// The number of rows ever popped; accessed only under the mutex.
    popped: AtomicU64,
    /// The puller should end its pull.
    hurry: AtomicBool,
}

impl Staging {
    /// The maximum number of rows that are pushed and not yet popped.
    pub(crate) const CAPACITY: usize = 256;

    pub(crate) fn new() -> Self {
        Staging {
            slots: (0..Self::CAPACITY).map(|_| AtomicU64::new(0)).collect(),
            pushed: AtomicU64::new(0),
            popped: AtomicU64::new(0),
            hurry: AtomicBool::new(false),
        }
    }

    /// Pushes a row whose cells are filled. Returns whether the puller should hurry.
    ///
    /// Only the puller pushes, and it pushes no more rows than fit (see `begin_pull`).
    #[inline]
    pub(crate) fn push(&self, row: Row, plain: bool) -> bool {
        let at = self.pushed.load(Ordering::Relaxed);
        let slot = u64::from(row.into_number()) << 1 | u64::from(plain);
        self.slots[at as usize % Self::CAPACITY].store(slot, Ordering::Relaxed);
        // Release publishes the slot and the row's cells to `len`.
        self.pushed.store(at + 1, Ordering::Release);
        // Pairs with the heavy fence in `hurry_up`. If this fence comes first, the holder of the mutex sees the row
        // after its own fence; if the heavy fence comes first, the load below sees the hurry.
        millstream_fence::light();
        self.hurry.load(Ordering::Relaxed)
    }

    /// The number of rows that are pushed and not yet popped. Their cells are visible to the caller, which holds the
    /// mutex.
    pub(crate) fn len(&self) -> u64 {
        self.pushed.load(Ordering::Acquire) - self.popped.load(Ordering::Relaxed)
    }

    /// Returns the first row, and whether its unit is plain. There must be a row. The row belongs to the caller once
    /// [`advance`](Self::advance) has passed it; a caller that does not advance must drop it.
    pub(crate) fn first(&self) -> (Row, bool) {
        let at = self.popped.load(Ordering::Relaxed);
        let slot = self.slots[at as usize % Self::CAPACITY].load(Ordering::Relaxed);
        // SAFETY: `push` consumed the row of this number, and `advance` passes each position once, so the caller gets
        // the only row of this number.
        (unsafe { Row::new((slot >> 1) as u32) }, slot & 1 == 1)
    }

    pub(crate) fn advance(&self) {
        self.popped.store(self.popped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Takes the first row if its unit is plain. There must be a row.
    pub(crate) fn next_plain(&self) -> Option<Row> {
        let (row, plain) = self.first();
        plain.then(|| {
            self.advance();
            row
        })
    }

    /// Tells the puller to end its pull. The caller then sees all rows pushed before this call.
    pub(crate) fn hurry_up(&self) {
        self.hurry.store(true, Ordering::Relaxed);
        millstream_fence::heavy();
    }

    /// Withdraws the hurry before the next pull.
    pub(crate) fn calm_down(&self) {
        self.hurry.store(false, Ordering::Relaxed);
    }
}
