//! The scale of a relative error.

use num_rational::BigRational;
use num_traits::{One, Signed};

/// `|x|`, but at least 1.
pub(crate) fn at_least_one(x: &BigRational) -> BigRational {
    x.abs().max(BigRational::one())
}
