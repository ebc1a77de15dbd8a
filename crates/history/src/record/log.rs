//! One thread's log.

use std::sync::Arc;

use super::recorded::Recorded;
use super::recorder::Drawer;
use super::rows::{ALONE, PENDING, Row, Rows};
use super::stamp::Source;
use crate::operation::Op;
use crate::value::{Value, Values};

/// What one thread did; made by [`Recorder::log`](super::Recorder::log), handed to the recorder when dropped.
///
/// Belongs to one thread at a time and shares nothing with the others, so that it does not order what it watches more than the
/// time stamps must: wait-free but for the memory it asks for when [`room`](super::Recorder::room) is used up (before the operation begins). The
/// stamp at the return drains the store buffer, as a locked instruction does.
///
/// # Stamps
/// Each operation has two. That of its return is read when it returns. That of its call is the return of the log's last operation
/// while operations follow one another closely (within some 200 ns), and so are watched closely enough; it is read from the clock for the
/// next 1024 operations whenever one did not.
///
/// Either is right. Nothing of an operation happens before the log's last return, which is read after all that came
/// before it and before all that comes after. So the stamp of a call may be early and is never late: the operation is taken for longer than it was,
/// less counts as in order, and what cannot be explained with such a stamp could not be with the exact one. What it costs is sight: the first
/// operation after the first pause in a long while is as long as that pause, and what hides in there is overlooked.
///
/// # Cost
/// On an x86-64 at 2.6 GHz (a virtual machine, where reading the counter takes 10 ns, and 18 ns when the reading waits for what precedes it),
/// an operation of a queue under an uncontended mutex takes 24 to 27 ns more than by itself when it follows closely. When it does not there are two readings,
/// neither of which overlaps with the program any more: 30 to 36 ns. The reading that waits is most of it, and no recorder that knows when an
/// operation returned can do without: while the machine's host is busy it alone adds 27 ns, and a log 33 to 40. Beyond a log's [`room`](super::Recorder::room) the kernel clears memory
/// for 3 ns an operation, where no recording before it in the same process has left as much.
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
    /// How many of the coming operations read the clock when they are called.
    watched: u32,
    /// An operation that returns so long after the last one does not follow it closely.
    near: u64,
    /// The rows since the last that went to `filled`.
    rows: Rows,
    filled: Vec<Rows>,
    /// Rows that are asked for at a time.
    room: usize,
    /// How many there may be beyond `rows`.
    left: usize,
    /// When an operation found no room; nothing is recorded from then on.
    stopped: Option<u64>,
    values: Values,
}

/// For so many operations after one that did not follow closely calls have stamps of their own: pauses come in numbers.
pub(super) const WATCHED: u32 = 1024;

/// A log as the recorder gets it.
#[derive(Debug)]
pub(super) struct Filed {
    pub(super) process: u32,
    pub(super) rows: Vec<Rows>,
    pub(super) stopped: Option<u64>,
    pub(super) values: Values,
}

impl Log {
    pub(super) fn new(drawer: Arc<Drawer>, source: Source, process: u32, room: usize, limit: usize) -> Self {
        let rows = Rows::with_room(room).at_most(limit);
        Log {
            drawer,
            source,
            process,
            object: ALONE,
            open: false,
            last: 0,
            watched: WATCHED,
            near: source.near(),
            left: limit - rows.capacity(),
            rows,
            filled: Vec::new(),
            room,
            stopped: None,
            values: Values::new(),
        }
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
        let now = self.source.between();
        let value = output(&result);
        self.close(now, &value);
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
        let call = self.call();
        self.called(call);
    }

    /// The operation that began last has ended.
    ///
    /// # Panics
    /// If none is open.
    #[inline]
    pub fn end(&mut self, output: impl Recorded) {
        let now = self.source.between();
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
        if let Some(row) = self.rows.last_mut() {
            row.failed = true;
        }
    }

    /// Gives the open operation up: it stays pending, and this thread goes on as a new process.
    ///
    /// For an operation that panicked and was caught, or a wait that was cancelled.
    pub fn abandon(&mut self) {
        self.open = false;
        self.watched = WATCHED;
    }

    /// Makes the row, before the first stamp.
    #[inline]
    fn open(&mut self, op: Op, input: impl Recorded) {
        assert!(!self.open, "an operation of this log is open: end it or abandon it");
        self.open = true;
        let input = input.value(&mut self.values);
        if self.rows.is_full() {
            self.grow();
        }
        self.rows.push(Row {
            input,
            object: self.object,
            op,
            call: 0,
            ret: PENDING,
            output: Value::NULL,
            failed: false,
        });
    }

    /// The stamp of the call.
    #[inline]
    fn call(&mut self) -> u64 {
        if self.watched == 0 {
            return self.last;
        }
        self.watched -= 1;
        self.source.before()
    }

    #[inline]
    fn called(&mut self, call: u64) {
        if let Some(row) = self.rows.last_mut() {
            row.call = call;
        }
    }

    #[inline]
    fn close(&mut self, now: u64, output: &impl Recorded) {
        assert!(self.open, "no operation of this log is open");
        self.open = false;
        // Of another processor's clock it may be a little less than the last: then the difference is huge, and nothing is lost.
        if now.wrapping_sub(self.last) > self.near {
            self.watched = WATCHED;
        }
        self.last = now;
        let output = output.value(&mut self.values);
        if let Some(row) = self.rows.last_mut() {
            row.ret = now;
            row.output = output;
        }
    }

    /// Room for more rows, or the end of the recording: then there are no rows from now on.
    #[cold]
    fn grow(&mut self) {
        self.watched = WATCHED;
        let full = self.rows.take();
        if !full.is_empty() {
            self.filled.push(full);
        }
        if self.left == 0 {
            self.stopped.get_or_insert_with(|| self.source.before());
            return;
        }
        self.rows = Rows::with_room(self.room).at_most(self.left);
        self.left -= self.rows.capacity();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let mut rows = std::mem::take(&mut self.filled);
        rows.push(self.rows.take());
        let values = std::mem::take(&mut self.values);
        self.drawer.file(Filed { process: self.process, rows, stopped: self.stopped, values });
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::record::Recorder;

    #[test]
    fn calls_that_follow_closely_are_the_returns_before_them_and_no_others() {
        let mut log = Recorder::new().log();
        let last_two = |log: &Log| match log.rows[..] {
            [.., before, last] => (before.ret, last.call),
            _ => unreachable!("there are two"),
        };
        log.near = u64::MAX;
        for n in 0..=WATCHED {
            log.record(Op::WRITE, n, || ());
        }
        let (returned, called) = last_two(&log);
        assert_eq!(returned, called, "all came closely");

        // This one takes longer, and the next is called later.
        log.near = 0;
        log.record(Op::WRITE, (), || ());
        assert_eq!(log.watched, WATCHED);
        thread::sleep(Duration::from_millis(1));
        log.record(Op::WRITE, (), || ());
        let (returned, called) = last_two(&log);
        assert!(called > returned + log.source.near(), "the pause is no part of the operation");
    }
}
