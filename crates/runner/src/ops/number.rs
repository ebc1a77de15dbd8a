//! Numbers in the text of units. Two whole numbers are compared exactly.

use std::cmp::Ordering;
use std::fmt;

/// A number.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// A whole number, written without a fraction or an exponent.
    Whole(i128),
    /// Any other finite number.
    Real(f64),
}

impl Number {
    /// Reads a decimal number as JSON, CSV and programs write it. White space around it is ignored.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text.trim_ascii()).ok()?;
        if let Ok(whole) = text.parse() {
            return Some(Self::Whole(whole));
        }
        // The standard parser also accepts names such as `inf`, which are not numbers here.
        let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        text.parse().ok().filter(|real: &f64| is_decimal && real.is_finite()).map(Self::Real)
    }

    /// The order of two numbers. A whole number and a real number are compared with the precision of a double.
    pub fn order(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => one.cmp(&other),
            (one, other) => one.as_real().total_cmp(&(other.as_real() + 0.0)),
        }
    }

    /// The sum; `None` if it is too large. Whole numbers are added exactly.
    pub fn plus(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => one.checked_add(other).map(Self::Whole),
            (one, other) => Some(one.as_real() + other.as_real()).filter(|sum| sum.is_finite()).map(Self::Real),
        }
    }

    /// The number divided by a count, with the precision of a double. A result without a fraction becomes a whole
    /// number.
    #[expect(clippy::cast_precision_loss, reason = "documented")]
    pub fn over(self, count: u64) -> Self {
        match self {
            Self::Whole(whole) if whole % i128::from(count.max(1)) == 0 => {
                Self::Whole(whole / i128::from(count.max(1)))
            }
            number => Self::Real(number.as_real() / count as f64),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "documented")]
    fn as_real(self) -> f64 {
        // The addition turns `-0.0` into `0.0`.
        0.0 + match self {
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(whole) => whole.fmt(f),
            Self::Real(real) => real.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::Number;

    fn cmp(one: &str, other: &str) -> Option<Ordering> {
        Some(Number::parse(one.as_bytes())?.order(Number::parse(other.as_bytes())?))
    }

    #[test]
    fn numbers_compare_by_value() {
        for (one, other) in
            [("9", "10"), ("-2", "-1"), ("1.5", "2"), ("9007199254740992", "9007199254740993"), (" 3\r", "1e1")]
        {
            assert_eq!(cmp(one, other), Some(Ordering::Less), "{one} {other}");
            assert_eq!(cmp(other, one), Some(Ordering::Greater), "{one} {other}");
        }
        for (one, other) in [("1", "1.0"), ("+5", "05"), ("1e2", "100"), ("-0.0", "0")] {
            assert_eq!(cmp(one, other), Some(Ordering::Equal), "{one} {other}");
        }
    }

    #[test]
    fn other_text_is_no_number() {
        for text in ["", " ", "12x", "inf", "NaN", "0x10", "1_000", "1,5", "1e999", "--1", "e"] {
            assert!(Number::parse(text.as_bytes()).is_none(), "{text}");
        }
        assert!(Number::parse(b"\xff").is_none());
    }
}
