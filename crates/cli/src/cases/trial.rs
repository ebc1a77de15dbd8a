//! The folder of a case, and the process that runs the flow in it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use millstream_runner::file::cases::Case;
use millstream_runner::stand_ins::StandInProgram;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::abandoned;
use super::is_set;
use super::outcome::Outcome;

/// The time between two checks of a running case.
const LOOK: Duration = Duration::from_millis(2);

/// The way in which a case ended.
pub(super) enum Ended {
    /// The flow has run.
    Outcome(Outcome),
    /// The flow could not run, for this reason.
    Refused(String),
    /// The flow took longer than this.
    TimedOut(Duration),
    /// A signal has asked the command to end.
    Interrupted,
}

/// A temporary folder with everything that a case needs; the folder is removed when this value is dropped.
pub(super) struct Trial {
    folder: tempfile::TempDir,
    /// The lock that keeps other tests from removing the folder.
    _in_use: File,
}

/// The paths of the files in a trial's folder, through which the processes of a case communicate.
#[derive(Debug)]
pub(crate) struct Papers(PathBuf);

impl Trial {
    /// Creates the folder of a case, with its files.
    pub(super) fn prepare(case: &Case) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(abandoned::PREFIX).tempdir()?;
        let in_use = abandoned::keep(folder.path())?;
        let trial = Self { folder, _in_use: in_use };
        fs::create_dir(trial.folder())?;
        write_files(&trial.folder(), &case.files)?;
        fs::write(trial.folder.path().join("stdin"), &case.stdin)?;
        trial.papers().write("case", case)?;
        Ok(trial)
    }

    /// The folder in which the flow runs.
    pub(super) fn folder(&self) -> PathBuf {
        self.folder.path().join("folder")
    }

    pub(super) fn papers(&self) -> Papers {
        Papers::at(self.folder.path())
    }

    /// The flow's standard output.
    pub(super) fn stdout(&self) -> io::Result<Vec<u8>> {
        fs::read(self.folder.path().join("stdout"))
    }

    /// Runs the flow, whose path is absolute, for no longer than `limit`.
    pub(super) fn run(&self, flow: &Path, limit: Duration, interrupted: &AtomicBool) -> io::Result<Ended> {
        let file = |name| File::create(self.folder.path().join(name));
        let mut child = Command::new("/proc/self/exe")
            .arg("trial")
            .args([flow, self.folder.path()])
            .current_dir(self.folder())
            .env("TMPDIR", self.folder.path())
            .stdin(File::open(self.folder.path().join("stdin"))?)
            .stdout(file("stdout")?)
            .stderr(file("stderr")?)
            .spawn()
            .map(Ends)?;
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.0.try_wait()? {
                break status;
            }
            if is_set(interrupted) {
                return Ok(Ended::Interrupted);
            }
            if begun.elapsed() >= limit {
                return Ok(Ended::TimedOut(limit));
            }
            thread::sleep(LOOK);
        };
        if status.success() {
            return Ok(Ended::Outcome(self.papers().read("outcome")?));
        }
        let said = String::from_utf8_lossy(&fs::read(self.folder.path().join("stderr"))?).into_owned();
        Ok(Ended::Refused(if said.is_empty() { format!("its process ended: {status}") } else { said }))
    }
}

/// A child process that is killed when this value is dropped.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // The child may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Papers {
    pub(super) fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// The case.
    pub(super) fn case(&self) -> io::Result<Case> {
        self.read("case")
    }

    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<T> {
        Ok(serde_json::from_slice(&fs::read(self.0.join(name))?)?)
    }

    pub(super) fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        fs::write(self.0.join(name), serde_json::to_vec(value)?)
    }

    /// Notes that a program was run: `first` is the index of the first result that the case defines for its arguments,
    /// `given` the index of the result that was used.
    pub(super) fn note_program(&self, first: usize, given: usize) -> io::Result<()> {
        let mut notes = OpenOptions::new().create(true).append(true).open(self.0.join("programs"))?;
        notes.write_all(format!("{first} {given}\n").as_bytes())
    }

    /// Notes the sentence `lack`, which says that the case does not define a program, or defines another input for it.
    pub(super) fn note_lack(&self, lack: &str) -> io::Result<()> {
        let mut lacks = OpenOptions::new().create(true).append(true).open(self.0.join("lacks"))?;
        lacks.write_all(format!("{}\n", serde_json::Value::from(lack)).as_bytes())
    }

    /// The sentences that [`note_lack`](Self::note_lack) has noted, in the order of their first occurrence, without
    /// duplicates.
    pub(super) fn lacks(&self) -> io::Result<Vec<String>> {
        let mut lacks: Vec<String> = Vec::new();
        for line in self.text("lacks")?.lines() {
            let lack = serde_json::from_str(line)?;
            if !lacks.contains(&lack) {
                lacks.push(lack);
            }
        }
        Ok(lacks)
    }

    /// The text of a file of the trial; empty if there is none.
    fn text(&self, name: &str) -> io::Result<String> {
        match fs::read_to_string(self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            text => text,
        }
    }

    /// The notes about programs, in the order in which they were made.
    pub(super) fn programs(&self) -> io::Result<Vec<(usize, usize)>> {
        let notes = self.text("programs")?;
        let number = |word: Option<&str>| word.and_then(|word| word.parse().ok());
        let note = |line: &str| {
            let mut words = line.split(' ');
            Some((number(words.next())?, number(words.next())?))
        };
        notes.lines().map(|line| note(line).ok_or_else(|| io::Error::other("a damaged note"))).collect()
    }

    /// The command line of a stand-in for a program.
    pub(super) fn stand_in(&self) -> StandInProgram {
        StandInProgram::new("/proc/self/exe", vec!["stand-in".into(), self.0.clone().into(), "--".into()])
    }
}

/// Writes files below a folder, with the same permissions whatever the user's `umask`.
pub(super) fn write_files(folder: &Path, files: &[(PathBuf, Vec<u8>)]) -> io::Result<()> {
    for (path, content) in files {
        let path = folder.join(path);
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(named)?;
        fs::write(&path, content).map_err(named)?;
        fs::set_permissions(&path, Permissions::from_mode(0o644)).map_err(named)?;
    }
    Ok(())
}
