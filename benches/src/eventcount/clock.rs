//! The finest clock of the machine.

/// The unit of [`now`].
#[cfg(target_arch = "x86_64")]
pub const UNIT: &str = "cycles";
/// The unit of [`now`].
#[cfg(not(target_arch = "x86_64"))]
pub const UNIT: &str = "ns";

/// Reads the time stamp counter, whose cycles are equally long on all cores.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn now() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux leaves it enabled for user code.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Reads [`now`] after all preceding instructions have executed.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn now_in_order() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_mm_lfence() };
    now()
}

/// Reads [`now`]; the call itself ensures the order.
#[cfg(not(target_arch = "x86_64"))]
#[must_use]
pub fn now_in_order() -> u64 {
    now()
}

/// Returns the nanoseconds since the first call.
#[cfg(not(target_arch = "x86_64"))]
#[must_use]
pub fn now() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}
