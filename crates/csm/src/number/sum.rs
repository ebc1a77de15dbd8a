//! The sum of many floats, rounded once: the same in every order.
//!
//! J. R. Shewchuk's expansions ("Adaptive precision floating-point arithmetic", 1997): the sum so far is stored
//! exactly, as a few floats. Each of them is below the last place of the next.

use super::exact::two_sum;

/// The float nearest to the exact sum, ties to even. Infinite or not a number if a partial sum is not finite.
pub(crate) fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut parts: Vec<f64> = Vec::with_capacity(8);
    for value in values {
        let mut high = value;
        let mut kept = 0;
        for place in 0..parts.len() {
            let (sum, low) = two_sum(high, parts[place]);
            if low != 0.0 {
                parts[kept] = low;
                kept += 1;
            }
            high = sum;
        }
        if !high.is_finite() {
            return high;
        }
        parts.truncate(kept);
        parts.push(high);
    }
    round(&parts)
}

/// The float nearest to an expansion, whose largest part is last.
fn round(parts: &[f64]) -> f64 {
    let mut rest = parts.iter().rev().copied();
    let mut high = rest.next().unwrap_or(0.0);
    for part in rest.by_ref() {
        let (sum, low) = two_sum(high, part);
        high = sum;
        if low != 0.0 {
            // If `low` is exactly half a unit of `high`, then `high` was rounded to even, and the next part decides.
            let beyond = rest.next().unwrap_or(0.0);
            let (other, error) = two_sum(high, 2.0 * low);
            let is_half = error == 0.0 && other != high;
            return if is_half && beyond * low > 0.0 { other } else { high };
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use millstream_verify_random::cases;
    use num_rational::BigRational;
    use proptest::prelude::*;

    use super::*;
    use crate::exactly::rational::of;

    /// Whether `found` is the nearest float, and the even one if two floats are equally near.
    fn is_nearest(found: f64, truth: &BigRational) -> bool {
        let distance = |x: f64| {
            let off = of(x) - truth;
            if off < of(0.0) { -off } else { off }
        };
        [found.next_up(), found.next_down()].into_iter().all(|other| {
            let (here, there) = (distance(found), distance(other));
            here < there || (here == there && found.to_bits().is_multiple_of(2))
        })
    }

    #[test]
    fn ties_are_broken_by_the_next_part() {
        let half = f64::EPSILON / 2.0;
        assert_eq!(sum([1.0, half]), 1.0);
        assert_eq!(sum([1.0, half, 1e-300]), 1.0 + f64::EPSILON);
        assert_eq!(sum([1.0, half, -1e-300]), 1.0);
        assert_eq!(sum([1.0 + f64::EPSILON, half]), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!(sum([1.0 + f64::EPSILON, half, -1e-300]), 1.0 + f64::EPSILON);
        assert_eq!(sum([1e100, 1.0, -1e100]), 1.0);
        assert_eq!(sum([]), 0.0);
        assert_eq!(sum([f64::MAX, f64::MAX]), f64::INFINITY);
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn the_sum_is_the_nearest_float_in_any_order(
            mut values in prop::collection::vec((-1.0f64..1.0, -80i32..80).prop_map(|(m, e)| m * f64::from(e).exp2()), 0..40)
        ) {
            let truth = values.iter().fold(of(0.0), |sum, &value| sum + of(value));
            let found = sum(values.iter().copied());
            prop_assert!(is_nearest(found, &truth), "{}", found);
            values.reverse();
            prop_assert_eq!(sum(values.iter().copied()), found);
            values.sort_by(f64::total_cmp);
            prop_assert_eq!(sum(values), found);
        }
    }
}
