//! Formulas: values computed from `it` and `acc`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use memchr::memmem::{self, Finder};

use super::parser::{Expr, Kind};
use super::problem::Problem;
use super::value::{MAX_TEXT, Value};

/// A formula with resolved names and functions.
#[derive(Debug, Clone)]
pub(super) struct Formula(Part);

#[derive(Debug, Clone)]
enum Part {
    It,
    Acc,
    Constant(Value),
    Field(Box<Part>, String),
    Index(Box<Part>, Box<Part>),
    Not(Box<Part>),
    And(Box<Part>, Box<Part>),
    Or(Box<Part>, Box<Part>),
    Compare(Comparison, Box<Part>, Box<Part>),
    Arithmetic(Sign, Box<Part>, Box<Part>),
    /// Whether a text contains a constant one.
    Finds(Box<Part>, Box<Finder<'static>>),
    Call(Function, Vec<Part>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Length,
    Number,
    Contains,
    Starts,
}

const FUNCTIONS: [(&str, Function, usize); 4] = [
    ("length", Function::Length, 1),
    ("number", Function::Number, 1),
    ("contains", Function::Contains, 2),
    ("starts", Function::Starts, 2),
];

impl Formula {
    /// Resolves an expression to a formula; `acc` says whether there is a state.
    pub(super) fn of(expr: &Expr, acc: bool) -> Result<Self, Problem> {
        part(expr, acc).map(Self)
    }

    /// Returns whether the formula is true.
    pub(super) fn is_true(&self, it: &Value) -> Result<bool, String> {
        self.0.is_true(it, &Value::Empty)
    }

    /// Computes a value in place of another.
    pub(super) fn write(&self, it: &Value, acc: &Value, into: &mut Value) -> Result<(), String> {
        match self.0.value(it, acc)? {
            Cow::Borrowed(value) => into.clone_from(value),
            Cow::Owned(value) => *into = value,
        }
        Ok(())
    }
}

fn part(expr: &Expr, acc: bool) -> Result<Part, Problem> {
    let boxed = |expr: &Expr| part(expr, acc).map(Box::new);
    Ok(match &expr.kind {
        Kind::Name(name) => match name.as_str() {
            "it" => Part::It,
            "acc" if acc => Part::Acc,
            "true" => Part::Constant(Value::Truth(true)),
            "false" => Part::Constant(Value::Truth(false)),
            "empty" => Part::Constant(Value::Empty),
            _ => {
                let known = if acc { "`it`, `acc`" } else { "`it`" };
                let message = format!(
                    "`{name}` is not a value here; expected {known}, `true`, `false`, `empty`, a number or a text"
                );
                let help = "a value is computed from `it`, the stream's value; use `zip` to combine streams";
                return Err(Problem::new(message, expr.span.clone(), "unknown").help(help));
            }
        },
        Kind::Number(number) => Part::Constant(Value::Whole(*number)),
        Kind::Text(text) => Part::Constant(Value::Text(text.clone().into_bytes())),
        Kind::Field(value, name) => Part::Field(boxed(value)?, name.clone()),
        Kind::Index(value, index) => Part::Index(boxed(value)?, boxed(index)?),
        Kind::Unary("not", value) => Part::Not(boxed(value)?),
        Kind::Unary(_, value) => {
            Part::Arithmetic(Sign::Minus, Box::new(Part::Constant(Value::Whole(0))), boxed(value)?)
        }
        Kind::Binary(sign, left, right) => {
            let (left, right) = (boxed(left)?, boxed(right)?);
            match *sign {
                "and" => Part::And(left, right),
                "or" => Part::Or(left, right),
                "==" => Part::Compare(Comparison::Equal, left, right),
                "!=" => Part::Compare(Comparison::Different, left, right),
                "<" => Part::Compare(Comparison::Less, left, right),
                "<=" => Part::Compare(Comparison::LessOrEqual, left, right),
                ">" => Part::Compare(Comparison::Greater, left, right),
                ">=" => Part::Compare(Comparison::GreaterOrEqual, left, right),
                "+" => Part::Arithmetic(Sign::Plus, left, right),
                "-" => Part::Arithmetic(Sign::Minus, left, right),
                "*" => Part::Arithmetic(Sign::Times, left, right),
                "/" => Part::Arithmetic(Sign::Over, left, right),
                _ => Part::Arithmetic(Sign::Modulo, left, right),
            }
        }
        Kind::Call(name, arguments) => {
            let Some((_, function, count)) = FUNCTIONS.iter().find(|(known, _, _)| known == name) else {
                let known: Vec<_> = FUNCTIONS.iter().map(|(known, _, _)| format!("`{known}`")).collect();
                let message = format!("`{name}` is not a function of values; expected {}", known.join(", "));
                return Err(Problem::new(message, expr.span.clone(), "unknown"));
            };
            if arguments.len() != *count {
                let message = format!("`{name}` takes {count} value(s), found {}", arguments.len());
                return Err(Problem::new(message, expr.span.clone(), "here"));
            }
            let mut parts = arguments.iter().map(|argument| part(argument, acc)).collect::<Result<Vec<_>, _>>()?;
            match (function, &parts[..]) {
                (Function::Contains, [_, Part::Constant(Value::Text(searched))]) => {
                    let finder = Box::new(Finder::new(searched).into_owned());
                    Part::Finds(Box::new(parts.swap_remove(0)), finder)
                }
                _ => Part::Call(*function, parts),
            }
        }
    })
}

impl Part {
    fn is_true(&self, it: &Value, acc: &Value) -> Result<bool, String> {
        let value = self.value(it, acc)?;
        truth(&value)
    }

    fn value<'a>(&'a self, it: &'a Value, acc: &'a Value) -> Result<Cow<'a, Value>, String> {
        Ok(match self {
            Self::It => Cow::Borrowed(it),
            Self::Acc => Cow::Borrowed(acc),
            Self::Constant(value) => Cow::Borrowed(value),
            Self::Field(value, name) => field(value.value(it, acc)?, name)?,
            Self::Index(value, index) => {
                let index = index.value(it, acc)?;
                at(value.value(it, acc)?, &index)?
            }
            Self::Not(value) => Cow::Owned(Value::Truth(!value.is_true(it, acc)?)),
            Self::And(left, right) => Cow::Owned(Value::Truth(left.is_true(it, acc)? && right.is_true(it, acc)?)),
            Self::Or(left, right) => Cow::Owned(Value::Truth(left.is_true(it, acc)? || right.is_true(it, acc)?)),
            Self::Compare(comparison, left, right) => {
                let (left, right) = (left.value(it, acc)?, right.value(it, acc)?);
                Cow::Owned(Value::Truth(compare(*comparison, &left, &right)?))
            }
            Self::Arithmetic(sign, left, right) => {
                let (left, right) = (left.value(it, acc)?, right.value(it, acc)?);
                Cow::Owned(arithmetic(*sign, &left, &right)?)
            }
            Self::Finds(text, finder) => match &*text.value(it, acc)? {
                Value::Text(text) => Cow::Owned(Value::Truth(finder.find(text).is_some())),
                other => return Err(unfit(Function::Contains, other)),
            },
            Self::Call(function, arguments) => {
                let first = arguments[0].value(it, acc)?;
                let second = arguments.get(1).map(|second| second.value(it, acc)).transpose()?;
                Cow::Owned(call(*function, &first, second.as_deref())?)
            }
        })
    }
}

fn truth(value: &Value) -> Result<bool, String> {
    match value {
        Value::Truth(truth) => Ok(*truth),
        other => Err(format!("expected true or false, found {}", other.kind())),
    }
}

fn field<'a>(value: Cow<'a, Value>, name: &str) -> Result<Cow<'a, Value>, String> {
    let place = match &*value {
        Value::Fields(fields) => fields.iter().position(|(known, _)| known == name),
        other => return Err(format!("{} has no field `{name}`", other.kind())),
    };
    let place = place.ok_or_else(|| format!("the value has no field `{name}`"))?;
    Ok(match value {
        Cow::Borrowed(Value::Fields(fields)) => Cow::Borrowed(&fields[place].1),
        Cow::Owned(Value::Fields(mut fields)) => Cow::Owned(fields.swap_remove(place).1),
        _ => unreachable!("others were refused"),
    })
}

fn at<'a>(value: Cow<'a, Value>, index: &Value) -> Result<Cow<'a, Value>, String> {
    let Value::Whole(index) = index else {
        return Err(format!("expected a number as the index, found {}", index.kind()));
    };
    let length = match &*value {
        Value::List(list) => list.len(),
        other => return Err(format!("{} has no index; expected a list", other.kind())),
    };
    let place = usize::try_from(*index).ok().filter(|place| *place < length);
    let place = place.ok_or_else(|| format!("no value at {index} of a list of {length}"))?;
    Ok(match value {
        Cow::Borrowed(Value::List(list)) => Cow::Borrowed(&list[place]),
        Cow::Owned(Value::List(mut list)) => Cow::Owned(list.swap_remove(place)),
        _ => unreachable!("others were refused"),
    })
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

fn arithmetic(sign: Sign, left: &Value, right: &Value) -> Result<Value, String> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) if sign == Sign::Plus => {
            let bytes = left.len() + right.len();
            if bytes > MAX_TEXT {
                return Err(format!("a text of {bytes} bytes; the longest has {MAX_TEXT}"));
            }
            Ok(Value::Text([&left[..], right].concat()))
        }
        (Value::Whole(left), Value::Whole(right)) => {
            let result = match sign {
                Sign::Plus => left.checked_add(*right),
                Sign::Minus => left.checked_sub(*right),
                Sign::Times => left.checked_mul(*right),
                Sign::Over => left.checked_div(*right),
                // The one remainder whose division overflows is exact: it is 0.
                Sign::Modulo => (*right != 0).then(|| left.wrapping_rem(*right)),
            };
            result.map(Value::Whole).ok_or_else(|| {
                if *right == 0 && matches!(sign, Sign::Over | Sign::Modulo) {
                    format!("{left} {sign} 0: division by zero")
                } else {
                    format!("{left} {sign} {right} does not fit into 64 bits")
                }
            })
        }
        _ => {
            let (left, right) = (float(left, &sign)?, float(right, &sign)?);
            Ok(Value::Number(match sign {
                Sign::Plus => left + right,
                Sign::Minus => left - right,
                Sign::Times => left * right,
                Sign::Over => left / right,
                Sign::Modulo => left % right,
            }))
        }
    }
}

fn float(value: &Value, sign: &impl fmt::Display) -> Result<f64, String> {
    match value {
        Value::Whole(number) => Ok(*number as f64),
        Value::Number(number) => Ok(*number),
        Value::Text(_) => Err(format!("`{sign}` expects numbers, found a text; `number(…)` converts it")),
        other => Err(format!("`{sign}` expects numbers, found {}", other.kind())),
    }
}

fn compare(sign: Comparison, left: &Value, right: &Value) -> Result<bool, String> {
    let order = match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Whole(left), Value::Whole(right)) => Some(left.cmp(right)),
        (Value::Whole(_) | Value::Number(_), Value::Whole(_) | Value::Number(_)) => {
            float(left, &sign)?.partial_cmp(&float(right, &sign)?)
        }
        _ if sign == Comparison::Equal => return Ok(left == right),
        _ if sign == Comparison::Different => return Ok(left != right),
        (Value::Text(_), Value::Whole(_) | Value::Number(_)) | (Value::Whole(_) | Value::Number(_), Value::Text(_)) => {
            return Err(format!("`{sign}` compares a text with a number; `number(…)` converts a text to a number"));
        }
        _ => return Err(format!("`{sign}` cannot compare {} with {}", left.kind(), right.kind())),
    };
    Ok(match sign {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::Different => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    })
}

fn call(function: Function, first: &Value, second: Option<&Value>) -> Result<Value, String> {
    match (function, first, second) {
        (Function::Length, Value::Text(text), _) => Ok(Value::Whole(text.len() as i64)),
        (Function::Length, Value::List(list), _) => Ok(Value::Whole(list.len() as i64)),
        (Function::Number, number @ (Value::Whole(_) | Value::Number(_)), _) => Ok(number.clone()),
        (Function::Number, Value::Text(text), _) => number(text),
        (Function::Contains, Value::Text(text), Some(Value::Text(searched))) => {
            Ok(Value::Truth(memmem::find(text, searched).is_some()))
        }
        (Function::Starts, Value::Text(text), Some(Value::Text(part))) => Ok(Value::Truth(text.starts_with(part))),
        (Function::Contains | Function::Starts, Value::Text(_), Some(second)) => Err(unfit(function, second)),
        (function, first, _) => Err(unfit(function, first)),
    }
}

#[cold]
fn unfit(function: Function, value: &Value) -> String {
    let (name, _, _) = FUNCTIONS.iter().find(|(_, known, _)| *known == function).expect("it is in the list");
    format!("`{name}` cannot work on {}", value.kind())
}

/// The most digits whose number always fits into 64 bits.
const DIGITS: usize = 18;

fn number(text: &[u8]) -> Result<Value, String> {
    if (1..=DIGITS).contains(&text.len()) && text.iter().all(u8::is_ascii_digit) {
        return Ok(Value::Whole(text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))));
    }
    let text = str::from_utf8(text).map_err(|error| not_utf8(text, error.valid_up_to()))?.trim();
    if let Ok(whole) = text.parse() {
        return Ok(Value::Whole(whole));
    }
    match text.parse() {
        // Words such as `inf` and `nan`, and numbers that no float holds, would go through every later sum.
        Ok(number) if f64::is_finite(number) => Ok(Value::Number(number)),
        _ if text.is_empty() => Err("an empty text is not a number".to_owned()),
        _ => Err(format!("`{}` is not a number, or too large for one", shown(text))),
    }
}

/// The most characters of a text in a message.
const MAX_SHOWN: usize = 48;

#[cold]
fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cold]
fn not_utf8(text: &[u8], at: usize) -> String {
    format!(
        "byte {} of `{}` is 0x{:02X}, which is not UTF-8; expected a number such as `7` or `-2.5`; `iconv -t UTF-8` \
         converts an input of another encoding",
        at + 1,
        shown(&String::from_utf8_lossy(text)),
        text[at]
    )
}
