//! What can be wrong with a question.

use thiserror::Error;

/// A question that has no answer: what was expected, what was found, and what to do.
///
/// Every function of this crate answers each input it accepts; there is no "did not converge".
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A number is not a number, or is infinite where that means nothing.
    #[error(
        "{what} must be a finite number, but it is {found}; look for a division by zero or an empty field in the data"
    )]
    NotFinite {
        /// Which number.
        what: &'static str,
        /// Its value.
        found: f64,
    },
    /// A number is outside the range that the question makes sense for.
    #[error("{what} must be {expected}, but it is {found}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// Its range, in words.
        expected: &'static str,
        /// Its value.
        found: f64,
    },
    /// A part is larger than its whole.
    #[error("there are {found} {part} among {whole} {of}; count each of the {of} once, as one of the {part} or not")]
    MoreThanAll {
        /// What the part is made of, such as "successes".
        part: &'static str,
        /// How many there are.
        found: u64,
        /// What the whole is made of, such as "trials".
        of: &'static str,
        /// How many there are.
        whole: u64,
    },
    /// A count is beyond the range that this crate computes exactly in.
    #[error("{found} {what} are more than the {most} this crate computes with; split the data")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// The most there may be.
        most: u64,
    },
    /// A pair of numbers is the wrong way round, or there is nothing between them.
    #[error("{what} must be in order, the first below the second, but they are {low} and {high}; exchange them")]
    NotInOrder {
        /// Which numbers.
        what: &'static str,
        /// The first.
        low: f64,
        /// The second.
        high: f64,
    },
    /// There is no method of this name.
    #[error("there is no method \"{found}\"; choose mixture, balanced, robbins, centred, one-sided, sprt or blend")]
    UnknownMethod {
        /// The name.
        found: String,
    },
    /// A method tells two thresholds apart, and the claim does not ask for that.
    #[error("the method {method} tells one threshold from another; claim to be between two, or choose another method")]
    NeedsTwoThresholds {
        /// The method.
        method: crate::process::Method,
    },
    /// There are too few data for the question.
    #[error("{what} must have at least {least} elements, but it has {found}")]
    TooFew {
        /// What is too short.
        what: &'static str,
        /// The least there may be.
        least: u64,
        /// How many there are.
        found: u64,
    },
    /// Sorted data are not.
    #[error("{what} must be sorted, but element {index} is smaller than the one before; sort it")]
    NotSorted {
        /// What is not sorted.
        what: &'static str,
        /// The element, counted from zero.
        index: usize,
    },
}
