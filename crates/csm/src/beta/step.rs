//! A step towards a quantile.

use crate::number::Ball;

/// `2^-46`.
const SMALL: f64 = 1.421_085_471_520_200_4e-14;

/// A step of Newton's method on the logarithm of a tail. As a function of the logarithm of the odds, its first
/// derivative is `slope` and its second derivative is `-slope bend`, where `bend = slope - L` and `L` is the density's
/// logarithmic slope.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    straight: f64,
    bend: f64,
}

impl Step {
    /// The step that increases the logarithm by `missing`.
    pub(super) fn new(missing: f64, slope: Ball, lead: f64) -> Self {
        Step { straight: missing / slope.mid.hi, bend: (slope.mid.hi - lead).max(0.0) }
    }

    /// The step with the correction for curvature, limited to the part that certainly helps.
    pub(super) fn curved(self) -> f64 {
        self.straight * (1.0 + (0.5 * self.straight * self.bend).clamp(-0.5, 0.5))
    }

    /// Whether a step of this size loses almost nothing without the correction.
    pub(super) fn is_short(self) -> bool {
        self.straight * self.straight * self.bend.max(1.0) <= SMALL
    }
}
