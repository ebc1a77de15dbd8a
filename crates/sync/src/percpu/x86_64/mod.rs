//! Areas and sections on x86-64: every access is relative to `fs`, which points to the thread.

use std::arch::asm;

/// The word before every abort handler. It is part of an undefined instruction, so that no code runs into the handler.
pub const SIGNATURE: u32 = 0x5305_3053;

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
///         the signature (x86-64: within an undefined instruction)
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
/// The lines may leave by `jmp 88f` (aarch64: `b 88f`). Only the last instruction may change memory that other threads
/// read; labels 66, 77, 88 and 99 are taken. The word with the processor's number is at `{area} + 4` (x86-64:
/// `fs:[{area} + 4]`, aarch64: `[{area}, #4]`) and must be read *inside* the section. The area's word is left pointing
/// to the descriptor, which the kernel drops at the next opportunity: code must not be unloaded while threads run that
/// have passed through it.
///
/// ```
/// # #[cfg(target_arch = "x86_64")] {
/// use std::arch::asm;
/// use millstream_sync::{percpu::Area, rseq_section};
///
/// /// Stores `value` in this processor's word; false if the section was interrupted or there is no such word.
/// fn store(area: Area, words: &mut [u64], value: u64) -> bool {
///     let mut outcome = 1_i32;
///     // SAFETY: the area is live, and the section checks the number of the processor against the length.
///     unsafe {
///         asm!(
///             rseq_section!(
///                 "mov {scratch:e}, dword ptr fs:[{area} + 4]",
///                 "cmp {scratch}, {length}",
///                 "jae 88f",
///                 "mov {outcome:e}, 0",
///                 "mov qword ptr [{words} + 8*{scratch}], {value}",
///             ),
///             area = in(reg) area.operand(),
///             scratch = out(reg) _,
///             outcome = inout(reg) outcome,
///             words = in(reg) words.as_mut_ptr(),
///             length = in(reg) words.len(),
///             value = in(reg) value,
///             options(nostack),
///         );
///     }
///     outcome == 0
/// }
///
/// let mut words = [0; 1024];
/// if let Some(area) = Area::current() {
///     while !store(area, &mut words, 7) {}
///     assert_eq!(words.iter().sum::<u64>(), 7);
/// }
/// # }
/// ```
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

// Declared after the macro, which it uses.
pub(super) mod operation;

/// The base of `fs`, which is the thread pointer.
#[inline]
pub(super) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: by the psABI, the thread's first word is readable and holds its own address.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, pure, readonly, preserves_flags)) };
    pointer
}

/// The operand for sections; see [`Area::operand`](super::Area::operand).
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
    // SAFETY: the caller promises an area at `offset`. The block is not `pure`, since the kernel changes the word at
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
