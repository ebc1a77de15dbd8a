//! Formulas: values computed from `it` and `acc`.

use std::borrow::Cow;
use std::fmt;

use memchr::memmem::Finder;

use super::parser::{Expr, Kind};
use super::plain::{Comparison, Function, Plain, Sign};
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
    /// Whether a text contains a constant text.
    Finds(Box<Part>, Box<Finder<'static>>),
    Call(Function, Vec<Part>),
}

const FUNCTIONS: [(&str, Function, usize); 4] = [
    ("length", Function::Length, 1),
    ("number", Function::Number, 1),
    ("contains", Function::Contains, 2),
    ("starts", Function::Starts, 2),
];

impl Formula {
    /// Resolves an expression to a formula; `acc` says whether the formula may use the state `acc`.
    pub(super) fn of(expr: &Expr, acc: bool) -> Result<Self, Problem> {
        part(expr, acc).map(Self)
    }

    /// Returns whether the formula is true.
    pub(super) fn is_true(&self, it: &Value) -> Result<bool, String> {
        match self.0.plain(it, &Value::Empty) {
            Some(Plain::Truth(truth)) => Ok(truth),
            _ => self.0.is_true(it, &Value::Empty),
        }
    }

    /// Computes the formula's value and writes it to `into`.
    pub(super) fn write(&self, it: &Value, acc: &Value, into: &mut Value) -> Result<(), String> {
        if let Some(plain) = self.0.plain(it, acc) {
            plain.write(into);
            return Ok(());
        }
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
        Kind::Decimal(number) => Part::Constant(Value::Number(number.parse().expect("the lexer has parsed it"))),
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
    /// Returns the formula's value if it and all intermediate values are plain; `None` otherwise, and for errors.
    #[inline(always)]
    fn plain<'a>(&'a self, it: &'a Value, acc: &'a Value) -> Option<Plain<'a>> {
        // Names and constants cost no call.
        match self {
            Self::It => Plain::of(it),
            Self::Acc => Plain::of(acc),
            Self::Constant(value) => Plain::of(value),
            _ => self.computed(it, acc),
        }
    }

    fn computed<'a>(&'a self, it: &'a Value, acc: &'a Value) -> Option<Plain<'a>> {
        match self {
            Self::It | Self::Acc | Self::Constant(_) => self.plain(it, acc),
            Self::Field(..) | Self::Index(..) => Plain::of(self.place(it, acc)?),
            Self::Not(value) => Some(Plain::Truth(!value.plain(it, acc)?.truth()?)),
            Self::And(left, right) => {
                Some(Plain::Truth(left.plain(it, acc)?.truth()? && right.plain(it, acc)?.truth()?))
            }
            Self::Or(left, right) => {
                Some(Plain::Truth(left.plain(it, acc)?.truth()? || right.plain(it, acc)?.truth()?))
            }
            Self::Compare(comparison, left, right) => {
                Some(Plain::Truth(comparison.holds(left.plain(it, acc)?.order(&right.plain(it, acc)?)?)))
            }
            Self::Arithmetic(sign, left, right) => sign.of(&left.plain(it, acc)?, &right.plain(it, acc)?),
            Self::Finds(text, finder) => match text.plain(it, acc)? {
                Plain::Text(text) => Some(Plain::Truth(finder.find(text).is_some())),
                _ => None,
            },
            Self::Call(function, arguments) => {
                let second = match arguments.get(1) {
                    Some(second) => Some(second.plain(it, acc)?),
                    None => None,
                };
                function.of(&arguments[0].plain(it, acc)?, second.as_ref())
            }
        }
    }

    /// Returns a value that exists already and need not be computed.
    #[inline]
    fn place<'a>(&'a self, it: &'a Value, acc: &'a Value) -> Option<&'a Value> {
        match self {
            Self::It => Some(it),
            Self::Acc => Some(acc),
            Self::Constant(value) => Some(value),
            Self::Field(value, name) => match value.place(it, acc)? {
                Value::Fields(fields) => fields.iter().find(|(known, _)| known == name).map(|(_, value)| value),
                _ => None,
            },
            Self::Index(value, index) => match (value.place(it, acc)?, index.plain(it, acc)?) {
                (Value::List(list), Plain::Whole(index)) => list.get(usize::try_from(index).ok()?),
                _ => None,
            },
            _ => None,
        }
    }

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
    let place = place.ok_or_else(|| format!("no value at index {index} of a list of {length}"))?;
    Ok(match value {
        Cow::Borrowed(Value::List(list)) => Cow::Borrowed(&list[place]),
        Cow::Owned(Value::List(mut list)) => Cow::Owned(list.swap_remove(place)),
        _ => unreachable!("others were refused"),
    })
}

fn arithmetic(sign: Sign, left: &Value, right: &Value) -> Result<Value, String> {
    if let (Value::Text(left), Value::Text(right), Sign::Plus) = (left, right, sign) {
        let bytes = left.len() + right.len();
        if bytes > MAX_TEXT {
            return Err(format!("a text of {bytes} bytes; expected at most {MAX_TEXT}"));
        }
        return Ok(Value::Text([&left[..], right].concat()));
    }
    let plain = Plain::of(left).zip(Plain::of(right)).and_then(|(left, right)| sign.of(&left, &right));
    plain.map(Plain::value).ok_or_else(|| no_result(sign, left, right))
}

#[cold]
fn no_result(sign: Sign, left: &Value, right: &Value) -> String {
    match (left, right) {
        (Value::Whole(left), Value::Whole(0)) if matches!(sign, Sign::Over | Sign::Modulo) => {
            format!("{left} {sign} 0: division by zero")
        }
        (Value::Whole(left), Value::Whole(right)) => format!("{left} {sign} {right} does not fit into 64 bits"),
        (Value::Whole(_) | Value::Number(_), other) | (other, _) => not_a_number(other, &sign),
    }
}

fn not_a_number(value: &Value, sign: &impl fmt::Display) -> String {
    match value {
        Value::Text(_) => format!("`{sign}` expects numbers, found a text; `number(…)` converts it"),
        other => format!("`{sign}` expects numbers, found {}", other.kind()),
    }
}

fn compare(sign: Comparison, left: &Value, right: &Value) -> Result<bool, String> {
    if let Some(order) = Plain::of(left).zip(Plain::of(right)).and_then(|(left, right)| left.order(&right)) {
        return Ok(sign.holds(order));
    }
    match (left, right) {
        _ if sign == Comparison::Equal => Ok(left == right),
        _ if sign == Comparison::Different => Ok(left != right),
        (Value::Text(_), Value::Whole(_) | Value::Number(_)) | (Value::Whole(_) | Value::Number(_), Value::Text(_)) => {
            Err(format!("`{sign}` compares a text with a number; `number(…)` converts a text to a number"))
        }
        _ => Err(format!("`{sign}` cannot compare {} with {}", left.kind(), right.kind())),
    }
}

fn call(function: Function, first: &Value, second: Option<&Value>) -> Result<Value, String> {
    let plain = Plain::of(first).and_then(|first| function.of(&first, second.and_then(Plain::of).as_ref()));
    match (plain, function, first, second) {
        (Some(plain), ..) => Ok(plain.value()),
        (None, Function::Length, Value::List(list), _) => Ok(Value::Whole(list.len() as i64)),
        (None, Function::Number, Value::Text(text), _) => Err(not_a_text_of_a_number(text)),
        (None, Function::Contains | Function::Starts, Value::Text(_), Some(second)) => Err(unfit(function, second)),
        (None, function, first, _) => Err(unfit(function, first)),
    }
}

#[cold]
fn unfit(function: Function, value: &Value) -> String {
    let (name, _, _) = FUNCTIONS.iter().find(|(_, known, _)| *known == function).expect("it is in the list");
    format!("`{name}` cannot work on {}", value.kind())
}

#[cold]
fn not_a_text_of_a_number(text: &[u8]) -> String {
    match str::from_utf8(text) {
        Err(error) => not_utf8(text, error.valid_up_to()),
        Ok(text) if text.trim().is_empty() => "an empty text is not a number".to_owned(),
        Ok(text) => format!("`{}` is not a number, or too large for one", shown(text.trim())),
    }
}

/// The maximum number of characters of a text in a message.
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
