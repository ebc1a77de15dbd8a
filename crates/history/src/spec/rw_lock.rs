//! A reader-writer lock: one writer holds it, or any number of readers.

use super::{Call, Spec};
use crate::operation::Op;
use crate::value::Value;

/// The lock. A reader that holds the lock may acquire it again; a writer may not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RwLock;

/// The holders of the lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Holders {
    writer: Option<u32>,
    /// Ascending. A process occurs once for each time that it acquired the lock.
    readers: Vec<u32>,
}

impl Spec for RwLock {
    type State = Holders;

    fn initial(&self) -> Holders {
        Holders::default()
    }

    fn step(&self, holders: &Holders, call: &Call<'_>) -> Option<Holders> {
        let Holders { writer, readers } = holders;
        let process = call.process;
        match call.op {
            Op::ACQUIRE if writer.is_none() && readers.is_empty() => {
                call.agrees().then(|| Holders { writer: Some(process), readers: Vec::new() })
            }
            Op::ACQUIRE_READ if writer.is_none() => call.agrees().then(|| {
                let mut readers = readers.clone();
                readers.insert(readers.partition_point(|&reader| reader < process), process);
                Holders { writer: None, readers }
            }),
            Op::ACQUIRE | Op::ACQUIRE_READ => call.answers(Value::FALSE).then(|| holders.clone()),
            Op::RELEASE => (*writer == Some(process)).then(Holders::default),
            _ => readers.binary_search(&process).ok().map(|position| {
                let mut readers = readers.clone();
                readers.remove(position);
                Holders { writer: None, readers }
            }),
        }
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        matches!(call.op, Op::ACQUIRE | Op::ACQUIRE_READ) && call.output == Some(Value::FALSE)
    }

    fn state_bytes(&self, state: &Holders) -> usize {
        size_of::<Holders>() + size_of_val(state.readers.as_slice())
    }
}
