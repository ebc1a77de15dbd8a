//! One thread's log.

use std::sync::Arc;

use millstream_history::{Op, Value, Values};

use crate::recorded::Recorded;
use crate::recorder::Drawer;
use crate::rows::{ALONE, PENDING, Row, Rows};
use crate::stamp::Source;

/// The log of one thread; made by [`Recorder::log`](crate::Recorder::log), passed to the recorder when dropped.
///
/// It belongs to one thread at a time and shares no data with the others, so it imposes no more order on the recorded
/// operations than the time stamps need. Wait-free, except for the memory that it requests when
/// [`room`](crate::Recorder::room) is used up (before the operation begins). The stamp at the return drains the store
/// buffer, as a locked instruction does.
///
/// # Stamps
/// Each operation has two. The stamp of its return is read when it returns. If operations follow one another closely
/// (within some 200 ns), the return of the log's last operation serves as the stamp of the next call, which is precise
/// enough. After an operation that did not follow closely, the clock is read for the next 1024 calls.
///
/// Either stamp is sound. No access of an operation precedes the log's last return, whose stamp is read after all
/// earlier accesses and before all later ones. So the stamp of a call may be early and is never late: the operation
/// appears longer than it was, fewer pairs count as ordered, and a violation found with such a stamp is also one with
/// the exact stamp. The price is precision: the first operation after the first pause in a long while appears as long
/// as that pause, which may hide a violation.
///
/// # Cost
/// On an x86-64 at 2.6 GHz (a virtual machine, where reading the counter takes 10 ns, and 18 ns when the reading waits
/// for earlier accesses), an operation of a queue under an uncontended mutex takes 24 to 27 ns more than by itself when
/// it follows closely. Otherwise two readings are needed, neither of which overlaps with the program: 30 to 36 ns. Most
/// of this is the reading that waits, which every recorder needs in order to know when an operation returned. While the
/// machine's host is busy, such a reading alone takes 27 ns, and the log as a whole adds 33 to 40 ns. Beyond a log's
/// [`room`](crate::Recorder::room) the kernel clears memory for 3 ns per operation, unless an earlier recording of the
/// same process has left enough.
#[derive(Debug)]
pub struct Log {
    drawer: Arc<Drawer>,
    source: Source,
    process: u32,
    object: u32,
    /// Whether the last row's operation has not returned.
    open: bool,
    /// The stamp of the last return; 0 before the first.
    last: u64,
    /// The number of coming calls that read the clock.
    watched: u32,
    /// The maximum time from the last return to the next for an operation that follows closely.
    near: u64,
    /// The rows since the last block in `filled`.
    rows: Rows,
    filled: Vec<Rows>,
    /// The number of rows requested at a time.
    room: usize,
    /// The number of rows still permitted beyond `rows`.
    left: usize,
    /// The stamp at which an operation found no space; no operation is recorded from then on.
    stopped: Option<u64>,
    values: Values,
}

/// The number of calls with stamps of their own after an operation that did not follow closely: pauses come in groups.
pub(crate) const WATCHED: u32 = 1024;

/// A log as the recorder receives it.
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

    /// This thread's number in the history.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Selects the object of the following operations; each object is checked alone.
    pub fn on(&mut self, object: u32) -> &mut Self {
        self.object = object;
        self
    }

    /// Runs and records an operation.
    ///
    /// If `operation` panics, the panic continues and the operation stays pending in the history.
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

    /// Like [`record`](Self::record); `output` makes the recorded value from the result, after the return.
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

    /// Begins an operation; [`end`](Self::end) ends it.
    ///
    /// Dropping the log in between leaves the operation pending.
    ///
    /// # Panics
    /// If an operation of this log is open.
    #[inline]
    pub fn begin(&mut self, op: Op, input: impl Recorded) {
        self.open(op, input);
        let call = self.call();
        self.called(call);
    }

    /// Ends the operation that began last.
    ///
    /// # Panics
    /// If no operation is open.
    #[inline]
    pub fn end(&mut self, output: impl Recorded) {
        let now = self.source.between();
        self.close(now, &output);
    }

    /// Ends the operation that began last as failed: it certainly had no effect. Pictures show it, and the check
    /// ignores it.
    ///
    /// This is for answers about which the object makes no promise, such as a try-lock that may fail for no reason.
    ///
    /// # Panics
    /// If no operation is open.
    pub fn fail(&mut self) {
        self.end(());
        if let Some(row) = self.rows.last_mut() {
            row.failed = true;
        }
    }

    /// Gives up the open operation: it stays pending, and this thread continues as a new process.
    ///
    /// This is for an operation whose panic was caught, or for a wait that was cancelled.
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
        // The clock of another processor may be slightly behind the last stamp: then the difference wraps to a huge
        // one, which only causes more readings.
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

    /// Makes space for more rows, or ends the recording, after which no row is added.
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

        // This operation takes longer, and the next call comes later.
        log.near = 0;
        log.record(Op::WRITE, (), || ());
        assert_eq!(log.watched, WATCHED);
        thread::sleep(Duration::from_millis(1));
        log.record(Op::WRITE, (), || ());
        let (returned, called) = last_two(&log);
        assert!(called > returned + log.source.near(), "the pause is not part of the operation");
    }
}
