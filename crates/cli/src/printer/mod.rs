//! Prints what units have to say: whole, on the command's own standard output and standard error.
//!
//! Stages hand outputs over and go on; one thread writes them, and it alone waits for a slow reader. So a program's time
//! limit ends with the program, and the outputs of two units never mix. Outputs come in the order in which they are handed
//! over, or, for units that have a [`Place`], in the order of admission.
//!
//! Memory is bounded before it is used: while more than a [capacity](Printer::new) of bytes waits to be written, a stage
//! that asks [`has_room`](Printer::has_room) sends its unit back to its queue. The unit that all others wait for is never
//! sent back.
//!
//! When standard output has no reader any more, or cannot be written, the printer drops what would go there and says so
//! once: the run then admits no more units.

mod order;
mod stream;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use millstream_flow::Failure;

use self::order::Order;
use self::stream::Stream;

/// The pause before a unit that found no room asks again.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the end of a run that was abandoned waits for a reader that reads nothing.
const GRACE: Duration = Duration::from_millis(200);
/// Small outputs are written together, up to this size.
const PIECE: usize = 64 << 10;

/// The output of one unit.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// For standard output.
    pub stdout: Vec<u8>,
    /// For standard error.
    pub stderr: Vec<u8>,
}

/// Why standard output takes no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Its reader has gone away, as `head` does when it has seen enough.
    ReaderGone,
    /// It cannot be written.
    Failed(String),
}

/// See the [module](self).
pub(crate) struct Printer {
    shared: Arc<Shared>,
    capacity: u64,
}

struct Shared {
    state: Mutex<State>,
    /// Something is due, has been written, or the run ends.
    changed: Condvar,
    on_trouble: OnceLock<OnTrouble>,
}

/// Is told why standard output takes no more.
type OnTrouble = Box<dyn Fn(&Trouble) + Send + Sync>;

struct State {
    order: Order<Output>,
    due: VecDeque<Output>,
    /// Of all outputs that are held or due, or that the thread is writing.
    bytes: u64,
    /// Whether the thread runs.
    started: bool,
    ended: bool,
    trouble: Option<Trouble>,
}

/// A unit's place in the order of outputs, until the last of its clones is dropped.
pub(crate) struct Place {
    number: u64,
    shared: Arc<Shared>,
}

impl Printer {
    /// A printer that takes no more while more than `capacity` bytes wait.
    pub(crate) fn new(capacity: u64) -> Self {
        let state =
            State { order: Order::new(), due: VecDeque::new(), bytes: 0, started: false, ended: false, trouble: None };
        let shared = Shared { state: Mutex::new(state), changed: Condvar::new(), on_trouble: OnceLock::new() };
        Self { shared: Arc::new(shared), capacity }
    }

    /// Has trouble with standard output told to `on_trouble`, on the printer's thread.
    pub(crate) fn on_trouble(&self, on_trouble: impl Fn(&Trouble) + Send + Sync + 'static) {
        let first = self.shared.on_trouble.set(Box::new(on_trouble)).is_ok();
        assert!(first, "a run hears of trouble in one place");
    }

    /// The place of the next unit that is admitted.
    pub(crate) fn place(&self) -> Arc<Place> {
        let number = self.shared.state().order.enter();
        Arc::new(Place { number, shared: Arc::clone(&self.shared) })
    }

    /// Whether a unit may make an output now.
    ///
    /// # Errors
    /// Too much waits to be written, and the unit goes back to its queue. Or there can be no thread for the printer.
    pub(crate) fn has_room(&self, place: Option<&Place>) -> Result<(), Failure> {
        let mut state = self.shared.state();
        if !state.started {
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new().name("printer".to_owned()).spawn(move || shared.write_what_is_due());
            started.map_err(|error| Failure::msg(format!("no thread to print outputs: {error}")))?;
            state.started = true;
        }
        if state.bytes > self.capacity && place.is_none_or(|place| place.number > state.order.first()) {
            return Err(Failure::requeue("outputs wait for the reader of standard output").not_before(PAUSE));
        }
        Ok(())
    }

    /// Hands over an output of a unit that [had room](Self::has_room).
    pub(crate) fn print(&self, output: Output, place: Option<&Place>) {
        if output.bytes() == 0 {
            return;
        }
        let mut state = self.shared.state();
        state.bytes += output.bytes();
        let due = match place {
            Some(place) => state.order.hold(place.number, output),
            None => Some(output),
        };
        if let Some(output) = due {
            state.due.push_back(output);
            drop(state);
            self.shared.changed.notify_all();
        }
    }

    /// Waits until everything is written; units that are still in the flow hold nothing back. After an `abandoned` run,
    /// waits only for a reader that reads.
    ///
    /// # Errors
    /// Standard output could not be written.
    pub(crate) fn finish(&self, abandoned: bool) -> Result<(), Failure> {
        let mut state = self.shared.state();
        let rest = state.order.rest();
        state.due.extend(rest);
        state.ended = true;
        self.shared.changed.notify_all();
        while state.started && state.bytes > 0 {
            let before = state.bytes;
            let (next, waited) = self.shared.changed.wait_timeout(state, GRACE).unwrap_or_else(PoisonError::into_inner);
            state = next;
            if abandoned && waited.timed_out() && state.bytes == before {
                break;
            }
        }
        match &state.trouble {
            Some(Trouble::Failed(reason)) => {
                Err(Failure::permanent(format!("cannot write to standard output: {reason}")))
            }
            Some(Trouble::ReaderGone) | None => Ok(()),
        }
    }
}

impl fmt::Debug for Printer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Printer").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl Shared {
    /// Held for a few instructions only.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The printer's thread.
    fn write_what_is_due(&self) {
        let mut writer = Writer::open();
        let mut state = self.state();
        loop {
            if state.due.is_empty() {
                if state.ended {
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let due = std::mem::take(&mut state.due);
            let knew = state.trouble.is_some();
            drop(state);
            let mut unwritten = 0;
            for output in due {
                unwritten += output.bytes();
                writer.write(&output);
                if writer.piece.is_empty() {
                    self.state().bytes -= std::mem::take(&mut unwritten);
                }
            }
            writer.flush();
            state = self.state();
            state.bytes -= unwritten;
            if let (false, Some(trouble)) = (knew, &writer.trouble) {
                state.trouble = Some(trouble.clone());
                drop(state);
                if let Some(tell) = self.on_trouble.get() {
                    tell(trouble);
                }
                state = self.state();
            }
            self.changed.notify_all();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let due = state.order.leave(self.number);
        if !due.is_empty() {
            state.due.extend(due);
            drop(state);
            self.shared.changed.notify_all();
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.number).finish()
    }
}

impl Output {
    fn bytes(&self) -> u64 {
        (self.stdout.len() + self.stderr.len()) as u64
    }

    /// The output with `tag` and a tab before each line, and each last line ended.
    pub(crate) fn tagged(self, tag: &[u8]) -> Self {
        Self { stdout: with_tags(&self.stdout, tag), stderr: with_tags(&self.stderr, tag) }
    }
}

fn with_tags(content: &[u8], tag: &[u8]) -> Vec<u8> {
    let mut tagged = Vec::with_capacity(content.len() + tag.len());
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        tagged.extend_from_slice(tag);
        tagged.push(b'\t');
        tagged.extend_from_slice(line);
    }
    if !tagged.is_empty() && !tagged.ends_with(b"\n") {
        tagged.push(b'\n');
    }
    tagged
}

/// The streams, and what is not written to standard output yet.
struct Writer {
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    piece: Vec<u8>,
    trouble: Option<Trouble>,
}

impl Writer {
    fn open() -> Self {
        let mut writer = Self { stdout: None, stderr: Stream::stderr().ok(), piece: Vec::new(), trouble: None };
        match Stream::stdout() {
            Ok(stdout) => writer.stdout = Some(stdout),
            Err(error) => writer.fails(&error),
        }
        writer
    }

    fn write(&mut self, output: &Output) {
        if self.piece.len() + output.stdout.len() > PIECE {
            self.flush();
        }
        if output.stdout.len() > PIECE {
            self.put(&output.stdout);
        } else {
            self.piece.extend_from_slice(&output.stdout);
        }
        if !output.stderr.is_empty() {
            self.flush();
            // There is nowhere to report to that standard error takes no more.
            self.stderr = self.stderr.take().and_then(|mut to| to.write_all(&output.stderr).is_ok().then_some(to));
        }
    }

    fn flush(&mut self) {
        let piece = std::mem::take(&mut self.piece);
        self.put(&piece);
        self.piece = piece;
        self.piece.clear();
    }

    fn put(&mut self, content: &[u8]) {
        if let Some(stdout) = &mut self.stdout
            && let Err(error) = stdout.write_all(content)
        {
            self.fails(&error);
        }
    }

    fn fails(&mut self, error: &io::Error) {
        self.stdout = None;
        self.trouble = Some(match error.kind() {
            io::ErrorKind::BrokenPipe => Trouble::ReaderGone,
            _ => Trouble::Failed(error.to_string()),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Output, Printer};

    fn output(text: &str) -> Output {
        Output { stdout: text.into(), stderr: Vec::new() }
    }

    #[test]
    fn every_line_bears_the_tag_and_the_last_one_ends() {
        let both = |text: &str| {
            let tagged = Output { stdout: text.into(), stderr: text.into() }.tagged(b"a");
            assert_eq!(tagged.stdout, tagged.stderr);
            String::from_utf8(tagged.stdout).unwrap()
        };
        assert_eq!(both("one\ntwo"), "a\tone\na\ttwo\n");
        assert_eq!(both("one\n\n"), "a\tone\na\t\n");
        assert_eq!(both(""), "");
    }

    #[test]
    fn a_unit_goes_back_to_its_queue_unless_others_wait_for_it() {
        let printer = Printer::new(4);
        let [first, second] = [printer.place(), printer.place()];
        printer.print(output("many bytes"), Some(&second));
        assert!(printer.has_room(Some(&second)).is_err() && printer.has_room(None).is_err());
        assert!(printer.has_room(Some(&first)).is_ok());
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
}
