//! The log of one thread.

use std::sync::Arc;

use millstream_history::{Op, Value, Values};

use crate::recorded::Recorded;
use crate::recorder::Drawer;
use crate::rows::{ALONE, PENDING, Row, Rows};
use crate::stamp::Source;

/// The log of one thread. [`Recorder::log`](crate::Recorder::log) creates it, and dropping it passes the rows to the recorder.
///
/// A log belongs to one thread at a time and shares no data with other logs. It therefore adds no order between the operations of
/// different threads, except for what the stamps need: the stamp of a return drains the store buffer, as a locked instruction
/// does. Recording is wait-free until [`room`](crate::Recorder::room) is used up; more memory is then requested, before the
/// operation begins.
///
/// # Stamps
/// Each operation has two stamps: one for its call, and one for its return. The stamp of the return is read when the operation
/// returns. If operations follow one another closely (within about 200 ns), the stamp of a return also serves as that of the
/// next call. After an operation that did not follow closely, the next 1024 calls read stamps of their own.
///
/// Both kinds of stamps for a call are sound. The stamp of a return is read after all earlier accesses and before all later ones,
/// so it is never later than the next call. With an early stamp, an operation appears longer than it was, and fewer pairs of
/// operations count as ordered. A violation in such a history is therefore also a violation with exact stamps. The price is
/// precision: after a long time without pauses, the first operation that follows a pause appears as long as that pause, which may
/// hide a violation.
///
/// # Cost
/// The figures are for a queue under an uncontended mutex, on a virtual machine with an x86-64 processor at 2.6 GHz. There,
/// reading the counter takes 10 ns, or 18 ns if the reading must wait for earlier accesses. Recording adds 24 to 27 ns to an
/// operation that follows closely, and 30 to 36 ns to any other operation, which needs two readings. Most of this is the reading
/// that waits; every recorder needs such a reading in order to know when an operation returned. While the machine's host is busy,
/// the reading alone takes 27 ns, and recording adds 33 to 40 ns.
///
/// Beyond a log's [`room`](crate::Recorder::room), the kernel clears new memory, which takes 3 ns per operation. This is not
/// needed if an earlier recording of the same process has left enough memory.
#[derive(Debug)]
pub struct Log {
    drawer: Arc<Drawer>,
    source: Source,
    process: u32,
    object: u32,
    /// Whether the operation of the last row has not returned yet.
    open: bool,
    /// The stamp of the last return; 0 before the first.
    last: u64,
    /// The number of further calls that will each read a stamp of its own.
    watched: u32,
    /// An operation follows closely if at most this time passes from the last return to its own return.
    near: u64,
    /// The rows that are not in `filled` yet.
    rows: Rows,
    filled: Vec<Rows>,
    /// The number of rows requested at a time.
    room: usize,
    /// The number of rows that may still be requested, in addition to `rows`.
    left: usize,
    /// The stamp at which the log was found to be full. No operation is recorded from then on.
    stopped: Option<u64>,
    values: Values,
}

/// The number of calls that read stamps of their own after an operation that did not follow closely. There are many, because
/// pauses come in groups.
pub(crate) const WATCHED: u32 = 1024;

/// The form in which the recorder receives a log.
#[derive(Debug)]
pub(crate) struct Filed {
    pub(crate) process: u32,
    pub(crate) rows: Vec<Rows>,
    pub(crate) stopped: Option<u64>,
    pub(crate) values: Values,
}

impl Log {
    pub(crate) fn new(drawer: Arc<Drawer>, source: Source, process: u32, room: usize, limit: usize) -> Self {
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

    /// Returns this thread's number in the history.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Selects the object of the following operations. Each object is checked on its own.
    pub fn on(&mut self, object: u32) -> &mut Self {
        self.object = object;
        self
    }

    /// Runs and records an operation.
    ///
    /// If `operation` panics, the panic continues and the operation stays pending in the history.
    ///
    /// # Panics
    /// Panics if an operation of this log is open.
    #[inline]
    pub fn record<T: Recorded>(&mut self, op: Op, input: impl Recorded, operation: impl FnOnce() -> T) -> T {
        self.begin(op, input);
        let result = operation();
        self.end(&result);
        result
    }

    /// Like [`record`](Self::record), but the recorded value is that of `output`, which is called with the result after the
    /// return.
    ///
    /// ```
    /// use millstream_history::Op;
    /// use millstream_recorder::Recorder;
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
    /// Panics like [`record`](Self::record).
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

    /// Begins an operation; [`end`](Self::end) ends it.
    ///
    /// Dropping the log in between leaves the operation pending.
    ///
    /// # Panics
    /// Panics if an operation of this log is open.
    #[inline]
    pub fn begin(&mut self, op: Op, input: impl Recorded) {
        self.open(op, input);
        let call = self.call();
        self.called(call);
    }

    /// Ends the operation that began last.
    ///
    /// # Panics
    /// Panics if no operation is open.
    #[inline]
    pub fn end(&mut self, output: impl Recorded) {
        let now = self.source.between();
        self.close(now, &output);
    }

    /// Ends the operation that began last, and marks it as failed: it certainly had no effect. Pictures show a failed operation,
    /// and the check ignores it.
    ///
    /// Use this for results about which the object makes no promise. For example, a try-lock may be allowed to fail without a
    /// reason.
    ///
    /// # Panics
    /// Panics if no operation is open.
    pub fn fail(&mut self) {
        self.end(());
        if let Some(row) = self.rows.last_mut() {
            row.failed = true;
        }
    }

    /// Abandons the open operation, which stays pending. This thread then continues as a new process.
    ///
    /// This is for an operation whose panic was caught, or for a wait that was cancelled.
    pub fn abandon(&mut self) {
        self.open = false;
        self.watched = WATCHED;
    }

    /// Prepares the next row, before the stamp of its call is read.
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

    /// Returns the stamp for the call.
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
        // After a migration, the clock may be slightly behind the last stamp. The difference then wraps around to a huge number,
        // which only causes more readings.
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

    /// Makes space for more rows. If the limit is reached, stops the log instead: no more rows are added.
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
    use crate::Recorder;

    #[test]
    fn only_calls_that_follow_closely_reuse_the_last_return() {
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
        assert_eq!(returned, called, "all calls followed closely");

        // With `near` at 0, no operation follows closely.
        log.near = 0;
        log.record(Op::WRITE, (), || ());
        assert_eq!(log.watched, WATCHED);
        thread::sleep(Duration::from_millis(1));
        log.record(Op::WRITE, (), || ());
        let (returned, called) = last_two(&log);
        assert!(called > returned + log.source.near(), "the pause is not part of the operation");
    }
}
