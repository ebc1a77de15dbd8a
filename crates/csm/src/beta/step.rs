//! A step towards a quantile.

use crate::number::Ball;

/// `2^-46`.
const SMALL: f64 = 1.421_085_471_520_200_4e-14;

/// A step of Newton's method on the logarithm of a tail, whose slope in the logarithm of the odds is `slope`, and whose
/// second derivative is `-slope bend`: with the density's own logarithmic slope `L`, `bend = slope - L`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    straight: f64,
    bend: f64,
}

impl Step {
    /// The step after which the logarithm is larger by `missing`.
    pub(super) fn new(missing: f64, slope: Ball, lead: f64) -> Self {
        Step { straight: missing / slope.mid.hi, bend: (slope.mid.hi - lead).max(0.0) }
    }

    /// The step including the curvature's part, or as much of that part as certainly helps.
    pub(super) fn curved(self) -> f64 {
        self.straight * (1.0 + (0.5 * self.straight * self.bend).clamp(-0.5, 0.5))
    }

    /// Whether a step of this size, without the curvature's part, loses next to nothing.
    pub(super) fn is_short(self) -> bool {
        self.straight * self.straight * self.bend.max(1.0) <= SMALL
    }
}
