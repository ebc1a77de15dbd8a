//! The size to which a relative error refers.

use num_rational::BigRational;
use num_traits::{One, Signed};

/// `|x|`, or 1 if that is more.
pub(crate) fn at_least_one(x: &BigRational) -> BigRational {
    x.abs().max(BigRational::one())
}
