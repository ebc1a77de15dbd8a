//! A key-value store: for each key a register whose value can also be deleted, or be a text that is appended to.

use super::{Call, Spec};
use crate::operation::Op;
use crate::value::{Datum, Value, Values};

/// The store; each key is an object of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyValue {
    pub(crate) initial: Value,
}

/// What a key holds. A text is here in full: it may be one that no operation has as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Held {
    Value(Value),
    Text(Box<str>),
}

impl Held {
    fn new(value: Value, values: &Values) -> Held {
        match values.get(value) {
            Datum::Text(text) => Held::Text(text.into()),
            _ => Held::Value(value),
        }
    }

    fn is(&self, value: Value, values: &Values) -> bool {
        match self {
            Held::Value(held) => *held == value,
            Held::Text(held) => values.get(value) == Datum::Text(held),
        }
    }
}

impl Spec for KeyValue {
    type State = Held;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> Held {
        Held::Value(self.initial)
    }

    fn step(&self, held: &Held, call: &Call<'_>) -> Option<Held> {
        let values = call.values;
        match call.op {
            Op::READ => call.output.is_none_or(|output| held.is(output, values)).then(|| held.clone()),
            Op::WRITE => Some(Held::new(call.input, values)),
            Op::DELETE => Some(Held::Value(Value::NULL)),
            Op::APPEND => match (held, values.get(call.input)) {
                (Held::Text(text), Datum::Text(more)) => Some(Held::Text([text, more].concat().into())),
                (Held::Value(Value::NULL), Datum::Text(more)) => Some(Held::Text(more.into())),
                _ => None,
            },
            _ => {
                let [old, new] = values.as_pair(call.input)?;
                let done = held.is(old, values);
                call.answers(done.into()).then(|| if done { Held::new(new, values) } else { held.clone() })
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
        }
    }
}
