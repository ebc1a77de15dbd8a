//! The file of dead letters: a line of JSON for each unit that was given up on, written when it happens.
//!
//! ```json
//! {"run":"fetch-4711","started":1794212311,"time":1794212313.25,"unit":17,"stage":"get","attempts":3,"cause":"error",
//!  "message":"status 503 Service Unavailable","line":"http://example.org/17"}
//! ```
//!
//! | member | meaning |
//! | --- | --- |
//! | `run`, `started` | the run (flow and process id) and the moment it began, in seconds since 1970 |
//! | `time` | the moment the unit was given up on, in seconds since 1970 |
//! | `unit` | the unit's number in order of admission, from 0 |
//! | `stage`, `attempts`, `cause`, `message` | where, after how many attempts, and why |
//! | `path` or `line` | the unit: a file that was walked to, or a line or argument |
//! | `path_hex` or `line_hex` | only if that is not UTF-8: its bytes in hexadecimal (the text is then only readable) |
//!
//! Lines are appended: letters of an earlier run stay, and `run` with `started` tells them apart. The file is made
//! when the first letter comes. A letter that cannot be written (a full disk) goes to standard error instead.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use millstream_flow::{Cause, DeadLetter};
use serde::Serialize;

use crate::record::Record;
use crate::screen::writable::{self, NotWritable, Way};

/// Takes the dead letters of one run.
#[derive(Debug)]
pub struct DeadLetters {
    path: PathBuf,
    run: String,
    started: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<File>,
    /// A line was cut short by an error: the next one must not be glued to it.
    torn: bool,
    written: u64,
    refused: u64,
}

/// What became of a run's dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Letters in the file.
    pub written: u64,
    /// Letters that could not be written and went to standard error.
    pub refused: u64,
}

/// The file for a flow's dead letters where none was named: beside the report, or in the current folder.
pub fn default_path(flow: &str, report: Option<&Path>) -> PathBuf {
    match report {
        Some(report) => report.with_extension("dead-letters.jsonl"),
        None => {
            let name: String = flow.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).collect();
            PathBuf::from(format!("{name}.dead-letters.jsonl"))
        }
    }
}

impl DeadLetters {
    /// Dead letters of `run` will go to the file at `path`, which is not touched before there is one.
    ///
    /// # Errors
    /// [`NotWritable`], if a letter could not be written there.
    pub fn check(path: PathBuf, run: String) -> Result<Self, NotWritable> {
        writable::check(&path, Way::Append)?;
        Ok(Self { path, run, started: unix_time().floor() as u64, state: Mutex::default() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a letter; any thread may. One that cannot be written goes to standard error, with the reason.
    pub fn take(&self, letter: &DeadLetter) {
        let line = self.line(letter);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.append(&self.path, &line) {
            Ok(()) => state.written += 1,
            Err(error) => {
                state.refused += 1;
                let path = self.path.display();
                let _ = write!(io::stderr(), "error: dead letter not written to {path}: {error}\n{line}");
            }
        }
    }

    /// How many letters were taken so far.
    pub fn tally(&self) -> Tally {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Tally { written: state.written, refused: state.refused }
    }

    fn line(&self, letter: &DeadLetter) -> String {
        let record = letter.input::<Record>();
        let text = record.map(|record| String::from_utf8_lossy(record.text()));
        let hex = record.filter(|r| std::str::from_utf8(r.text()).is_err()).map(|r| hex::encode(r.text()));
        let is_line = record.is_some_and(|record| record.line_text().is_some());
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
        };
        serde_json::to_string(&line).expect("a letter has only string keys and plain values") + "\n"
    }
}

/// The members of a line, in their order.
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
}

impl State {
    fn append(&mut self, path: &Path, line: &str) -> io::Result<()> {
        if self.file.is_none() {
            let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
            self.torn = ends_within_a_line(&mut file)?;
            self.file = Some(file);
        }
        let file = self.file.as_mut().expect("opened above");
        let text = if self.torn { format!("\n{line}") } else { line.to_owned() };
        // Torn until proven whole: an error may come after half of the line.
        self.torn = true;
        file.write_all(text.as_bytes())?;
        self.torn = false;
        Ok(())
    }
}

/// Whether the file's last line has no end, as a run that died while writing leaves it.
fn ends_within_a_line(file: &mut File) -> io::Result<bool> {
    let found = file.metadata()?;
    if !found.is_file() || found.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

fn unix_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;

    use super::*;

    fn letter(unit: u64, input: Record) -> DeadLetter {
        DeadLetter {
            unit,
            stage: "get".into(),
            attempts: 3,
            cause: Cause::Timeout,
            message: "took \"too\" long\nreally".into(),
            input: Some(Box::new(input)),
        }
    }

    fn lines(path: &Path) -> Vec<Value> {
        fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_letter_keeps_everything_about_its_unit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.jsonl");
        let letters = DeadLetters::check(path.clone(), "fetch-7".into()).unwrap();
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
        assert_eq!(found[1]["path"], "a/b");
        assert_eq!(letters.tally(), Tally { written: 2, refused: 0 });
    }

    #[test]
    fn bytes_that_are_not_utf_8_come_back_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.jsonl");
        let letters = DeadLetters::check(path.clone(), "r".into()).unwrap();
        letters.take(&letter(0, Record::file(b"a\xff\xfeb".to_vec(), 0)));
        let found = lines(&path);
        assert_eq!(found[0]["path"], "a\u{fffd}\u{fffd}b");
        assert_eq!(hex::decode(found[0]["path_hex"].as_str().unwrap()).unwrap(), b"a\xff\xfeb");
    }

    #[test]
    fn letters_of_an_earlier_run_stay_even_if_it_died_within_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.jsonl");
        fs::write(&path, "{\"run\":\"old-1\"}\n{\"run\":\"ol").unwrap();
        let letters = DeadLetters::check(path.clone(), "new-2".into()).unwrap();
        letters.take(&letter(0, Record::line(b"x".to_vec())));
        letters.take(&letter(1, Record::line(b"y".to_vec())));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("{\"run\":\"old-1\"}\n{\"run\":\"ol\n{"), "{text}");
        assert_eq!(text.lines().filter(|line| line.contains("new-2")).count(), 2);
        assert_eq!(text.lines().count(), 4);
    }

    #[test]
    fn a_letter_that_cannot_be_written_is_counted_and_the_next_starts_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.jsonl");
        let letters = DeadLetters::check(path.clone(), "r".into()).unwrap();
        // A full device refuses every write.
        letters.state.lock().unwrap().file = Some(OpenOptions::new().append(true).open("/dev/full").unwrap());
        letters.take(&letter(0, Record::line(b"x".to_vec())));
        assert_eq!(letters.tally(), Tally { written: 0, refused: 1 });
        letters.state.lock().unwrap().file = Some(File::create(&path).unwrap());
        letters.take(&letter(1, Record::line(b"y".to_vec())));
        assert_eq!(letters.tally(), Tally { written: 1, refused: 1 });
        assert!(fs::read_to_string(&path).unwrap().starts_with("\n{"));
    }

    #[test]
    fn the_default_is_beside_the_report_or_here() {
        assert_eq!(default_path("a/b", None), Path::new("a_b.dead-letters.jsonl"));
        assert_eq!(default_path("a", Some(Path::new("x/r.html"))), Path::new("x/r.dead-letters.jsonl"));
    }
}
