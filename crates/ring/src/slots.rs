//! The ring's memory: a power of two of cells, addressed by position.

use std::ops::Range;

use crate::primitive::UnsafeCell;

/// Cells that positions map onto, lap after lap.
///
/// It knows nothing of who may touch which cell: that is what the sequencers decide.
#[derive(Debug)]
pub(crate) struct Slots<E> {
    cells: Box<[UnsafeCell<E>]>,
    mask: usize,
}

// SAFETY: cells are reached through raw pointers by those who hold a claim on their position; a claim gives
// one thread the exclusive or the shared right, and `E` crosses threads with it.
unsafe impl<E: Send> Sync for Slots<E> {}
// SAFETY: the slots own their values.
unsafe impl<E: Send> Send for Slots<E> {}

impl<E> Slots<E> {
    /// # Panics
    /// When `capacity` is not a power of two.
    pub(crate) fn new(capacity: usize, mut make: impl FnMut() -> E) -> Self {
        assert!(capacity.is_power_of_two(), "a ring's capacity is a power of two, not {capacity}");
        Slots { cells: (0..capacity).map(|_| UnsafeCell::new(make())).collect(), mask: capacity - 1 }
    }

    #[inline(always)]
    pub(crate) fn capacity(&self) -> u64 {
        self.cells.len() as u64
    }

    /// The cell of `position`.
    #[inline(always)]
    pub(crate) fn at(&self, position: u64) -> &UnsafeCell<E> {
        // SAFETY: `mask` is the number of cells less one, so whatever it is applied to is an index of a cell.
        unsafe { self.cells.get_unchecked(position as usize & self.mask) }
    }

    /// Copies `positions` to `to`, in their order.
    ///
    /// # Safety
    /// The caller has the right to read these cells, there are no more than the capacity, and `to` has room for as many.
    pub(crate) unsafe fn copy_out(&self, positions: Range<u64>, to: *mut E) {
        for (offset, position) in positions.enumerate() {
            // SAFETY: the caller's promise.
            self.at(position).with(|cell| unsafe { to.add(offset).copy_from_nonoverlapping(cell, 1) });
        }
    }

    /// Copies from `from` to `positions`, in their order.
    ///
    /// # Safety
    /// The caller has the right to write these cells, there are no more than the capacity, and `from` has as many values.
    pub(crate) unsafe fn copy_in(&self, positions: Range<u64>, from: *const E) {
        for (offset, position) in positions.enumerate() {
            // SAFETY: the caller's promise.
            self.at(position).with_mut(|cell| unsafe { cell.copy_from_nonoverlapping(from.add(offset), 1) });
        }
    }
}
