//! A continued fraction for a tail of the Beta distribution, each step enclosed.
//!
//! The lower tail is `I_x(a, b) = x^a (1-x)^b / (a B(a, b)) F` with `F = 2F1(a + b, 1; a + 1; x)`, for which
//! Gauss found a continued fraction whose `j`-th tail is a ratio of neighbouring hypergeometric functions.
//! Taking two of his steps at once and scaling the tail before step `2m` by `m / (a + 2m)` gives
//!
//! ```text
//! F   = (a + 1 + w_0 S_1) / (1 + L + w_0 S_1)                        L   = a (1-x) - b x
//! S_m = m (a + 2m + 1 + w_m S_(m+1)) / (c_m + (a + 2m) w_m S_(m+1))  w_m = (b - m - 1) x
//!                                                                    c_m = (a + m) L + a (1 + m (3 - x)) + m (2 + m (4 - x))
//! ```
//!
//! **Enclosure.** `S_m` is `m/(a + 2m) 2F1(n, m + 1; c + 1; x) / 2F1(n, m; c; x)` with `n = a + b + m` and `c
//! = a + 2m`. Both series have positive terms, and the ratio of the `k`-th ones, `(1 + k/m) / (1 + k/c)`,
//! lies between 1 and `c/m`. So `m/(a + 2m) <= S_m <= 1`, **always**, and starting from that at some far `m`
//! and going backwards, every `S_m` is enclosed, and `F` too: there is no truncation to estimate, and none
//! that could be on the wrong side. A step is a Möbius function, monotone between its poles, so an interval's
//! ends go to the ends; `m` only decides how narrow the enclosure gets, and is doubled until it is narrow
//! enough.
//!
//! **Rounding.** In this form, with `x` on the near side of the mean (`L >= 0`) and `b > m + 1`, every term is
//! positive. Then an end is carried as a numerator and a denominator, without a division: each takes fewer than 14
//! roundings a step, and sums of positive terms pass relative errors on without enlarging them, so that the quotient is
//! off by less than `32 u` a step ([`Fraction::positive_steps`]). Elsewhere the errors are below `16 u` times the sum
//! of the absolute values of the terms, whatever the signs, and every step's quotient is widened by that
//! ([`Fraction::step`]).
//!
//! **Steps.** Far from the mean, or where a shape is small, sixteen suffice; near the mean about the root of the
//! smaller shape, and from some dozens on an [expansion](super::expansion) is used there. So it takes at most a hundred
//! or so; the search ends at [`MAX_STEPS`] in any case, with an enclosure that is as certain as any, only wider.

use super::kernel::Rate;

/// `2^-49 = 16 u`.
const ROUNDING: f64 = 1.776_356_839_400_250_5e-15;

/// The narrowest sensible request for the ends of an enclosure: `2^-44`.
pub(crate) const NARROW: f64 = 5.684_341_886_080_802e-14;

/// More double steps than any distribution takes.
const MAX_STEPS: u32 = 1 << 14;

/// Two floats with a number between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Enclosure {
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

impl Enclosure {
    /// The width over the lower end.
    fn relative_width(self) -> f64 {
        (self.upper - self.lower) / self.lower
    }
}

/// The fraction for one distribution and one `x`.
pub(crate) struct Fraction {
    a: f64,
    b: f64,
    x: f64,
    /// `a (1-x) - b x`.
    lead: f64,
    /// The number of double steps that will probably suffice.
    steps: u32,
}

impl Fraction {
    pub(crate) fn new(a: f64, b: f64, rate: &Rate) -> Self {
        let lead = lead(a, b, rate);
        Fraction { a, b, x: rate.x.to_f64(), lead, steps: likely_steps(a, b, lead) }
    }

    /// Encloses `F` so that the ends are at most `width` apart, relatively, or as near as rounding permits: until twice
    /// the steps do not halve the width any more, or the limit is reached.
    pub(crate) fn enclose_to(&self, width: f64) -> Enclosure {
        // A term of the series is at most `(n + 1) x` times the previous one. This avoids arithmetic below the normal
        // floats.
        let ratio = (self.a + self.b + 1.0) * self.x;
        if ratio < NARROW / 8.0 {
            return Enclosure { lower: 1.0, upper: 1.0 + NARROW / 4.0 };
        }
        let mut steps = self.steps;
        let mut found = self.enclose(steps);
        while found.relative_width() > width + 2.0 * rounding(steps) && steps < MAX_STEPS {
            steps *= 2;
            let next = self.enclose(steps);
            if next.relative_width() > 0.5 * found.relative_width() {
                return next;
            }
            found = next;
        }
        found
    }

    /// Encloses `F`, from `start` double steps on.
    pub(crate) fn enclose(&self, start: u32) -> Enclosure {
        let m = f64::from(start);
        let mut s = Enclosure { lower: m / (self.a + 2.0 * m) * (1.0 - ROUNDING), upper: 1.0 };
        let mut m = start;
        while m > 1 && !self.all_positive(m - 1) {
            m -= 1;
            s = self.step(f64::from(m), s);
        }
        if self.all_positive(0) {
            let ends = [s.lower, s.upper].map(|end| self.positive_steps(m, end));
            let error = rounding(m);
            // F is at least 1, as all terms of its series are positive.
            let lower = ends[0].min(ends[1]) * (1.0 - error);
            return Enclosure { lower: lower.max(1.0), upper: ends[0].max(ends[1]) * (1.0 + error) };
        }
        self.first(s)
    }

    /// Whether all terms of the step to `S_m` are positive, and those of all further steps.
    fn all_positive(&self, m: u32) -> bool {
        self.lead >= 0.0 && self.b > f64::from(m + 1)
    }

    /// `F` from `S_m`, where all terms are positive; off by less than `32 u` for each of `m + 1` steps.
    fn positive_steps(&self, m: u32, s: f64) -> f64 {
        let (a, x, lead) = (self.a, self.x, self.lead);
        let (mut top, mut bottom) = (s, 1.0);
        for m in (1..m).rev() {
            let weight = f64::from(m);
            let width = (self.b - (weight + 1.0)) * x;
            let last = a + 2.0 * weight;
            let constant = (a + weight) * lead + (a * (1.0 + weight * (3.0 - x)) + weight * (2.0 + weight * (4.0 - x)));
            let moved = width * top;
            (top, bottom) = (weight * ((last + 1.0) * bottom + moved), constant * bottom + last * moved);
            // A step multiplies by less than 2^112, and the top is not below the bottom by more than 2^54.
            if m % 8 == 0 {
                let scale = super::exact::power_of_two(-super::exact::split_exponent(bottom).1);
                (top, bottom) = (top * scale, bottom * scale);
            }
        }
        let moved = (self.b - 1.0) * x * top;
        ((a + 1.0) * bottom + moved) / ((1.0 + lead) * bottom + moved)
    }

    /// `S_m` from `S_(m+1)`.
    #[inline(always)]
    fn step(&self, m: f64, next: Enclosure) -> Enclosure {
        let (a, x) = (self.a, self.x);
        let width = (self.b - (m + 1.0)) * x;
        let last = a + 2.0 * m;
        let from_lead = (a + m) * self.lead;
        let rest = a * (1.0 + m * (3.0 - x)) + m * (2.0 + m * (4.0 - x));
        let constant = Sum { value: from_lead + rest, size: from_lead.abs() + rest };
        let known_lower = m / last * (1.0 - ROUNDING);
        let end = |s: f64| {
            let moved = width * s;
            let top = Sum { value: m * (last + 1.0 + moved), size: m * (last + 1.0 + moved.abs()) };
            let bottom = Sum { value: constant.value + last * moved, size: constant.size + last * moved.abs() };
            top.over(bottom)
        };
        let (Some(one), Some(other)) = (end(next.lower), end(next.upper)) else {
            return Enclosure { lower: known_lower, upper: 1.0 };
        };
        Enclosure { lower: one.lower.min(other.lower).max(known_lower), upper: one.upper.max(other.upper).min(1.0) }
    }

    /// `F` from `S_1`.
    fn first(&self, next: Enclosure) -> Enclosure {
        let (a, lead) = (self.a, self.lead);
        let width = (self.b - 1.0) * self.x;
        let end = |s: f64| {
            let moved = width * s;
            let top = Sum { value: a + 1.0 + moved, size: a + 1.0 + moved.abs() };
            let bottom = Sum { value: 1.0 + lead + moved, size: 1.0 + lead.abs() + moved.abs() };
            top.over(bottom)
        };
        // F is at least 1, as all terms of its series are positive.
        match (end(next.lower), end(next.upper)) {
            (Some(one), Some(other)) => {
                Enclosure { lower: one.lower.min(other.lower).max(1.0), upper: one.upper.max(other.upper) }
            }
            _ => Enclosure { lower: 1.0, upper: f64::INFINITY },
        }
    }
}

/// The relative error of `steps` steps with only positive terms: `2^-48` for each.
fn rounding(steps: u32) -> f64 {
    f64::from(steps + 1) * 3.552_713_678_800_501e-15
}

/// Sixteen suffice far from the mean, or when a shape is small. Near the mean of a distribution with large shapes it
/// takes about as many as the complementary error function that it resembles: more, the fewer standard deviations away.
fn likely_steps(a: f64, b: f64, lead: f64) -> u32 {
    let deviations = lead.abs() / (a / (a + b) * b).sqrt();
    let near = 1.0 / deviations.max(1e-3);
    let resembling = near * (100.0 + 50.0 * near);
    16 + resembling.min(a.min(b).sqrt()) as u32
}

/// `a (1-x) - b x`: positive on the near side of the mean. Off by less than `2^-52 + 2^-52 |L|`, as the products are
/// made in double-double, and are at most `2^53`. (A rate below `2^-1000` counts as one of about that size, which
/// matters as little.)
pub(crate) fn lead(a: f64, b: f64, rate: &Rate) -> f64 {
    let product =
        |weight: f64, part: super::kernel::Scaled| part.m.scale(super::exact::power_of_two(part.e.max(-1000))) * weight;
    (product(a, rate.y) - product(b, rate.x)).hi
}

/// A computed sum, and the sum of its terms' absolute values.
#[derive(Clone, Copy)]
struct Sum {
    value: f64,
    size: f64,
}

impl Sum {
    /// Encloses the quotient; `None` when the divisor may be zero or negative.
    #[inline(always)]
    fn over(self, divisor: Sum) -> Option<Enclosure> {
        let error = self.size * ROUNDING;
        let divisor_error = divisor.size * ROUNDING;
        let least = divisor.value - divisor_error;
        (least > 0.0).then(|| Enclosure {
            lower: ((self.value - error) / (divisor.value + divisor_error)).next_down(),
            upper: ((self.value + error) / least).next_up(),
        })
    }
}
