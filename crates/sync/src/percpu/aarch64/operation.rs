//! The sections on aarch64.
//!
//! All begin alike: the slot's number is read inside, and compared as unsigned, so that a negative one is too large. Leaving then
//! keeps the outcome at "aborted". The word that keeps sections away is loaded with acquire: what it was set for comes before.

use std::arch::asm;

use crate::percpu::Area;
use crate::percpu::raw::{Here, Outcome, Slots};

/// The text of a section after it has the slot's address in `{slot}`.
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
/// What [`Slots::new`] asks for, with one word in each slot.
#[inline(always)]
pub unsafe fn add(here: Here, slots: Slots, n: u64) -> Outcome {
    // SAFETY: the number is below the count, so the word is there by the caller's promise.
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
/// What [`Slots::new`] asks for, with one word in each slot.
#[inline(always)]
pub unsafe fn raise(here: Here, slots: Slots, value: u64) -> Outcome {
    // SAFETY: the number is below the count, so the word is there by the caller's promise.
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

/// Stores `new` in the slot's word if it is `expected`; otherwise [`Different`](Outcome::Different). The second value is
/// what the word was, unless aborted.
///
/// # Safety
/// What [`Slots::new`] asks for, with one word in each slot.
#[inline(always)]
pub unsafe fn compare_and_store(here: Here, slots: Slots, expected: u64, new: u64) -> (Outcome, u64) {
    let mut found = 0_u64;
    // SAFETY: the number is below the count, so the word is there by the caller's promise.
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

/// Stores two words at once if the first one is `expected`; otherwise [`Different`](Outcome::Different). The second value is what
/// the first word was, unless aborted.
///
/// At once for threads on the same processor. One that reads both words from another one may see a new and an old word.
///
/// # Safety
/// What [`Slots::new`] asks for, with two words in each slot, aligned to 16 bytes.
#[inline(always)]
pub unsafe fn compare_and_store_two(here: Here, slots: Slots, expected: u64, new: [u64; 2]) -> (Outcome, u64) {
    /// The last instruction leaves 0 if it stored and 1 if not: a pair of words is stored in one piece only if nothing
    /// came in between since it was loaded.
    const STORED: i32 = 0;
    const DIFFERENT: i32 = 2;
    let mut outcome = -1_i32;
    let mut found = 0_u64;
    // SAFETY: the number is below the count, so the words are there by the caller's promise.
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

/// Puts a node before the slot's list, whose first word points to the first node and whose second one, unless it is zero, keeps sections away
/// ([`Frozen`](Outcome::Frozen)). A node's first word points to the next one.
///
/// # Safety
/// What [`Slots::new`] asks for, with two words in each slot; the node's first word is the caller's until it is taken again.
#[inline(always)]
pub unsafe fn list_push(here: Here, slots: Slots, node: *mut u64) -> Outcome {
    // SAFETY: the number is below the count, so the words are there, and the node's word is, by the caller's promise.
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
/// What [`Slots::new`] asks for, with two words in each slot; nodes that were pushed are readable until they were taken.
#[inline(always)]
pub unsafe fn list_pop(here: Here, slots: Slots) -> (Outcome, *mut u64) {
    let mut node = std::ptr::null_mut::<u64>();
    // SAFETY: the number is below the count, so the words are there, and the node's word is, by the caller's promise.
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

/// Puts a value on the slot's stack: its first word is their number, the second one, unless it is zero, keeps sections away
/// ([`Frozen`](Outcome::Frozen)), and the `capacity` words after these are the values.
///
/// # Safety
/// What [`Slots::new`] asks for, with `2 + capacity` words in each slot.
#[inline(always)]
pub unsafe fn push(here: Here, slots: Slots, capacity: u64, value: u64) -> Outcome {
    // SAFETY: number and count are below their bounds, so the words are there by the caller's promise.
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
/// What [`Slots::new`] asks for, with as many words in each slot as [`push`] had.
#[inline(always)]
pub unsafe fn pop(here: Here, slots: Slots) -> (Outcome, u64) {
    let mut value = 0_u64;
    // SAFETY: the number is below the count and the length is what `push` left, so the words are there by the caller's promise.
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

/// Stores `value` in `place` if `guard` is `expected`; otherwise [`Different`](Outcome::Different). Release: what was written before is visible
/// to whoever sees the value.
///
/// No processor's slot is involved: the section is there to be [restarted](crate::percpu::restart) by whoever changed the guard.
///
/// # Safety
/// Both words are there, and others only read them, change the guard and restart sections before they go on, or write atomically to `place` when the guard
/// says that they may.
#[inline(always)]
pub unsafe fn store_if(area: Area, guard: *const u64, expected: u64, place: *mut u64, value: u64) -> Outcome {
    let mut outcome = -1_i32;
    // SAFETY: the caller's promise.
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
