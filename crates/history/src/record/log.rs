//! One thread's log.

use std::sync::Arc;

use super::recorded::Recorded;
use super::recorder::Drawer;
use super::stamp::Source;
use crate::operation::Op;
use crate::value::{Value, Values};

/// What one thread did; made by [`Recorder::log`](super::Recorder::log), handed to the recorder when dropped.
///
/// Belongs to one thread at a time and shares nothing with the others, so that it does not order what it watches more than the
/// time stamps must: wait-free but for the memory it asks for when [`room`](super::Recorder::room) is used up (before the operation begins). The second
/// stamp drains the store buffer, as a locked instruction does.
///
/// Cost on an x86-64 at 2.6 GHz (a virtual machine, where reading the counter takes 10 ns, and 18 ns when the reading waits for what
/// precedes it): an operation of a queue under an uncontended mutex, 4 ns by itself, takes 32 ns more by [`record`](Self::record) and
/// 22 ns more by [`follow`](Self::follow).
#[derive(Debug)]
pub struct Log {
    drawer: Arc<Drawer>,
    source: Source,
    process: u32,
    object: u32,
    /// Whether the last row's operation has not returned.
    open: bool,
    /// When the last operation returned; 0 before the first.
    last: u64,
    /// The rows since the last that went to `filled`; never beyond its capacity.
    rows: Vec<Row>,
    filled: Vec<Vec<Row>>,
    /// How many more rows may be allocated.
    left: usize,
    /// When an operation found no room; nothing is recorded from then on.
    stopped: Option<u64>,
    values: Values,
}

/// An operation, times in the source's units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) call: u64,
    /// `PENDING` before the return.
    pub(super) ret: u64,
    pub(super) input: Value,
    pub(super) output: Value,
    /// `ALONE` if there is one object only.
    pub(super) object: u32,
    pub(super) op: Op,
    /// It certainly had no effect.
    pub(super) failed: bool,
}

/// The return of an operation that has not returned.
pub(super) const PENDING: u64 = u64::MAX;
/// No object's number.
pub(super) const ALONE: u32 = u32::MAX;

/// A log as the recorder gets it.
#[derive(Debug)]
pub(super) struct Filed {
    pub(super) process: u32,
    pub(super) rows: Vec<Vec<Row>>,
    pub(super) stopped: Option<u64>,
    pub(super) values: Values,
}

impl Log {
    pub(super) fn new(drawer: Arc<Drawer>, source: Source, process: u32, room: usize, limit: usize) -> Self {
        let mut log = Log {
            drawer,
            source,
            process,
            object: ALONE,
            open: false,
            last: 0,
            rows: Vec::new(),
            filled: Vec::new(),
            left: limit,
            stopped: None,
            values: Values::new(),
        };
        log.grow(room);
        log
    }

    /// This thread's number in the history.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// The operations that follow are on this object; each object is checked by itself.
    pub fn on(&mut self, object: u32) -> &mut Self {
        self.object = object;
        self
    }

    /// Does and records an operation.
    ///
    /// If `operation` panics, the panic goes on and the operation stays pending in the history.
    ///
    /// # Panics
    /// If an operation of this log is open.
    #[inline]
    pub fn record<T: Recorded>(&mut self, op: Op, input: impl Recorded, operation: impl FnOnce() -> T) -> T {
        self.begin(op, input);
        let result = operation();
        self.end(&result);
        result
    }

    /// [`record`](Self::record) for a result that `output` makes a value of, after the return.
    ///
    /// ```
    /// use millstream_history::{Op, record::Recorder};
    ///
    /// let recorder = Recorder::new();
    /// let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    /// let mut log = recorder.log();
    /// // False: full.
    /// log.record_as(Op::ENQUEUE, 7, || sender.try_send(7), |result| result.is_ok());
    /// log.record_as(Op::DEQUEUE, (), || receiver.try_recv(), |result| result.ok());
    /// drop(log);
    /// assert_eq!(recorder.finish().show(1).to_string(), "dequeue() -> 7");
    /// ```
    ///
    /// # Panics
    /// As [`record`](Self::record).
    #[inline]
    pub fn record_as<T, V: Recorded>(
        &mut self,
        op: Op,
        input: impl Recorded,
        operation: impl FnOnce() -> T,
        output: impl FnOnce(&T) -> V,
    ) -> T {
        self.begin(op, input);
        let result = operation();
        let now = self.source.after();
        let value = output(&result);
        self.close(now, &value);
        result
    }

    /// [`record`](Self::record) with one time stamp: the operation counts as called when this log's last one returned.
    ///
    /// That is earlier than it was, so it raises no false alarm either, and it hardly matters in a loop of nothing but operations.
    /// After a pause of the thread use `record`: the longer an operation seems, the more is forgiven.
    ///
    /// # Panics
    /// As [`record`](Self::record).
    #[inline]
    pub fn follow<T: Recorded>(&mut self, op: Op, input: impl Recorded, operation: impl FnOnce() -> T) -> T {
        self.open(op, input);
        let call = if self.last == 0 { self.source.before() } else { self.last };
        self.called(call);
        let result = operation();
        self.end(&result);
        result
    }

    /// An operation begins here; [`end`](Self::end) is its end.
    ///
    /// A log that is dropped in between leaves it pending.
    ///
    /// # Panics
    /// If an operation of this log is open.
    #[inline]
    pub fn begin(&mut self, op: Op, input: impl Recorded) {
        self.open(op, input);
        let call = self.source.before();
        self.called(call);
    }

    /// The operation that began last has ended.
    ///
    /// # Panics
    /// If none is open.
    #[inline]
    pub fn end(&mut self, output: impl Recorded) {
        let now = self.source.after();
        self.close(now, &output);
    }

    /// The operation that began last has failed and certainly had no effect: it is seen in pictures and asks nothing of the check.
    ///
    /// For answers that the object makes no promise about, such as a try-lock that may fail for no reason.
    ///
    /// # Panics
    /// If none is open.
    pub fn fail(&mut self) {
        self.end(());
        if let Some(row) = self.rows.last_mut().filter(|_| self.stopped.is_none()) {
            row.failed = true;
        }
    }

    /// Gives the open operation up: it stays pending, and this thread goes on as a new process.
    ///
    /// For an operation that panicked and was caught, or a wait that was cancelled.
    pub fn abandon(&mut self) {
        self.open = false;
    }

    /// Makes the row, before the first stamp.
    #[inline]
    fn open(&mut self, op: Op, input: impl Recorded) {
        assert!(!self.open, "an operation of this log is open: end it or abandon it");
        self.open = true;
        let input = input.value(&mut self.values);
        if self.rows.len() == self.rows.capacity() {
            self.grow(self.rows.capacity());
        }
        if self.stopped.is_none() {
            self.rows.push(Row {
                call: 0,
                ret: PENDING,
                input,
                output: Value::NULL,
                object: self.object,
                op,
                failed: false,
            });
        }
    }

    #[inline]
    fn called(&mut self, call: u64) {
        if let Some(row) = self.rows.last_mut().filter(|_| self.stopped.is_none()) {
            row.call = call;
        }
    }

    #[inline]
    fn close(&mut self, now: u64, output: &impl Recorded) {
        assert!(self.open, "no operation of this log is open");
        self.open = false;
        self.last = now;
        let output = output.value(&mut self.values);
        if let Some(row) = self.rows.last_mut().filter(|_| self.stopped.is_none()) {
            row.ret = now;
            row.output = output;
        }
    }

    /// Room for more rows, or the end of the recording.
    #[cold]
    fn grow(&mut self, rows: usize) {
        let rows = rows.min(self.left);
        if rows == 0 {
            self.stopped.get_or_insert_with(|| self.source.before());
            return;
        }
        self.left -= rows;
        let full = std::mem::replace(&mut self.rows, touched(rows));
        if !full.is_empty() {
            self.filled.push(full);
        }
    }
}

/// An empty vector whose memory the kernel has given already.
fn touched(rows: usize) -> Vec<Row> {
    let row = Row {
        call: 0,
        ret: PENDING,
        input: Value::NULL,
        output: Value::NULL,
        object: ALONE,
        op: Op::READ,
        failed: false,
    };
    let mut touched = Vec::with_capacity(rows);
    touched.extend(std::iter::repeat_n(row, touched.capacity()));
    touched.clear();
    touched
}

impl Drop for Log {
    fn drop(&mut self) {
        let mut rows = std::mem::take(&mut self.filled);
        rows.push(std::mem::take(&mut self.rows));
        let values = std::mem::take(&mut self.values);
        self.drawer.file(Filed { process: self.process, rows, stopped: self.stopped, values });
    }
}
