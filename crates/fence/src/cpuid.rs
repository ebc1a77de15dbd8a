//! The `cpuid` instruction.

use std::arch::x86_64::{__cpuid, CpuidResult};

/// The processor's answer for `leaf`. A leaf that the processor lacks gives the values of another one: compare with
/// the highest leaf, in `eax` of leaf 0 or 0x8000_0000, first.
pub(crate) fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: every x86-64 processor has the instruction, and it changes nothing.
    #[allow(unused_unsafe, reason = "the function is safe from Rust 1.94 on")]
    unsafe {
        __cpuid(leaf)
    }
}
