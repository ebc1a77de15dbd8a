//! `--state FILE`: evidence that is carried from one run of the command to the next.
//!
//! The file contains the evidence and its question (claim, error, method, conditions of a success, source). A file
//! whose question differs is refused: a claim that was changed to fit the evidence could be wrong more often than its
//! error allows. The file is locked during a run: if two runs added to the same evidence at once, the evidence of one
//! would be lost. The new file replaces the old one atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use millstream_command::writable::{self, Way};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde_json::{Map, Value};

use super::error::EvidenceError;
use super::number;
use super::report::replace;

const FORMAT: &str = "millstream slo state, version 1";
/// A longer file is not a state file.
const MAX_BYTES: u64 = 1 << 20;

/// The question in exact words, which the state must match.
pub(super) type Terms = Vec<(&'static str, String)>;

/// An open state file.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    terms: Terms,
    /// The evidence in the file, as it was saved.
    kept: Option<Map<String, Value>>,
    /// Whether the file was empty when it was opened, and has not been written since.
    is_empty: bool,
    /// Holds the lock.
    _file: File,
}

impl StateFile {
    /// Opens, locks and reads the file, or makes an empty one.
    pub(super) fn open(path: &Path, terms: Terms) -> Result<Self, EvidenceError> {
        writable::check(path, Way::Replace)?;
        let refuse = |problem: String, help| EvidenceError::State { path: path.to_owned(), problem, help };
        let system = |error: io::Error| refuse(error.to_string(), "choose a file you may read and write");
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(system)?;
        const BUSY: &str = "wait for it, or use a different file";
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(refuse("another run adds to it right now".to_owned(), BUSY)),
            Err(errno) => return Err(system(errno.into())),
        }
        // The previous holder of the lock may have put a new file in its place.
        let (ours, there) = (file.metadata().map_err(system)?, fs::metadata(path).map_err(system)?);
        if (ours.dev(), ours.ino()) != (there.dev(), there.ino()) {
            return Err(refuse("another run has just added to it".to_owned(), "start again"));
        }
        let mut text = String::new();
        const FOREIGN: &str = "name another file, or remove this one to start over";
        if ours.len() > MAX_BYTES || file.read_to_string(&mut text).is_err() {
            return Err(refuse("it is not a state of `millstream slo`".to_owned(), FOREIGN));
        }
        let mut state = Self { path: path.to_owned(), terms, kept: None, is_empty: text.is_empty(), _file: file };
        if !state.is_empty {
            let kept = state.read(&text).map_err(|problem| refuse(problem, FOREIGN))?;
            state.compare(&kept)?;
            state.kept = Some(kept);
        }
        Ok(state)
    }

    fn read(&self, text: &str) -> Result<Map<String, Value>, String> {
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) if object.get("format").is_some_and(|format| format == FORMAT) => Ok(object),
            Ok(_) => Err(format!("expected a `format` of `{FORMAT}`, found another or none")),
            Err(error) => Err(format!("it is not a state of `millstream slo`: {error}")),
        }
    }

    /// Checks that the question is the same as before.
    fn compare(&self, kept: &Map<String, Value>) -> Result<(), EvidenceError> {
        for (name, now) in &self.terms {
            let before = kept.get(*name).and_then(Value::as_str).unwrap_or("nothing");
            if before != now {
                return Err(EvidenceError::State {
                    path: self.path.clone(),
                    problem: format!("its evidence is for another question: {name} was `{before}` and is now `{now}`"),
                    help: "repeat the earlier question, or remove the file to start over",
                });
            }
        }
        Ok(())
    }

    /// Returns a count that was saved; zero in a new file.
    pub(super) fn count(&self, name: &'static str) -> Result<u64, EvidenceError> {
        match &self.kept {
            None => Ok(0),
            Some(kept) => kept.get(name).and_then(Value::as_u64).ok_or_else(|| self.damaged(name)),
        }
    }

    /// Returns a number that was saved; zero in a new file. The number is saved as a string, which is read back
    /// exactly; a JSON number might not be.
    pub(super) fn number(&self, name: &'static str) -> Result<f64, EvidenceError> {
        let Some(kept) = &self.kept else { return Ok(0.0) };
        let number = kept.get(name).and_then(Value::as_str).and_then(|text| number::parse(text).ok());
        number.ok_or_else(|| self.damaged(name))
    }

    fn damaged(&self, name: &str) -> EvidenceError {
        EvidenceError::State {
            path: self.path.clone(),
            problem: format!("expected a valid `{name}` in the file"),
            help: "remove the file to start over",
        }
    }

    /// Replaces the evidence in the file.
    pub(super) fn save(&mut self, evidence: Vec<(&'static str, Value)>) -> Result<(), EvidenceError> {
        let mut object = Map::new();
        object.insert("format".to_owned(), FORMAT.into());
        for (name, term) in &self.terms {
            object.insert((*name).to_owned(), term.as_str().into());
        }
        for (name, value) in evidence {
            object.insert(name.to_owned(), value);
        }
        replace(&self.path, &format!("{:#}\n", Value::Object(object)))?;
        self.is_empty = false;
        Ok(())
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        if self.is_empty {
            // The file was created only for the lock, and contains nothing.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(error: &str) -> Terms {
        vec![("claim", "at least 0.99".to_owned()), ("error", error.to_owned())]
    }

    #[test]
    fn evidence_comes_back_and_its_question_is_frozen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut state = StateFile::open(&path, terms("1e-6")).unwrap();
        assert_eq!(state.count("trials").unwrap(), 0);
        state.save(vec![("trials", 7.into()), ("sum", number::exact(1e-300).into())]).unwrap();
        drop(state);
        let state = StateFile::open(&path, terms("1e-6")).unwrap();
        assert_eq!(state.count("trials").unwrap(), 7);
        assert_eq!(state.number("sum").unwrap(), 1e-300);
        assert!(state.count("successes").unwrap_err().to_string().contains("expected a valid `successes`"));
        drop(state);
        let error = StateFile::open(&path, terms("0.5")).unwrap_err();
        assert_eq!(error.status(), super::super::error::USAGE);
        assert!(error.to_string().contains("error was `1e-6` and is now `0.5`"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn two_runs_cannot_add_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let state = StateFile::open(&path, terms("1e-6")).unwrap();
        let error = StateFile::open(&path, terms("1e-6")).unwrap_err().to_string();
        assert!(error.contains("right now"), "{error}");
        drop(state);
        assert!(!path.exists(), "nothing was saved, nothing is left");
    }

    #[test]
    fn a_file_that_is_not_a_state_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        for foreign in ["text", "[]", "{}", "{\"format\":\"other\"}"] {
            fs::write(&path, foreign).unwrap();
            assert!(StateFile::open(&path, terms("1e-6")).is_err(), "{foreign}");
            assert_eq!(fs::read_to_string(&path).unwrap(), foreign);
        }
    }
}
