//! Areas and sections on aarch64: every access to the area goes through its address.
//!
//! ```text
//!  this thread's area                   section __rseq_cs (writable, since the loader relocates it)
//!  at [area]                            66: (32 bytes aligned)
//!  ┌─────────────────────┐  +0          ┌─────────────────────┐  +0
//!  │ cpu_id_start    u32 │              │ version = 0     u32 │
//!  ├─────────────────────┤  +4          ├─────────────────────┤  +4
//!  │ cpu_id          u32 │              │ flags = 0       u32 │
//!  ├─────────────────────┤  +8          ├─────────────────────┤  +8
//!  │ rseq_cs         u64 │─────────────▶│ start = 77      u64 │
//!  ├─────────────────────┤ +16          ├─────────────────────┤ +16
//!  │ flags           u32 │              │ length = 88−77  u64 │
//!  ├─────────────────────┤ +20          ├─────────────────────┤ +24
//!  │ node_id         u32 │              │ abort = 99      u64 │
//!  ├─────────────────────┤ +24          └─────────────────────┘
//!  │ mm_cid          u32 │
//!  └─────────────────────┘
//!
//!  text                                 section __rseq_failure (executable, apart from hot code)
//!      adrp scratch, 66                     d428bc00       brk #0x45e0: a trap, so that no code runs into the
//!      add  scratch, scratch, :lo12:66                     handler; it is the signature
//!      str  scratch, [area, #8]         99: mov  outcome, #-1
//!  77: ldr  scratch, [index]                b    88
//!      …
//!      the store that commits
//!  88: the code that follows
//! ```
//!
//! The store to `rseq_cs` makes the section known to the kernel. The kernel may preempt the thread, move it to another
//! processor or deliver a signal while the program counter is between labels 77 and 88. Then it clears `rseq_cs` and
//! makes the thread continue at 99, provided that the signature comes right before 99.
//!
//! The word that closes a list to sections is loaded with acquire, which pairs with the release store that opens the
//! list again: a section that finds the list open sees the work done on the slot while the list was closed.

use std::arch::asm;
use std::ptr::NonNull;

use super::section::Outcome;

/// The word before every abort handler.
pub(super) const SIGNATURE: u32 = 0xd428_bc00;

#[doc = include_str!("rseq_section.md")]
#[macro_export]
macro_rules! rseq_section {
    ($($line:literal),+ $(,)?) => {
        $crate::rseq_section!(aborted: "mov {outcome:w}, #-1", "b 88b"; $($line),+)
    };
    (aborted: $($handler:literal),+; $($line:literal),+ $(,)?) => {
        concat!(
            ".pushsection __rseq_cs, \"aw\", @progbits\n",
            ".balign 32\n",
            "66: .long 0, 0\n",
            ".quad 77f, 88f - 77f, 99f\n",
            ".popsection\n",
            "adrp {scratch}, 66b\n",
            "add {scratch}, {scratch}, :lo12:66b\n",
            "str {scratch}, [{area}, #8]\n",
            "77:\n",
            $($line, "\n",)+
            "88:\n",
            ".pushsection __rseq_failure, \"ax\", @progbits\n",
            ".balign 4\n",
            ".inst 0xd428bc00\n",
            "99:\n",
            $($handler, "\n",)+
            ".popsection\n",
        )
    };
}

/// The text of a section whose lines run once `{scratch}` holds the slot's address. The comparison is unsigned, so that
/// a negative number is too large.
macro_rules! slot_section {
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

macro_rules! raise {
    () => {
        slot_section!(
            "ldr {old}, [{scratch}]",
            "mov {outcome:w}, #0",
            "cmp {old}, {value}",
            "b.hs 88f",
            "str {value}, [{scratch}]",
        )
    };
}

macro_rules! compare_and_store {
    () => {
        slot_section!(
            "ldr {found}, [{scratch}]",
            "mov {outcome:w}, #1",
            "cmp {found}, {expected}",
            "b.ne 88f",
            "mov {outcome:w}, #0",
            "str {new}, [{scratch}]",
        )
    };
}

// `ldar` takes a plain address, which is computed in `next` first.
macro_rules! list_push {
    () => {
        slot_section!(
            "mov {outcome:w}, #3",
            "add {next}, {scratch}, #8",
            "ldar {next}, [{next}]",
            "cbnz {next}, 88f",
            "ldr {next}, [{scratch}]",
            "str {next}, [{node}]",
            "mov {outcome:w}, #0",
            "str {node}, [{scratch}]",
        )
    };
}

macro_rules! list_pop {
    () => {
        slot_section!(
            "mov {outcome:w}, #3",
            "add {next}, {scratch}, #8",
            "ldar {next}, [{next}]",
            "cbnz {next}, 88f",
            "mov {outcome:w}, #2",
            "ldr {node}, [{scratch}]",
            "cbz {node}, 88f",
            "ldr {next}, [{node}]",
            "mov {outcome:w}, #0",
            "str {next}, [{scratch}]",
        )
    };
}

macro_rules! store_if {
    () => {
        rseq_section!(
            "mov {outcome:w}, #1",
            "ldr {scratch}, [{guard}]",
            "cmp {scratch}, {expected}",
            "b.ne 88f",
            "mov {outcome:w}, #0",
            "stlr {value}, [{target}]",
        )
    };
}

pub(super) use {compare_and_store, list_pop, list_push, raise, slot_section, store_if};

/// Adds `n` to the slot's word.
///
/// # Safety
/// The caller upholds the contract of [`section::add`](super::section::add), whose operands these are.
#[inline(always)]
pub(super) unsafe fn add(area: usize, index: usize, first: NonNull<u64>, count: u32, n: u64) -> Outcome {
    let mut outcome = -1_i32;
    // SAFETY: the section checks the number against the count, and the caller promises a word in each of these slots.
    unsafe {
        asm!(
            slot_section!(
                "ldr {sum}, [{scratch}]",
                "add {sum}, {sum}, {n}",
                "mov {outcome:w}, #0",
                "str {sum}, [{scratch}]",
            ),
            area = in(reg) area,
            index = in(reg) index,
            count = in(reg) count,
            first = in(reg) first.as_ptr(),
            n = in(reg) n,
            sum = out(reg) _,
            scratch = out(reg) _,
            outcome = inout(reg) outcome,
            options(nostack),
        );
    }
    Outcome::from_register(outcome)
}

/// The value of `tpidr_el0`.
#[inline]
pub(super) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the instruction only reads a register that user code may read.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, pure, nomem, preserves_flags)) };
    pointer
}

/// The operand `area` of sections; see [`Area::operand`](super::Area::operand).
#[inline]
pub(super) fn operand(offset: isize) -> usize {
    thread_pointer().wrapping_add_signed(offset)
}

/// Reads a word of the area that is `offset` bytes from the thread pointer.
///
/// # Safety
/// This thread has an area at `offset`.
#[inline]
pub(super) unsafe fn read<const WORD: usize>(offset: isize) -> u32 {
    let value: u32;
    // SAFETY: the caller promises an area at `offset`. The block is not `pure`, because the kernel changes the word at
    // any time.
    unsafe {
        asm!(
            "ldr {value:w}, [{area}, #{word}]",
            value = lateout(reg) value,
            area = in(reg) operand(offset),
            word = const WORD,
            options(nostack, readonly, preserves_flags),
        );
    }
    value
}

/// glibc's `__rseq_offset` and `__rseq_size`, if the C library has them: otherwise the weak references are null.
pub(super) fn libc_symbols() -> Option<(*const isize, *const u32)> {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: the block only reads two addresses that the linker or the loader put there.
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "adrp {offset}, :got:__rseq_offset",
            "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
            "adrp {size}, :got:__rseq_size",
            "ldr {size}, [{size}, :got_lo12:__rseq_size]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(nostack, pure, readonly, preserves_flags),
        );
    }
    (!offset.is_null() && !size.is_null()).then_some((offset, size))
}
