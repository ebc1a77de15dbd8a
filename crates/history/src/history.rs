//! A history: operations in order of their calls, stored in columns.
//!
//! Ten million operations take about 400 MB. The column of keys is empty if no operation has a key. Row `i` is the
//! `i`-th operation by time of call; operations with equal times keep the order in which they were pushed.

use std::fmt;

use crate::operation::{Op, Operation, Status};
use crate::value::{Value, Values};

/// The return time of an operation that has not returned or whose outcome is unknown.
pub const PENDING: u64 = u64::MAX;

/// Operations on an object, with the times of their calls and returns.
///
/// Operation `a` precedes `b` if `a` returned at an earlier time than `b` was called. If the two times are equal,
/// either order is possible, because a coarse clock does not show which event came first. This applies even within one
/// process. Equal times can therefore make a history legal, but never illegal. If your clock is coarse, number the
/// events instead.
///
/// Histories come from a [`Builder`](crate::Builder), from [`format::read`](crate::format::read) or from a recorder.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(crate) process: Vec<u32>,
    pub(crate) op: Vec<Op>,
    pub(crate) status: Vec<Status>,
    /// Empty if no operation has a key.
    pub(crate) key: Vec<Option<Value>>,
    pub(crate) input: Vec<Value>,
    pub(crate) output: Vec<Value>,
    pub(crate) call: Vec<u64>,
    /// `PENDING` if the operation has not returned.
    pub(crate) ret: Vec<u64>,
    /// The maximum difference between the processes' clocks.
    pub(crate) skew: u64,
    pub(crate) values: Values,
    /// Operation names beyond the constants of [`Op`].
    pub(crate) names: Vec<String>,
}

impl History {
    /// The number of operations.
    pub fn len(&self) -> usize {
        self.call.len()
    }

    /// Whether the history has no operations.
    pub fn is_empty(&self) -> bool {
        self.call.is_empty()
    }

    /// The process of the operation.
    #[inline]
    pub fn process(&self, row: usize) -> u32 {
        self.process[row]
    }

    /// The name of the operation.
    #[inline]
    pub fn op(&self, row: usize) -> Op {
        self.op[row]
    }

    /// The object of the operation, in a history of several objects.
    #[inline]
    pub fn key(&self, row: usize) -> Option<Value> {
        self.key.get(row).copied().flatten()
    }

    /// The input of the operation.
    #[inline]
    pub fn input(&self, row: usize) -> Value {
        self.input[row]
    }

    /// The output of the operation; meaningless unless the status is [`Status::Ok`].
    #[inline]
    pub fn output(&self, row: usize) -> Value {
        self.output[row]
    }

    /// The time of the call.
    #[inline]
    pub fn call(&self, row: usize) -> u64 {
        self.call[row]
    }

    /// The time by which the operation has taken effect according to every process's clock: its return plus the
    /// [`skew`](Self::skew), or [`PENDING`] if its outcome is unknown.
    #[inline]
    pub fn ret(&self, row: usize) -> u64 {
        if self.status[row] == Status::Info { PENDING } else { self.ret[row].saturating_add(self.skew) }
    }

    /// The maximum difference between the processes' clocks. If an operation returned less than this before another was
    /// called, the two may have taken effect in either order.
    pub fn skew(&self) -> u64 {
        self.skew
    }

    /// The time on the caller's own clock at which the caller continued, whether or not it knew the outcome.
    #[inline]
    pub fn returned_at(&self, row: usize) -> Option<u64> {
        (self.ret[row] != PENDING).then_some(self.ret[row])
    }

    /// The status of its outcome.
    #[inline]
    pub fn status(&self, row: usize) -> Status {
        self.status[row]
    }

    /// The whole operation.
    pub fn get(&self, row: usize) -> Operation {
        Operation {
            process: self.process[row],
            op: self.op[row],
            key: self.key(row),
            input: self.input[row],
            output: self.output[row],
            call: self.call[row],
            ret: self.returned_at(row),
            status: self.status[row],
        }
    }

    /// The values that do not fit into a word.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The name of an operation in files.
    pub fn op_name(&self, op: Op) -> &str {
        op_name(&self.names, op)
    }

    /// The processes, ascending.
    pub fn processes(&self) -> Vec<u32> {
        let mut processes = self.process.clone();
        processes.sort_unstable();
        processes.dedup();
        processes
    }

    /// Formats the operation as a call: `enqueue(17)`, `dequeue() -> 17`, `read() -> ?`.
    pub fn show(&self, row: usize) -> impl fmt::Display + '_ {
        Shown { history: self, row }
    }
}

pub(crate) fn op_name(names: &[String], op: Op) -> &str {
    let number = usize::from(op.0);
    Op::NAMES.get(number).copied().unwrap_or_else(|| &names[number - Op::NAMES.len()])
}

struct Shown<'a> {
    history: &'a History,
    row: usize,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { history, row } = *self;
        let values = history.values();
        if let Some(key) = history.key(row) {
            write!(f, "{}.", values.show(key))?;
        }
        write!(f, "{}(", history.op_name(history.op(row)))?;
        if !history.input(row).is_null() {
            write!(f, "{}", values.show(history.input(row)))?;
        }
        f.write_str(")")?;
        match history.status(row) {
            Status::Fail => f.write_str(" failed"),
            Status::Info => f.write_str(" -> ?"),
            Status::Ok if history.output(row).is_null() && !answers(history.op(row)) => Ok(()),
            Status::Ok => write!(f, " -> {}", values.show(history.output(row))),
        }
    }
}

/// Whether a null output is an answer of the operation, and not a missing answer.
fn answers(op: Op) -> bool {
    matches!(op, Op::READ | Op::DEQUEUE | Op::POP | Op::DELETE_MIN | Op::ALLOC | Op::GET | Op::FETCH_ADD | Op::CONSUME)
}
