//! The `cpuid` instruction.

use std::arch::x86_64::{__cpuid, CpuidResult};

/// Executes `cpuid` for a leaf. If the processor lacks the leaf, the result is that of another leaf. So the caller must first
/// compare `leaf` with the highest leaf, which is in `eax` of leaf 0 or 0x8000_0000.
pub(crate) fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: every x86-64 processor has the instruction, and it changes nothing.
    #[allow(unused_unsafe, reason = "the function is safe from Rust 1.94 on")]
    unsafe {
        __cpuid(leaf)
    }
}
