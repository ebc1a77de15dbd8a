//! Odds of a rate, near 0 and near 1.

use super::{BetaBound, ZERO};
use crate::number::kernel::Rate;

/// `x / (1-x)`, stored as the smaller of `x` and `1 - x`, so that neither loses precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Odds {
    /// `x`, at most 1/2.
    Of(f64),
    /// `1 - x`, less than 1/2.
    Against(f64),
}

impl Odds {
    pub(super) fn new(odds: f64) -> Self {
        if odds <= 1.0 {
            Odds::Of((odds / (1.0 + odds)).max(MIN_POSITIVE))
        } else {
            Odds::Against((1.0 / (1.0 + odds)).max(MIN_POSITIVE))
        }
    }

    /// The odds of the other outcome.
    pub(super) fn swap(self) -> Self {
        match self {
            Odds::Of(x) => Odds::Against(x),
            Odds::Against(y) => Odds::Of(y),
        }
    }

    pub(super) fn rate(self) -> Rate {
        match self {
            Odds::Of(x) => Rate::new(x),
            Odds::Against(y) => Rate::complement_of(y),
        }
    }

    /// Approximately the odds times `e^step`; `None` if the step would leave the range of floats.
    pub(super) fn moved(self, step: f64) -> Option<Self> {
        match self {
            Odds::Of(x) if x <= MIN_POSITIVE && step < 0.0 => None,
            Odds::Of(x) => Some(Odds::new(x / (1.0 - x) * rough_exp(step))),
            Odds::Against(y) => Odds::Of(y).moved(-step).map(Odds::swap),
        }
    }

    /// The bound for a quantile that is closer to 0 or 1 than any float.
    pub(super) fn at_the_end(self) -> BetaBound {
        match self {
            Odds::Of(_) => ZERO,
            Odds::Against(y) => BetaBound { bound: 1.0f64.next_down(), complement: y },
        }
    }

    /// The odds times at most `e^step`, for a short step.
    pub(super) fn safely_moved(self, step: f64) -> BetaBound {
        // x e^d / (1 + x (e^d - 1)) grows with e^d, which is at least 1 + d. The last factor exceeds the effect of four
        // roundings.
        match self {
            Odds::Of(x) => {
                let bound = (x * (1.0 + step) / (1.0 + x * step) * (1.0 - 4.0 * f64::EPSILON)).next_down().max(0.0);
                BetaBound { bound, complement: (1.0 - bound).next_up().min(1.0) }
            }
            Odds::Against(y) => {
                let complement = (y / (1.0 + (1.0 - y) * step) * (1.0 + 4.0 * f64::EPSILON)).next_up();
                BetaBound { bound: (1.0 - complement).next_down(), complement }
            }
        }
    }
}

/// The smallest positive float.
const MIN_POSITIVE: f64 = 5e-324;

/// Approximately `e^x`, with `x` clamped so that the result is a normal float.
pub(super) fn rough_exp(x: f64) -> f64 {
    let part = x.clamp(-600.0, 600.0) / 1024.0;
    let mut power = 1.0 + part * (1.0 + part * (0.5 + part / 6.0));
    for _ in 0..10 {
        power *= power;
    }
    power
}
