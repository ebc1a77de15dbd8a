//! The sections on x86-64.
//!
//! All begin alike: the section itself reads the slot's number and compares it as unsigned, so that a negative number
//! is too large. A section that leaves at this point keeps the outcome "aborted". An interrupt does not cut an
//! instruction that reads and writes in two, so such an instruction may commit.

use std::arch::asm;

use crate::percpu::Area;
use crate::percpu::raw::{Here, Outcome, Slots};

/// The text of a section, whose lines run once `{scratch}` holds the slot's address.
macro_rules! section {
    ($($line:literal),+ $(,)?) => {
        rseq_section!(
            "mov {scratch:e}, dword ptr fs:[{index}]",
            "cmp {scratch:e}, {count:e}",
            "jae 88f",
            "shl {scratch}, 12",
            "add {scratch}, {first}",
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
    // This section keeps no outcome in a register, since it must be the shortest of all.
    // SAFETY: the section checks the number against the count, and the caller promises a word in each of these slots.
    unsafe {
        asm!(
            rseq_section!(
                aborted: "jmp {aborted}";
                "mov {scratch:e}, dword ptr fs:[{index}]",
                "cmp {scratch:e}, {count:e}",
                "jae {aborted}",
                "shl {scratch}, 12",
                "add qword ptr [{first} + {scratch}], {n}",
            ),
            area = in(reg) here.area.operand(),
            index = in(reg) here.index,
            count = in(reg) slots.count,
            first = in(reg) slots.first.as_ptr(),
            n = in(reg) n,
            scratch = out(reg) _,
            aborted = label { return Outcome::Aborted },
            options(nostack),
        );
    }
    Outcome::Done
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
                "mov {outcome:e}, 0",
                "cmp qword ptr [{scratch}], {value}",
                "jae 88f",
                "mov qword ptr [{scratch}], {value}",
            ],
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
                "mov {found}, qword ptr [{scratch}]",
                "mov {outcome:e}, 1",
                "cmp {found}, {expected}",
                "jne 88f",
                "mov {outcome:e}, 0",
                "mov qword ptr [{scratch}], {new}",
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
    let mut found = 0_u64;
    // SAFETY: the section checks the number against the count, and the caller promises two words in each of these
    // slots.
    let outcome = unsafe {
        run!(
            here,
            slots,
            [
                "mov {found}, qword ptr [{scratch}]",
                "mov {outcome:e}, 1",
                "cmp {found}, {expected}",
                "jne 88f",
                "movq {both}, {new}",
                "movq {upper}, {second}",
                "punpcklqdq {both}, {upper}",
                "mov {outcome:e}, 0",
                "movups xmmword ptr [{scratch}], {both}",
            ],
            found = inout(reg) found,
            expected = in(reg) expected,
            new = in(reg) new[0],
            second = in(reg) new[1],
            both = out(xmm_reg) _,
            upper = out(xmm_reg) _,
        )
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
                "mov {outcome:e}, 4",
                "cmp qword ptr [{scratch} + 8], 0",
                "jne 88f",
                "mov {next}, qword ptr [{scratch}]",
                "mov qword ptr [{node}], {next}",
                "mov {outcome:e}, 0",
                "mov qword ptr [{scratch}], {node}",
            ],
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
                "mov {outcome:e}, 4",
                "cmp qword ptr [{scratch} + 8], 0",
                "jne 88f",
                "mov {outcome:e}, 2",
                "mov {node}, qword ptr [{scratch}]",
                "test {node}, {node}",
                "jz 88f",
                "mov {next}, qword ptr [{node}]",
                "mov {outcome:e}, 0",
                "mov qword ptr [{scratch}], {next}",
            ],
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
                "mov {outcome:e}, 4",
                "cmp qword ptr [{scratch} + 8], 0",
                "jne 88f",
                "mov {outcome:e}, 3",
                "mov {length}, qword ptr [{scratch}]",
                "cmp {length}, {capacity}",
                "jae 88f",
                "mov qword ptr [{scratch} + 8*{length} + 16], {value}",
                "add {length}, 1",
                "mov {outcome:e}, 0",
                "mov qword ptr [{scratch}], {length}",
            ],
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
                "mov {outcome:e}, 4",
                "cmp qword ptr [{scratch} + 8], 0",
                "jne 88f",
                "mov {outcome:e}, 2",
                "mov {length}, qword ptr [{scratch}]",
                "sub {length}, 1",
                "jb 88f",
                "mov {value}, qword ptr [{scratch} + 8*{length} + 16]",
                "mov {outcome:e}, 0",
                "mov qword ptr [{scratch}], {length}",
            ],
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
                "mov {outcome:e}, 1",
                "cmp qword ptr [{guard}], {expected}",
                "jne 88f",
                "mov {outcome:e}, 0",
                "mov qword ptr [{place}], {value}",
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
