//! The sections themselves, on memory of the caller's own.
//!
//! Each function is one restartable section: it finds the slot of the processor on which it runs and changes it, by one
//! store at its very end. Each call makes one attempt. Call again while the outcome is [`Aborted`](Outcome::Aborted),
//! at most [`ATTEMPTS`] times, and then take another path: under a debugger that steps through a section, every attempt
//! is aborted. Wait-free, without atomic instructions and without fences. The values that a section reads were written
//! by sections on the same slot. A thread that touches a slot in any other way must first say so in a word that the
//! sections check, and then [`restart`](super::restart) them.

use std::ptr::NonNull;

use super::Area;

pub use super::arch::operation::{
    add, compare_and_store, compare_and_store_two, list_pop, list_push, pop, push, raise, store_if,
};

/// The number of aborted attempts after which a caller takes another path. A section takes nanoseconds and a time slice
/// lasts milliseconds: two aborts in a row are rare unless another thread or a debugger provokes them.
pub const ATTEMPTS: u32 = 4;

/// Distance from one slot to the next in bytes: each slot is on a page of its own, together with other data of the same
/// processor.
pub const STRIDE: usize = 4096;

/// The outcome of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Outcome {
    /// No word was changed: the thread was interrupted, or there is no slot for its processor's number.
    Aborted = -1,
    /// The section committed.
    Done = 0,
    /// The word did not have the expected value.
    Different = 1,
    /// The list or stack is empty.
    Empty = 2,
    /// The stack is full.
    Full = 3,
    /// Another thread has closed this slot to sections.
    Frozen = 4,
}

impl Outcome {
    #[inline(always)]
    pub(super) fn from_register(outcome: i32) -> Self {
        match outcome {
            0 => Outcome::Done,
            1 => Outcome::Different,
            2 => Outcome::Empty,
            3 => Outcome::Full,
            4 => Outcome::Frozen,
            _ => Outcome::Aborted,
        }
    }
}

/// One slot for each processor number, [`STRIDE`] bytes apart.
#[derive(Debug, Clone, Copy)]
pub struct Slots {
    pub(super) first: NonNull<u64>,
    pub(super) count: u32,
}

impl Slots {
    /// `count` slots, the first of which begins at `first`.
    ///
    /// # Safety
    /// For every `i` below `count`, the memory at `first + i * STRIDE` is valid as long as the value is used, for as
    /// many bytes as the operations used touch, and aligned for a `u64`. Only sections with the same [`Numbers`] write
    /// there, except as [`raw`](self) says.
    #[must_use]
    pub unsafe fn new(first: NonNull<u64>, count: u32) -> Self {
        Slots { first, count }
    }
}

/// The number that selects a thread's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// The concurrency id if the kernel has it, otherwise the processor's number: for memory of one process. A few
    /// threads use only a few slots, on however large a machine.
    Private,
    /// The processor's number: for memory shared between processes, and for data that must name a processor.
    Processor,
}

/// This thread's area, and the place of its slot's number.
#[derive(Debug, Clone, Copy)]
pub struct Here {
    pub(super) area: Area,
    pub(super) index: usize,
}

impl Here {
    /// An area with the slot number that `numbers` selects.
    #[inline(always)]
    #[must_use]
    pub fn new(area: Area, numbers: Numbers) -> Self {
        let index = match numbers {
            Numbers::Private => area.private_index(),
            Numbers::Processor => area.shared_index(),
        };
        Here { area, index }
    }

    /// This thread's area, if it has one.
    #[inline(always)]
    #[must_use]
    pub fn current(numbers: Numbers) -> Option<Self> {
        Some(Here::new(Area::current()?, numbers))
    }
}
