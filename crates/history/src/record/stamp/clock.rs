//! The system's monotonic clock, in nanoseconds since its first use: for machines whose counter cannot be trusted.
//!
//! The library of the C language reads it without a system call where it can, and then with no more order than the counter
//! has; hence the fences here, which are as strong as the machine has them.

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};
use std::time::Instant;

/// For machines without a counter of their own here.
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
pub(super) fn is_steady() -> bool {
    false
}

fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Nothing that follows begins before what precedes is done.
fn barrier() {
    fence(Ordering::SeqCst);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has this instruction.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: touches nothing.
    unsafe {
        std::arch::asm!("dsb ish", "isb", options(nostack, preserves_flags));
    }
}

pub(super) fn before() -> u64 {
    let stamp = now();
    barrier();
    stamp
}

pub(super) fn between() -> u64 {
    barrier();
    let stamp = now();
    barrier();
    stamp
}

pub(super) fn near() -> u64 {
    200
}

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
pub(super) use between as after_loads;
