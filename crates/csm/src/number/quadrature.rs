//! A tail of the Beta distribution by Gauss' quadrature, for large shapes.
//!
//! Seen from `t = ln(x / (1-x))` downwards, the density of the logarithm of the odds, relative to that at `t`, is
//! `e^h(s)` with, for `n = a + b` and `y = 1 - x`,
//!
//! ```text
//! h(s) = -L s - n k(s),   L = a y - b x,   k(s) = ln(y + x e^-s) + x s
//! ```
//!
//! `k` is the cumulant generating function of a centred coin: it begins as `x y s^2 / 2` and is convex. So `h` is
//! concave, and on the near side of the mean (`L >= 0`) it falls from `h(0) = 0`. The lower tail over the density is
//! `J`, the integral of `e^h` from 0 on. Near the mean of a distribution with large shapes, where a [continued
//! fraction](super::fraction) takes many steps, `e^h` resembles a piece of a bell curve, and a few dozen nodes do.
//!
//! Three things are between the sum and `J`, and each is bounded:
//!
//! **What is cut off** at `S`. A concave function that has come down to `h(S)` falls on at least as steeply as it has
//! on the way, so the rest is at most `e^h(S) S / -h(S)`.
//!
//! **The rule's remainder.** If a function on `[0, S]` is analytic in the ellipse with foci 0 and `S` and half-axes
//! `S (r ± 1/r) / 4`, and bounded there by `M`, its Chebyshev coefficients fall as `2 M r^-j`. `N` nodes integrate all
//! up to the `2N`-th exactly, are off by at most `2 + 2/15` for each further one, and by nothing for the odd ones; so the
//! remainder is below `S/2 64/15 M r^-2N / (1 - r^-2)` (Rabinowitz 1969; Trefethen, "Is Gauss quadrature better than
//! Clenshaw-Curtis?", 2008). Here `r = 3` and `N = 24`, which makes that `2.4 S M 3^-48`. For `M`, with the coin's tilted
//! rate `w = x e^-u / (y + x e^-u)`,
//!
//! ```text
//! |e^h(u + iv)| = e^h(u) (1 - 2 w (1-w) (1 - cos v))^(-n/2) <= e^h(u) (1 - w (1-w) v^2)^(-n/2)
//! ```
//!
//! In the ellipse `-S/3 <= u <= 4S/3` and `|v| <= 2S/3`. There `h(u) <= L S/3`, as `h` lies below its tangent at 0; `w
//! (1-w)` is at most 1/4, and at most `x y e^|u|`, as the logarithm of it has a slope between -1 and 1; and `-ln(1 - q) <=
//! q / (1-q)`.
//!
//! **Rounding.** With `p` the smaller of `x` and `y`, and `r = -s` or `s`, `n k` is `n (g(z) + p (e^r - 1 - r))` with `z
//! = p (e^r - 1)` and `g(z) = ln(1 + z) - z`. The first part is at most about half of the second, so that nothing much
//! cancels; each is off by less than `32u` of itself, and `n k` by less than `128u` of itself. The node's own rounding
//! is less than that again; `L` is off by `2u (1 + L)`, and `s (1 + L)` is below 40.

use super::deviance::log_excess;
use super::exp::{beyond_linear, exp_of_negative};
use super::fraction::{Enclosure, lead};
use super::kernel::Rate;

/// Shapes from here on: `S` is below 0.4 then, where the series that are used hold.
const LEAST_SHAPE: f64 = 1024.0;

/// Further from the mean, in standard deviations, the continued fraction is the quicker one.
const MOST_DEVIATIONS: f64 = 8.0;

/// `-h(S)`, about: what is cut off is `e^-34` of something.
const DEPTH: f64 = 34.0;

const NODES: usize = 24;

/// `3^-48`.
const POWER: f64 = 1.253_660_012_188_684_6e-23;

/// Gauss and Legendre's nodes and weights on `[0, 1]`.
#[rustfmt::skip]
const RULE: [(f64, f64); NODES] = [
    (0.00240639000148932, 0.0061706148999936),
    (0.012635722014345251, 0.014265694314466832),
    (0.030862723998633622, 0.022138719408709904),
    (0.056792236497799485, 0.02964929245771839),
    (0.08999900701304854, 0.03667324070554015),
    (0.12993790421072282, 0.04309508076597664),
    (0.17595317403151223, 0.04880932605205694),
    (0.22728926430558022, 0.05372213505798282),
    (0.2831032461869774, 0.0577528340268628),
    (0.3424786601519183, 0.060835236463901696),
    (0.40444056626319186, 0.06291872817341415),
    (0.4679715535686972, 0.06396909767337608),
    (0.5320284464313028, 0.06396909767337608),
    (0.5955594337368082, 0.06291872817341415),
    (0.6575213398480817, 0.060835236463901696),
    (0.7168967538130225, 0.0577528340268628),
    (0.7727107356944197, 0.05372213505798282),
    (0.8240468259684878, 0.04880932605205694),
    (0.8700620957892772, 0.04309508076597664),
    (0.9100009929869515, 0.03667324070554015),
    (0.9432077635022005, 0.02964929245771839),
    (0.9691372760013663, 0.022138719408709904),
    (0.9873642779856547, 0.014265694314466832),
    (0.9975936099985107, 0.0061706148999936),
];

/// The lower tail of a Beta distribution on the near side of its mean, over its density in the logarithm of the odds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quadrature {
    /// `a + b`, `L`, `x (1-x)` and the smaller of `x` and `1-x`.
    n: f64,
    lead: f64,
    variance: f64,
    p: f64,
    /// -1 if `p` is `x`, 1 if it is `1-x`: what `s` is to be multiplied with.
    sign: f64,
}

impl Quadrature {
    /// The quadrature, where it is the quicker way.
    pub(super) fn new(a: f64, b: f64, rate: &Rate) -> Option<Self> {
        if a.min(b) < LEAST_SHAPE {
            return None;
        }
        let (x, y) = (rate.x.to_f64(), rate.y.to_f64());
        let (n, lead) = (a + b, lead(a, b, rate));
        let variance = x * y;
        if lead < 0.0 || lead > MOST_DEVIATIONS * (n * variance).sqrt() {
            return None;
        }
        let (p, sign) = if x <= y { (x, -1.0) } else { (y, 1.0) };
        Some(Quadrature { n, lead, variance, p, sign })
    }

    /// `n k(s)`, off by less than `128u` of itself.
    #[inline(always)]
    fn curvature(&self, s: f64) -> f64 {
        let r = self.sign * s;
        let beyond = beyond_linear(r);
        self.n * (log_excess(self.p * (r + beyond)) + self.p * beyond)
    }

    /// Encloses `J`.
    pub(super) fn enclose(&self) -> Enclosure {
        // L S + n x y S^2 / 2 = DEPTH
        let spread = self.n * self.variance;
        let end = 2.0 * DEPTH / (self.lead + (self.lead * self.lead + 2.0 * DEPTH * spread).sqrt());
        debug_assert!(end <= 0.4);
        let falls = RULE.map(|(node, _)| {
            let s = end * node;
            self.lead * s + self.curvature(s)
        });
        let parts = falls.map(|fall| exp_of_negative(-fall));
        let (mut sum, mut off) = (0.0, 0.0);
        for ((part, fall), (_, weight)) in parts.into_iter().zip(falls).zip(RULE) {
            sum += weight * part;
            off += weight * part * fall;
        }
        // 2^-46 = 128u, and twice that for the node's rounding.
        const ROUNDING: f64 = 1.421_085_471_520_200_4e-14;
        let rounding = end * ROUNDING * (sum + 2.0 * off);
        let depth = self.lead * end + self.curvature(end);
        let cut_off = end * exp_of_negative(-depth) / depth;
        let remainder = 2.4 * end * POWER * self.greatest(end);
        let (sum, outside) = (end * sum, (rounding + remainder) * 1.001);
        Enclosure { lower: sum - outside, upper: sum + outside + cut_off * 1.001 }
    }

    /// `M` for this `S`.
    fn greatest(&self, end: f64) -> f64 {
        // u < 0 only as far as S/3; with p = x, the tilted rate falls from p on, and w (1-w) with it.
        let reach = if self.sign < 0.0 { end / 3.0 } else { end * (4.0 / 3.0) };
        let tilted = (self.variance * (1.0 + reach + reach * reach)).min(0.25);
        let height = end * (2.0 / 3.0);
        let product = tilted * height * height;
        let exponent = self.lead * end / 3.0 + 0.5 * self.n * product / (1.0 - product);
        exp_of_negative(-exponent).recip() * 1.001
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fraction::{Fraction, NARROW};
    use super::*;

    #[test]
    fn the_rule_integrates_all_powers_up_to_its_degree() {
        assert!((POWER * 3f64.powi(48) - 1.0).abs() < 1e-14);
        for power in 0..2 * NODES as i32 {
            let sum: f64 = RULE.iter().map(|(node, weight)| weight * node.powi(power)).sum();
            let truth = 1.0 / f64::from(power + 1);
            assert!((sum - truth).abs() < 4e-16, "{power}: {sum} for {truth}");
        }
    }

    proptest! {
        /// Both ways to the same tail enclose it, narrowly.
        #[test]
        fn the_fraction_agrees(a in 10.0f64..40.0, b in 10.0f64..40.0, deviations in 0.3f64..8.0) {
            let (a, b) = (a.exp2().floor(), b.exp2().floor());
            let center = a / (a + b);
            let x = center * (1.0 - deviations * (b / (a * (a + b))).sqrt());
            let rate = if x < 0.5 { Rate::new(x) } else {
                Rate::complement_of((b / (a + b)) * (1.0 + deviations * (a / (b * (a + b))).sqrt()))
            };
            let Some(quadrature) = Quadrature::new(a, b, &rate) else { return Ok(()) };
            let found = quadrature.enclose();
            prop_assert!(found.upper - found.lower <= 1e-11 * found.lower, "{:?} is wide", found);
            let fraction = Fraction::new(a, b, &rate).enclose_to(NARROW);
            let (lower, upper) = (fraction.lower / a * (1.0 - 1e-15), fraction.upper / a * (1.0 + 1e-15));
            prop_assert!(found.lower <= upper && lower <= found.upper, "{:?} and {:?}", found, fraction);
        }
    }
}
