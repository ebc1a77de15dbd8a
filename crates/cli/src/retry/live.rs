//! Runs dead letters again while the run that wrote them continues.
//!
//! A *round* runs the units of all letters that were written so far. These letters are [set
//! apart](DeadLetters::set_apart) in a file of their own, and a thread sends their units into the flow, in addition to
//! the units of the source. Units that die again get letters in the run's file, like any unit. When the last unit of a
//! round has ended, the round ends and its file is removed. If the run ends first, the letters whose units did not run
//! to an end go back into the run's file. So each unit has at most one letter. If the process is killed, the files of
//! unfinished rounds stay for `millstream retry`: a unit may then run once more than necessary, but no unit is lost.
//!
//! A unit can start over during the run only if the flow has stored nothing of the unit's first pass. Three kinds of
//! stages store something: those that split units, gather units, or drop units whose text they have seen. The letters
//! of flows with such stages can be run again only after the run.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use millstream_command::screen::out::complain;
use millstream_command::screen::{shown, text};
use millstream_flow::{Control, Phase, Submitter};
use millstream_runner::file::FlowFile;
use millstream_runner::file::model::OpSpec;
use millstream_runner::printer::Printer;
use millstream_runner::record::Record;
use millstream_runner::source;
use millstream_runner::source::Again;
use serde::Serialize;

use super::letters::Letters;
use crate::dead_letters::{Apart, DeadLetters};
use crate::serve::Say;
use crate::shell_word::quoted;

/// How long a request waits until the letters are set apart. A rename is quick, but a file system that does not respond
/// must not delay other requests.
const PATIENCE: Duration = Duration::from_secs(2);

/// A function that marks the letter with this number in its file.
type Marker = Box<dyn Fn(usize) + Send + Sync>;

/// The letters whose units are in the flow. Each letter has a number that is unique among all files of letters.
#[derive(Default)]
pub(crate) struct Marks(RwLock<Vec<(usize, Marker)>>);

impl Marks {
    /// Adds letters that are about to be retried. Returns the number of the first of them.
    pub(crate) fn add(&self, letters: &Letters) -> usize {
        self.add_marker(letters.count(), Box::new(letters.marker()))
    }

    fn add_marker(&self, letters: usize, marker: Marker) -> usize {
        let mut marks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let first = marks.last().map_or(0, |(end, _)| *end);
        marks.push((first + letters, marker));
        first
    }

    /// Marks a letter whose unit was retired or has died again.
    pub(crate) fn settle(&self, letter: usize) {
        let marks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let place = marks.partition_point(|(end, _)| *end <= letter);
        let first = place.checked_sub(1).map_or(0, |before| marks[before].0);
        if let Some((_, mark)) = marks.get(place) {
            mark(letter - first);
        }
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Marks").finish_non_exhaustive()
    }
}

/// The reason why a flow's letters cannot be run again during the run; `None` if they can.
pub(crate) fn refusal(file: &FlowFile) -> Option<String> {
    file.stages.iter().find_map(|stage| {
        let does = match stage.op {
            OpSpec::Split(_) => "splits units",
            OpSpec::Gather(_) => "gathers units",
            OpSpec::Unique { .. } => "drops units whose text it has seen",
            _ => return None,
        };
        Some(format!("stage {} {does}", text::printable(&stage.name)))
    })
}

/// The parts of a run that are needed to run its dead letters again.
pub(crate) struct Parts {
    pub(crate) file: FlowFile,
    pub(crate) inputs: Vec<OsString>,
    pub(crate) letters: Arc<DeadLetters>,
    pub(crate) marks: Arc<Marks>,
    pub(crate) control: Control,
    /// The printer that gives units their positions, if the flow prints in order.
    pub(crate) printer: Option<Arc<Printer>>,
    pub(crate) say: Say,
}

/// Runs the dead letters of a run again. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Readmission(Arc<Inner>);

struct Inner {
    parts: Parts,
    refusal: Option<String>,
    gate: OnceLock<Submitter<Record, Record>>,
    /// Whether a thread of a round is running.
    busy: AtomicBool,
    /// The number of letters that were set apart.
    taken: AtomicU64,
    /// The number of letters that went back into the run's file.
    kept: AtomicU64,
    /// The number of units that were sent into the flow.
    sent: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    thread: Option<JoinHandle<()>>,
    /// The rounds that have not ended. The thread that removes a round from this list also puts the round's letters
    /// back.
    rounds: Vec<Arc<Round>>,
    is_over: bool,
}

/// The letters that were set apart together.
struct Round {
    letters: Letters,
    apart: Apart,
    /// Whether every unit was sent.
    is_sent: AtomicBool,
    /// The number of units that have not ended, plus one until all units have been sent.
    left: AtomicUsize,
}

impl Round {
    /// Counts one unit as ended. Returns whether it was the last unit.
    fn ends_one(&self) -> bool {
        // Acquire and release: the thread that ends the last unit sees the marks of all other threads.
        self.left.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// The state of the letters that can be run again, as a page shows it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Facts {
    /// The number of letters in the file.
    pub(crate) letters: u64,
    /// The number of letters whose units were sent again.
    pub(crate) again: u64,
    /// The command that runs the letters again when the run is over.
    pub(crate) command: String,
    /// The reason why the letters cannot be run again during the run.
    pub(crate) refused: Option<String>,
}

/// The fate of the letters that were run again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RanAgain {
    /// The number of letters that were set apart.
    pub(crate) taken: u64,
    /// The number of these letters that went back into the run's file, because their units did not run to an end.
    pub(crate) kept: u64,
}

impl RanAgain {
    /// The number of letters whose units ran to an end.
    pub(crate) fn ran(self) -> u64 {
        self.taken.saturating_sub(self.kept)
    }

    /// The number of dead units after `died` deaths. A unit that ran again counts as dead only if it died again.
    pub(crate) fn still_dead(self, died: u64) -> u64 {
        (died + self.kept).saturating_sub(self.taken)
    }
}

impl fmt::Debug for Readmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readmission").field("refusal", &self.0.refusal).finish_non_exhaustive()
    }
}

impl Readmission {
    pub(crate) fn new(parts: Parts) -> Self {
        let refusal = refusal(&parts.file);
        Self(Arc::new(Inner {
            parts,
            refusal,
            gate: OnceLock::new(),
            busy: AtomicBool::new(false),
            taken: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            state: Mutex::default(),
        }))
    }

    /// Notes that the flow has started and accepts units through `gate`.
    pub(crate) fn open(&self, gate: Submitter<Record, Record>) {
        let _ = self.0.gate.set(gate);
    }

    /// The number of units that were sent into the flow in addition to the source.
    pub(crate) fn sent(&self) -> u64 {
        // Relaxed: the number is only shown.
        self.0.sent.load(Ordering::Relaxed)
    }

    /// The current state of the letters. `phase` is the phase of the run.
    pub(crate) fn facts(&self, phase: Phase) -> Facts {
        let inner = &*self.0;
        let closed = || (phase != Phase::Running).then(|| "The run admits no more units".to_owned());
        Facts {
            letters: inner.parts.letters.tally().written,
            // Relaxed: the number is only shown.
            again: inner.taken.load(Ordering::Relaxed),
            command: inner.command(),
            refused: inner.refusal.clone().or_else(closed),
        }
    }

    /// Begins to run the units of all letters again. The text that is returned states the number of letters.
    ///
    /// # Errors
    /// The reason why the letters are not run again now. If the reason is a slow file system, they are run again later.
    pub(crate) fn begin(&self) -> Result<String, String> {
        let inner = &self.0;
        let later = |why: &str| Err(format!("{why}: when the run is over, `{}` runs them again", inner.command()));
        if let Some(why) = &inner.refusal {
            return later(why);
        }
        let letters = inner.parts.letters.tally().written;
        if letters == 0 {
            return Err("there are no dead letters to run again".to_owned());
        }
        let mut state = inner.state();
        if state.is_over || inner.is_closed() {
            drop(state);
            return later("the run admits no more units");
        }
        // Acquire and release: everything that a thread did happens before the next thread starts.
        if inner.busy.swap(true, Ordering::AcqRel) {
            return Err("dead letters are being run again already".to_owned());
        }
        let running = Arc::clone(inner);
        let (tell, told) = sync_channel(1);
        let spawned = thread::Builder::new().name("retry".to_owned()).spawn(move || {
            running.run(&tell);
            running.busy.store(false, Ordering::Release);
        });
        match spawned {
            Ok(thread) => state.thread = Some(thread),
            Err(error) => {
                inner.busy.store(false, Ordering::Release);
                return Err(format!("nothing is run again: {error}"));
            }
        }
        drop(state);
        match told.recv_timeout(PATIENCE) {
            Ok(Ok(letters)) => {
                let (units, are) = (text::counted(letters, "dead letter"), if letters == 1 { "is" } else { "are" });
                Ok(format!("{units} {are} run again"))
            }
            Ok(Err(why)) => Err(format!("dead letters are not run again: {why}")),
            Err(_) => {
                let path = inner.parts.letters.path();
                let seconds = PATIENCE.as_secs();
                Err(format!(
                    "the file system has not set {} apart within {seconds} s; when it has, its units are run again",
                    shown::path(&path)
                ))
            }
        }
    }

    /// Ends the rounds because the flow is over. `complete` tells whether every admitted unit has left the flow.
    /// Letters whose units did not run to an end go back into the run's file.
    pub(crate) fn finish(&self, complete: bool) -> RanAgain {
        let inner = &*self.0;
        let thread = {
            let mut state = inner.state();
            state.is_over = true;
            state.thread.take()
        };
        if let Some(thread) = thread {
            // The flow accepts no more units, so the thread ends soon.
            let _ = thread.join();
        }
        let rounds = std::mem::take(&mut inner.state().rounds);
        for round in rounds {
            // Relaxed: the thread that sends has ended.
            inner.put_back(&round, complete && round.is_sent.load(Ordering::Relaxed));
        }
        // Relaxed: the threads that count have ended.
        let [taken, kept] = [&inner.taken, &inner.kept].map(|count| count.load(Ordering::Relaxed));
        RanAgain { taken, kept }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command that runs the letters again when the run is over.
    fn command(&self) -> String {
        format!("millstream retry {}", quoted(self.parts.letters.path().as_os_str().as_encoded_bytes()))
    }

    fn is_closed(&self) -> bool {
        self.gate.get().is_none() || self.parts.control.snapshot().phase != Phase::Running
    }

    fn say(&self, line: String) {
        (self.parts.say)(line);
    }

    /// Sets the letters apart, and sends their number, or the reason why this failed, to `tell`. Then sends their units
    /// into the flow.
    fn run(self: &Arc<Self>, tell: &SyncSender<Result<u64, String>>) {
        let letters = self.parts.letters.tally().written;
        let apart = match self.parts.letters.set_apart() {
            Ok(Some(apart)) => apart,
            Ok(None) => return drop(tell.send(Err("there are none any more".to_owned()))),
            Err(error) => return drop(tell.send(Err(error.to_string()))),
        };
        // An error means that the client no longer waits, and is ignored.
        let _ = tell.send(Ok(letters));
        let letters = match Letters::open_own(&apart.path) {
            Ok(Some(letters)) => letters,
            Ok(None) => return drop(fs::remove_file(&apart.path)),
            Err(error) => {
                let path = shown::path(&apart.path);
                return self.say(format!("dead letters are not run again and stay in {path}: {error}"));
            }
        };
        // Relaxed: while this thread runs, the number is only shown.
        self.taken.fetch_add(letters.count() as u64, Ordering::Relaxed);
        let (units, left) = (letters.units(), AtomicUsize::new(letters.units() + 1));
        let round = Arc::new(Round { letters, apart, is_sent: AtomicBool::new(false), left });
        self.state().rounds.push(Arc::clone(&round));
        let first = self.parts.marks.add_marker(round.letters.count(), self.marker(&round));
        match round.letters.source(false).map(|again| self.send(again, first, units)) {
            Ok(sent) => {
                self.say(format!("{} of dead letters came in again", text::counted(sent, "unit")));
                if sent == units as u64 {
                    // Relaxed: the flag is read after this thread has ended.
                    round.is_sent.store(true, Ordering::Relaxed);
                    if round.ends_one() {
                        self.end(&round);
                    }
                }
            }
            Err(error) => self.say(format!("dead letters are not run again: {error}")),
        }
    }

    /// A function that marks a letter of the round. The mark of the last letter ends the round.
    fn marker(self: &Arc<Self>, round: &Arc<Round>) -> Marker {
        // The references are weak, because the values to which they point own this function.
        let (inner, round) = (Arc::downgrade(self), Arc::downgrade(round));
        Box::new(move |letter| {
            if let (Some(inner), Some(round)) = (inner.upgrade(), round.upgrade())
                && round.letters.mark(letter)
                && round.ends_one()
            {
                inner.end(&round);
            }
        })
    }

    /// Ends the round once all of its units have ended.
    fn end(&self, round: &Arc<Round>) {
        let mut state = self.state();
        let place = state.rounds.iter().position(|other| Arc::ptr_eq(other, round));
        let taken = place.map(|place| state.rounds.swap_remove(place));
        drop(state);
        if let Some(round) = taken {
            self.put_back(&round, true);
        }
    }

    /// Sends units until the flow accepts no more. Returns the number of units that were sent.
    fn send(&self, units: impl Iterator<Item = Again> + Send + 'static, first: usize, count: usize) -> u64 {
        let Some(gate) = self.gate.get() else { return 0 };
        let units = units.map(move |unit| Again { letter: unit.letter + first, ..unit });
        let mut sent = 0;
        for mut record in source::again(&self.parts.file, &self.parts.inputs, units, count) {
            record.place = self.parts.printer.as_ref().map(|printer| printer.place());
            if gate.send(record).is_err() {
                break;
            }
            sent += 1;
            // Relaxed: the number is only shown.
            self.sent.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }

    /// Puts back the letters whose units did not run to an end, and removes the file of the round.
    fn put_back(&self, round: &Round, complete: bool) {
        let letters = &self.parts.letters;
        let refused = letters.tally().refused;
        let stays = match round.letters.rest(complete) {
            Ok(rest) => {
                for letter in rest {
                    letters.keep(&letter);
                    // Relaxed: the number is read after all threads that change it have ended.
                    self.kept.fetch_add(1, Ordering::Relaxed);
                }
                letters.tally().refused > refused
            }
            Err(_) => true,
        };
        if stays || fs::remove_file(&round.apart.path).is_err() {
            complain(format!("dead letters that were run again stay in {}", shown::path(&round.apart.path)));
        }
    }
}
