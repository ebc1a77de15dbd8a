//! The system's monotonic clock, in nanoseconds since its first use. It serves machines without a reliable counter.
//!
//! If possible, the C library reads this clock without a system call. The processor may then reorder the reading with other
//! accesses, like a reading of the counter. This module therefore adds the machine's strongest fences.

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};
use std::time::Instant;

/// All other machines use this file alone.
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
pub(super) fn is_steady() -> bool {
    false
}

fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// A full fence: no later access begins before all earlier accesses are complete.
fn barrier() {
    fence(Ordering::SeqCst);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has this instruction.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instructions only wait and access no memory.
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
