//! The sections themselves, on memory of your own.
//!
//! Each function is one restartable section: it finds the slot of the processor that runs it and changes it, by one
//! store at its very end. All are tried once; call again while the outcome is [`Aborted`](Outcome::Aborted), at most
//! [`ATTEMPTS`] times, and then go another way: under a debugger that steps through a section, every attempt is aborted.
//! Wait-free, without atomic instructions and without fences. What a section reads was written by sections on the same slot; before
//! anybody else touches a slot he has to say so in a word that sections look at, and to [`restart`](super::restart) them.

use std::ptr::NonNull;

use super::Area;

pub use super::arch::operation::{
    add, compare_and_store, compare_and_store_two, list_pop, list_push, pop, push, raise, store_if,
};

/// After so many aborted attempts one goes another way. A section takes nanoseconds and time slices last
/// milliseconds: two aborts in a row are rare unless somebody means it.
pub const ATTEMPTS: u32 = 4;

/// Bytes from one slot to the next: each is on a page of its own, together with other data of the same processor.
pub const STRIDE: usize = 4096;

/// What became of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Outcome {
    /// Nothing was changed: the thread was interrupted, or there is no slot for the number of its processor.
    Aborted = -1,
    /// Done.
    Done = 0,
    /// The word was not what was expected.
    Different = 1,
    /// There is nothing to take.
    Empty = 2,
    /// There is no room.
    Full = 3,
    /// Somebody else is at work on this slot.
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

/// One slot for each number of a processor, [`STRIDE`] bytes apart.
#[derive(Debug, Clone, Copy)]
pub struct Slots {
    pub(super) first: NonNull<u64>,
    pub(super) count: u32,
}

impl Slots {
    /// Slots from `first` on.
    ///
    /// # Safety
    /// For every `i` below `count` there are, as long as the value is used, so many bytes as the operations used touch at
    /// `first + i * STRIDE`, aligned for a `u64`; and only sections with the same [`Numbers`] write there, except as [`raw`](self) says.
    #[must_use]
    pub unsafe fn new(first: NonNull<u64>, count: u32) -> Self {
        Slots { first, count }
    }
}

/// Which number says the slot of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// The concurrency id where the kernel has it, the processor's number elsewhere: for memory of one process. Few slots
    /// are used by few threads, on however large a machine.
    Private,
    /// The processor's number: for memory shared between processes, and to tell which slot a processor uses.
    Processor,
}

/// Where a section of this thread finds its slot's number.
#[derive(Debug, Clone, Copy)]
pub struct Here {
    pub(super) area: Area,
    pub(super) index: usize,
}

impl Here {
    /// By these numbers.
    #[inline(always)]
    #[must_use]
    pub fn new(area: Area, numbers: Numbers) -> Self {
        let index = match numbers {
            Numbers::Private => area.private_index(),
            Numbers::Processor => area.shared_index(),
        };
        Here { area, index }
    }

    /// This thread, if it has an area.
    #[inline(always)]
    #[must_use]
    pub fn current(numbers: Numbers) -> Option<Self> {
        Some(Here::new(Area::current()?, numbers))
    }
}
