//! A continued fraction for a tail of the Beta distribution, in which each step is enclosed.
//!
//! The lower tail is `I_x(a, b) = x^a (1-x)^b / (a B(a, b)) F` with `F = 2F1(a + b, 1; a + 1; x)`, for which Gauss
//! found a continued fraction. The `j`-th tail of that fraction is a ratio of neighbouring hypergeometric functions.
//! Combining two steps into one, and scaling the tail before step `2m` by `m / (a + 2m)`, yields
//!
//! ```text
//! F   = (a + 1 + w_0 S_1) / (1 + L + w_0 S_1)                        L   = a (1-x) - b x
//! S_m = m (a + 2m + 1 + w_m S_(m+1)) / (c_m + (a + 2m) w_m S_(m+1))  w_m = (b - m - 1) x
//!                                                                    c_m = (a + m) L + a (1 + m (3 - x)) + m (2 + m (4 - x))
//! ```
//!
//! **Enclosure.** `S_m` is `m/(a + 2m) 2F1(n, m + 1; c + 1; x) / 2F1(n, m; c; x)` with `n = a + b + m` and `c = a +
//! 2m`. Both series have positive terms, and the ratio of their `k`-th terms, `(1 + k/m) / (1 + k/c)`, is between 1 and
//! `c/m`. So `m/(a + 2m) <= S_m <= 1` is **always** true. Starting from this interval at some large `m` and stepping
//! backwards, every `S_m` is enclosed, and finally `F`. No truncation error needs to be estimated. A step is a Möbius
//! function, which is monotone between its poles, so it maps the ends of an interval to the ends of the image. The
//! start `m` only determines how narrow the enclosure is, and is doubled until the enclosure is narrow enough.
//!
//! **Rounding.** The error of a step's numerator is below `16 u` times the sum of the absolute values of its terms, and
//! so is that of the denominator. Every quotient is widened by these errors.
//!
//! **Steps.** Far from the mean, or if a shape is small, sixteen steps suffice. Near the mean, the number of steps is
//! about the square root of the smaller shape. If that is more than a few dozen, an [expansion](super::expansion) is
//! used instead, so the fraction takes at most a hundred steps or so. In any case the search ends at [`MAX_STEPS`],
//! with an enclosure that is just as certain, but wider.

/// `2^-49 = 16 u`.
const ROUNDING: f64 = 1.776_356_839_400_250_5e-15;

/// The smallest relative width of an enclosure that is sensible to request: `2^-44`.
pub(crate) const NARROW: f64 = 5.684_341_886_080_802e-14;

/// The maximum number of double steps, more than any distribution takes.
const MAX_STEPS: u32 = 1 << 14;

/// Two floats that enclose a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Enclosure {
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

impl Enclosure {
    /// The width divided by the lower end.
    fn relative_width(self) -> f64 {
        (self.upper - self.lower) / self.lower
    }
}

/// The fraction for one distribution and one `x`.
pub(crate) struct Fraction {
    pub(crate) a: f64,
    pub(crate) b: f64,
    pub(crate) x: f64,
    /// `a (1-x) - b x`: positive on the near side of the mean. The error is at most `2^-52` of the value plus `2^-102`
    /// of the smaller expected count.
    pub(crate) lead: f64,
}

impl Fraction {
    /// Encloses `F` with a relative width of at most `width`, or of as little as rounding permits. The number of steps
    /// is doubled until doubling no longer halves the width, or until the limit is reached.
    pub(crate) fn enclose_to(&self, width: f64) -> Enclosure {
        // A term of the series is at most `(n + 1) x` times the previous term. If that ratio is tiny, `F` is enclosed
        // without the fraction, whose computation would then use subnormal floats.
        let ratio = (self.a + self.b + 1.0) * self.x;
        if ratio < NARROW / 8.0 {
            return Enclosure { lower: 1.0, upper: 1.0 + NARROW / 4.0 };
        }
        let mut steps = self.likely_steps();
        let mut found = self.enclose(steps);
        while found.relative_width() > width && steps < MAX_STEPS {
            steps *= 2;
            let next = self.enclose(steps);
            if next.relative_width() > 0.5 * found.relative_width() {
                return next;
            }
            found = next;
        }
        found
    }

    /// Near the mean of a distribution with large shapes, the fraction resembles that of the complementary error
    /// function, and takes about as many steps: the closer to the mean in standard deviations, the more steps.
    fn likely_steps(&self) -> u32 {
        let deviations = self.lead.abs() / (self.a / (self.a + self.b) * self.b).sqrt();
        let near = 1.0 / deviations.max(1e-3);
        let resembling = near * (100.0 + 50.0 * near);
        12 + resembling.min(self.a.min(self.b).sqrt()) as u32
    }

    /// Encloses `F`, beginning with `start` double steps.
    fn enclose(&self, start: u32) -> Enclosure {
        let m = f64::from(start);
        let first = Enclosure { lower: m / (self.a + 2.0 * m) * (1.0 - ROUNDING), upper: 1.0 };
        let next = (1..start).rev().fold(first, |next, m| self.step(f64::from(m), next));
        // `F` from `S_1`. `F` is at least 1, because all terms of its series are positive.
        let top = Linear { constant: self.a + 1.0, size: self.a + 1.0, slope: 1.0 };
        let bottom = Linear { constant: 1.0 + self.lead, size: 1.0 + self.lead.abs(), slope: 1.0 };
        let known = Enclosure { lower: 1.0, upper: f64::INFINITY };
        quotient(top, bottom, (self.b - 1.0) * self.x, next, known)
    }

    /// `S_m` from `S_(m+1)`.
    #[inline(always)]
    fn step(&self, m: f64, next: Enclosure) -> Enclosure {
        let (a, x) = (self.a, self.x);
        let last = a + 2.0 * m;
        let from_lead = (a + m) * self.lead;
        let rest = a * (1.0 + m * (3.0 - x)) + m * (2.0 + m * (4.0 - x));
        let top = Linear { constant: m * (last + 1.0), size: m * (last + 1.0), slope: m };
        let bottom = Linear { constant: from_lead + rest, size: from_lead.abs() + rest, slope: last };
        let known = Enclosure { lower: m / last * (1.0 - ROUNDING), upper: 1.0 };
        quotient(top, bottom, (self.b - (m + 1.0)) * x, next, known)
    }
}

/// A linear function: its value at 0, the sum of the absolute values of the terms in that value, and its slope.
#[derive(Clone, Copy)]
struct Linear {
    constant: f64,
    size: f64,
    slope: f64,
}

impl Linear {
    /// The value, and its maximum error.
    #[inline(always)]
    fn at(self, s: f64) -> (f64, f64) {
        let moved = self.slope * s;
        (self.constant + moved, (self.size + moved.abs()) * ROUNDING)
    }
}

/// Encloses the quotient of two functions of `w s`, for all `s` in an enclosure, within the given ends.
#[inline(always)]
fn quotient(top: Linear, bottom: Linear, w: f64, s: Enclosure, known: Enclosure) -> Enclosure {
    let end = |s: f64| {
        let ((value, error), (divisor, divisor_error)) = (top.at(w * s), bottom.at(w * s));
        // If the divisor may be zero or negative, the quotient yields no bound.
        let least = divisor - divisor_error;
        (least > 0.0)
            .then(|| [((value - error) / (divisor + divisor_error)).next_down(), ((value + error) / least).next_up()])
    };
    let (Some(one), Some(other)) = (end(s.lower), end(s.upper)) else { return known };
    Enclosure { lower: one[0].min(other[0]).max(known.lower), upper: one[1].max(other[1]).min(known.upper) }
}
