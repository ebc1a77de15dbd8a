//! The file of dead letters: a line of JSON for each unit that has failed for good, written immediately.
//!
//! ```json
//! {"run":"fetch-4711","started":1794212311,"time":1794212313.25,"unit":17,"stage":"get","attempts":3,"cause":"error",
//!  "message":"status 503 Service Unavailable","line":"http://example.org/17"}
//! ```
//!
//! | member | meaning |
//! | --- | --- |
//! | `run`, `started` | the run (flow and process id) and the moment it began, in seconds since 1970 |
//! | `time` | the moment of the final failure, in seconds since 1970 |
//! | `unit` | the unit's number, from 0; numbers ascend in the order in which units enter the flow |
//! | `stage`, `attempts`, `cause`, `message` | where, after how many attempts, and why |
//! | `path` or `line` | the unit: a file that a walk found, or a line or argument |
//! | `path_hex` or `line_hex` | only if the path or line is not UTF-8: its bytes in hexadecimal (`path` or `line` is then a readable approximation) |
//! | `items` | `true` for a group of items: `line` contains them, separated by zero bytes |
//! | `rel_from` | for a `path`: the offset at which its part below the walked folder starts |
//! | `part` | for a piece of the unit: its number at each split, from 1 |
//! | `after` | the number of the last piece that the unit had produced when it failed |
//! | `gathered` | for a unit that failed as part of a group: the number of units in the group; each unit that can be retried has a letter |
//! | `is_sum` | `true` for a group that only counted or added: its units are no longer known, so none of them can be retried |
//! | `source_fault` | `true` for something that the source could not read, such as a folder: there is no unit to retry |
//! | `retry` | what `millstream retry` needs: the flow file with its hash, folder, parameters, INPUTs and caps |
//!
//! The file contains the letters of one run. The file of an earlier run becomes `FILE.old` before the first unit
//! enters. A file to which a live run still writes is left alone: this run's letters then go to `FILE.RUN`. The file is
//! created at the first letter, and only its owner can read it. If failed units run again while their run continues,
//! their letters are kept in `FILE.RUN.again-N` until they are settled. The letters that `millstream retry` runs again
//! are kept in `FILE.RUN.again-0`. A letter that cannot be written, for example because the disk is full, goes to
//! standard error instead. If a part of the letter was written and cannot be removed, that part is overwritten with a
//! blank line, which a retry skips.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use millstream_command::hex;
use millstream_command::program::LOOK;
use millstream_command::screen::{out, shown};
use millstream_command::writable::{self, NotWritable, Way};
use millstream_flow::{Cause, DeadLetter, Failure};
use millstream_runner::group::Group;
use millstream_runner::leftovers;
use millstream_runner::ops::line_file::LineFile;
use millstream_runner::ops::patience::Patience;
use millstream_runner::ops::turn::Turn;
use millstream_runner::record::Record;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Serialize;

use crate::retry::letters;
use crate::retry::origin::Origin;

/// The file's permissions: only its owner can read it. A retry needs the unit's text and the parameters verbatim, so a
/// letter may include secrets.
const OWN: u32 = 0o600;

/// Writes the dead letters of one run.
#[derive(Debug)]
pub(crate) struct DeadLetters {
    run: String,
    started: u64,
    origin: Origin,
    /// The file, opened at the first letter, and locked for as long as this run lasts.
    file: Turn<Option<LineFile>>,
    /// The device and inode of the file whose letters this run retries. The run keeps that file locked.
    retried: OnceLock<(u64, u64)>,
    /// The name of the retried file during the retry, and its name afterwards.
    aside: OnceLock<(PathBuf, PathBuf)>,
    state: Mutex<State>,
    given_up: AtomicBool,
}

/// The state that other threads can read while a letter is being written.
#[derive(Debug)]
struct State {
    path: PathBuf,
    tally: Tally,
}

/// The fate of a run's dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The number of letters in the file.
    pub written: u64,
    /// The number of letters that could not be written and went to standard error.
    pub refused: u64,
}

/// The file for a flow's dead letters if the command line names none: beside the report, or in the current folder.
pub(crate) fn default_path(flow: &str, report: Option<&Path>) -> PathBuf {
    match report {
        Some(report) => report.with_extension("dead-letters.jsonl"),
        None => {
            let name: String = flow.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).collect();
            PathBuf::from(format!("{name}.dead-letters.jsonl"))
        }
    }
}

impl DeadLetters {
    /// Returns the dead letters of `run`. They will go to the file at `path`, which is not touched before
    /// [`begin`](Self::begin).
    ///
    /// # Errors
    /// [`NotWritable`], if a letter could not be written there.
    pub(crate) fn check(path: PathBuf, run: String, origin: Origin) -> Result<Self, NotWritable> {
        writable::check_listed(&path, Way::Append, leftovers::note)?;
        let state = Mutex::new(State { path, tally: Tally { written: 0, refused: 0 } });
        let (started, file) = (unix_time().floor() as u64, Turn::new(None));
        let (retried, aside, given_up) = (OnceLock::new(), OnceLock::new(), AtomicBool::new(false));
        Ok(Self { run, started, origin, file, retried, aside, state, given_up })
    }

    /// Begins the run, and renames the file with the letters of an earlier run. `retried` is the file whose letters
    /// this run retries.
    ///
    /// # Errors
    /// [`NotWritable`], if that file cannot be renamed.
    pub(crate) fn begin(&self, retried: Option<&File>) -> Result<(), NotWritable> {
        if let Some(place) = retried.and_then(|file| file.metadata().ok()).map(|found| (found.dev(), found.ino())) {
            let _ = self.retried.set(place);
        }
        let path = self.path();
        // A pipe or a device is not renamed: letters are appended to it.
        if writable::check_replaceable(&path).is_err() {
            return Ok(());
        }
        match File::open(&path) {
            Ok(found) => match self.lock(&found) {
                Ok(false) => Ok(()),
                // The lock is held until `found` is closed, which is after the file has been renamed.
                _ if self.is_retried(&found) => self.set_retried_aside(&path),
                _ => set_aside(&path),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            // This user may write the file but not read it, so it cannot be opened and locked here.
            Err(_) => set_aside(&path),
        }
        .map_err(|source| NotWritable {
            path,
            source,
            help: "an earlier run's letters are there and could not be renamed: move them away".to_owned(),
        })
    }

    /// Renames the file of letters if this run retries them and writes to the same path. Until
    /// [`end_retry`](Self::end_retry), the file is called `FILE.RUN.again-0`, so that the letters are found if the
    /// process is killed.
    fn set_retried_aside(&self, path: &Path) -> io::Result<()> {
        let aside = with_suffix(path, &format!(".{}.again-0", self.run));
        fs::rename(path, &aside)?;
        let _ = self.aside.set((aside, with_suffix(path, ".old")));
        Ok(())
    }

    /// Ends the retry. Every retried letter is settled or is in the new file again, so the retried file becomes
    /// `FILE.old`.
    ///
    /// # Errors
    /// The file cannot be renamed; it keeps its name.
    pub(crate) fn end_retry(&self) -> io::Result<()> {
        self.aside.get().map_or(Ok(()), |(aside, old)| fs::rename(aside, old))
    }

    /// The file.
    pub(crate) fn path(&self) -> PathBuf {
        self.state().path.clone()
    }

    /// Writes a letter; any thread may call this. A letter that cannot be written goes to standard error, with the
    /// reason.
    ///
    /// If a group keeps its members, each member gets a letter, since a retry gathers the members again. A group that
    /// failed [only because a piece is missing](only_lacks) gets no letter.
    pub(crate) fn take(&self, letter: &DeadLetter) {
        if only_lacks(letter) {
            return;
        }
        let record = letter.input::<Record>();
        record.into_iter().for_each(Record::note_letter);
        self.take_unit(letter, record);
    }

    fn take_unit(&self, letter: &DeadLetter, record: Option<&Record>) {
        let group = record.and_then(|record| record.gathered_whole()?.group());
        match group.filter(|group| !group.members().is_empty()) {
            // To produce a piece of a group again, a retry needs all members of the group. The members may be pieces of
            // groups themselves.
            Some(group) if group.takes_letters() => {
                group.members().iter().for_each(|member| self.take_unit(letter, Some(member)));
            }
            Some(_) => {}
            None => self.write(self.line(letter, record).as_bytes()),
        }
    }

    /// Keeps, as a letter of this run, an earlier letter whose unit this run did not reach. `rest` is the text after the
    /// letter's [`head`](letters::head).
    pub(crate) fn keep(&self, rest: &[u8]) {
        let head = letters::head(&self.run, self.started);
        self.write(&[head.as_bytes(), rest, b"\n"].concat());
    }

    /// Ends the waits of writes: from now on, the write of a letter fails if it would have to wait.
    pub(crate) fn give_up(&self) {
        // Relaxed: the flag publishes nothing.
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Moves the letters so far to a file of their own, so that they can be run again; later letters go to a new file.
    /// Returns `None` if there are no letters.
    ///
    /// # Errors
    /// The letters cannot be moved, and stay where they are.
    pub(crate) fn set_apart(&self) -> Result<Option<Apart>, Failure> {
        let mut file = self.file.take(self)?;
        let Some(open) = file.take() else { return Ok(None) };
        let path = self.path();
        let failed = |error: io::Error| Failure::msg(format!("cannot set {} apart: {error}", shown::path(&path)));
        let moved =
            (1..).map(|n| with_suffix(&path, &format!(".{}.again-{n}", self.run))).find(|apart| !apart.exists());
        let apart = moved.expect("a folder does not hold all numbers");
        let renamed = match fs::metadata(&path) {
            Ok(_) if !open.is_in_place() => Err(io::Error::other("it is not the file that this run writes to")),
            Ok(_) => writable::check_replaceable(&path).and_then(|()| fs::rename(&path, &apart)),
            Err(error) => Err(error),
        };
        if let Err(error) = renamed {
            *file = Some(open);
            return Err(failed(error));
        }
        self.state().tally.written = 0;
        open.close().map_err(failed)?;
        let locked = File::open(&apart).map_err(failed)?;
        lock(&locked).map_err(failed)?;
        Ok(Some(Apart { path: apart, _locked: locked }))
    }

    fn write(&self, line: &[u8]) {
        let Err(failure) = self.append(line) else {
            self.state().tally.written += 1;
            return;
        };
        self.state().tally.refused += 1;
        let letter = String::from_utf8_lossy(line);
        out::complain_page(&format!("error: dead letter not written: {failure}\n{letter}"));
    }

    fn append(&self, line: &[u8]) -> Result<(), Failure> {
        let mut file = self.file.take(self)?;
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(self.open()?),
        };
        file.write(line, self)
    }

    /// Opens the file for this run alone. Since this run began, another run may have begun to write to the file, or may
    /// have written to it and ended.
    fn open(&self) -> Result<LineFile, Failure> {
        let mut path = self.path();
        let opened = (|| {
            let mut file = open(&path)?;
            let mut ours = self.lock(&file)?;
            let has_letters = file.metadata().is_ok_and(|found| found.is_file() && found.len() > 0);
            if ours && has_letters && writable::check_replaceable(&path).is_ok() {
                set_aside(&path)?;
                file = open(&path)?;
                ours = self.lock(&file)?;
            }
            if !ours {
                path = with_suffix(&path, &format!(".{}", self.run));
                file = open(&path)?;
                lock(&file)?;
            }
            LineFile::shared(file, path.clone())
        })();
        let file = opened.map_err(|error| Failure::msg(format!("cannot open {}: {error}", shown::path(&path))))?;
        self.state().path = path;
        Ok(file)
    }

    /// Locks the file for this run until the file is closed. Returns `false` if a live run writes to it.
    fn lock(&self, file: &File) -> io::Result<bool> {
        // This run has locked the retried file already, through another open descriptor; a second lock would conflict
        // with that one.
        Ok(self.is_retried(file) || lock(file)?)
    }

    fn is_retried(&self, file: &File) -> bool {
        let place = |found: Metadata| (found.dev(), found.ino());
        self.retried.get().is_some_and(|retried| file.metadata().is_ok_and(|found| place(found) == *retried))
    }

    /// Locks the state; the lock is held for a few instructions only.
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The numbers of letters so far.
    pub(crate) fn tally(&self) -> Tally {
        self.state().tally
    }

    fn line(&self, letter: &DeadLetter, piece: Option<&Record>) -> String {
        let gathered = piece.and_then(Record::gathered_whole);
        let record = gathered.or(piece.map(Record::whole));
        let whole = letter.input::<Record>().and_then(|record| record.gathered_whole().or(Some(record)));
        let text = record.map(|record| String::from_utf8_lossy(record.text()));
        let hex = record.filter(|r| std::str::from_utf8(r.text()).is_err()).map(|r| hex::encode(r.text()));
        let is_group = record.is_some_and(Record::is_group);
        let is_line = is_group || record.is_some_and(|record| record.line_text().is_some());
        let ((line, line_hex), (path, path_hex)) =
            if is_line { ((text, hex), (None, None)) } else { ((None, None), (text, hex)) };
        let line = Line {
            run: &self.run,
            started: self.started,
            time: (unix_time() * 1000.0).floor() / 1000.0,
            unit: letter.unit,
            stage: &letter.stage,
            attempts: letter.attempts,
            cause: letter.cause,
            message: &letter.message,
            path,
            path_hex,
            line,
            line_hex,
            items: is_group.then_some(true),
            rel_from: record.and_then(Record::rel_from).filter(|from| *from > 0),
            part: piece.filter(|_| gathered.is_none()).map(Record::parts).filter(|parts| !parts.is_empty()),
            after: piece.and_then(Record::brought_out).filter(|part| *part > 0),
            gathered: whole.and_then(Record::group).map(Group::count),
            is_sum: gathered.is_some(),
            source_fault: record.is_some_and(|record| record.rare.fault.is_some()),
            retry: &self.origin,
        };
        let line = serde_json::to_string(&line).expect("a letter has only string keys and plain values");
        shown::json(&line).into_owned() + "\n"
    }
}

/// Whether the letter belongs to a group that failed only because its unit, or a piece of the unit, has failed. The
/// failed unit or piece has a letter of its own, and a retry of that letter runs the whole unit. So the failure is
/// reported once.
pub(crate) fn only_lacks(letter: &DeadLetter) -> bool {
    // The engine refuses such a group before the first attempt.
    letter.attempts == 0 && letter.input::<Record>().is_some_and(Record::lacks_a_piece_with_a_letter)
}

/// Letters that were moved to a file of their own. Other runs leave the file alone as long as this value exists.
#[derive(Debug)]
pub(crate) struct Apart {
    pub(crate) path: PathBuf,
    _locked: File,
}

/// The members of a letter's line, in their order.
#[derive(Serialize)]
struct Line<'a> {
    run: &'a str,
    started: u64,
    time: f64,
    unit: u64,
    stage: &'a str,
    attempts: u32,
    cause: Cause,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line_hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rel_from: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gathered: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_sum: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    source_fault: bool,
    retry: &'a Origin,
}

/// The write of a letter may wait, but ends at the latest when the run abandons the units in flight.
impl Patience for DeadLetters {
    fn left(&self) -> Result<Duration, Failure> {
        if self.given_up.load(Ordering::Relaxed) {
            return Err(Failure::msg(format!(
                "{} took no more letters when the flow was abandoned",
                shown::path(&self.path())
            )));
        }
        Ok(LOOK)
    }
}

/// Opens a file of letters without waiting. The file is opened for reading as well, so that a pipe accepts letters
/// before another process reads it.
fn open(path: &Path) -> io::Result<File> {
    let open = |create| OpenOptions::new().read(true).append(true).create(create).mode(OWN).open(path);
    // In a folder that many users may write to, Linux refuses O_CREAT for an existing file of another user.
    match open(false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => open(true),
        opened => opened,
    }
}

/// Locks the file for this run until the file is closed. Returns `false` if a live run writes to it.
fn lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(false),
        // If the file system has no locks, two concurrent runs may share the file.
        Ok(()) | Err(Errno::NOTSUP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

/// Renames an earlier run's letters to `FILE.old`.
fn set_aside(path: &Path) -> io::Result<()> {
    fs::rename(path, with_suffix(path, ".old"))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

fn unix_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;

    use super::*;
    use crate::retry::origin::Bytes;

    fn letter(unit: u64, input: Record) -> DeadLetter {
        let mut letter = DeadLetter::new(unit, "get", Cause::Timeout, "took \"too\" long\nreally");
        letter.attempts = 3;
        letter.input = Some(Box::new(input));
        letter
    }

    fn check(path: &Path, run: &str) -> DeadLetters {
        let origin = Origin {
            first: run.into(),
            flow_text: None,
            flow: Bytes::Text("/flow.toml".into()),
            flow_blake3: "00".into(),
            dir: Bytes::Text("/".into()),
            params: std::collections::BTreeMap::new(),
            inputs: vec![Bytes::Hex { hex: "ff".into() }],
            inflight: None,
            memory: None,
            workers: Some(3),
        };
        DeadLetters::check(path.to_owned(), run.into(), origin).unwrap()
    }

    fn lines(path: &Path) -> Vec<Value> {
        fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_letter_keeps_everything_about_its_unit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.jsonl");
        let letters = check(&path, "fetch-7");
        assert!(!path.exists(), "no file before the first letter");
        letters.take(&letter(17, Record::line(b"http://h/17".to_vec())));
        letters.take(&letter(18, Record::file(b"a/b".to_vec(), 0)));
        let found = lines(&path);
        assert_eq!(found[0]["run"], "fetch-7");
        assert_eq!(found[0]["unit"], 17);
        assert_eq!(found[0]["stage"], "get");
        assert_eq!(found[0]["attempts"], 3);
        assert_eq!(found[0]["cause"], Cause::Timeout.to_string());
        assert_eq!(found[0]["message"], "took \"too\" long\nreally");
        assert_eq!(found[0]["line"], "http://h/17");
        assert!(found[0].get("line_hex").is_none() && found[0].get("path").is_none());
        assert_eq!(found[0]["retry"]["inputs"][0]["hex"], "ff");
        assert_eq!(found[1]["path"], "a/b");
        assert_eq!(letters.tally(), Tally { written: 2, refused: 0 });
    }

    #[test]
    fn bytes_that_are_not_utf_8_come_back_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.jsonl");
        let letters = check(&path, "r");
        letters.take(&letter(0, Record::file(b"a\xff\xfeb".to_vec(), 0)));
        let found = lines(&path);
        assert_eq!(found[0]["path"], "a\u{fffd}\u{fffd}b");
        assert_eq!(hex::decode(found[0]["path_hex"].as_str().unwrap()).unwrap(), b"a\xff\xfeb");
    }

    #[test]
    fn a_file_holds_the_letters_of_one_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.jsonl");
        fs::write(&path, "old\n").unwrap();
        let (one, two) = (check(&path, "flow-1"), check(&path, "flow-2"));
        one.begin(None).unwrap();
        assert!(!path.exists(), "no letter, no file");
        assert_eq!(fs::read_to_string(with_suffix(&path, ".old")).unwrap(), "old\n");
        one.take(&letter(0, Record::line(b"x".to_vec())));
        two.begin(None).unwrap();
        two.take(&letter(0, Record::line(b"y".to_vec())));
        assert_eq!((one.path(), two.path()), (path.clone(), with_suffix(&path, ".flow-2")), "both runs live");
        drop((one, two));
        assert_eq!(lines(&path).len(), 1);
        let three = check(&path, "flow-3");
        three.begin(None).unwrap();
        assert!(!path.exists());
        // The letter of a run that was over before the first letter of this run.
        fs::write(&path, "another\n").unwrap();
        three.take(&letter(0, Record::line(b"z".to_vec())));
        assert_eq!(lines(&path)[0]["run"], "flow-3");
        assert_eq!(fs::read_to_string(with_suffix(&path, ".old")).unwrap(), "another\n");
    }

    #[test]
    fn a_kept_letter_is_of_the_run_that_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        let before = check(&old, "flow-1");
        before.take(&letter(0, Record::line(b"x".to_vec())));
        before.take(&letter(1, Record::file(b"d/y".to_vec(), 2)));
        drop(before);
        // Another program has rewritten the second letter.
        let text = fs::read_to_string(&old).unwrap();
        let (first, second) = text.trim().split_once('\n').unwrap();
        fs::write(&old, format!("{first}\n{}\n", serde_json::from_str::<Value>(second).unwrap())).unwrap();
        let found = letters::Letters::open(&old).unwrap().unwrap();
        let after = check(&new, "flow-2");
        found.rest(false).unwrap().for_each(|rest| after.keep(&rest));
        let (mut expected, mut kept) = (lines(&old), lines(&new));
        expected.iter_mut().for_each(|letter| letter["run"] = "flow-2".into());
        kept.iter_mut().zip(&expected).for_each(|(kept, letter)| kept["started"] = letter["started"].clone());
        assert_eq!(kept, expected);
    }

    #[test]
    fn letters_that_are_retried_are_locked_against_a_second_retry() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.jsonl");
        check(&path, "flow-1").take(&letter(0, Record::line(b"x".to_vec())));
        let first = letters::Letters::open(&path).unwrap().unwrap();
        let refused = letters::Letters::open(&path).unwrap_err().to_string();
        assert!(refused.contains("d.jsonl is in use by a run or another retry that has not ended"), "{refused}");
        // The letters of a retry go to the file that it retries. Its own lock on that file does not prevent this.
        let retry = check(&path, "flow-2");
        retry.begin(Some(first.locked())).unwrap();
        assert!(!path.exists());
        retry.take(&letter(0, Record::line(b"x".to_vec())));
        assert_eq!((retry.path(), lines(&path)[0]["run"].clone()), (path.clone(), "flow-2".into()));
        assert!(
            letters::Letters::open(&with_suffix(&path, ".old")).is_err(),
            "the file that was set aside is in use, too"
        );
        drop((first, retry));
        assert!(letters::Letters::open(&path).is_ok());
    }

    #[test]
    fn blank_lines_among_letters_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        let before = check(&old, "flow-1");
        (0..3).for_each(|unit| before.take(&letter(unit, Record::line(unit.to_string().into_bytes()))));
        drop(before);
        // Such lines are left by a run that could neither complete a letter nor truncate its written part.
        let text = fs::read_to_string(&old).unwrap();
        fs::write(&old, format!("   \n{}   \n", text.replacen('\n', "\n    \n", 1))).unwrap();
        let found = letters::Letters::open(&old).unwrap().unwrap();
        let units: Vec<_> = found.source(false).unwrap().map(|unit| (unit.letter, unit.text)).collect();
        assert_eq!(units, [(0, b"0".to_vec()), (1, b"1".to_vec()), (2, b"2".to_vec())]);
        found.marker()(1);
        let after = check(&new, "flow-2");
        found.rest(false).unwrap().for_each(|rest| after.keep(&rest));
        assert_eq!(lines(&new).iter().map(|letter| letter["line"].clone()).collect::<Vec<_>>(), ["0", "2"]);
    }

    #[test]
    fn a_letter_that_another_program_has_written_is_kept_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        check(&old, "flow-1").take(&letter(0, Record::line(b"x".to_vec())));
        let text = fs::read_to_string(&old).unwrap();
        let (start, end) = text.split_once("\"line\"").unwrap();
        // A lone surrogate, and a number beyond the range of floats: both are valid JSON, but no Rust type can
        // represent them.
        let foreign = format!("{{\"message\":\"\\ud800\",\"size\":1e999,{}", &start[1..]).replacen(
            "\"message\":\"took",
            "\"said\":\"took",
            1,
        );
        fs::write(&old, format!("{foreign}\"line\"{end}")).unwrap();
        let found = letters::Letters::open(&old).unwrap().unwrap();
        let after = check(&new, "flow-2");
        found.rest(false).unwrap().for_each(|rest| after.keep(&rest));
        drop(after);
        let kept = fs::read_to_string(&new).unwrap();
        assert!(
            kept.starts_with("{\"run\":\"flow-2\"")
                && kept.contains("\"message\":\"\\ud800\",")
                && kept.contains("\"size\":1e999"),
            "{kept}"
        );
        let again = letters::Letters::open(&new).unwrap().unwrap();
        assert!(again.source(false).unwrap().eq(found.source(false).unwrap()));
        drop(found);

        fs::write(&old, [&b"{\"message\":\"\xff\","[..], &text.as_bytes()[1..]].concat()).unwrap();
        let error = letters::Letters::open(&old).unwrap_err().to_string();
        assert!(
            error.contains(":1 is not a dead letter that can be retried: it is not UTF-8 from byte 13 on"),
            "{error}"
        );
    }

    #[test]
    fn a_pipe_or_device_is_only_written_to() {
        let letters = check(Path::new("/dev/null"), "r");
        letters.begin(None).unwrap();
        letters.take(&letter(0, Record::line(b"x".to_vec())));
        assert_eq!(letters.tally(), Tally { written: 1, refused: 0 });
        assert!(Path::new("/dev/null").exists());
    }

    #[test]
    fn a_letter_that_cannot_be_written_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.jsonl");
        let letters = check(&path, "r");
        // A full device refuses every write.
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        *letters.file.try_take().unwrap() = Some(LineFile::shared(full, path.clone()).unwrap());
        letters.take(&letter(0, Record::line(b"x".to_vec())));
        assert_eq!(letters.tally(), Tally { written: 0, refused: 1 });
        *letters.file.try_take().unwrap() = None;
        letters.take(&letter(1, Record::line(b"y".to_vec())));
        assert_eq!(letters.tally(), Tally { written: 1, refused: 1 });
        assert_eq!(lines(&path).len(), 1);
    }

    #[test]
    fn the_wait_for_a_full_pipe_lasts_until_the_run_gives_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        let letters = check(&path, "r");
        letters.begin(None).unwrap();
        let pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        rustix::pipe::fcntl_setpipe_size(&pipe, 4096).unwrap();
        let large = Record::line(vec![b'x'; 5000]);
        std::thread::scope(|scope| {
            let taking = scope.spawn(|| letters.take(&letter(0, large)));
            while letters.file.try_take().is_some() {
                std::thread::yield_now();
            }
            assert_eq!(letters.tally(), Tally { written: 0, refused: 0 }, "it can be asked meanwhile");
            letters.give_up();
            taking.join().unwrap();
        });
        assert_eq!(letters.tally(), Tally { written: 0, refused: 1 });
    }

    #[test]
    fn the_default_is_beside_the_report_or_here() {
        assert_eq!(default_path("a/b", None), Path::new("a_b.dead-letters.jsonl"));
        assert_eq!(default_path("a", Some(Path::new("x/r.html"))), Path::new("x/r.dead-letters.jsonl"));
    }
}
