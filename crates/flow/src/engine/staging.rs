//! Rows on their way from the one worker that pulls the source to whoever has the flow's mutex.
//!
//! A ring with one writer, the puller, who takes no lock, and one reader at a time, who has the flow's mutex. It
//! belongs to a worker, so its cache lines stay with that worker's core.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::column::Row;

pub(crate) struct Staging {
    /// Rows, each at its position modulo the length: twice the number, and one if its unit is plain.
    slots: Box<[AtomicU64]>,
    /// How many rows were ever pushed.
    pushed: AtomicU64,
    /// How many of them were ever popped; used under the mutex only.
    popped: AtomicU64,
    /// The puller should bring what it has at once.
    hurry: AtomicBool,
}

impl Staging {
    /// The most rows that were pushed and not popped.
    pub(crate) const CAPACITY: usize = 256;

    pub(crate) fn new() -> Self {
        Staging {
            slots: (0..Self::CAPACITY).map(|_| AtomicU64::new(0)).collect(),
            pushed: AtomicU64::new(0),
            popped: AtomicU64::new(0),
            hurry: AtomicBool::new(false),
        }
    }

    /// Brings a row whose cells are filled. Returns whether there is hurry.
    ///
    /// Only the puller pushes, and no more rows than there is space for (see `State::begin_pull`).
    #[inline]
    pub(crate) fn push(&self, row: Row, plain: bool) -> bool {
        let at = self.pushed.load(Ordering::Relaxed);
        let slot = u64::from(row.into_number()) << 1 | u64::from(plain);
        self.slots[at as usize % Self::CAPACITY].store(slot, Ordering::Relaxed);
        // Release publishes the slot and the row's cells to `len`.
        self.pushed.store(at + 1, Ordering::Release);
        // Pairs with the heavy fence in `hurry_up`. If this fence comes first, whoever has the mutex sees the
        // row after that one; if that one comes first, the hurry is seen below.
        millstream_fence::light();
        self.hurry.load(Ordering::Relaxed)
    }

    /// Rows that were pushed and not popped; their cells are visible to the caller, who has the mutex.
    pub(crate) fn len(&self) -> u64 {
        self.pushed.load(Ordering::Acquire) - self.popped.load(Ordering::Relaxed)
    }

    /// The first row, and whether its unit is plain; there must be one. It is the caller's once it is passed by
    /// [`advance`](Self::advance), and not to be kept otherwise.
    pub(crate) fn first(&self) -> (Row, bool) {
        let at = self.popped.load(Ordering::Relaxed);
        let slot = self.slots[at as usize % Self::CAPACITY].load(Ordering::Relaxed);
        // SAFETY: `push` consumed the row of this number; each position is passed once.
        (unsafe { Row::new((slot >> 1) as u32) }, slot & 1 == 1)
    }

    pub(crate) fn advance(&self) {
        self.popped.store(self.popped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Takes the first row if its unit is plain; there must be one.
    pub(crate) fn next_plain(&self) -> Option<Row> {
        let (row, plain) = self.first();
        plain.then(|| {
            self.advance();
            row
        })
    }

    /// Tells the puller to bring what it has from now on. What it has brought before is seen after this.
    pub(crate) fn hurry_up(&self) {
        self.hurry.store(true, Ordering::Relaxed);
        millstream_fence::heavy();
    }

    /// Before the next pull: there is time.
    pub(crate) fn calm_down(&self) {
        self.hurry.store(false, Ordering::Relaxed);
    }
}
