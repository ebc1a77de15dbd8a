//! A key-value store: a register for each key. Values can be deleted, and strings can be appended to.
//!
//! Every order of overlapping appends results in a different string. Most of these strings are not a prefix of any
//! string that the history reads or expects. All such strings behave in the same way, so they are represented by one
//! state, which the search visits once.

use rustc_hash::FxHashSet;

use super::{Call, Spec};
use crate::operation::Op;
use crate::part::Part;
use crate::value::{Datum, Value, Values};

/// The store. Each key is a separate object.
#[derive(Clone, Debug)]
pub(crate) struct KeyValue<'a> {
    initial: Value,
    values: &'a Values,
    /// The strings that a read returns or a compare-and-set expects, ascending.
    texts: Vec<&'a str>,
    /// The other values that a read returns or a compare-and-set expects.
    others: FxHashSet<Value>,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Held {
    Value(Value),
    /// A string that is a prefix of some string that is read or expected.
    Text(Box<str>),
    /// A string that is not a prefix of any string that is read or expected.
    UnreadText,
    /// A value that is not a string, and that no operation returns or expects.
    UnreadValue,
}

impl<'a> KeyValue<'a> {
    pub(crate) fn new(initial: Value, part: &Part<'a>) -> Self {
        let values = part.history().values();
        let told = (0..part.len()).filter_map(|p| match part.op(p) {
            Op::READ => part.output(p),
            Op::CAS => values.as_pair(part.input(p)).map(|[old, _]| old),
            _ => None,
        });
        let told: FxHashSet<Value> = told.collect();
        let mut texts = Vec::new();
        let mut others = FxHashSet::default();
        for value in told {
            match values.get(value) {
                Datum::Text(text) => texts.push(text),
                _ => {
                    others.insert(value);
                }
            }
        }
        texts.sort_unstable();
        KeyValue { initial, values, texts, others }
    }

    fn held(&self, value: Value) -> Held {
        match self.values.get(value) {
            Datum::Text(text) => self.text(text),
            // A string can be appended to null, so null is a separate state.
            Datum::Null => Held::Value(value),
            _ if self.others.contains(&value) => Held::Value(value),
            _ => Held::UnreadValue,
        }
    }

    fn text(&self, text: &str) -> Held {
        let next = self.texts.partition_point(|&told| told < text);
        let is_told = self.texts.get(next).is_some_and(|told| told.starts_with(text));
        if is_told { Held::Text(text.into()) } else { Held::UnreadText }
    }

    fn is(&self, held: &Held, value: Value) -> bool {
        match held {
            Held::Value(held) => *held == value,
            Held::Text(held) => self.values.get(value) == Datum::Text(held),
            Held::UnreadText | Held::UnreadValue => false,
        }
    }
}

impl Spec for KeyValue<'_> {
    type State = Held;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> Held {
        self.held(self.initial)
    }

    fn step(&self, held: &Held, call: &Call<'_>) -> Option<Held> {
        let values = call.values;
        match call.op {
            Op::READ => call.output.is_none_or(|output| self.is(held, output)).then(|| held.clone()),
            Op::WRITE => Some(self.held(call.input)),
            Op::DELETE => Some(Held::Value(Value::NULL)),
            Op::APPEND => match (held, values.get(call.input)) {
                (Held::Text(text), Datum::Text(more)) => Some(self.text(&[text, more].concat())),
                (Held::Value(Value::NULL), Datum::Text(more)) => Some(self.text(more)),
                (Held::UnreadText, Datum::Text(_)) => Some(Held::UnreadText),
                _ => None,
            },
            _ => {
                let [old, new] = values.as_pair(call.input)?;
                let done = self.is(held, old);
                call.answers(done.into()).then(|| if done { self.held(new) } else { held.clone() })
            }
        }
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        call.op == Op::READ || call.op == Op::CAS && call.output == Some(Value::FALSE)
    }

    fn state_bytes(&self, state: &Held) -> usize {
        size_of::<Held>() + if let Held::Text(text) = state { text.len() } else { 0 }
    }

    fn describe(&self, state: &Held, values: &Values) -> String {
        match state {
            Held::Value(value) => values.show(*value).to_string(),
            Held::Text(text) => format!("{text:?}"),
            Held::UnreadText => "a text that no answer begins with".to_owned(),
            Held::UnreadValue => "a value that no operation reads".to_owned(),
        }
    }
}
