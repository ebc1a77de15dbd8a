//! A fused multiply-add where the processor has one: `a * b - c` with a single rounding.
//!
//! A program for any x86-64 processor must not rely on one, and a call of a function that was compiled for those that
//! have it would cost more than it saves. So the processor is asked, which is a load and a branch, and the instruction
//! is inlined at its use.

pub(super) use machine::{is_at_hand, multiply_subtract};

#[cfg(all(target_arch = "x86_64", not(target_feature = "fma")))]
mod machine {
    use std::arch::asm;

    /// Whether [`multiply_subtract`] may be called.
    #[inline(always)]
    pub(in super::super) fn is_at_hand() -> bool {
        std::arch::is_x86_feature_detected!("fma")
    }

    /// `a * b - c`, rounded once. The processor has the instruction.
    #[inline(always)]
    pub(in super::super) fn multiply_subtract(a: f64, b: f64, c: f64) -> f64 {
        debug_assert!(is_at_hand());
        let mut result = a;
        // SAFETY: the instruction reads and writes the named registers only, and the callers have checked that the
        // processor has it.
        unsafe {
            asm!(
                "vfmsub213sd {result}, {b}, {c}",
                result = inout(xmm_reg) result, b = in(xmm_reg) b, c = in(xmm_reg) c,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        result
    }
}

#[cfg(not(all(target_arch = "x86_64", not(target_feature = "fma"))))]
mod machine {
    /// Whether [`multiply_subtract`] is an instruction.
    #[inline(always)]
    pub(in super::super) fn is_at_hand() -> bool {
        cfg!(any(target_feature = "fma", target_arch = "aarch64"))
    }

    /// `a * b - c`, rounded once.
    #[inline(always)]
    pub(in super::super) fn multiply_subtract(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, -c)
    }
}
