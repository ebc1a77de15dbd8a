//! The ring's memory: a power of two of cells, addressed by position.

use std::ops::Range;

use crate::primitive::{UnsafeCell, prefetch_for_writing};

/// So many lines are fetched together: enough for the way of one, 66 ns, to be next to nothing for each.
const LINES_TOGETHER: usize = 16;
/// What is fetched at once. Where lines are larger, some are asked for twice, which costs an instruction.
const LINE_BYTES: usize = 64;

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

    /// Has the core fetch cells from `from` on, to write to them, and returns up to where a producer that wants `most` of the
    /// free ones before `until` should take them now.
    ///
    /// The consumer has read these lines, so they have to be claimed back before the next lap is written. One of many
    /// producers meets them one by one: its next claim is a locked instruction, and that waits until what was written before has
    /// its line. So every line costs the whole way to the other core and back. Asked for together, they
    /// arrive together: 4.9 ns an event instead of 7.8. A single producer, whose writes may wait in the store buffer, gains as much:
    /// 2.1 ns instead of 4.2.
    #[inline]
    pub(crate) fn fetch(&self, from: u64, until: u64, most: u64) -> u64 {
        let cells_per_line = (LINE_BYTES / size_of::<E>().max(1)).max(1);
        let together = (LINES_TOGETHER * cells_per_line) as u64;
        for position in (from..until.min(from + together)).step_by(cells_per_line) {
            self.at(position).with(prefetch_for_writing);
        }
        until.min(from + together.max(most))
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_producer_learns_of_no_more_than_is_free_and_of_no_less_than_it_wants() {
        let (small, large) = (Slots::new(64, || 0u8), Slots::new(64, || [0u64; 100]));
        for from in 0..200 {
            for (free, most) in (0..64).flat_map(|free| [(free, 1), (free, 40), (free, 1000)]) {
                for until in [small.fetch(from, from + free, most), large.fetch(from, from + free, most)] {
                    assert!((free.min(most)..=free).contains(&(until - from)), "{from} {free} {most}");
                }
            }
        }
    }

    #[test]
    fn cells_of_less_than_a_line_are_fetched_by_the_line() {
        assert_eq!(Slots::new(4096, || 0u64).fetch(5, 5 + 4096, 1), 5 + 16 * 8);
        assert_eq!(Slots::new(4096, || [0u64; 9]).fetch(5, 5 + 4096, 1), 5 + 16);
    }
}
