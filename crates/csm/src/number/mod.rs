//! Real numbers with proven errors, whose bits are the same on every machine.
//!
//! This module uses only IEEE 754 addition, multiplication, division and square roots, in a fixed order. It uses no
//! logarithm of the system's library, so no result changes with that library.
//!
//! | file | idea |
//! | --- | --- |
//! | [`exact`] | sums and products together with their rounding errors |
//! | [`sum`](mod@sum) | the sum of many floats, rounded once |
//! | [`dd`] | a number of 106 bits as an unevaluated sum of two floats; each operation has a proven error |
//! | [`ball`] | a number of 106 bits, and a radius that certainly covers the true value |
//! | [`ln`], [`exp`] | logarithm and exponential of a ball |
//! | [`stirling`] | the remainder of Stirling's formula for the logarithm of the Gamma function |
//! | [`deviance`] | the deviance of a count from its expected value, with a relative error |
//! | [`kernel`] | `ln(x^a (1-x)^b / B(a, b))`: the basis of Robbins' level, likelihood ratios and tails |
//! | [`fraction`] | a continued fraction for the tails of the Beta distribution, in which each step is enclosed |
//! | [`expansion`], [`mills`] | the tails for large shapes: a perturbed normal distribution, with a proven error |
//! | [`tails`] | both tails of the Beta distribution, as logarithms |

mod ball;
mod dd;
pub(crate) mod deviance;
pub(crate) mod exact;
pub(crate) mod exp;
mod expansion;
mod fraction;
pub(crate) mod kernel;
pub(crate) mod ln;
mod mills;
mod stirling;
pub(crate) mod sum;
pub(crate) mod tails;

pub(crate) use ball::Ball;
pub(crate) use dd::Dd;
