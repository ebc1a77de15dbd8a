//! Sums and products together with their rounding errors.
//!
//! The rounding error of a sum or a product of two floats is itself a float, and a few further operations compute it
//! (Dekker 1971, Knuth's TAOCP 4.2.2). The rounded result and the error add up to the exact result.

/// `a + b` rounded, and the rounding error. Exact for all finite inputs whose sum is finite.
#[inline(always)]
pub(crate) const fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_used = sum - a;
    let a_used = sum - b_used;
    (sum, (a - a_used) + (b - b_used))
}

/// Like [`two_sum`], but only for `|a| >= |b|` or `a == 0`. Takes half as many operations.
#[inline(always)]
pub(crate) const fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// `a * b` rounded, and the rounding error. Exact if `2^-968 <= |a * b|` and both factors are below `2^996`. For a
/// smaller product, the error is at most `2^-1070`.
///
/// Each factor is split into halves whose products are exact (Veltkamp, Dekker). A fused multiply-add would compute the
/// same error, but not every processor has that instruction.
#[inline(always)]
pub(crate) const fn two_prod(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let (a_high, a_low) = halves(a);
    let (b_high, b_low) = halves(b);
    (product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low))
}

/// The upper 26 and the lower 26 bits of the significand (the sign of the lower half is the 53rd bit).
#[inline(always)]
const fn halves(x: f64) -> (f64, f64) {
    const SPLITTER: f64 = 134_217_729.0; // 2^27 + 1
    let scaled = SPLITTER * x;
    let high = scaled - (scaled - x);
    (high, x - high)
}

/// `x` as `(m, e)` with `x = m 2^e` exactly and `1 <= m < 2`. `x` is positive and finite.
#[inline]
pub(crate) fn split_exponent(x: f64) -> (f64, i32) {
    debug_assert!(x > 0.0 && x.is_finite());
    if x < f64::MIN_POSITIVE {
        let (m, e) = split_exponent(x * 18_446_744_073_709_551_616.0); // 2^64
        return (m, e - 64);
    }
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    (f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000), exponent)
}

/// `2^e` for `-1022 <= e <= 1023`.
#[inline]
pub(crate) fn power_of_two(e: i32) -> f64 {
    debug_assert!((-1022..=1023).contains(&e));
    f64::from_bits(((1023 + e) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use millstream_verify_random::cases;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn splitting_finds_the_error_that_a_fused_multiply_add_finds(a in -1e150..1e150, b in -1e150..1e150) {
            prop_assert_eq!(two_prod(a, b), (a * b, f64::mul_add(a, b, -(a * b))));
        }

        #[test]
        fn an_exponent_is_split_off_exactly(bits in 1u64..0x7ff0_0000_0000_0000) {
            let x = f64::from_bits(bits);
            let (m, e) = split_exponent(x);
            prop_assert!((1.0..2.0).contains(&m));
            let half = e / 2;
            prop_assert_eq!(m * power_of_two(half) * power_of_two(e - half), x);
        }
    }
}
