//! AArch64: the generic timer's virtual count, which the architecture defines as one system-wide count seen by all
//! cores.
//!
//! **Before.** The processor may read the count after it has executed later instructions. An `isb` after the reading prevents
//! this.
//!
//! **Between.** `dsb ish` waits until all earlier accesses are complete and visible to all cores, and an `isb` keeps the
//! processor from reading the count before that. The second `isb` has the same purpose as in *before*.
//!
//! Source: Arm Architecture Reference Manual, D12 "The Generic Timer" (CNTVCT_EL0) and B2.3.

use std::arch::asm;

/// Always `true`: the architecture guarantees a constant rate.
pub(super) fn is_steady() -> bool {
    true
}

#[inline]
pub(super) fn before() -> u64 {
    let stamp: u64;
    // SAFETY: the instruction reads a counter that user programs may read. `nomem` is not set, so the compiler moves no access
    // across it.
    unsafe { asm!("mrs {}, cntvct_el0", "isb", out(reg) stamp, options(nostack, preserves_flags)) };
    stamp
}

#[inline]
pub(super) fn between() -> u64 {
    let stamp: u64;
    // SAFETY: the instructions only wait and read the same counter as `before`. `nomem` is not set, so the compiler moves no
    // access across them.
    unsafe { asm!("dsb ish", "isb", "mrs {}, cntvct_el0", "isb", out(reg) stamp, options(nostack, preserves_flags)) };
    stamp
}

pub(super) fn after_loads() -> u64 {
    between()
}

/// Returns a fifth of a microsecond in ticks, by the counter's frequency.
pub(super) fn near() -> u64 {
    let hertz: u64;
    // SAFETY: the instruction reads a register that user programs may read.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags)) };
    hertz / 5_000_000
}
