//! The sections: each finds the slot of the processor on which it runs, and changes it with a single store at its very
//! end.
//!
//! Each call makes one attempt. A caller retries while the outcome is [`Aborted`](Outcome::Aborted), makes at most
//! [`MAX_ATTEMPTS`] attempts, and then takes another path: under a debugger that steps through a section, every attempt
//! is aborted. Wait-free, without atomic instructions and without fences. The values that a section reads were written
//! by sections on the same slot. A thread that accesses a slot in any other way first sets a word that the sections
//! check, and then [`restart`](super::restart())s the sections.

use std::arch::asm;
use std::ptr::NonNull;

use super::arch::slot_section;
use super::{Area, arch};
use crate::rseq_section;

/// The number of aborted attempts after which a caller takes another path. A section takes nanoseconds and a time slice
/// lasts milliseconds: two aborts in a row are rare unless another thread or a debugger provokes them.
pub(crate) const MAX_ATTEMPTS: u32 = 4;

/// Distance from one slot to the next in bytes: each slot is on a separate page, together with other data of the same
/// processor. The assembly of both architectures shifts by its binary logarithm, 12.
pub(crate) const STRIDE: usize = 4096;

/// The outcome of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No word was changed: the thread was interrupted, or there is no slot for its processor's number.
    Aborted,
    /// The section committed.
    Done,
    /// The word did not have the expected value.
    Different,
    /// The list is empty.
    Empty,
    /// Another thread has closed this slot to sections.
    Frozen,
}

impl Outcome {
    /// Decodes the number that the assembly leaves in the register `outcome`.
    #[inline(always)]
    pub(super) fn from_register(outcome: i32) -> Self {
        match outcome {
            0 => Outcome::Done,
            1 => Outcome::Different,
            2 => Outcome::Empty,
            3 => Outcome::Frozen,
            _ => Outcome::Aborted,
        }
    }
}

/// One slot for each processor number, [`STRIDE`] bytes apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slots {
    pub(super) first: NonNull<u64>,
    pub(super) count: u32,
}

impl Slots {
    /// `count` slots, the first of which begins at `first`.
    ///
    /// # Safety
    /// For every `i` below `count`, the address `first + i * STRIDE` is aligned for a `u64`, and the bytes that the
    /// operations touch there are valid as long as the value is used. Only sections with the same [`Numbers`] write
    /// there, except as described in the [module](self).
    pub(crate) unsafe fn new(first: NonNull<u64>, count: u32) -> Self {
        Slots { first, count }
    }
}

/// The number that selects a thread's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// The concurrency id if the kernel has it, otherwise the processor's number: for memory of one process. A few
    /// threads use only a few slots, even on a large machine.
    Private,
    /// The processor's number: for memory shared between processes, and for data that must name a processor.
    Processor,
}

/// This thread's area, and the address of its slot's number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here {
    area: Area,
    index: usize,
}

impl Here {
    /// An area with the slot number that `numbers` selects.
    #[inline(always)]
    pub(crate) fn new(area: Area, numbers: Numbers) -> Self {
        let index = match numbers {
            Numbers::Private => area.private_index(),
            Numbers::Processor => area.shared_index(),
        };
        Here { area, index }
    }

    /// This thread's area, if it has one.
    #[inline(always)]
    pub(crate) fn current(numbers: Numbers) -> Option<Self> {
        Some(Here::new(Area::current()?, numbers))
    }
}

/// Runs the section that `arch` defines under this name, with further operands, and evaluates to the section's outcome.
macro_rules! run {
    ($text:ident, $here:ident, $slots:ident, $($operand:tt)*) => {{
        let mut outcome = -1_i32;
        asm!(
            arch::$text!(),
            area = in(reg) $here.area.operand(),
            index = in(reg) $here.index,
            count = in(reg) $slots.count,
            first = in(reg) $slots.first.as_ptr(),
            scratch = out(reg) _,
            outcome = inout(reg) outcome,
            $($operand)*
            options(nostack),
        );
        Outcome::from_register(outcome)
    }};
}

/// Adds `n` to the slot's word.
///
/// # Safety
/// The caller upholds the contract of [`Slots::new`], with one word in each slot.
#[inline(always)]
pub(crate) unsafe fn add(here: Here, slots: Slots, n: u64) -> Outcome {
    // SAFETY: the caller promises a word in each slot, and the operands are those of `here` and `slots`.
    unsafe { arch::add(here.area.operand(), here.index, slots.first, slots.count, n) }
}

/// Makes the slot's word at least `value`.
///
/// # Safety
/// The caller upholds the contract of [`Slots::new`], with one word in each slot.
#[inline(always)]
pub(crate) unsafe fn raise(here: Here, slots: Slots, value: u64) -> Outcome {
    // SAFETY: the section checks the number against the count, and the caller promises a word in each of these slots.
    unsafe { run!(raise, here, slots, value = in(reg) value, old = out(reg) _,) }
}

/// Stores `new` in the slot's word if it is `expected`; otherwise the outcome is [`Different`](Outcome::Different). The
/// second value is the word's previous value, unless the section was aborted.
///
/// # Safety
/// The caller upholds the contract of [`Slots::new`], with one word in each slot.
#[inline(always)]
pub(crate) unsafe fn compare_and_store(here: Here, slots: Slots, expected: u64, new: u64) -> (Outcome, u64) {
    let mut found = 0_u64;
    // SAFETY: the section checks the number against the count, and the caller promises a word in each of these slots.
    let outcome = unsafe {
        run!(
            compare_and_store,
            here,
            slots,
            found = inout(reg) found,
            expected = in(reg) expected,
            new = in(reg) new,
        )
    };
    (outcome, found)
}

/// Prepends a node to the slot's list. The slot's first word points to the first node; its second word, unless it is
/// zero, closes the list to sections ([`Frozen`](Outcome::Frozen)). A node's first word points to the next node.
///
/// # Safety
/// The caller upholds the contract of [`Slots::new`], with two words in each slot. The caller owns the node's first
/// word, and does not touch it until the node is taken out of the list.
#[inline(always)]
pub(crate) unsafe fn list_push(here: Here, slots: Slots, node: *mut u64) -> Outcome {
    // SAFETY: the section checks the number against the count, and the caller promises two words in each of these slots
    // and the node's word.
    unsafe { run!(list_push, here, slots, next = out(reg) _, node = in(reg) node,) }
}

/// Takes the first node of the slot's list, if there is one.
///
/// # Safety
/// The caller upholds the contract of [`Slots::new`], with two words in each slot. A node that was pushed stays
/// readable until it is taken out.
#[inline(always)]
pub(crate) unsafe fn list_pop(here: Here, slots: Slots) -> (Outcome, *mut u64) {
    let mut node = std::ptr::null_mut::<u64>();
    // SAFETY: the section checks the number against the count, and the caller promises two words in each of these slots
    // and that nodes in the list are readable.
    let outcome = unsafe { run!(list_pop, here, slots, next = out(reg) _, node = inout(reg) node,) };
    (outcome, node)
}

/// Stores `value` in `target` if `guard` is `expected`; otherwise the outcome is [`Different`](Outcome::Different).
/// Release: everything written before is visible to a thread that sees the value.
///
/// No processor's slot is involved: the operation is a section so that a thread that changes the guard can
/// [restart](super::restart()) it.
///
/// # Safety
/// Both words are valid. Other threads do only the following: they read the words; they change the guard, and then
/// restart sections before they do anything else; they write atomically to `target` when the guard permits it.
#[inline(always)]
pub(crate) unsafe fn store_if(area: Area, guard: *const u64, expected: u64, target: *mut u64, value: u64) -> Outcome {
    let mut outcome = -1_i32;
    // SAFETY: the caller promises that both words are valid and that other threads keep to the protocol.
    unsafe {
        asm!(
            arch::store_if!(),
            area = in(reg) area.operand(),
            scratch = out(reg) _,
            outcome = inout(reg) outcome,
            guard = in(reg) guard,
            expected = in(reg) expected,
            target = in(reg) target,
            value = in(reg) value,
            options(nostack),
        );
    }
    Outcome::from_register(outcome)
}
