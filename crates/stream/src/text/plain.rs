//! Plain values: numbers, truth values and borrowed texts. Formulas compute with them in registers.

use std::cmp::Ordering;
use std::fmt;

use memchr::memmem;

use super::value::Value;

/// See the [module](self).
#[derive(Debug, Clone, Copy)]
pub(super) enum Plain<'a> {
    Truth(bool),
    Whole(i64),
    Number(f64),
    Text(&'a [u8]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Length,
    Number,
    Contains,
    Starts,
}

impl<'a> Plain<'a> {
    #[inline]
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        match value {
            Value::Truth(truth) => Some(Self::Truth(*truth)),
            Value::Whole(number) => Some(Self::Whole(*number)),
            Value::Number(number) => Some(Self::Number(*number)),
            Value::Text(text) => Some(Self::Text(text)),
            Value::Empty | Value::List(_) | Value::Fields(_) => None,
        }
    }

    pub(super) fn value(self) -> Value {
        match self {
            Self::Truth(truth) => Value::Truth(truth),
            Self::Whole(number) => Value::Whole(number),
            Self::Number(number) => Value::Number(number),
            Self::Text(text) => Value::Text(text.to_vec()),
        }
    }

    /// Overwrites `into` with the value.
    #[inline]
    pub(super) fn write(self, into: &mut Value) {
        match (self, into) {
            (Self::Whole(number), Value::Whole(into)) => *into = number,
            (Self::Number(number), Value::Number(into)) => *into = number,
            (Self::Text(text), into) => into.text().extend_from_slice(text),
            (plain, into) => *into = plain.value(),
        }
    }

    #[inline]
    pub(super) fn truth(self) -> Option<bool> {
        match self {
            Self::Truth(truth) => Some(truth),
            _ => None,
        }
    }

    #[inline]
    fn float(self) -> Option<f64> {
        match self {
            Self::Whole(number) => Some(number as f64),
            Self::Number(number) => Some(number),
            Self::Truth(_) | Self::Text(_) => None,
        }
    }

    /// Compares two values. `None` means that values of these kinds have no order; `Some(None)` means that one of them is NaN.
    #[inline]
    pub(super) fn order(&self, other: &Self) -> Option<Option<Ordering>> {
        match (self, other) {
            (Self::Whole(left), Self::Whole(right)) => Some(Some(left.cmp(right))),
            (Self::Text(left), Self::Text(right)) => Some(Some(left.cmp(right))),
            (left, right) => Some(left.float()?.partial_cmp(&right.float()?)),
        }
    }
}

impl Comparison {
    #[inline]
    pub(super) fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::Different => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

impl Sign {
    /// Returns the result of arithmetic; `None` if it is undefined or exceeds 64 bits, or if an operand is not a number.
    #[inline]
    pub(super) fn of(self, left: &Plain<'_>, right: &Plain<'_>) -> Option<Plain<'static>> {
        if let (Plain::Whole(left), Plain::Whole(right)) = (left, right) {
            let result = match self {
                Self::Plus => left.checked_add(*right),
                Self::Minus => left.checked_sub(*right),
                Self::Times => left.checked_mul(*right),
                Self::Over => left.checked_div(*right),
                // The division of `i64::MIN` by -1 overflows, but its remainder is 0.
                Self::Modulo => (*right != 0).then(|| left.wrapping_rem(*right)),
            };
            return result.map(Plain::Whole);
        }
        let (left, right) = (left.float()?, right.float()?);
        Some(Plain::Number(match self {
            Self::Plus => left + right,
            Self::Minus => left - right,
            Self::Times => left * right,
            Self::Over => left / right,
            Self::Modulo => left % right,
        }))
    }
}

impl Function {
    /// Returns the result of a call; `None` if an argument is of the wrong kind.
    #[inline]
    pub(super) fn of(self, first: &Plain<'_>, second: Option<&Plain<'_>>) -> Option<Plain<'static>> {
        match (self, first, second) {
            (Self::Length, Plain::Text(text), _) => Some(Plain::Whole(text.len() as i64)),
            (Self::Number, Plain::Text(text), _) => number(text),
            (Self::Number, Plain::Whole(number), _) => Some(Plain::Whole(*number)),
            (Self::Number, Plain::Number(number), _) => Some(Plain::Number(*number)),
            (Self::Contains, Plain::Text(text), Some(Plain::Text(searched))) => {
                Some(Plain::Truth(memmem::find(text, searched).is_some()))
            }
            (Self::Starts, Plain::Text(text), Some(Plain::Text(part))) => Some(Plain::Truth(text.starts_with(part))),
            _ => None,
        }
    }
}

/// The maximum number of digits that always fit into 64 bits.
const DIGITS: usize = 18;

/// Parses a text as a number.
#[inline]
fn number(text: &[u8]) -> Option<Plain<'static>> {
    if !(1..=DIGITS).contains(&text.len()) {
        return number_of_any_form(text);
    }
    let mut number = 0_i64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return number_of_any_form(text);
        }
        number = number * 10 + i64::from(digit);
    }
    Some(Plain::Whole(number))
}

fn number_of_any_form(text: &[u8]) -> Option<Plain<'static>> {
    let text = str::from_utf8(text).ok()?.trim();
    if let Ok(whole) = text.parse() {
        return Some(Plain::Whole(whole));
    }
    // Words such as `inf` and `nan`, and numbers too large for a float, are not accepted: they would make every later sum
    // useless.
    text.parse().ok().filter(|number| f64::is_finite(*number)).map(Plain::Number)
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Times => "*",
            Self::Over => "/",
            Self::Modulo => "%",
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "==",
            Self::Different => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}
