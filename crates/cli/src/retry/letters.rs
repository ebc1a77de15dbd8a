//! Reads a file of dead letters in order to run their units again.
//!
//! The file is read three times, line by line, so that it is never in memory as a whole. The first pass checks the
//! whole file before any unit runs. The second pass is the source of the retry. The third pass copies the letters that
//! the retry did not reach.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millstream_command::hex;
use millstream_command::screen::shown;
use millstream_runner::record::WantedPiece;
use millstream_runner::source::Again;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::origin::Origin;

/// The reason why a file of dead letters cannot be retried. No unit has run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LettersError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", shown::path(path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        error: io::Error,
    },
    /// A run still adds letters to the file, or another retry runs the file's units.
    #[error(
        "{} is in use by a run or another retry that has not ended: retry it when that is over, if there are letters left",
        shown::path(path)
    )]
    Live {
        /// The file.
        path: PathBuf,
    },
    /// A line is not a dead letter.
    #[error(
        "{}:{line} is not a dead letter that can be retried: {reason}; take the line out to retry the others",
        shown::path(path)
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The reason.
        reason: String,
    },
    /// The letters come from several runs, and not all of these are retries of one run.
    #[error(
        "{}:{line} comes from another run than the letters before it: retry the letters of each in a file of their own",
        shown::path(path)
    )]
    Mixed {
        /// The file.
        path: PathBuf,
        /// The number of the first line from a different run, from 1.
        line: usize,
    },
}

/// The members of one line that a retry needs.
#[derive(Debug, Deserialize)]
struct Letter {
    run: String,
    #[serde(default)]
    started: u64,
    #[serde(default)]
    unit: u64,
    path: Option<String>,
    path_hex: Option<String>,
    line: Option<String>,
    line_hex: Option<String>,
    #[serde(default)]
    items: bool,
    #[serde(default)]
    rel_from: usize,
    #[serde(default)]
    part: Vec<u64>,
    #[serde(default)]
    after: u64,
    #[serde(default)]
    is_sum: bool,
    #[serde(default)]
    source_fault: bool,
    retry: Origin,
}

/// Letters that can be retried: at least one, and all from one run and its retries.
#[derive(Debug)]
pub(crate) struct Letters {
    /// The file, which stays open while its letters are retried. The lock on the file keeps other retries from running
    /// the same units. The kernel releases the lock when the process ends for any reason.
    lock: File,
    source: File,
    rest: File,
    count: usize,
    /// The number of letters about something that the source could not read, such as a folder.
    faults: usize,
    runs: Vec<String>,
    origin: Origin,
    done: Arc<[AtomicBool]>,
    /// For each letter, whether its piece could not be reached, because the unit that contains the piece has died.
    missed: Arc<[AtomicBool]>,
}

impl Letters {
    /// Reads and checks a file. Returns `None` if the file has no letter.
    ///
    /// # Errors
    /// [`LettersError`].
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, LettersError> {
        Self::read(path, true)
    }

    /// Reads and checks a file that this process has locked.
    ///
    /// # Errors
    /// [`LettersError`].
    pub(crate) fn open_own(path: &Path) -> Result<Option<Self>, LettersError> {
        Self::read(path, false)
    }

    fn read(path: &Path, may_be_live: bool) -> Result<Option<Self>, LettersError> {
        let unreadable = |error| LettersError::Unreadable { path: path.to_owned(), error };
        let open = || -> io::Result<File> {
            let file = File::open(path)?;
            match file.metadata()?.is_file() {
                true => Ok(file),
                false => Err(io::Error::other("it is not a regular file")),
            }
        };
        let [check, source, rest] = [open(), open(), open()].map(|file| file.map_err(unreadable));
        let lock = check?;
        if may_be_live && !is_locked_alone(&lock, path).map_err(unreadable)? {
            return Err(LettersError::Live { path: path.to_owned() });
        }
        let check = lock.try_clone().map_err(unreadable)?;
        let mut first: Option<Origin> = None;
        let (mut count, mut faults, mut runs, mut known) = (0, 0, Vec::new(), HashSet::new());
        for (index, (number, line)) in lines(check).enumerate() {
            let wrong = |reason| LettersError::Line { path: path.to_owned(), line: number, reason };
            let letter = parse(&line.map_err(unreadable)?).map_err(wrong)?;
            let unit = again(&letter, index).map_err(wrong)?;
            faults += usize::from(unit.is_none());
            count += 1;
            if known.insert(letter.run.clone()) {
                runs.push(letter.run);
            }
            if !first.get_or_insert_with(|| letter.retry.clone()).is_same_run(&letter.retry) {
                return Err(LettersError::Mixed { path: path.to_owned(), line: number });
            }
        }
        let [done, missed] = [(); 2].map(|()| (0..count).map(|_| AtomicBool::new(false)).collect());
        let (source, rest) = (source?, rest?);
        Ok(first.map(|origin| Self { lock, source, rest, count, faults, runs, origin, done, missed }))
    }

    /// The file, which stays locked as long as this value exists.
    pub(crate) fn locked(&self) -> &File {
        &self.lock
    }

    /// The number of letters.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The number of units to run again.
    pub(crate) fn units(&self) -> usize {
        self.count - self.faults
    }

    /// The number of letters about something that the source could not read, such as a folder. These letters have no
    /// unit.
    pub(crate) fn faults(&self) -> usize {
        self.faults
    }

    /// The runs from which the letters come.
    pub(crate) fn runs(&self) -> &[String] {
        &self.runs
    }

    /// The run from which the letters come. For letters of a retry, this is the first run in the chain of retries.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the units in the order of their admission, for one pass. With `whole`, a letter of a piece makes the
    /// whole unit run again, and a unit is returned only once for all its letters. One of these letters is marked when
    /// the unit has ended; the other letters are marked at once.
    ///
    /// # Errors
    /// The errors of the system.
    pub(crate) fn source(&self, whole: bool) -> io::Result<impl Iterator<Item = Again> + Send + use<>> {
        let lines = lines(self.source.try_clone()?).enumerate();
        // Errors are skipped here, because `open` has already read and parsed all lines.
        let done = self.marker();
        let runs = self.runs.clone();
        let units = lines.filter_map(move |(index, (_, line))| {
            let letter = parse(&line.ok()?).ok()?;
            let run = runs.iter().position(|run| *run == letter.run);
            Some(((run, letter.unit), again(&letter, index).ok()??))
        });
        let mut units = in_order(units);
        let together = if whole { usize::MAX } else { TOGETHER };
        Ok(std::iter::from_fn(move || {
            let some = units.by_ref().take(together);
            let some = if whole { whole_units(some, &done) } else { by_unit(some.collect()) };
            (!some.is_empty()).then_some(some)
        })
        .flatten())
    }

    /// Marks a letter whose unit was retired or has died again. Returns `false` if the letter was marked already.
    pub(crate) fn mark(&self, letter: usize) -> bool {
        // Relaxed: the count of the units that have not ended (`live::Round::left`) orders the marks.
        self.done.get(letter).is_some_and(|done| !done.swap(true, Ordering::Relaxed))
    }

    /// A function that marks a letter whose unit was retired or has died again.
    pub(crate) fn marker(&self) -> impl Fn(usize) + Send + Sync + Clone + use<> {
        let done = Arc::clone(&self.done);
        // Relaxed: the end of the flow orders the marks before the reads in `rest`.
        move |letter| done[letter].store(true, Ordering::Relaxed)
    }

    /// A function that notes for a letter that its piece could not be reached, because the unit that contains the piece
    /// has died. Such a letter stays in the file.
    pub(crate) fn missing(&self) -> impl Fn(usize) + Send + Sync + Clone + use<> {
        let missed = Arc::clone(&self.missed);
        // Relaxed: the end of the flow orders the marks before the reads in `rest`.
        move |letter| missed[letter].store(true, Ordering::Relaxed)
    }

    /// Returns the lines of the letters that must stay, each without its [`head`], for one pass. These are the letters
    /// about something that the source could not read, and the letters of pieces that were not reached. If the retry is
    /// not `complete`, the letters of units that neither were retired nor died again also stay.
    ///
    /// # Errors
    /// The errors of the system.
    pub(crate) fn rest(&self, complete: bool) -> io::Result<impl Iterator<Item = Vec<u8>>> {
        let lines = lines(self.rest.try_clone()?).enumerate();
        Ok(lines.filter_map(move |(index, (_, line))| {
            let line = line.ok()?;
            if self.done.get(index).is_none_or(|done| done.load(Ordering::Relaxed)) {
                return None;
            }
            let letter = parse(&line).ok()?;
            let missed = self.missed.get(index).is_some_and(|missed| missed.load(Ordering::Relaxed));
            (!complete || missed || letter.source_fault || letter.is_sum).then(|| without_head(&line, &letter))
        }))
    }
}

/// Whether a file of letters exists and no process has locked it.
pub(super) fn is_left(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| is_locked_alone(&file, path).unwrap_or(false))
}

/// Locks a file of letters. Returns `false` if another process has locked the file, or has replaced the file meanwhile.
fn is_locked_alone(file: &File, path: &Path) -> io::Result<bool> {
    // Other errors are ignored: if the file system has no locks, concurrent retries cannot be detected.
    if flock(file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Ok(false);
    }
    let (own, there) = (file.metadata()?, path.metadata());
    Ok(there.is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino())))
}

/// The number of letters that are processed together. If several of them are of pieces of one unit, the unit is split
/// only once.
const TOGETHER: usize = 1 << 16;

/// Sorts the units by their keys. No unit may come more than [`TOGETHER`] positions after its sorted position. Letters
/// are written when units fail, and units that are in flight together may fail in any order.
fn in_order<K: Ord>(units: impl Iterator<Item = (K, Again)>) -> impl Iterator<Item = Again> {
    let mut units = units.fuse();
    let mut waiting = BTreeMap::new();
    std::iter::from_fn(move || {
        while waiting.len() < TOGETHER
            && let Some((key, unit)) = units.next()
        {
            waiting.insert((key, unit.letter), unit);
        }
        waiting.pop_first().map(|(_, unit)| unit)
    })
}

/// Merges letters of the same unit. The units are in the order of their first letters.
fn by_unit(letters: Vec<Again>) -> Vec<Again> {
    let mut units: Vec<Again> = Vec::new();
    let mut of_pieces: HashMap<_, usize> = HashMap::new();
    for mut letter in letters {
        if letter.wanted.is_empty() {
            units.push(letter);
            continue;
        }
        let unit = (letter.text.clone(), letter.is_group, letter.rel_from);
        match of_pieces.entry(unit) {
            Entry::Occupied(at) => units[*at.get()].wanted.append(&mut letter.wanted),
            Entry::Vacant(place) => {
                place.insert(units.len());
                units.push(letter);
            }
        }
    }
    for unit in &mut units {
        unit.wanted.sort_unstable();
    }
    units
}

/// The units to which these letters belong, each as a whole and only once. A letter states the text of its unit, but
/// several units may have the same text. So this function assumes the smallest number of units that explains the
/// letters with a text: the greater of two numbers, the letters of whole units, and the letters of the piece that has
/// the most letters.
fn whole_units(letters: impl Iterator<Item = Again>, done: impl Fn(usize)) -> Vec<Again> {
    #[derive(Default)]
    struct Alike {
        whole: usize,
        pieces: HashMap<Vec<u64>, usize>,
        /// Letters of pieces. Each of these letters may represent a unit that has no letter of its own.
        spare: Vec<Again>,
    }
    let mut units = Vec::new();
    let mut alike: HashMap<_, Alike> = HashMap::new();
    for mut letter in letters {
        let of_text = alike.entry((letter.text.clone(), letter.is_group, letter.rel_from)).or_default();
        let Some(piece) = letter.wanted.pop() else {
            of_text.whole += 1;
            units.push(letter);
            continue;
        };
        let times = of_text.pieces.entry(piece.parts).or_default();
        *times += 1;
        if of_text.spare.len() < *times {
            of_text.spare.push(letter);
        } else {
            done(letter.letter);
        }
    }
    for Alike { whole, mut spare, .. } in alike.into_values() {
        let others = spare.split_off(spare.len().saturating_sub(whole));
        others.iter().for_each(|letter| done(letter.letter));
        units.extend(spare);
    }
    units.sort_unstable_by_key(|unit| unit.letter);
    units.into_iter().map(|letter| Again { wanted: Vec::new(), after: 0, ..letter }).collect()
}

/// The lines of a file with their numbers, from 1. Blank lines are skipped: a run overwrites a part of a letter with a
/// blank line if it cannot remove the part.
fn lines(file: File) -> impl Iterator<Item = (usize, io::Result<Vec<u8>>)> {
    let lines = (1..).zip(BufReader::new(file).split(b'\n'));
    lines.filter(|(_, line)| !line.as_ref().is_ok_and(|line| line.trim_ascii().is_empty()))
}

/// The start of the line of each letter of a run.
pub(crate) fn head(run: &str, started: u64) -> String {
    format!("{{\"run\":{},\"started\":{started},", serde_json::Value::from(run))
}

/// The line of a letter without its head. If another program has rewritten the line, the members may be in another
/// order.
fn without_head(line: &[u8], letter: &Letter) -> Vec<u8> {
    if let Some(rest) = line.strip_prefix(head(&letter.run, letter.started).as_bytes()) {
        return rest.to_owned();
    }
    // The values are not parsed and stay as they are.
    let members: Result<BTreeMap<String, &RawValue>, _> = serde_json::from_slice(line);
    let mut members = members.expect("a letter is an object of JSON");
    members.remove("run");
    members.remove("started");
    let text = serde_json::to_vec(&members).expect("members have names and values");
    text[1..].to_owned()
}

fn parse(line: &[u8]) -> Result<Letter, String> {
    let line =
        str::from_utf8(line).map_err(|error| format!("it is not UTF-8 from byte {} on", error.valid_up_to() + 1))?;
    serde_json::from_str(line).map_err(|error| {
        let text = error.to_string();
        match text.contains("missing field `retry`") {
            true => "it does not say how its run was started".to_owned(),
            false => text,
        }
    })
}

/// The unit of a letter; `None` if the letter has no unit.
fn again(letter: &Letter, index: usize) -> Result<Option<Again>, String> {
    let is_file = letter.path.is_some();
    let (text, hex) = match is_file {
        true => (&letter.path, &letter.path_hex),
        false => (&letter.line, &letter.line_hex),
    };
    let text = match (hex, text) {
        (Some(digits), _) => {
            hex::decode(digits).map_err(|error| format!("its bytes in hexadecimal are damaged: {error}"))?
        }
        (None, Some(text)) => text.clone().into_bytes(),
        (None, None) => return Err("it has neither a `path` nor a `line`".to_owned()),
    };
    if letter.rel_from > text.len() {
        return Err("its `rel_from` lies beyond the end of its path".to_owned());
    }
    Ok((!letter.source_fault && !letter.is_sum).then_some(Again {
        letter: index,
        text,
        is_group: letter.items,
        rel_from: is_file.then_some(letter.rel_from),
        wanted: match letter.part.is_empty() {
            true => Vec::new(),
            false => vec![WantedPiece { parts: letter.part.clone(), letter: index, passed: letter.after }],
        },
        after: if letter.part.is_empty() { letter.after } else { 0 },
    }))
}
