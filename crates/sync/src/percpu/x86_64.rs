//! Areas and sections on x86-64: every access to the area is relative to `fs`, which points to the thread.
//!
//! ```text
//!  this thread's area                   section __rseq_cs (writable, since the loader relocates it)
//!  at fs:[area]                         66: (32 bytes aligned)
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
//!      lea  scratch, [66]                   0f b9 3d       ud1: an undefined instruction, so that no code
//!      mov  fs:[area + 8], scratch          53 30 05 53    runs into the handler; its operand is the signature
//!  77: mov  scratch, fs:[index]         99: mov  outcome, -1
//!      …                                    jmp  88
//!      the store that commits
//!  88: the code that follows
//! ```
//!
//! The store to `rseq_cs` makes the section known to the kernel. The kernel may preempt the thread, move it to another
//! processor or deliver a signal while the instruction pointer is between labels 77 and 88. Then it clears `rseq_cs`
//! and makes the thread continue at 99, provided that the signature comes right before 99. An interrupt does not divide
//! an instruction that reads and writes, so such an instruction may be the one that commits.

use std::arch::asm;
use std::ptr::NonNull;

use super::section::Outcome;

/// The word before every abort handler.
pub(super) const SIGNATURE: u32 = 0x5305_3053;

#[doc = include_str!("rseq_section.md")]
#[macro_export]
macro_rules! rseq_section {
    ($($line:literal),+ $(,)?) => {
        $crate::rseq_section!(aborted: "mov {outcome:e}, -1", "jmp 88b"; $($line),+)
    };
    (aborted: $($handler:literal),+; $($line:literal),+ $(,)?) => {
        concat!(
            ".pushsection __rseq_cs, \"aw\", @progbits\n",
            ".balign 32\n",
            "66: .long 0, 0\n",
            ".quad 77f, 88f - 77f, 99f\n",
            ".popsection\n",
            "lea {scratch}, [rip + 66b]\n",
            "mov qword ptr fs:[{area} + 8], {scratch}\n",
            "77:\n",
            $($line, "\n",)+
            "88:\n",
            ".pushsection __rseq_failure, \"ax\", @progbits\n",
            ".byte 0x0f, 0xb9, 0x3d\n",
            ".long 0x53053053\n",
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
            "mov {scratch:e}, dword ptr fs:[{index}]",
            "cmp {scratch:e}, {count:e}",
            "jae 88f",
            "shl {scratch}, 12",
            "add {scratch}, {first}",
            $($line),+
        )
    };
}

macro_rules! raise {
    () => {
        slot_section!(
            "mov {old}, qword ptr [{scratch}]",
            "mov {outcome:e}, 0",
            "cmp {old}, {value}",
            "jae 88f",
            "mov qword ptr [{scratch}], {value}",
        )
    };
}

macro_rules! compare_and_store {
    () => {
        slot_section!(
            "mov {found}, qword ptr [{scratch}]",
            "mov {outcome:e}, 1",
            "cmp {found}, {expected}",
            "jne 88f",
            "mov {outcome:e}, 0",
            "mov qword ptr [{scratch}], {new}",
        )
    };
}

macro_rules! list_push {
    () => {
        slot_section!(
            "mov {outcome:e}, 3",
            "cmp qword ptr [{scratch} + 8], 0",
            "jne 88f",
            "mov {next}, qword ptr [{scratch}]",
            "mov qword ptr [{node}], {next}",
            "mov {outcome:e}, 0",
            "mov qword ptr [{scratch}], {node}",
        )
    };
}

macro_rules! list_pop {
    () => {
        slot_section!(
            "mov {outcome:e}, 3",
            "cmp qword ptr [{scratch} + 8], 0",
            "jne 88f",
            "mov {outcome:e}, 2",
            "mov {node}, qword ptr [{scratch}]",
            "test {node}, {node}",
            "jz 88f",
            "mov {next}, qword ptr [{node}]",
            "mov {outcome:e}, 0",
            "mov qword ptr [{scratch}], {next}",
        )
    };
}

macro_rules! store_if {
    () => {
        rseq_section!(
            "mov {outcome:e}, 1",
            "mov {scratch}, qword ptr [{guard}]",
            "cmp {scratch}, {expected}",
            "jne 88f",
            "mov {outcome:e}, 0",
            "mov qword ptr [{target}], {value}",
        )
    };
}

pub(super) use {compare_and_store, list_pop, list_push, raise, slot_section, store_if};

/// Adds `n` to the slot's word. This section does not keep an outcome in a register, because it must be as short as
/// possible.
///
/// # Safety
/// The caller upholds the contract of [`section::add`](super::section::add), whose operands these are.
#[inline(always)]
pub(super) unsafe fn add(area: usize, index: usize, first: NonNull<u64>, count: u32, n: u64) -> Outcome {
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
            area = in(reg) area,
            index = in(reg) index,
            count = in(reg) count,
            first = in(reg) first.as_ptr(),
            n = in(reg) n,
            scratch = out(reg) _,
            aborted = label { return Outcome::Aborted },
            options(nostack),
        );
    }
    Outcome::Done
}

/// The base of `fs`, which is the thread pointer.
#[inline]
pub(super) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the psABI promises that the word at `fs:[0]` is readable and holds the base of `fs`.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, pure, readonly, preserves_flags)) };
    pointer
}

/// The operand `area` of sections; see [`Area::operand`](super::Area::operand).
#[inline]
pub(super) fn operand(offset: isize) -> usize {
    offset as usize
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
            "mov {value:e}, dword ptr fs:[{offset} + {word}]",
            value = lateout(reg) value,
            offset = in(reg) offset,
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
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(nostack, pure, readonly, preserves_flags),
        );
    }
    (!offset.is_null() && !size.is_null()).then_some((offset, size))
}
