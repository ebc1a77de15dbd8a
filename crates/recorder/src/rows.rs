//! Rows: the operations of a thread, in their order.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use millstream_history::{Op, Value};

use crate::memory::Memory;

/// A recorded operation. Its times are in the units of the stamps' source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) call: u64,
    /// The stamp of the return, or `PENDING` before the return.
    pub(crate) ret: u64,
    pub(crate) input: Value,
    pub(crate) output: Value,
    /// The number of the object, or `ALONE` in a history of a single object.
    pub(crate) object: u32,
    pub(crate) op: Op,
    /// Whether the operation certainly had no effect.
    pub(crate) failed: bool,
}

/// The value of `ret` in a pending operation.
pub(crate) const PENDING: u64 = u64::MAX;
/// The value of `object` if there is only one object.
pub(crate) const ALONE: u32 = u32::MAX;

/// A list of rows with a fixed capacity, whose memory is allocated from the start.
pub(crate) struct Rows {
    memory: Memory,
    len: usize,
    capacity: usize,
}

impl Rows {
    /// Returns an empty list with a capacity of at least `rows`.
    ///
    /// # Panics
    /// Panics if no address space is that large.
    pub(crate) fn with_room(rows: usize) -> Self {
        let bytes = rows.checked_mul(size_of::<Row>()).expect("a number of rows that fits into an address space");
        let memory = Memory::of(bytes);
        Rows { len: 0, capacity: memory.bytes() / size_of::<Row>(), memory }
    }

    /// Returns this list with its capacity limited to `rows`.
    pub(crate) fn at_most(mut self, rows: usize) -> Self {
        self.capacity = self.capacity.min(rows);
        self
    }

    /// Returns the maximum number of rows.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len == self.capacity
    }

    /// Adds a row, if there is space.
    #[inline]
    pub(crate) fn push(&mut self, row: Row) {
        if !self.is_full() {
            // SAFETY: the memory is aligned for rows and has space for `capacity` rows. Fewer have been written.
            unsafe { self.start().add(self.len).write(row) };
            self.len += 1;
        }
    }

    /// Moves all rows out, and leaves an empty list with a capacity of 0.
    pub(crate) fn take(&mut self) -> Rows {
        std::mem::replace(self, Rows { memory: Memory::NONE, len: 0, capacity: 0 })
    }

    #[inline]
    fn start(&self) -> NonNull<Row> {
        const { assert!(align_of::<Row>() <= align_of::<u64>(), "memory is aligned for rows") };
        self.memory.start().cast()
    }
}

impl Deref for Rows {
    type Target = [Row];

    #[inline]
    fn deref(&self) -> &[Row] {
        // SAFETY: the first `len` rows have been written.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.len) }
    }
}

impl DerefMut for Rows {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Row] {
        // SAFETY: the first `len` rows have been written, and the result borrows `self` exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start().as_ptr(), self.len) }
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_as_they_went_in_up_to_the_capacity() {
        for (room, most) in [(0, 5), (1, 1), (3, 8), (10, 4), (60_000, 52_430), (100_000, usize::MAX)] {
            let mut rows = Rows::with_room(room).at_most(most);
            let capacity = rows.capacity();
            assert!(capacity >= room.min(most) && capacity <= most, "{capacity} for {room} at most {most}");
            for n in 0..capacity as u64 + 2 {
                assert_eq!(rows.is_full(), n >= capacity as u64);
                let value = Value::int(n.cast_signed());
                rows.push(Row {
                    call: n,
                    ret: PENDING,
                    input: value,
                    output: Value::NULL,
                    object: 7,
                    op: Op::WRITE,
                    failed: false,
                });
            }
            assert_eq!(rows.len(), capacity);
            if let Some(last) = rows.last_mut() {
                last.ret = 3;
            }
            let taken = rows.take();
            assert!(rows.is_full() && rows.is_empty(), "no row is left, and no space");
            for (n, row) in taken.iter().enumerate() {
                let ret = if n + 1 == capacity { 3 } else { PENDING };
                assert_eq!((row.call, row.ret, row.input, row.object), (n as u64, ret, Value::int(n as i64), 7));
            }
        }
    }
}
