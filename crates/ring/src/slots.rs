//! The ring's memory: cells, a power of two in number, addressed by position.

use std::ops::Range;

use crate::primitive::{LINE_BYTES, UnsafeCell, prefetch_for_writing};

/// The number of cache lines that are prefetched together. One transfer takes 66 ns, but the transfers of 16 lines
/// overlap.
const LINES_TOGETHER: usize = 16;

/// The cells of a ring. Position `p` is in cell `p mod capacity`, in every lap.
///
/// This type does not know which thread may touch which cell: the sequencers decide that.
#[derive(Debug)]
pub(crate) struct Slots<E> {
    cells: Box<[UnsafeCell<E>]>,
    mask: usize,
}

// SAFETY: threads access cells only through raw pointers, under a claim on the cell's position. A claim gives one
// thread exclusive access, which `E: Send` allows, or several threads shared access, for which graphs also require `E:
// Sync`.
unsafe impl<E: Send> Sync for Slots<E> {}
// SAFETY: the slots own their values, which may move to another thread because `E: Send`.
unsafe impl<E: Send> Send for Slots<E> {}

impl<E> Slots<E> {
    const CELLS_PER_LINE: usize = {
        let bytes = if size_of::<E>() == 0 { 1 } else { size_of::<E>() };
        if bytes < LINE_BYTES { 1 << (LINE_BYTES / bytes).ilog2() } else { 1 }
    };
    const TOGETHER: u64 = (LINES_TOGETHER * Self::CELLS_PER_LINE) as u64;

    /// `capacity` cells, whose values `make` creates.
    ///
    /// # Panics
    /// If `capacity` is not a power of two, exceeds [`MAX_CAPACITY`], or needs more memory than there is.
    pub(crate) fn new(capacity: usize, mut make: impl FnMut() -> E) -> Self {
        check_capacity(capacity);
        assert!(capacity <= MAX_CAPACITY, "a ring's capacity is at most {MAX_CAPACITY}, not {capacity}");
        let mut cells = Vec::new();
        if let Err(error) = cells.try_reserve_exact(capacity) {
            panic!("no memory for a ring of {capacity} slots of {} bytes: {error}", size_of::<E>());
        }
        cells.extend((0..capacity).map(|_| UnsafeCell::new(make())));
        Slots { cells: cells.into_boxed_slice(), mask: capacity - 1 }
    }

    #[inline(always)]
    pub(crate) fn capacity(&self) -> u64 {
        self.cells.len() as u64
    }

    /// The cell of `position`.
    #[inline(always)]
    pub(crate) fn at(&self, position: u64) -> &UnsafeCell<E> {
        // SAFETY: `mask` is the number of cells minus one, so a position masked by it is the index of a cell.
        unsafe { self.cells.get_unchecked(position as usize & self.mask) }
    }

    /// Prefetches, for writing, those cells of the next two portions that are among the free cells `from..until`.
    /// Returns the end of the prefetched cells.
    ///
    /// The consumer has read these lines, so each must return to the producer's core before the producer can write to
    /// it again. Without a prefetch, a producer in [`Multi`](crate::sequencer::Multi) waits for them one by one: its
    /// next claim is a locked instruction, which does not begin before all earlier writes have reached their lines.
    /// Requested together, the lines arrive together, and an event takes 4.9 ns instead of 7.8. A single producer,
    /// whose writes may wait in the store buffer, takes 2.1 ns instead of 4.2.
    ///
    /// The lines of the second portion arrive while the producer writes the first.
    #[inline(always)]
    pub(crate) fn fetch(&self, from: u64, until: u64) -> u64 {
        let end = until.min(from + 2 * Self::TOGETHER);
        for position in (from..end).step_by(Self::CELLS_PER_LINE) {
            self.at(position).with(prefetch_for_writing);
        }
        end
    }

    /// Prefetches cells that one of many producers will soon write. The producer has claimed `positions`; the cells
    /// requested here are two portions ahead, and arrive while the producer writes the portions before them. The free
    /// cells end at `until`. Most claims end in the portion in which they began, and prefetch nothing.
    #[inline(always)]
    pub(crate) fn fetch_ahead(&self, positions: Range<u64>, until: u64, fetched: impl FnOnce(Range<u64>)) {
        let [first, last] = [positions.start, positions.end].map(|position| position / Self::TOGETHER + 2);
        if first != last {
            let ahead = (first * Self::TOGETHER).min(until)..(last * Self::TOGETHER).min(until);
            for position in ahead.clone().step_by(Self::CELLS_PER_LINE) {
                self.at(position).with(prefetch_for_writing);
            }
            fetched(ahead);
        }
    }

    /// The end of the portion that a producer uses before it [prefetches](Self::fetch) again, if it wants `most` of the
    /// free cells `from..until`.
    #[inline(always)]
    pub(crate) fn portion(from: u64, until: u64, most: u64) -> u64 {
        until.min(from + Self::TOGETHER.max(most))
    }

    /// Copies the cells of `positions` to `to`, in order.
    ///
    /// # Safety
    /// The caller may read these cells, there are at most `capacity` of them, and `to` has room for all.
    pub(crate) unsafe fn copy_out(&self, positions: Range<u64>, to: *mut E) {
        for (offset, position) in positions.enumerate() {
            // SAFETY: the caller may read the cell, and `to` has room for one value per position.
            self.at(position).with(|cell| unsafe { to.add(offset).copy_from_nonoverlapping(cell, 1) });
        }
    }

    /// Copies values from `from` to the cells of `positions`, in order.
    ///
    /// # Safety
    /// The caller may write these cells, there are at most `capacity` of them, and `from` has a value for each.
    pub(crate) unsafe fn copy_in(&self, positions: Range<u64>, from: *const E) {
        for (offset, position) in positions.enumerate() {
            // SAFETY: the caller may write the cell, and `from` has one value per position.
            self.at(position).with_mut(|cell| unsafe { cell.copy_from_nonoverlapping(from.add(offset), 1) });
        }
    }
}

/// The maximum number of slots in a ring: 2^32, or 2^30 where an address has 32 bits.
const MAX_CAPACITY: usize = 1 << if usize::BITS == 64 { 32 } else { 30 };

/// The number of slots that hold `capacity` values: the next power of two.
///
/// # Panics
/// If `capacity` is 0 or exceeds [`MAX_CAPACITY`].
pub(crate) fn slots_for(capacity: usize) -> usize {
    assert!(
        (1..=MAX_CAPACITY).contains(&capacity),
        "a channel's capacity is between 1 and {MAX_CAPACITY}, not {capacity}"
    );
    capacity.next_power_of_two()
}

/// Checks that `capacity` is a power of two.
///
/// # Panics
/// If it is not; the message names the next power of two.
pub(crate) fn check_capacity(capacity: usize) {
    if !capacity.is_power_of_two() {
        let next = capacity.checked_next_power_of_two().map(|next| format!("; the next is {next}"));
        panic!("a ring's capacity is a power of two, not {capacity}{}", next.unwrap_or_default());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a ring's capacity is a power of two, not 1000; the next is 1024")]
    fn a_capacity_that_is_no_power_of_two_is_refused_with_the_next_one() {
        check_capacity(1000);
    }

    #[test]
    #[should_panic(expected = "not 18446744073709551615")]
    #[cfg(target_pointer_width = "64")]
    fn the_largest_number_has_no_next_power_of_two() {
        check_capacity(usize::MAX);
    }

    #[test]
    fn any_capacity_gets_the_next_power_of_two_of_slots() {
        assert_eq!([1, 2, 3, 1000, 1024].map(slots_for), [1, 2, 4, 1024, 1024]);
        for capacity in [0, MAX_CAPACITY + 1, usize::MAX] {
            assert!(std::panic::catch_unwind(|| slots_for(capacity)).is_err());
        }
    }

    #[test]
    #[should_panic(expected = "no memory for a ring of")]
    #[cfg(target_pointer_width = "64")]
    fn a_ring_that_exceeds_the_address_space_is_refused() {
        Slots::new(MAX_CAPACITY, || -> [u8; 1 << 31] { unreachable!("no slot is made") });
    }

    #[test]
    fn a_producer_takes_no_more_than_is_free_and_no_less_than_it_wants() {
        for from in 0..200 {
            for (free, most) in (0..64).flat_map(|free| [(free, 1), (free, 40), (free, 1000)]) {
                let until = from + free;
                for taken in [Slots::<u8>::portion(from, until, most), Slots::<[u64; 100]>::portion(from, until, most)]
                {
                    assert!((free.min(most)..=free).contains(&(taken - from)), "{from} {free} {most}");
                }
            }
        }
    }

    #[test]
    fn small_cells_are_taken_by_the_line_and_two_lines_are_fetched() {
        let (small, large) = (Slots::new(4096, || 0u64), Slots::new(4096, || [0u64; 9]));
        assert_eq!((Slots::<u64>::portion(5, 4101, 1), small.fetch(5, 4101)), (5 + 16 * 8, 5 + 32 * 8));
        assert_eq!((Slots::<[u64; 9]>::portion(5, 4101, 1), large.fetch(5, 4101)), (5 + 16, 5 + 32));
        assert_eq!((small.fetch(5, 7), small.fetch(5, 5)), (7, 5), "fetched beyond the free cells");
        assert_eq!(Slots::new(4, || ()).fetch(5, 9), 9);
    }
}
