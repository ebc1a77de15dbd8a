//! Registers with transactions: all steps of `[["read", "x", 1], ["write", "y", 2]]` take effect at one moment.

use super::{Call, Spec};
use crate::operation::Op;
use crate::value::{Datum, Value, Values};

/// Registers, by the names that transactions use. A history may have several such objects, distinguished by its keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MultiRegister {
    /// The initial value of each register.
    pub(crate) initial: Value,
}

/// One step of a transaction.
pub(super) enum Access {
    Read(Value, Value),
    Write(Value, Value),
}

/// Decodes the step `["read", key, value]` or `["write", key, value]`.
pub(super) fn access(step: Value, values: &Values) -> Option<Access> {
    let &[kind, key, value] = values.as_list(step)? else { return None };
    match values.get(kind) {
        // Jepsen's keywords begin with a colon.
        Datum::Text("read" | "r" | ":read" | ":r") => Some(Access::Read(key, value)),
        Datum::Text("write" | "w" | ":write" | ":w") => Some(Access::Write(key, value)),
        _ => None,
    }
}

impl MultiRegister {
    /// The steps, with the values that were read. A step is `None` if the answer's step differs from the input's.
    fn steps<'a>(call: &Call<'a>) -> impl Iterator<Item = Option<Access>> + use<'a> {
        let values = call.values;
        let asked = values.as_list(call.input).unwrap_or_default();
        let answered = call
            .output
            .filter(|output| !output.is_null())
            .map_or(asked, |output| values.as_list(output).unwrap_or_default());
        let same = asked.len() == answered.len();
        asked.iter().zip(answered.iter().map(Some).chain(std::iter::repeat(None))).map(move |(&asked, answered)| {
            let answered = answered.filter(|_| same).and_then(|&step| access(step, values))?;
            match (access(asked, values)?, &answered) {
                (Access::Read(key, _), Access::Read(same, _)) => (key == *same).then_some(answered),
                (Access::Write(key, value), Access::Write(a, b)) => ((key, value) == (*a, *b)).then_some(answered),
                _ => None,
            }
        })
    }
}

impl Spec for MultiRegister {
    /// The registers written so far, ascending.
    type State = Vec<(Value, Value)>;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> Self::State {
        Vec::new()
    }

    fn step(&self, state: &Self::State, call: &Call<'_>) -> Option<Self::State> {
        debug_assert_eq!(call.op, Op::TXN);
        let mut state = state.clone();
        for step in Self::steps(call) {
            match step? {
                Access::Read(key, value) => {
                    let held = state.binary_search_by_key(&key, |&(key, _)| key).map_or(self.initial, |i| state[i].1);
                    if call.output.is_some() && held != value {
                        return None;
                    }
                }
                Access::Write(key, value) => match state.binary_search_by_key(&key, |&(key, _)| key) {
                    Ok(i) => state[i].1 = value,
                    Err(i) => state.insert(i, (key, value)),
                },
            }
        }
        Some(state)
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        Self::steps(call).all(|step| matches!(step, Some(Access::Read(..))))
    }

    fn state_bytes(&self, state: &Self::State) -> usize {
        size_of_val(state) + size_of_val(state.as_slice())
    }

    fn describe(&self, state: &Self::State, values: &Values) -> String {
        let held: Vec<String> =
            state.iter().map(|&(key, value)| format!("{}: {}", values.show(key), values.show(value))).collect();
        format!("{{{}}}", held.join(", "))
    }
}
