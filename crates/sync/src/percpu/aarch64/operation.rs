//! The sections on aarch64.
//!
//! All begin alike: the section itself reads the slot's number and compares it as unsigned, so that a negative number
//! is too large. A section that leaves at this point keeps the outcome "aborted". The word that keeps sections out is
//! loaded with acquire, which pairs with the release store that lets them in again: a section that runs sees the work
//! done on the slot meanwhile.

use std::arch::asm;

use crate::percpu::Area;
use crate::percpu::raw::{Here, Outcome, Slots};

/// The text of a section, whose lines run once `{scratch}` holds the slot's address.
macro_rules! section {
    ($($line:literal),+ $(,)?) => {
        rseq_section!(
            "ldr {scratch:w}, [{index}]",
            "cmp {scratch:w}, {count:w}",
            "b.hs 88f",
            "add {scratch}, {first}, {scratch}, lsl #12",
            $($line),+
        )
    };
}

/// Runs a section on `slots` with further operands; evaluates to its outcome.
macro_rules! run {
    ($here:ident, $slots:ident, [$($line:literal),+ $(,)?], $($operand:tt)*) => {{
        let mut outcome = -1_i32;
        asm!(
            section!($($line),+),
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
/// The contract of [`Slots::new`], with one word in each slot.
#[inline(always)]
pub unsafe fn add(here: Here, slots: Slots, n: u64) -> Outcome {
    // SAFETY: the section checks the number against the count, and the caller promises a word in each of these slots.
    unsafe {
        run!(
            here,
            slots,
            [
                "ldr {sum}, [{scratch}]",
                "add {sum}, {sum}, {n}",
                "mov {outcome:w}, #0",
                "str {sum}, [{scratch}]",
            ],
            sum = out(reg) _,
            n = in(reg) n,
        )
    }
}

/// Makes the slot's word at least `value`.
///
/// # Safety
/// The contract of [`Slots::new`], with one word in each slot.
#[inline(always)]
pub unsafe fn raise(here: Here, slots: Slots, value: u64) -> Outcome {
    // SAFETY: the section checks the number against the count, and the caller promises a word in each of these slots.
    unsafe {
        run!(
            here,
            slots,
            [
                "ldr {found}, [{scratch}]",
                "mov {outcome:w}, #0",
                "cmp {found}, {value}",
                "b.hs 88f",
                "str {value}, [{scratch}]",
            ],
            found = out(reg) _,
            value = in(reg) value,
        )
    }
}

/// Stores `new` in the slot's word if it is `expected`; otherwise the outcome is [`Different`](Outcome::Different). The
/// second value is the word's former value, unless the section was aborted.
///
/// # Safety
/// The contract of [`Slots::new`], with one word in each slot.
#[inline(always)]
pub unsafe fn compare_and_store(here: Here, slots: Slots, expected: u64, new: u64) -> (Outcome, u64) {
    let mut found = 0_u64;
    // SAFETY: the section checks the number against the count, and the caller promises a word in each of these slots.
    let outcome = unsafe {
        run!(
            here,
            slots,
            [
                "ldr {found}, [{scratch}]",
                "mov {outcome:w}, #1",
                "cmp {found}, {expected}",
                "b.ne 88f",
                "mov {outcome:w}, #0",
                "str {new}, [{scratch}]",
            ],
            found = inout(reg) found,
            expected = in(reg) expected,
            new = in(reg) new,
        )
    };
    (outcome, found)
}

/// Stores two words at once if the first one is `expected`; otherwise the outcome is [`Different`](Outcome::Different).
/// The second value is the first word's former value, unless the section was aborted.
///
/// The store is atomic for threads on the same processor. A thread that reads both words from another processor may see
/// a new and an old word.
///
/// # Safety
/// The contract of [`Slots::new`], with two words in each slot, aligned to 16 bytes.
#[inline(always)]
pub unsafe fn compare_and_store_two(here: Here, slots: Slots, expected: u64, new: [u64; 2]) -> (Outcome, u64) {
    /// `stxp` leaves 0 if it stored and 1 if not: it stores a pair of words in one piece only if no other access has
    /// interfered since they were loaded.
    const STORED: i32 = 0;
    const DIFFERENT: i32 = 2;
    let mut outcome = -1_i32;
    let mut found = 0_u64;
    // SAFETY: the section checks the number against the count, and the caller promises two words in each of these
    // slots.
    unsafe {
        asm!(
            section!(
                "ldxp {found}, {upper}, [{scratch}]",
                "mov {outcome:w}, #2",
                "cmp {found}, {expected}",
                "b.ne 88f",
                "stxp {outcome:w}, {new}, {second}, [{scratch}]",
            ),
            area = in(reg) here.area.operand(),
            index = in(reg) here.index,
            count = in(reg) slots.count,
            first = in(reg) slots.first.as_ptr(),
            scratch = out(reg) _,
            outcome = inout(reg) outcome,
            found = inout(reg) found,
            upper = out(reg) _,
            expected = in(reg) expected,
            new = in(reg) new[0],
            second = in(reg) new[1],
            options(nostack),
        );
    }
    let outcome = match outcome {
        STORED => Outcome::Done,
        DIFFERENT => Outcome::Different,
        _ => Outcome::Aborted,
    };
    (outcome, found)
}

/// Prepends a node to the slot's list. The slot's first word points to the first node; its second word, unless it is
/// zero, keeps sections out ([`Frozen`](Outcome::Frozen)). A node's first word points to the next node.
///
/// # Safety
/// The contract of [`Slots::new`], with two words in each slot. The caller owns the node's first word, and leaves it to
/// the list until the node is taken out.
#[inline(always)]
pub unsafe fn list_push(here: Here, slots: Slots, node: *mut u64) -> Outcome {
    // SAFETY: the section checks the number against the count; the caller promises two words in each of these slots,
    // and the
    // node's word.
    unsafe {
        run!(
            here,
            slots,
            [
                "mov {outcome:w}, #4",
                "add {frozen}, {scratch}, #8",
                "ldar {frozen}, [{frozen}]",
                "cbnz {frozen}, 88f",
                "ldr {next}, [{scratch}]",
                "str {next}, [{node}]",
                "mov {outcome:w}, #0",
                "str {node}, [{scratch}]",
            ],
            frozen = out(reg) _,
            next = out(reg) _,
            node = in(reg) node,
        )
    }
}

/// Takes the first node of the slot's list, if there is one.
///
/// # Safety
/// The contract of [`Slots::new`], with two words in each slot. A node that was pushed stays readable until it is taken
/// out.
#[inline(always)]
pub unsafe fn list_pop(here: Here, slots: Slots) -> (Outcome, *mut u64) {
    let mut node = std::ptr::null_mut::<u64>();
    // SAFETY: the section checks the number against the count; the caller promises two words in each of these slots,
    // and that
    // nodes in the list are readable.
    let outcome = unsafe {
        run!(
            here,
            slots,
            [
                "mov {outcome:w}, #4",
                "add {frozen}, {scratch}, #8",
                "ldar {frozen}, [{frozen}]",
                "cbnz {frozen}, 88f",
                "mov {outcome:w}, #2",
                "ldr {node}, [{scratch}]",
                "cbz {node}, 88f",
                "ldr {next}, [{node}]",
                "mov {outcome:w}, #0",
                "str {next}, [{scratch}]",
            ],
            frozen = out(reg) _,
            next = out(reg) _,
            node = inout(reg) node,
        )
    };
    (outcome, node)
}

/// Pushes a value onto the slot's stack. The slot's first word is the number of values; its second word, unless it is
/// zero, keeps sections out ([`Frozen`](Outcome::Frozen)); the `capacity` words after these are the values.
///
/// # Safety
/// The contract of [`Slots::new`], with `2 + capacity` words in each slot.
#[inline(always)]
pub unsafe fn push(here: Here, slots: Slots, capacity: u64, value: u64) -> Outcome {
    // SAFETY: the section checks the number and the length against their bounds, and the caller promises the words
    // below these.
    unsafe {
        run!(
            here,
            slots,
            [
                "mov {outcome:w}, #4",
                "add {frozen}, {scratch}, #8",
                "ldar {frozen}, [{frozen}]",
                "cbnz {frozen}, 88f",
                "mov {outcome:w}, #3",
                "ldr {length}, [{scratch}]",
                "cmp {length}, {capacity}",
                "b.hs 88f",
                "add {place}, {scratch}, {length}, lsl #3",
                "str {value}, [{place}, #16]",
                "add {length}, {length}, #1",
                "mov {outcome:w}, #0",
                "str {length}, [{scratch}]",
            ],
            frozen = out(reg) _,
            place = out(reg) _,
            length = out(reg) _,
            capacity = in(reg) capacity,
            value = in(reg) value,
        )
    }
}

/// Takes the last value of the slot's stack, if there is one.
///
/// # Safety
/// The contract of [`Slots::new`], with as many words in each slot as for [`push`].
#[inline(always)]
pub unsafe fn pop(here: Here, slots: Slots) -> (Outcome, u64) {
    let mut value = 0_u64;
    // SAFETY: the section checks the number against the count, the length is one that `push` stored, and the caller
    // promises
    // the words below these bounds.
    let outcome = unsafe {
        run!(
            here,
            slots,
            [
                "mov {outcome:w}, #4",
                "add {frozen}, {scratch}, #8",
                "ldar {frozen}, [{frozen}]",
                "cbnz {frozen}, 88f",
                "mov {outcome:w}, #2",
                "ldr {length}, [{scratch}]",
                "subs {length}, {length}, #1",
                "b.lo 88f",
                "add {place}, {scratch}, {length}, lsl #3",
                "ldr {value}, [{place}, #16]",
                "mov {outcome:w}, #0",
                "str {length}, [{scratch}]",
            ],
            frozen = out(reg) _,
            place = out(reg) _,
            length = out(reg) _,
            value = inout(reg) value,
        )
    };
    (outcome, value)
}

/// Stores `value` in `place` if `guard` is `expected`; otherwise the outcome is [`Different`](Outcome::Different).
/// Release: everything written before is visible to a thread that sees the value.
///
/// No processor's slot is involved: the operation is a section so that a thread that changes the guard can
/// [restart](crate::percpu::restart) it.
///
/// # Safety
/// Both words are valid. Other threads only read them, or change the guard and restart sections before they go on, or
/// write atomically to `place` when the guard permits it.
#[inline(always)]
pub unsafe fn store_if(area: Area, guard: *const u64, expected: u64, place: *mut u64, value: u64) -> Outcome {
    let mut outcome = -1_i32;
    // SAFETY: the caller promises that both words are valid and that other threads keep to the protocol.
    unsafe {
        asm!(
            rseq_section!(
                "mov {outcome:w}, #1",
                "ldr {scratch}, [{guard}]",
                "cmp {scratch}, {expected}",
                "b.ne 88f",
                "mov {outcome:w}, #0",
                "stlr {value}, [{place}]",
            ),
            area = in(reg) area.operand(),
            scratch = out(reg) _,
            outcome = inout(reg) outcome,
            guard = in(reg) guard,
            expected = in(reg) expected,
            place = in(reg) place,
            value = in(reg) value,
            options(nostack),
        );
    }
    Outcome::from_register(outcome)
}
