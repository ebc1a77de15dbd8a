//! Pairs calls and returns by process into operations. The number of an event is its time.

use std::collections::HashMap;

use super::error::{FormatError, Problem};
use crate::builder::Builder;
use crate::history::History;
use crate::model::Kind;
use crate::operation::{Op, Operation, Status};
use crate::spec::takes_nothing;
use crate::value::Value;

/// The effect of an event on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Call,
    Return(Status),
}

/// The open operation of each process, and the history of the operations that returned.
pub(super) struct Events {
    builder: Builder,
    kind: Option<Kind>,
    open: HashMap<u32, (Operation, u64)>,
    time: u64,
}

impl Events {
    pub(super) fn new(kind: Option<Kind>) -> Self {
        Events { builder: Builder::new(), kind, open: HashMap::new(), time: 0 }
    }

    /// The kind of the history, if it is known.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.kind
    }

    pub(super) fn builder(&mut self) -> &mut Builder {
        &mut self.builder
    }

    /// Adds the process's next event. `operation` has the input of a call or the output of a return.
    pub(super) fn event(&mut self, event: Event, operation: Operation, line: u64) -> Result<(), FormatError> {
        self.time += 1;
        match event {
            Event::Call => self.call(operation, line),
            Event::Return(status) => self.ret(status, operation, line),
        }
        .map_err(|problem| problem.at(line))
    }

    fn call(&mut self, operation: Operation, line: u64) -> Result<(), Problem> {
        let process = operation.process;
        if let Some((_, earlier)) = self.open.get(&process) {
            return Err(Problem::TwoAtOnce { process, earlier: *earlier });
        }
        // Some logs write the answer both at the call and at the return. So the value at the call is ignored if the
        // operation takes no input.
        let answered = self.kind.is_some_and(|kind| takes_nothing(kind, operation.op));
        let input = if answered { Value::NULL } else { operation.input };
        self.open.insert(process, (Operation { call: self.time, input, output: Value::NULL, ..operation }, line));
        Ok(())
    }

    fn ret(&mut self, status: Status, returned: Operation, line: u64) -> Result<(), Problem> {
        let process = returned.process;
        let (called, earlier) = self.open.remove(&process).ok_or(Problem::ReturnWithoutCall { process })?;
        if called.op != returned.op {
            let [returned, called] = [returned.op, called.op].map(|op| self.builder.op_name(op).to_owned());
            return Err(Problem::ReturnFromAnother { process, returned, called, earlier });
        }
        let output = output(&called, returned.output);
        self.push(Operation { ret: Some(self.time), status, output, ..called }, line)
    }

    fn push(&mut self, operation: Operation, line: u64) -> Result<(), Problem> {
        debug_assert!(line > 0);
        if let Some(kind) = self.kind {
            self.builder.accept(kind, &operation)?;
        }
        Ok(self.builder.push(operation)?)
    }

    /// Builds the history; operations without a return are pending.
    pub(super) fn finish(mut self, line: u64) -> Result<History, FormatError> {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_by_key(|(operation, _)| operation.call);
        for (operation, line) in open {
            self.push(operation, line).map_err(|problem| problem.at(line))?;
        }
        self.builder.finish().map_err(|contradiction| Problem::Contradiction(contradiction).at(line))
    }
}

/// The answer of an operation. By convention, if an operation has no answer but success, its return repeats the input.
/// The answer is then null, or true for a compare-and-set.
fn output(called: &Operation, value: Value) -> Value {
    match called.op {
        Op::CAS if value == called.input => Value::TRUE,
        Op::TXN => value,
        _ if value == called.input => Value::NULL,
        _ => value,
    }
}
