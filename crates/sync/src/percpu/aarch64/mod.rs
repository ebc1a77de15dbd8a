//! Areas and sections on aarch64: every access goes through the area's address.

use std::arch::asm;

/// The word before every abort handler: a `brk` with a number of its own.
pub const SIGNATURE: u32 = 0xd428_bc00;

/// The whole text of a restartable section for [`asm!`](std::arch::asm): descriptor, entry, the given lines, abort
/// handler.
///
/// The layout, for authors of further sections:
///
/// ```text
/// section __rseq_cs (writable, for the loader relocates it), 32 bytes aligned:
///     66: version 0, flags 0 (4 bytes each); start 77; length 88 − 77; abort handler 99 (8 bytes each)
/// text:
///         store the address of 66 in the area's third word: from 77 on the kernel knows of the section
///     77: the given lines; the last one commits
///     88: the code that follows
/// section __rseq_failure (executable, apart from hot code):
///         the signature
///     99: {outcome} = -1, jump to 88
/// ```
///
/// A thread that is preempted, migrated or gets a signal between 77 and 88 continues at 99. Operands, by name:
///
/// | operand | meaning |
/// | --- | --- |
/// | `area` | in: [`Area::operand`](crate::percpu::Area::operand) |
/// | `scratch` | out: a register that is free until the first given line, which may use it again |
/// | `outcome` | inout: −1 if aborted; else unchanged, or set by the lines *before* the commit |
///
/// With `aborted: "…", …;` before the lines, these replace the handler, and there is no `outcome`.
///
/// The lines may leave by `b 88f`. Only the last instruction may change memory that other threads read; labels 66, 77,
/// 88 and 99 are taken. The word with the processor's number is at `[{area}, #4]` and must be read *inside* the
/// section. The area's word is left pointing to the descriptor, which the kernel drops at the next opportunity: code
/// must not be unloaded while threads run that have passed through it.
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

// Declared after the macro, which it uses.
pub(super) mod operation;

/// The value of `tpidr_el0`.
#[inline]
pub(super) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the instruction only reads a register.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, pure, nomem, preserves_flags)) };
    pointer
}

/// The operand for sections; see [`Area::operand`](super::Area::operand).
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
    // SAFETY: the caller promises an area at `offset`. The block is not `pure`, since the kernel changes the word at
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
