//! Areas and sections on aarch64: everything goes through the area's address.

use std::arch::asm;

/// What stands before every abort handler: a `brk` with a number of its own.
pub const SIGNATURE: u32 = 0xd428_bc00;

/// The whole text of a restartable section for [`asm!`](std::arch::asm): descriptor, entry, the given lines, abort handler.
///
/// The shape, for those who write a section of their own:
///
/// ```text
/// section __rseq_cs (writable, for the loader relocates it), 32 bytes aligned:
///     66: version 0, flags 0 (4 bytes each); start 77; length 88 − 77; abort handler 99 (8 bytes each)
/// text:
///         store 66 in the area's third word: from 77 on the kernel knows
///     77: the given lines; the last one commits
///     88: whatever follows
/// section __rseq_failure (executable, apart from the code that is hot):
///         the signature
///     99: {outcome} = -1, jump to 88
/// ```
///
/// A thread that is preempted, migrated or gets a signal between 77 and 88 goes on at 99. Operands, by name:
///
/// | operand | what |
/// | --- | --- |
/// | `area` | in: [`Area::operand`](crate::percpu::Area::operand) |
/// | `scratch` | out: a register that is free until the first given line (that may use it again) |
/// | `outcome` | inout: −1 if aborted; else what it was, or what the lines put there *before* the commit |
///
/// With `aborted: "…", …;` before the lines, these are the handler instead, and there is no `outcome`.
///
/// Lines may leave by `b 88f`. Only the last instruction may change what others see; labels 66, 77, 88 and 99 are
/// taken. The word with the processor's number is at `[{area}, #4]`; read it *inside*. The area's word is left
/// pointing to the descriptor, which the kernel forgets at the next chance: code must not be unloaded while threads
/// run that came by.
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

// After the macro, which it uses.
pub(super) mod operation;

/// Where `tpidr_el0` points to.
#[inline]
pub(super) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, pure, nomem, preserves_flags)) };
    pointer
}

/// See [`Area::operand`](super::Area::operand).
#[inline]
pub(super) fn operand(offset: isize) -> usize {
    thread_pointer().wrapping_add_signed(offset)
}

/// Reads a word of the area that is `offset` bytes from the thread pointer.
///
/// # Safety
/// There is an area of this thread.
#[inline]
pub(super) unsafe fn read<const WORD: usize>(offset: isize) -> u32 {
    let value: u32;
    // SAFETY: the caller's promise. Not `pure`: the kernel changes it at any time.
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

/// glibc's `__rseq_offset` and `__rseq_size`, if the C library has them: a weak reference is null otherwise.
pub(super) fn libc_symbols() -> Option<(*const isize, *const u32)> {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: reads two addresses that the linker or the loader put there.
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
