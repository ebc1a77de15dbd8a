//! Construction of a history, and the contradictions that it rejects.

use std::collections::HashMap;

use thiserror::Error;

use crate::history::{History, PENDING, op_name};
use crate::operation::{Op, Operation, Status};
use crate::value::Values;

/// Operations that no execution can contain.
///
/// Operations are numbered from 0 in the order in which they were pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Contradiction {
    /// An operation returned before it was called.
    #[error("the operation returned at {ret}, before it was called at {call}")]
    ReturnBeforeCall {
        /// The number of the operation.
        operation: usize,
        /// The time of its call.
        call: u64,
        /// The time of its return.
        ret: u64,
    },
    /// A process called an operation before its previous one had returned.
    #[error(
        "process {process} called an operation at {call}, but the one it called at {earlier_call} had not returned"
    )]
    TwoAtOnce {
        /// The process.
        process: u32,
        /// The number of the operation that was called first.
        earlier: usize,
        /// The time of that call.
        earlier_call: u64,
        /// The number of the operation that was called second.
        operation: usize,
        /// The time of that call.
        call: u64,
    },
    /// A time equals the value that represents "never".
    #[error("the time {PENDING} is reserved for \"never\"")]
    TimeTooLarge {
        /// The number of the operation.
        operation: usize,
    },
    /// The history has more operations than rows can number.
    #[error("a history can contain at most {} operations", u32::MAX)]
    TooMany {
        /// The number of the first operation that does not fit.
        operation: usize,
    },
}

#[cfg(feature = "formats")]
impl Contradiction {
    /// The number of the contradicting operation, in the order of pushing.
    pub(crate) fn operation(&self) -> usize {
        match *self {
            Contradiction::ReturnBeforeCall { operation, .. }
            | Contradiction::TwoAtOnce { operation, .. }
            | Contradiction::TimeTooLarge { operation }
            | Contradiction::TooMany { operation } => operation,
        }
    }

    /// The same contradiction, with numbers increased by `operations`.
    pub(crate) fn after(mut self, operations: usize) -> Self {
        match &mut self {
            Contradiction::TwoAtOnce { earlier, operation, .. } => {
                *earlier += operations;
                *operation += operations;
            }
            Contradiction::ReturnBeforeCall { operation, .. }
            | Contradiction::TimeTooLarge { operation }
            | Contradiction::TooMany { operation } => *operation += operations,
        }
        self
    }
}

/// Collects operations in any order and builds a [`History`].
///
/// ```
/// use millstream_history::{Builder, Op, Operation, Value};
///
/// let mut builder = Builder::new();
/// let enqueue = Operation::new(0, Op::ENQUEUE, Value::int(7));
/// let dequeue = Operation { output: Value::int(7), ..Operation::new(1, Op::DEQUEUE, Value::NULL) };
/// builder.push(Operation { call: 5, ret: Some(9), ..dequeue })?;
/// builder.push(Operation { call: 1, ret: Some(6), ..enqueue })?;
/// let history = builder.finish()?;
/// assert_eq!(history.show(1).to_string(), "dequeue() -> 7");
/// # Ok::<(), millstream_history::Contradiction>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    history: History,
}

impl Builder {
    /// An empty builder.
    pub fn new() -> Self {
        Builder::default()
    }

    /// The number of pushed operations.
    pub(crate) fn len(&self) -> usize {
        self.history.len()
    }

    /// The table for values that do not fit into a word.
    pub fn values(&mut self) -> &mut Values {
        &mut self.history.values
    }

    /// The number of an operation's name. A name that is not built in is added to the table.
    ///
    /// # Panics
    /// If there are more than 65 000 different names.
    pub fn op(&mut self, name: &str) -> Op {
        let History { names, .. } = &mut self.history;
        let known = Op::NAMES.len() + names.len();
        let number = (0..known).find(|&n| op_name(names, Op(n as u16)) == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            known
        });
        Op(u16::try_from(number).expect("operations have few names"))
    }

    /// Sets the maximum difference between the processes' clocks, in the unit of the times. The initial value is 0, and
    /// a later call never decreases it.
    ///
    /// [`History::ret`] includes the skew. The operations of one process share one clock, so their order is checked
    /// without the skew.
    pub fn skew(&mut self, skew: u64) {
        self.history.skew = self.history.skew.max(skew);
    }

    #[cfg(feature = "formats")]
    pub(crate) fn op_name(&self, op: Op) -> &str {
        self.history.op_name(op)
    }

    #[cfg(feature = "formats")]
    pub(crate) fn known_values(&self) -> &Values {
        &self.history.values
    }

    /// Adds an operation.
    ///
    /// # Errors
    /// If the operation contradicts itself, or if the history is full.
    pub fn push(&mut self, operation: Operation) -> Result<(), Contradiction> {
        let number = self.len();
        let Operation { process, op, key, input, output, call, ret, status } = operation;
        if let Some(ret) = ret.filter(|&ret| ret < call) {
            return Err(Contradiction::ReturnBeforeCall { operation: number, call, ret });
        }
        if call == PENDING || ret == Some(PENDING) {
            return Err(Contradiction::TimeTooLarge { operation: number });
        }
        if number == u32::MAX as usize {
            return Err(Contradiction::TooMany { operation: number });
        }
        let history = &mut self.history;
        if key.is_some() && history.key.is_empty() {
            history.key = vec![None; number];
        }
        if key.is_some() || !history.key.is_empty() {
            history.key.push(key);
        }
        history.process.push(process);
        history.op.push(op);
        history.status.push(if ret.is_none() && status == Status::Ok { Status::Info } else { status });
        history.input.push(input);
        history.output.push(output);
        history.call.push(call);
        history.ret.push(ret.unwrap_or(PENDING));
        Ok(())
    }

    /// Adds the operations of another builder, as if each had been pushed to this one.
    #[cfg(feature = "formats")]
    pub(crate) fn append(&mut self, next: Builder) -> Result<(), Contradiction> {
        let next = next.history;
        let number = self.len();
        if number + next.len() > u32::MAX as usize {
            return Err(Contradiction::TooMany { operation: u32::MAX as usize });
        }
        self.skew(next.skew);
        let ops: Vec<Op> = next.names.iter().map(|name| self.op(name)).collect();
        let op = |op: Op| usize::from(op.0).checked_sub(Op::NAMES.len()).map_or(op, |own| ops[own]);
        let history = &mut self.history;
        let translation = history.values.absorb(&next.values);
        let value = |value| translation.of(value);
        if !next.key.is_empty() || !history.key.is_empty() {
            history.key.resize(number, None);
            history.key.extend(next.key.iter().map(|key| key.map(value)));
            history.key.resize(number + next.len(), None);
        }
        history.process.extend(next.process);
        history.op.extend(next.op.into_iter().map(op));
        history.status.extend(next.status);
        history.input.extend(next.input.into_iter().map(value));
        history.output.extend(next.output.into_iter().map(value));
        history.call.extend(next.call);
        history.ret.extend(next.ret);
        Ok(())
    }

    /// Builds the history.
    ///
    /// # Errors
    /// If a process has two operations at once.
    pub fn finish(self) -> Result<History, Contradiction> {
        let mut history = self.history;
        let order = (!history.call.is_sorted()).then(|| {
            let mut order: Vec<u32> = (0..history.len() as u32).collect();
            order.sort_by_key(|&row| history.call[row as usize]);
            history.reorder(&order);
            order
        });
        history.check_processes().map_err(|(earlier, row)| {
            let pushed = |row: usize| order.as_ref().map_or(row, |order| order[row] as usize);
            Contradiction::TwoAtOnce {
                process: history.process[row],
                earlier: pushed(earlier),
                earlier_call: history.call[earlier],
                operation: pushed(row),
                call: history.call[row],
            }
        })?;
        Ok(history)
    }
}

impl History {
    /// Moves row `order[i]` to row `i`.
    fn reorder(&mut self, order: &[u32]) {
        fn column<T: Copy>(column: &mut Vec<T>, order: &[u32]) {
            *column = order.iter().map(|&row| column[row as usize]).collect();
        }
        column(&mut self.process, order);
        column(&mut self.op, order);
        column(&mut self.status, order);
        if !self.key.is_empty() {
            column(&mut self.key, order);
        }
        column(&mut self.input, order);
        column(&mut self.output, order);
        column(&mut self.call, order);
        column(&mut self.ret, order);
    }

    /// Fails if a process called an operation before its previous one returned; the error contains both rows.
    fn check_processes(&self) -> Result<(), (usize, usize)> {
        let mut last = LastRows::default();
        for row in 0..self.len() {
            if let Some(earlier) = last.replace(self.process[row], row as u32) {
                let earlier = earlier as usize;
                if self.ret[earlier] > self.call[row] {
                    return Err((earlier, row));
                }
            }
        }
        Ok(())
    }
}

/// The last row of each process: in an array for small process numbers, which are the usual case.
#[derive(Default)]
struct LastRows {
    small: Vec<u32>,
    large: HashMap<u32, u32>,
}

impl LastRows {
    const SMALL: usize = 1 << 16;
    const NONE: u32 = u32::MAX;

    fn replace(&mut self, process: u32, row: u32) -> Option<u32> {
        let index = process as usize;
        if index >= Self::SMALL {
            return self.large.insert(process, row);
        }
        if index >= self.small.len() {
            self.small.resize(index + 1, Self::NONE);
        }
        let last = std::mem::replace(&mut self.small[index], row);
        (last != Self::NONE).then_some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn operation(process: u32, call: u64, ret: Option<u64>) -> Operation {
        Operation { call, ret, ..Operation::new(process, Op::WRITE, Value::int(call as i64)) }
    }

    fn build(operations: &[Operation]) -> Result<History, Contradiction> {
        let mut builder = Builder::new();
        for &operation in operations {
            builder.push(operation)?;
        }
        builder.finish()
    }

    #[test]
    fn rows_are_in_order_of_call() {
        let history = build(&[operation(0, 9, None), operation(1, 3, Some(12)), operation(0, 3, Some(5))]).unwrap();
        let calls: Vec<_> = (0..3).map(|row| (history.process(row), history.call(row))).collect();
        assert_eq!(calls, [(1, 3), (0, 3), (0, 9)]);
        assert_eq!(history.get(1), operation(0, 3, Some(5)));
        assert_eq!(history.ret(2), PENDING);
        assert_eq!(history.status(2), Status::Info);
    }

    #[test]
    fn a_return_before_the_call_is_refused() {
        assert_eq!(
            build(&[operation(0, 0, Some(1)), operation(1, 5, Some(4))]).unwrap_err(),
            Contradiction::ReturnBeforeCall { operation: 1, call: 5, ret: 4 }
        );
    }

    #[test]
    fn two_operations_at_once_by_one_process_are_refused() {
        for process in [4, 70_000] {
            let refused = build(&[operation(process, 7, Some(9)), operation(process, 2, Some(8))]).unwrap_err();
            assert_eq!(
                refused,
                Contradiction::TwoAtOnce { process, earlier: 1, earlier_call: 2, operation: 0, call: 7 }
            );
            assert!(build(&[operation(process, 2, None), operation(process, 5, Some(6))]).is_err());
            assert!(build(&[operation(process, 2, Some(5)), operation(process, 5, Some(6))]).is_ok());
        }
    }

    #[test]
    fn keys_may_come_late() {
        let keyed = Operation { key: Some(Value::int(1)), ..operation(0, 5, Some(6)) };
        let history = build(&[operation(0, 1, Some(2)), keyed]).unwrap();
        assert_eq!((history.key(0), history.key(1)), (None, keyed.key));
    }

    #[test]
    fn appending_equals_pushing() {
        let operation = |builder: &mut Builder, number: u64| {
            let (name, text) = (["write", "rotate", "turn"][number as usize % 3], format!("text {}", number * 7 % 5));
            let op = builder.op(name);
            let text = builder.values().text(&text);
            let input = [text, builder.values().list(&[Value::TRUE, text]), Value::int(5)][number as usize / 2 % 3];
            let key = (number > 3).then_some(text);
            Operation { op, input, key, ..self::operation(number as u32, number, Some(number + 1)) }
        };
        const ALL: u64 = 9;
        let collect = |numbers: std::ops::Range<u64>| {
            let mut builder = Builder::new();
            for number in numbers {
                builder.skew(number % 4);
                let operation = operation(&mut builder, number);
                builder.push(operation).unwrap();
            }
            builder
        };
        let show = |history: &History| {
            (0..history.len()).map(|row| format!("{} {:?}", history.show(row), history.get(row))).collect::<Vec<_>>()
        };
        let whole = collect(0..ALL).finish().unwrap();
        for cut in 0..=ALL {
            let mut builder = collect(0..cut);
            builder.append(collect(cut..ALL)).unwrap();
            let history = builder.finish().unwrap();
            assert_eq!((show(&history), history.skew()), (show(&whole), 3), "cut at {cut}");
        }
    }

    #[test]
    fn custom_names_are_kept() {
        let mut builder = Builder::new();
        assert_eq!(builder.op("dequeue"), Op::DEQUEUE);
        let rotate = builder.op("rotate");
        assert_eq!(builder.op("rotate"), rotate);
        assert_eq!(builder.finish().unwrap().op_name(rotate), "rotate");
    }
}
