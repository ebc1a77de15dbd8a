//! The figures in Paul Khuong's articles on the confidence sequence method.
//!
//! The printed figures are rounded to the safe side, too, and this crate's results are between the printed figures and
//! the truth. The printed levels come from Robbins' inequality for factorials, which is Stirling's series after one
//! term, and the printed interval from a series for the Beta distribution that stops early.

use millstream_csm::{Side, beta_bound, log_choose, robbins};

/// `(n, s, the printed level, its maximum difference from this crate's level)`, at 98 % and an error of 0.001.
const LEVELS: [(u64, u64, f64, f64); 5] = [
    (10, 10, 2.195_868_199_623_178_4, 5e-15),
    (100, 100, 2.594_849_785_089_318_4, 1e-14),
    (1000, 995, -3.011_533_154_460_465_8, 3e-4),
    (2000, 1984, -4.190_687_115_879_456, 3e-5),
    (4000, 3972, -17.238_559_826_956_475, 1e-5),
];

#[test]
fn levels_are_no_higher_than_printed_and_stop_where_his_do() {
    for (n, s, printed, slack) in LEVELS {
        let look = robbins::stop(n, 0.98, s, 0.001f64.ln()).expect("a valid question");
        assert!(look.level <= printed + 1e-15 && look.level >= printed - slack, "{s} of {n}: {look:?}");
        assert_eq!(look.stop.is_some(), n == 4000);
    }
}

#[test]
fn beta_bounds_are_no_wider_than_printed() {
    let bound = |a, b, eps, side| beta_bound(a, b, eps, side).expect("a valid question").bound;
    let near = |ours: f64, printed: f64, slack: f64| (ours - printed).abs() <= slack * printed;
    for (ours, printed, slack) in [
        (bound(3972.0, 28.0, 0.001, Side::Low), 0.988_211_975_097_656_2, 1e-5),
        (bound(2.0, 100.0, 2.5e-10, Side::Low), 2.223_495_320_586_833_1e-7, 1e-3),
    ] {
        assert!(ours >= printed && near(ours, printed, slack), "{ours} and {printed}");
    }
    for (ours, printed, slack) in [
        (bound(3972.0, 28.0, 0.001, Side::High), 0.996_383_268_216_974_2, 1e-8),
        (bound(2.0, 100.0, 2.5e-10, Side::High), 0.223_213_141_108_406_65, 1e-7),
        (bound(1.0, 2968.0, 0.001 / 6e6, Side::High), 0.007_557_510_165_262_294, 1e-3),
    ] {
        assert!(ours <= printed * (1.0 + 1e-15) && near(ours, printed, slack), "{ours} and {printed}");
    }
}

/// The printed bound on the logarithm of a binomial coefficient exceeds the truth by this amount.
#[test]
fn binomial_coefficients_are_closer_than_printed() {
    for (n, k, excess) in [(10, 5, 5.1e-4), (1000, 500, 5.6e-8), (1000, 5, 2.6e-4)] {
        let bounds = log_choose(n, k).expect("a valid question");
        assert!(bounds.high - bounds.low < excess * 1e-5, "C({n}, {k}): {bounds:?}");
    }
}
