//! The error type: the reasons why a question has no answer.

use thiserror::Error;

/// The reason why a question has no answer. The message says what was expected, what was found, and what to do.
///
/// Every function of this crate returns an answer for each valid input: none fails with "did not converge".
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A value is not a number, or is infinite where infinity has no meaning.
    #[error(
        "{what} must be a finite number, but it is {found}; look for a division by zero or an empty field in the data"
    )]
    NotFinite {
        /// The name of the number.
        what: &'static str,
        /// Its value.
        found: f64,
    },
    /// A number is outside the range in which the question makes sense.
    #[error("{what} must be {expected}, but it is {found}")]
    OutOfRange {
        /// The name of the number.
        what: &'static str,
        /// Its range, in words.
        expected: &'static str,
        /// Its value.
        found: f64,
    },
    /// A part is larger than its whole.
    #[error("there are {found} {part} among {whole} {of}; count each of the {of} once, as one of the {part} or not")]
    MoreThanAll {
        /// The name of the part, such as "successes".
        part: &'static str,
        /// Its count.
        found: u64,
        /// The name of the whole, such as "trials".
        of: &'static str,
        /// Its count.
        whole: u64,
    },
    /// A count is above the maximum for exact computations.
    #[error("{found} {what} exceed the maximum of {most} that this crate supports; split the data")]
    TooMany {
        /// The name of the count.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The maximum.
        most: u64,
    },
    /// A pair of numbers is in the wrong order, or the two numbers are equal.
    #[error("{what} must be in order, the first below the second, but they are {low} and {high}")]
    NotInOrder {
        /// The name of the numbers.
        what: &'static str,
        /// The first.
        low: f64,
        /// The second.
        high: f64,
    },
    /// No method has this name.
    #[error("there is no method \"{found}\"; choose mixture, balanced, robbins, centred, one-sided, sprt or blend")]
    UnknownMethod {
        /// The name.
        found: String,
    },
    /// The method tests two thresholds against each other, but the question is neither a
    /// [`Claim::Between`](crate::Claim::Between) nor a [`Test::between`](crate::Test::between).
    #[error("the method {method} tests one threshold against the other; choose a claim between two, or another method")]
    NeedsTwoThresholds {
        /// The method.
        method: crate::process::Method,
    },
    /// The question needs more data.
    #[error("{what} must have at least {least} elements, but it has {found}")]
    TooFew {
        /// The name of the data.
        what: &'static str,
        /// The minimum.
        least: u64,
        /// The number found.
        found: u64,
    },
    /// The data must be sorted, but they are not.
    #[error("{what} must be sorted, but element {index} is smaller than the one before; sort it")]
    NotSorted {
        /// The name of the data.
        what: &'static str,
        /// The first element out of order, counted from zero.
        index: usize,
    },
}
