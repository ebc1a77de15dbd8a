//! The table of units in flight: a row for each unit, a column for each kind of data.
//!
//! Queues hold rows (numbers), never payloads. A unit moves from stage to stage without its payload being copied, boxed
//! or allocated, and a million waiting units are a million small integers. Every payload type has one column. A unit's
//! payload is in the column of the type that its stage takes, at the unit's row. A stage that makes a new value moves
//! it into the next column once; a stage that changes its input in place moves nothing.
//!
//! **Ownership.** A [`Row`] can be neither copied nor cloned, and the engine makes exactly one for each number. The
//! owner of the `Row` owns the unit, so access to a cell needs no lock and no atomic operation. A row changes owners
//! under the flow's mutex, through a `Staging` (by release and acquire), or under the lock of a worker's turn
//! (`crew/turn_slot`). Each of these three mechanisms orders all accesses to the row's cells.
//!
//! **Growth.** A column is a list of buckets that double in size. Each bucket is allocated when its first row is used,
//! and a cell never moves. Each access costs one acquire load (a plain load on x86-64) and some arithmetic.
//!
//! **Why not objects of `millstream-slab`.** A slab object would cost every unit an allocation, a free and a word. In
//! return it could survive a crash and serve several processes. But payloads are Rust values, which have no meaning in
//! another process and do not outlive their own process.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use rustix::mm::{Advice, madvise};

use crate::contain::contain;

/// The sole right to a unit's cells in every column of its flow.
#[derive(Debug, PartialEq, Eq)]
pub struct Row(u32);

impl Row {
    /// # Safety
    /// No other `Row` with this number may exist for the same flow.
    pub(crate) unsafe fn new(number: u32) -> Self {
        Row(number)
    }

    /// Gives up the row, and returns its number. The next code that makes a row of this number owns the unit's cells.
    pub(crate) fn into_number(self) -> u32 {
        self.0
    }

    pub(crate) fn number(&self) -> u32 {
        self.0
    }
}

const FIRST_BUCKET: usize = 64;
const BUCKETS: usize = 26;

/// The values of type `T`: at most one for each row.
pub(crate) struct Column<T> {
    /// Bucket `b` holds `FIRST_BUCKET << b` cells; null until its first row is used.
    buckets: [AtomicPtr<Cell<T>>; BUCKETS],
}

type Cell<T> = UnsafeCell<Option<T>>;

// SAFETY: a cell is reached only through its `Row`, which one thread owns at a time. Sending the row to another thread
// sends the value, hence `T: Send`.
unsafe impl<T: Send> Sync for Column<T> {}
// SAFETY: a column owns its values, so it may move to another thread if the values may.
unsafe impl<T: Send> Send for Column<T> {}

impl<T> Column<T> {
    /// The maximum number of rows of a column.
    pub(crate) const MAX_ROWS: usize = FIRST_BUCKET * ((1 << BUCKETS) - 1);

    pub(crate) fn new() -> Self {
        Column { buckets: [const { AtomicPtr::new(ptr::null_mut()) }; BUCKETS] }
    }

    /// The row's cell.
    ///
    /// # Safety
    /// `row` belongs to the flow that this column belongs to.
    #[inline]
    pub(crate) unsafe fn cell<'a>(&'a self, row: &'a mut Row) -> &'a mut Option<T> {
        let (bucket, offset) = place(row);
        // Acquire pairs with the release that published the bucket, so the bucket's cells are initialised.
        let mut cells = self.buckets[bucket].load(Ordering::Acquire);
        if cells.is_null() {
            cells = self.make_bucket(bucket);
        }
        // SAFETY: the offset is inside the bucket (see `place`). The caller has the only `Row` of this number, borrowed
        // mutably for as long as the result lives, so no other reference to this cell can exist.
        unsafe { &mut *(*cells.add(offset)).get() }
    }

    /// The row's value, if it has one, for reading.
    ///
    /// # Safety
    /// `row` belongs to the flow that this column belongs to, and no code changes the cell as long as the result lives.
    #[inline]
    pub(crate) unsafe fn peek<'a>(&'a self, row: &'a Row) -> Option<&'a T> {
        let (bucket, offset) = place(row);
        // Acquire pairs with the release that published the bucket.
        let cells = self.buckets[bucket].load(Ordering::Acquire);
        if cells.is_null() {
            return None;
        }
        // SAFETY: the offset is inside the bucket (see `place`), and the caller promises that no code changes the cell
        // as long as the shared reference lives.
        unsafe { (*(*cells.add(offset)).get()).as_ref() }
    }

    #[cold]
    fn make_bucket(&self, bucket: usize) -> *mut Cell<T> {
        let made = alloc_bucket::<T>(bucket);
        // The owners of two rows of one bucket may call this at the same time, and the first to publish wins. The
        // release pairs with the acquire of every reader, and the acquire with the release of the winner.
        match self.buckets[bucket].compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(theirs) => {
                drop_bucket(made, bucket);
                theirs
            }
        }
    }
}

/// The row's bucket, and its offset there: its position is in `FIRST_BUCKET << bucket..FIRST_BUCKET << (bucket + 1)`.
#[inline]
fn place(row: &Row) -> (usize, usize) {
    let position = row.0 as usize + FIRST_BUCKET;
    let bucket = (position.ilog2() - FIRST_BUCKET.ilog2()) as usize;
    (bucket, position - (FIRST_BUCKET << bucket))
}

/// Buckets of at least this size use pages of this size, if the system has them. A table of a million units then spans
/// a few dozen pages instead of thousands, which would not fit into a core's translation buffer.
const HUGE_PAGE: usize = 2 << 20;

fn layout<T>(bucket: usize) -> Layout {
    let layout = Layout::array::<Cell<T>>(FIRST_BUCKET << bucket).expect("a bucket fits into the address space");
    if layout.size() < HUGE_PAGE {
        return layout;
    }
    layout.align_to(HUGE_PAGE).expect("a page size is a valid alignment")
}

/// Allocates a bucket whose cells are all `None`.
fn alloc_bucket<T>(bucket: usize) -> *mut Cell<T> {
    let layout = layout::<T>(bucket);
    assert!(layout.size() > 0, "a type without values cannot have a column");
    // SAFETY: the assertion above has checked that the layout is not empty.
    let cells = unsafe { alloc(layout) }.cast::<Cell<T>>();
    if cells.is_null() {
        handle_alloc_error(layout);
    }
    if layout.size() >= HUGE_PAGE {
        // SAFETY: the range consists of whole pages of this allocation, and the advice changes no contents. A system
        // without huge pages refuses the advice, and nothing is lost.
        let _ = unsafe { madvise(cells.cast(), layout.size() & !(HUGE_PAGE - 1), Advice::LinuxHugepage) };
    }
    for i in 0..FIRST_BUCKET << bucket {
        // SAFETY: the index is inside the allocation, and no other thread knows of the allocation yet.
        unsafe { cells.add(i).write(UnsafeCell::new(None)) };
    }
    cells
}

/// Frees a bucket that `alloc_bucket` made and that no other code can reach.
fn drop_bucket<T>(cells: *mut Cell<T>, bucket: usize) {
    if std::mem::needs_drop::<T>() {
        let mut next = 0;
        // If a payload's destructor panics, the outer loop continues with the next payload.
        while next < FIRST_BUCKET << bucket {
            contain(|| {
                while next < FIRST_BUCKET << bucket {
                    next += 1;
                    // SAFETY: `alloc_bucket` made this many cells, and each is dropped once, whether or not its
                    // destructor panics.
                    unsafe { cells.add(next - 1).drop_in_place() };
                }
            });
        }
    }
    // SAFETY: the bucket came from `alloc_bucket` with this layout, its cells are dropped, and it is freed once.
    unsafe { dealloc(cells.cast(), layout::<T>(bucket)) };
}

impl<T> Drop for Column<T> {
    fn drop(&mut self) {
        for (bucket, cells) in self.buckets.iter_mut().enumerate() {
            if !cells.get_mut().is_null() {
                drop_bucket(*cells.get_mut(), bucket);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_own_cell() {
        let column = Column::new();
        for n in (0..5000).chain([70_000, 1_000_000]) {
            // SAFETY: one row is alive at a time, and this column belongs to no flow.
            let mut row = unsafe { Row::new(n) };
            // SAFETY: the row was made for this column only.
            let cell = unsafe { column.cell(&mut row) };
            assert!(cell.is_none(), "row {n} shares a cell");
            *cell = Some(n);
        }
        for n in (0..5000).chain([70_000, 1_000_000]) {
            // SAFETY: one row is alive at a time, and this column belongs to no flow.
            let mut row = unsafe { Row::new(n) };
            // SAFETY: the row was made for this column only.
            assert_eq!(unsafe { column.cell(&mut row) }.take(), Some(n));
        }
    }

    #[test]
    fn a_column_drops_its_remaining_values() {
        let witness = std::sync::Arc::new(());
        let column = Column::new();
        for n in 0..100 {
            // SAFETY: the loop makes one row of each number, and this column belongs to no flow.
            let mut row = unsafe { Row::new(n) };
            // SAFETY: the row was made for this column only.
            *unsafe { column.cell(&mut row) } = Some(witness.clone());
        }
        drop(column);
        assert_eq!(std::sync::Arc::strong_count(&witness), 1);
    }
}
