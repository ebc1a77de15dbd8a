//! Passes: which of an operator's input values pass.

use std::fmt;

use super::Rate;

/// The maximum number of letters in an explicit word, prefix and cycle together.
pub const MAX_WORD: usize = 4096;

/// Selects which of the values that reach an operator leave it.
///
/// A pass needs no room for values, because each value passes immediately or never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pass {
    /// The values numbered `first`, `first + step`, `first + 2 step`, …, counted from 0; `step` is at least 1.
    Every {
        /// The number of the first value that passes.
        first: u64,
        /// The distance from one passing value to the next.
        step: u64,
    },
    /// An ultimately periodic word `u(v)`. The prefix `u` has a letter for each of the first values; the cycle `v` then repeats
    /// forever.
    Word {
        /// The prefix `u`.
        prefix: Vec<bool>,
        /// The cycle `v`, which contains at least one `true`.
        cycle: Vec<bool>,
    },
    /// The data decide.
    Data,
}

/// The reason why a text is not a word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WordError {
    /// The text has other letters, or no cycle in parentheses.
    #[error("`{0}` is not a word: expected zeros and ones that end in a cycle, such as `(10)` or `0(110)`")]
    Malformed(String),
    /// The cycle has no 1, so no value would pass.
    #[error("the cycle of `{0}` lets nothing through; expected at least one 1 in the parentheses")]
    Silent(String),
    /// The word is too long.
    #[error("a word of {0} letters; expected at most {MAX_WORD}")]
    TooLong(usize),
}

impl Pass {
    /// Every value.
    pub const ALL: Self = Self::Every { first: 0, step: 1 };

    /// Parses a word such as `(10)` or `0(110)`.
    ///
    /// # Errors
    /// See [`WordError`].
    pub fn word(text: &str) -> Result<Self, WordError> {
        let malformed = || WordError::Malformed(text.to_owned());
        if text.len() > MAX_WORD + 2 {
            return Err(WordError::TooLong(text.len()));
        }
        let (prefix, cycle) = text.strip_suffix(')').and_then(|text| text.split_once('(')).ok_or_else(malformed)?;
        let letters = |text: &str| -> Option<Vec<bool>> {
            text.bytes().map(|letter| matches!(letter, b'0' | b'1').then_some(letter == b'1')).collect()
        };
        let (prefix, cycle) = letters(prefix).zip(letters(cycle)).ok_or_else(malformed)?;
        if cycle.is_empty() {
            return Err(malformed());
        }
        if !cycle.contains(&true) {
            return Err(WordError::Silent(text.to_owned()));
        }
        Ok(Self::Word { prefix, cycle })
    }

    /// Returns the share of values that pass in the long run; `None` if the data decide.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Self::Every { step, .. } => Rate::new(1, (*step).into()),
            Self::Word { cycle, .. } => {
                Rate::new(cycle.iter().filter(|letter| **letter).count() as u128, cycle.len() as u128)
            }
            Self::Data => None,
        }
    }

    /// Returns the state before the first value.
    pub(crate) fn start(&self) -> u64 {
        match self {
            Self::Every { first, .. } => *first,
            Self::Word { .. } | Self::Data => 0,
        }
    }

    /// Returns whether the next value may pass. If the data decide, it may.
    pub(crate) fn may_pass(&self, state: u64) -> bool {
        match self {
            Self::Every { .. } => state == 0,
            Self::Word { prefix, cycle } => {
                let at = state as usize;
                if at < prefix.len() { prefix[at] } else { cycle[at - prefix.len()] }
            }
            Self::Data => true,
        }
    }

    /// Returns the state after one more value.
    pub(crate) fn after(&self, state: u64) -> u64 {
        match self {
            Self::Every { step, .. } => {
                if state == 0 {
                    step - 1
                } else {
                    state - 1
                }
            }
            Self::Word { prefix, cycle } => {
                let next = state + 1;
                if next as usize == prefix.len() + cycle.len() { prefix.len() as u64 } else { next }
            }
            Self::Data => 0,
        }
    }

    /// Returns the pass that has the same effect as this pass followed by `next`; `None` if it has no short form.
    pub(crate) fn then(&self, next: &Self) -> Option<Self> {
        match (self, next) {
            (any, all) | (all, any) if *all == Self::ALL => Some(any.clone()),
            (Self::Every { first, step }, Self::Every { first: inner, step: factor }) => Some(Self::Every {
                first: step.checked_mul(*inner)?.checked_add(*first)?,
                step: step.checked_mul(*factor)?,
            }),
            _ => None,
        }
    }
}

/// Writes the word, such as `(10)`. A long run of zeros is written with its length, `0^999 (1)`, and a data decision as
/// `?`.
impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zeros = |f: &mut fmt::Formatter<'_>, count: u64| match count {
            0..=8 => write!(f, "{}", "0".repeat(count as usize)),
            _ => write!(f, "0^{count} "),
        };
        match self {
            Self::Every { first, step } => {
                // If the first value is within the first cycle, the word needs no prefix: the cycle is rotated, as in `(01)`
                // for `0(10)`.
                let (lead, turn) = if first < step { (0, *first) } else { (*first, 0) };
                zeros(f, lead)?;
                f.write_str("(")?;
                zeros(f, turn)?;
                f.write_str("1")?;
                zeros(f, step - 1 - turn)?;
                f.write_str(")")
            }
            Self::Word { prefix, cycle } => {
                let text =
                    |letters: &[bool]| -> String { letters.iter().map(|l| if *l { '1' } else { '0' }).collect() };
                write!(f, "{}({})", text(prefix), text(cycle))
            }
            Self::Data => f.write_str("?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Pass, WordError};

    fn letters(pass: &Pass, count: usize) -> Vec<bool> {
        let mut state = pass.start();
        (0..count)
            .map(|_| {
                let through = pass.may_pass(state);
                state = pass.after(state);
                through
            })
            .collect()
    }

    #[test]
    fn a_pass_is_displayed_as_the_word_of_its_letters() {
        for first in 0..6 {
            for step in 1..6 {
                let pass = Pass::Every { first, step };
                let shown = Pass::word(&pass.to_string()).unwrap();
                assert_eq!(letters(&pass, 50), letters(&shown, 50), "{pass}");
                assert_eq!(pass.rate(), shown.rate());
            }
        }
    }

    #[test]
    fn a_composition_applies_one_pass_after_the_other() {
        for n in 0..256_u64 {
            let (a, b) = (
                Pass::Every { first: n % 4, step: n / 4 % 4 + 1 },
                Pass::Every { first: n / 16 % 4, step: n / 64 + 1 },
            );
            let mut inner = letters(&b, 100).into_iter();
            let both: Vec<bool> =
                letters(&a, 100).into_iter().map(|through| through && inner.next().unwrap()).collect();
            assert_eq!(letters(&a.then(&b).unwrap(), 100), both, "{a} {b}");
        }
    }

    #[test]
    fn texts_that_are_not_words_are_refused() {
        for text in ["", "10", "(", "()", "1(2)", ")1(", "(1)0", "((1)"] {
            assert!(matches!(Pass::word(text), Err(WordError::Malformed(_))), "{text}");
        }
        assert!(matches!(Pass::word("1(00)"), Err(WordError::Silent(_))));
        assert!(matches!(Pass::word(&format!("({})", "1".repeat(5000))), Err(WordError::TooLong(_))));
    }
}
