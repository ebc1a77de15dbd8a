//! The history of one object, in the form that the decision procedures use.
//!
//! Objects are independent: a history is linearizable if and only if its restriction to each object is (*locality*,
//! Herlihy and Wing). So the operations are first partitioned by their keys. Failed operations are left out.

use std::borrow::Cow;

use crate::history::{History, PENDING};
use crate::operation::{Op, Status};
use crate::spec::Call;
use crate::value::Value;

/// Operations of one object in order of call, up to a moment, the *cut*.
///
/// Positions are the numbers `0..len()`; [`row`](Self::row) maps them to the history's rows.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    history: &'a History,
    rows: Cow<'a, [u32]>,
    /// Later events are ignored.
    cut: u64,
}

impl<'a> Part<'a> {
    /// The part with these rows, which must be in ascending order. None of them may be a failed operation.
    pub(crate) fn new(history: &'a History, rows: impl Into<Cow<'a, [u32]>>) -> Self {
        let rows = rows.into();
        debug_assert!(rows.is_sorted());
        Part { history, rows, cut: PENDING - 1 }
    }

    /// Every operation of the history that did not fail, whatever its key.
    pub(crate) fn whole(history: &'a History) -> Self {
        let rows: Vec<u32> =
            (0..history.len()).filter(|&row| history.status(row) != Status::Fail).map(|row| row as u32).collect();
        Part::new(history, rows)
    }

    /// The prefix of events up to and including `cut`: operations called later are left out, and operations that return
    /// later are pending.
    pub(crate) fn until(&self, cut: u64) -> Part<'_> {
        let called = self.rows.partition_point(|&row| self.history.call(row as usize) <= cut);
        Part { history: self.history, rows: Cow::Borrowed(&self.rows[..called]), cut }
    }

    /// The prefix of these rows' events up to and including `cut`.
    pub(crate) fn of_rows<'b>(&self, rows: &'b [u32], cut: u64) -> Part<'b>
    where
        'a: 'b,
    {
        let called = rows.partition_point(|&row| self.history.call(row as usize) <= cut);
        Part { history: self.history, rows: Cow::Borrowed(&rows[..called]), cut: cut.min(self.cut) }
    }

    /// A part with other rows and the same cut.
    pub(crate) fn with_rows<'b>(&self, rows: impl Into<Cow<'b, [u32]>>) -> Part<'b>
    where
        'a: 'b,
    {
        Part { history: self.history, rows: rows.into(), cut: self.cut }
    }

    /// The moment at which the part ends.
    pub(crate) fn cut(&self) -> u64 {
        self.cut
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn history(&self) -> &'a History {
        self.history
    }

    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    #[inline]
    pub(crate) fn row(&self, position: usize) -> u32 {
        self.rows[position]
    }

    #[inline]
    pub(crate) fn process(&self, position: usize) -> u32 {
        self.history.process(self.rows[position] as usize)
    }

    #[inline]
    pub(crate) fn op(&self, position: usize) -> Op {
        self.history.op(self.rows[position] as usize)
    }

    #[inline]
    pub(crate) fn input(&self, position: usize) -> Value {
        self.history.input(self.rows[position] as usize)
    }

    /// The output; `None` for a pending operation.
    #[inline]
    pub(crate) fn output(&self, position: usize) -> Option<Value> {
        (self.ret(position) != PENDING).then(|| self.history.output(self.rows[position] as usize))
    }

    #[inline]
    pub(crate) fn call(&self, position: usize) -> u64 {
        self.history.call(self.rows[position] as usize)
    }

    /// The time of the return, [`PENDING`] if it is unknown or after the cut.
    #[inline]
    pub(crate) fn ret(&self, position: usize) -> u64 {
        self.ret_of(self.rows[position] as usize)
    }

    #[inline]
    fn ret_of(&self, row: usize) -> u64 {
        let ret = self.history.ret(row);
        if ret > self.cut { PENDING } else { ret }
    }

    /// The operation in the form that a specification gets.
    pub(crate) fn call_at(&self, position: usize) -> Call<'a> {
        self.call_of(self.rows[position])
    }

    /// The operation of one of the part's rows, in the form that a specification gets.
    pub(crate) fn call_of(&self, row: u32) -> Call<'a> {
        let row = row as usize;
        Call {
            process: self.history.process(row),
            op: self.history.op(row),
            key: self.history.key(row),
            input: self.history.input(row),
            output: (self.ret_of(row) != PENDING).then(|| self.history.output(row)),
            values: self.history.values(),
        }
    }
}
