//! Real numbers with proven errors, the same bits on every machine.
//!
//! This module uses only IEEE 754 addition, multiplication, division and square roots, in a fixed order: no logarithm
//! of the system's library takes part, so no result moves when that library changes.
//!
//! | file | idea |
//! | --- | --- |
//! | [`exact`], [`fused`] | sums and products together with their rounding errors |
//! | [`sum`](mod@sum) | the sum of many floats, rounded once |
//! | [`dd`] | a number as an unevaluated sum of two floats: 106 bits, each operation with a proven error |
//! | [`ball`] | such a number and a radius that certainly covers the true value |
//! | [`rough`] | the same with a single float |
//! | [`ln`], [`exp`] | logarithm and exponential of a ball |
//! | [`stirling`] | the remainder of Stirling's formula for the logarithm of the Gamma function |
//! | [`deviance`] | the deviance of a count from its expected value, with a relative error |
//! | [`kernel`] | `ln(x^a (1-x)^b / B(a, b))`: the basis of Robbins' level, likelihood ratios and tails |
//! | [`fraction`] | a continued fraction for the tails of the Beta distribution, each step enclosed |
//! | [`expansion`], [`mills`] | the same for large shapes: a perturbed normal distribution, with a proven remainder |
//! | [`series`] | the same for whole shapes of which one is small: a sum of few terms |
//! | [`tails`] | both tails of the Beta distribution, as logarithms |

pub(crate) mod ball;
pub(crate) mod dd;
mod deviance;
pub(crate) mod exact;
pub(crate) mod exp;
mod expansion;
pub(crate) mod fraction;
mod fused;
pub(crate) mod kernel;
pub(crate) mod ln;
mod ln_table;
mod mills;
#[cfg(test)]
#[path = "../../tests/exact"]
mod exactly {
    pub(crate) mod binomial;
    pub(crate) mod ln;
    pub(crate) mod rational;
}
pub(crate) mod rough;
mod series;
pub(crate) mod stirling;
mod stirling_table;
pub(crate) mod sum;
pub(crate) mod tails;

pub(crate) use ball::Ball;
pub(crate) use dd::Dd;
pub(crate) use rough::Rough;
