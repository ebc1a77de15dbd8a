//! Prints the outputs of units, each as a whole, to the command's own standard output and standard error.
//!
//! A stage passes an output to the printer and continues. A single thread writes the outputs, and only that thread
//! waits for a slow reader. So the wait for the reader does not count towards a program's time limit, and the outputs
//! of two units never mix. Outputs are printed in the order in which the printer gets them, or, for units that have a
//! [`Place`], in the order of admission.
//!
//! Outputs can wait for two reasons, and each wait has its own bound. Outputs that wait for the **reader** take at most
//! a [capacity](Printer::new) of bytes, plus the outputs of the programs that are running: before a stage starts a
//! program, it waits for [room](Printer::await_room). Only the reader ends that wait, so the wait cannot be part of a
//! cycle. Outputs that wait for their **turn** in the order of admission take at most the same capacity in memory;
//! further outputs are written to disk. Their stage must not wait: an earlier unit may need a resource that the stage's
//! own unit holds, and the two waits would form a cycle.
//!
//! When standard output no longer has a reader, or cannot be written to, the printer drops all further outputs for it
//! and reports that once. The run then halts.

mod order;
mod spool;
mod stream;
mod writer;

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use millstream_command::program::LOOK;
use millstream_flow::{Cx, Failure};

use self::order::Order;
use self::spool::{Extent, Spool};
use self::writer::Writer;

/// A unit that has waited too long for room returns to its queue, and may ask for room again after this pause.
const PAUSE: Duration = Duration::from_secs(1);

/// The output of one unit.
#[derive(Debug, Default)]
pub struct Output {
    /// For standard output.
    pub stdout: Vec<u8>,
    /// For standard error.
    pub stderr: Vec<u8>,
    /// The text before every line, followed by a tab.
    pub tag: Option<Vec<u8>>,
}

/// The reason why standard output can no longer be written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The reader has closed standard output, as `head` does when it has seen enough.
    ReaderGone,
    /// A write to standard output has failed, for this reason.
    Failed(String),
}

/// See the [module](self).
pub struct Printer {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when an output is [due](order) or has been written, and when the run ends.
    changed: Condvar,
    capacity: u64,
    /// The number of bytes written. Relaxed: the number only shows, by growing, that the reader reads.
    written: AtomicU64,
    on_trouble: OnceLock<OnTrouble>,
}

/// Called with the reason why standard output can no longer be written to.
type OnTrouble = Box<dyn Fn(&Trouble) + Send + Sync>;

struct State {
    order: Order<Waiting>,
    due: VecDeque<Waiting>,
    /// The number of bytes of the outputs that are due or being written.
    due_bytes: u64,
    /// The number of bytes of the outputs in memory that wait for their turn.
    held_bytes: u64,
    spool: Spool,
    /// Whether the printer's thread has been started.
    started: bool,
    /// Whether no more outputs are accepted.
    ended: bool,
    trouble: Option<Trouble>,
}

/// An output that is not written yet.
struct Waiting {
    content: Content,
    bytes: u64,
}

enum Content {
    Memory(Output),
    Disk { stdout: Extent, stderr: Extent, tag: Option<Vec<u8>> },
}

/// A unit's place in the order of outputs. The place ends when the last reference to it is dropped.
pub struct Place {
    name: u64,
    shared: Arc<Shared>,
}

impl Place {
    /// The place of the next piece of this unit. The unit itself then comes after that piece.
    pub fn piece(&self) -> Arc<Self> {
        let name = self.shared.state().order.split(self.name);
        Arc::new(Self { name, shared: Arc::clone(&self.shared) })
    }
}

impl Printer {
    /// A printer with `capacity` bytes of memory for outputs that wait for the reader, and as many for outputs that
    /// wait for their turn.
    pub fn new(capacity: u64) -> Self {
        let state = State {
            order: Order::new(),
            due: VecDeque::new(),
            due_bytes: 0,
            held_bytes: 0,
            spool: Spool::default(),
            started: false,
            ended: false,
            trouble: None,
        };
        let shared = Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            capacity,
            written: AtomicU64::new(0),
            on_trouble: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Sets the function that is called once when standard output can no longer be written to, on the thread that
    /// notices this.
    pub fn on_trouble(&self, on_trouble: impl Fn(&Trouble) + Send + Sync + 'static) {
        let first = self.shared.on_trouble.set(Box::new(on_trouble)).is_ok();
        assert!(first, "a run has one listener for trouble");
    }

    /// The place of the next unit that is admitted.
    pub fn place(&self) -> Arc<Place> {
        let name = self.shared.state().order.enter();
        Arc::new(Place { name, shared: Arc::clone(&self.shared) })
    }

    /// Waits until the reader has read enough of the earlier outputs to make room for a new one, but at most half of
    /// the stage's time limit.
    ///
    /// # Errors
    /// The unit has waited too long and goes back to its queue, the flow was abandoned, standard output can no longer
    /// be written to, or the system refuses a thread for the printer.
    pub fn await_room(&self, cx: &Cx<'_>) -> Result<(), Failure> {
        let mut state = self.shared.state();
        if !state.started {
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new().name("printer".to_owned()).spawn(move || shared.write_what_is_due());
            started.map_err(|error| Failure::msg(format!("no thread to print outputs: {error}")))?;
            state.started = true;
        }
        let begun = Instant::now();
        while state.trouble.is_none() && state.due_bytes > self.shared.capacity {
            let patience = cx.deadline().map(|deadline| deadline.saturating_duration_since(begun) / 2);
            if patience.is_some_and(|patience| begun.elapsed() >= patience) {
                return Err(Failure::requeue("standard output is not read").not_before(PAUSE));
            }
            cx.check()?;
            drop(state);
            millstream_fiber::blocking(|| self.shared.await_change());
            state = self.shared.state();
        }
        match state.trouble {
            None => Ok(()),
            Some(_) => Err(Failure::requeue("standard output can no longer be written to").not_before(PAUSE)),
        }
    }

    /// Prints an output of a unit that had [room](Self::await_room).
    pub fn print(&self, output: Output, place: Option<&Place>) {
        let bytes = output.bytes();
        let mut state = self.shared.state();
        if bytes == 0 || state.ended {
            return;
        }
        let output = match place.filter(|place| !state.order.is_due(place.name)) {
            None => Waiting { content: Content::Memory(output), bytes },
            Some(place) => {
                let waiting = state.hold(output, self.shared.capacity);
                return state.order.hold(place.name, waiting);
            }
        };
        state.add_due(output);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Notes that standard output no longer has a reader. A program that writes to standard output directly has found
    /// that out.
    pub fn reader_is_gone(&self) {
        self.shared.in_trouble(&Trouble::ReaderGone);
    }

    /// Accepts no more outputs: those that still wait for their turn become due, and later outputs are dropped.
    pub fn close(&self) {
        let mut state = self.shared.state();
        let rest = state.order.rest();
        state.release(rest);
        state.ended = true;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Waits at most `most` for the due outputs to be written; returns whether all of them are.
    pub fn is_done_within(&self, most: Duration) -> bool {
        let end = Instant::now() + most;
        let mut state = self.shared.state();
        while state.due_bytes > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// The number of bytes written so far, which grows as long as the reader reads.
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Whether outputs wait for the reader.
    pub fn awaits_reader(&self) -> bool {
        self.shared.state().due_bytes > 0
    }

    /// The reason why standard output can no longer be written to; `None` if it can.
    pub fn trouble(&self) -> Option<Trouble> {
        self.shared.state().trouble.clone()
    }
}

impl fmt::Debug for Printer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Printer").field("capacity", &self.shared.capacity).finish_non_exhaustive()
    }
}

impl State {
    fn add_due(&mut self, output: Waiting) {
        self.due_bytes += output.bytes;
        self.due.push_back(output);
    }

    /// Makes the held outputs due.
    fn release(&mut self, held: Vec<Waiting>) {
        for output in held {
            if matches!(output.content, Content::Memory(_)) {
                self.held_bytes -= output.bytes;
            }
            self.add_due(output);
        }
    }

    /// The output in the form in which it waits for its turn: in memory, or on disk if the waiting outputs would take
    /// more than `capacity` bytes of memory.
    fn hold(&mut self, mut output: Output, capacity: u64) -> Waiting {
        let bytes = output.bytes();
        if self.held_bytes + bytes > capacity
            && let Ok(stdout) = self.spool.put(&output.stdout)
        {
            match self.spool.put(&output.stderr) {
                Ok(stderr) => {
                    let content = Content::Disk { stdout, stderr, tag: output.tag.take() };
                    return Waiting { content, bytes };
                }
                Err(_) => drop(self.spool.take(&stdout)),
            }
        }
        // If the disk has no room, the output stays in memory.
        self.held_bytes += bytes;
        Waiting { content: Content::Memory(output), bytes }
    }
}

impl Shared {
    /// Locks the state. The lock is held for a few instructions only, unless an output is written to the spool or read
    /// from it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits briefly for a change that may have made room.
    fn await_change(&self) {
        let state = self.state();
        if state.trouble.is_none() && state.due_bytes > self.capacity {
            drop(self.changed.wait_timeout(state, LOOK));
        }
    }

    /// The printer's thread.
    fn write_what_is_due(&self) {
        let mut writer = Writer::open(&self.written);
        let mut state = self.state();
        loop {
            if state.due.is_empty() {
                if state.ended {
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let due = mem::take(&mut state.due);
            drop(state);
            let mut unwritten = 0;
            for Waiting { content, bytes } in due {
                unwritten += bytes;
                match content {
                    Content::Memory(output) => writer.write(&output),
                    Content::Disk { stdout, stderr, tag } => match self.take_from_disk(&stdout, &stderr, tag) {
                        Ok(output) => writer.write(&output),
                        Err(error) => writer.fails(&error),
                    },
                }
                if writer.is_flushed() {
                    self.settle(&mut writer, mem::take(&mut unwritten));
                }
            }
            writer.flush();
            self.settle(&mut writer, unwritten);
            state = self.state();
        }
    }

    fn take_from_disk(&self, stdout: &Extent, stderr: &Extent, tag: Option<Vec<u8>>) -> std::io::Result<Output> {
        let spool = &mut self.state().spool;
        Ok(Output { stdout: spool.take(stdout)?, stderr: spool.take(stderr)?, tag })
    }

    /// Notes that outputs of this many bytes have been written, or could not be.
    fn settle(&self, writer: &mut Writer<'_>, bytes: u64) {
        let trouble = writer.take_trouble();
        if let Some(trouble) = trouble {
            // The reason is set before the count falls, so that a run that finds nothing left to write also finds the
            // reason.
            self.in_trouble(&trouble);
        }
        self.state().due_bytes -= bytes;
        self.changed.notify_all();
    }

    fn in_trouble(&self, trouble: &Trouble) {
        let mut state = self.state();
        if state.trouble.is_some() {
            return;
        }
        state.trouble = Some(trouble.clone());
        drop(state);
        self.changed.notify_all();
        if let Some(tell) = self.on_trouble.get() {
            tell(trouble);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let due = state.order.leave(self.name);
        if !due.is_empty() && !state.ended {
            state.release(due);
            drop(state);
            self.shared.changed.notify_all();
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.name).finish()
    }
}

impl Output {
    fn bytes(&self) -> u64 {
        (self.stdout.len() + self.stderr.len()) as u64
    }
}

/// Whether standard output has a reader, as far as that can be determined without a write.
pub fn is_read() -> bool {
    stream::is_read()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{Content, Output, Printer};

    fn output(text: &str) -> Output {
        Output { stdout: text.into(), ..Output::default() }
    }

    #[test]
    fn a_place_lasts_until_its_last_clone_is_dropped() {
        let printer = Printer::new(100);
        let [first, second] = [printer.place(), printer.place()];
        printer.print(output("x"), Some(&second));
        let clone = Arc::clone(&first);
        drop(first);
        assert!(printer.shared.state().due.is_empty());
        drop(clone);
        assert_eq!(printer.shared.state().due.len(), 1);
    }

    #[test]
    fn outputs_that_wait_for_their_turn_go_to_the_disk_and_do_not_fill_the_printer() {
        let printer = Printer::new(4);
        let places: Vec<_> = (0..4).map(|_| printer.place()).collect();
        printer.print(output("abcd"), Some(&places[1]));
        printer.print(output("ef"), Some(&places[2]));
        printer.print(Output { stderr: b"err".to_vec(), ..output("gh") }, Some(&places[3]));
        assert_eq!(printer.shared.state().held_bytes, 4, "the others are on the disk");
        assert!(!printer.awaits_reader());
        drop(places);
        let mut state = printer.shared.state();
        assert_eq!((state.due_bytes, state.held_bytes), (11, 0));
        let texts: Vec<_> = state.due.drain(..).map(|waiting| waiting.content).collect();
        drop(state);
        let [Content::Memory(first), Content::Disk { .. }, Content::Disk { stdout, stderr, .. }] = &texts[..] else {
            panic!("one is in memory, two are on the disk")
        };
        assert_eq!(first.stdout, b"abcd");
        let last = printer.shared.take_from_disk(stdout, stderr, None).unwrap();
        assert_eq!((last.stdout, last.stderr), (b"gh".to_vec(), b"err".to_vec()));
        assert!(printer.awaits_reader());
    }

    #[test]
    fn outputs_after_the_end_are_dropped() {
        let printer = Printer::new(100);
        let [first, second] = [printer.place(), printer.place()];
        printer.print(output("held"), Some(&second));
        printer.close();
        assert_eq!(printer.shared.state().due.len(), 1, "what was held is due");
        printer.print(output("late"), None);
        drop((first, second));
        assert_eq!(printer.shared.state().due.len(), 1);
        assert!(!printer.is_done_within(Duration::ZERO));
    }
}
