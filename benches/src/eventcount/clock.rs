//! The finest clock there is.

/// What [`now`] counts.
#[cfg(target_arch = "x86_64")]
pub const UNIT: &str = "cycles";
/// What [`now`] counts.
#[cfg(not(target_arch = "x86_64"))]
pub const UNIT: &str = "ns";

/// Cycles of the time stamp counter, which runs at one speed on all cores.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn now() -> u64 {
    // SAFETY: every x86-64 has the instruction; Linux does not forbid it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// [`now`], read when all that precedes has been executed.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn now_in_order() -> u64 {
    // SAFETY: every x86-64 has the instruction.
    unsafe { std::arch::x86_64::_mm_lfence() };
    now()
}

/// [`now`].
#[cfg(not(target_arch = "x86_64"))]
#[must_use]
pub fn now_in_order() -> u64 {
    now()
}

/// Nanoseconds since the first call.
#[cfg(not(target_arch = "x86_64"))]
#[must_use]
pub fn now() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}
