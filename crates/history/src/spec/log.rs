//! A log: entries are added at the end, and never move.

use super::list::List;
use super::{Call, Spec};
use crate::operation::Op;
use crate::value::Value;

/// The log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log;

impl Log {
    /// The answer of a read: the entry at the index, or null beyond the end.
    fn entry(log: &List, index: i64) -> Value {
        let from_the_end = usize::try_from(index).ok().and_then(|index| log.len().checked_sub(index + 1));
        from_the_end.and_then(|n| log.iter().nth(n)).unwrap_or(Value::NULL)
    }
}

impl Spec for Log {
    type State = List;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> List {
        List::default()
    }

    fn step(&self, log: &List, call: &Call<'_>) -> Option<List> {
        if call.op == Op::APPEND {
            let told = call.output != Some(Value::NULL);
            return (!told || call.answers_int(log.len() as i128)).then(|| log.push(call.input));
        }
        let right = match (call.output, call.input.as_int()) {
            (None, _) => true,
            (Some(output), Some(index)) => output == Self::entry(log, index),
            (Some(output), None) => {
                let entries = call.values.as_list(output)?;
                entries.len() == log.len() && entries.iter().rev().copied().eq(log.iter())
            }
        };
        right.then(|| log.clone())
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        call.op == Op::READ
    }

    fn state_bytes(&self, _: &List) -> usize {
        // A new state adds one node to the state from which it was made.
        size_of::<List>() + List::NODE_BYTES
    }
}
