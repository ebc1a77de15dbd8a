//! AMD's erratum 147: early Opterons may let a load that follows a locked instruction read a stale value.

/// Must be called right after the locked instruction that acquires a lock. Costs a load and a branch on x86-64, and
/// nothing elsewhere.
#[inline(always)]
pub(super) fn after_acquisition() {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    x86_64::after_acquisition();
}

#[cfg(all(target_arch = "x86_64", not(loom)))]
mod x86_64 {
    use std::arch::x86_64::_mm_lfence;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use millstream_fence::probe::has_erratum_147;

    /// Whether this processor is known to be unaffected.
    static SOUND: AtomicBool = AtomicBool::new(false);

    #[inline(always)]
    pub(super) fn after_acquisition() {
        if !SOUND.load(Relaxed) {
            look();
        }
    }

    #[cold]
    #[inline(never)]
    fn look() {
        if has_erratum_147() {
            // SAFETY: `lfence` belongs to SSE2, which every x86-64 has.
            #[allow(unused_unsafe, reason = "safe in newer compilers")]
            unsafe {
                _mm_lfence();
            }
        } else {
            SOUND.store(true, Relaxed);
        }
    }
}
