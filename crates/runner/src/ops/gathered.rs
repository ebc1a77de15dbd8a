//! The fate of a file that a stage gathers over a run, such as a manifest.
//!
//! A reader of such a file assumes that it is complete. So a run writes its lines to a list under a temporary name, and
//! the list gets the file's name only if the run is complete and no unit died; an earlier file is renamed to
//! `NAME.old`. If units died, the list is named `NAME.RUN.DEAD.partial`, where `DEAD` is the number of units that it
//! lacks. Retries of that run's dead letters add to the list. The retry that adds the last missing unit gives the list
//! the file's name. If the run was interrupted as well, the list is named `NAME.RUN.unfinished.partial`, and no retry
//! completes it. A list that could not be renamed is named `NAME.RUN.TOKEN.unplaced`.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use millstream_command::screen::text;
use millstream_command::temporary::token;

use super::place::{self, Placing};

/// Stands for the number of missing units if the first run was interrupted. No retry can complete the list of such a
/// run, because no retry reads the rest of the source.
const UNFINISHED: u64 = u64::MAX;

/// [`UNFINISHED`] in a file's name.
const UNFINISHED_NAME: &str = "unfinished";

/// The facts about the end of a run that decide the fate of gathered files.
#[derive(Debug, Clone, Copy)]
pub struct RunEnd<'a> {
    /// The source was read to its end, and all its units have left the flow.
    pub complete: bool,
    /// The number of units that were admitted.
    pub admitted: u64,
    /// The number of units that were retired.
    pub retired: u64,
    /// The number of units that were dead-lettered.
    pub dead: u64,
    /// The run's name. For a retry, it is the name of the run that wrote the letters, from [`first_of`].
    pub first: &'a str,
    /// The run retries dead letters.
    pub retries: bool,
}

/// A unique name for a run of this process. The process id alone is not enough, because ids are reused.
pub fn first_of(run: &str) -> String {
    format!("{run}-{}", token())
}

/// A file that was gathered over a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// The file's name.
    pub path: PathBuf,
    /// The number of lines that this run wrote.
    pub lines: u64,
    /// The fate of the lines.
    pub fate: Fate,
}

/// The fate of the lines of a gathered file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// This run's lines are in the file with the intended name.
    Placed {
        /// The new path of an earlier file that was renamed.
        earlier: Option<PathBuf>,
    },
    /// The run has not changed the file.
    Kept {
        /// The reason why the file was not replaced.
        because: Because,
        /// Whether the file exists.
        exists: bool,
        /// The file with this run's lines, if the lines are kept.
        partial: Option<PathBuf>,
    },
}

/// The reason why an earlier file was not replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// The run was interrupted or stopped.
    Interrupted,
    /// The run retries letters of a run that was interrupted.
    FirstInterrupted,
    /// Units died.
    UnitsDied,
    /// The run had no units.
    NoUnits,
}

impl fmt::Display for Gathered {
    /// The fate of the file, as a sentence without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, lines) = (self.path.display(), text::counted(self.lines, "line"));
        match &self.fate {
            Fate::Placed { earlier: None } => write!(f, "{path} has {lines} of this run"),
            Fate::Placed { earlier: Some(earlier) } => {
                write!(f, "{path} has {lines} of this run; the earlier file is {}", earlier.display())
            }
            Fate::Kept { because, exists, partial } => {
                match exists {
                    true => write!(f, "{path} is unchanged, because {because}")?,
                    false => write!(f, "there is no {path}, because {because}")?,
                }
                partial.as_ref().map_or(Ok(()), |partial| write!(f, "; this run's list is {}", partial.display()))
            }
        }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupted => "the run did not reach the end of its source",
            Self::FirstInterrupted => "the run whose letters these were did not reach the end of its source",
            Self::UnitsDied => "units died",
            Self::NoUnits => "the run had no units",
        })
    }
}

impl RunEnd<'_> {
    /// The reason why the run's lines must not replace an earlier file, if there is one.
    fn objection(&self) -> Option<Because> {
        match self {
            Self { complete: false, .. } => Some(Because::Interrupted),
            Self { dead: UNFINISHED, .. } => Some(Because::FirstInterrupted),
            Self { dead: 1.., .. } => Some(Because::UnitsDied),
            Self { admitted: 0, .. } => Some(Because::NoUnits),
            _ => None,
        }
    }

    /// The part of a partial list's name by which a run and its retries find that list.
    fn first(&self) -> String {
        if self.retries { self.first.to_owned() } else { first_of(self.first) }
    }
}

/// Decides the fate of the gathered file at `path` at the end of a run. `own` is the temporary file with this run's
/// lines, if any unit reached the stage. With `always`, every complete run replaces an earlier file. Returns `None` if
/// there is nothing to report.
///
/// # Errors
/// The errors of the file system. The earlier file is unchanged, and this run's lines are [kept](unplaced).
pub(super) fn end(
    path: &Path,
    mut own: Option<Placing>,
    lines: u64,
    always: bool,
    end: &RunEnd<'_>,
) -> io::Result<Option<Gathered>> {
    let settled = settle(path, own.as_mut(), lines, always, end);
    settled.map_err(|error| unplaced(own, path, end, error))
}

/// Saves a list under another name if it could not be given the file's name, and adds the other name to the error.
pub(super) fn unplaced(own: Option<Placing>, path: &Path, end: &RunEnd<'_>, error: io::Error) -> io::Error {
    let Some(mut own) = own else { return error };
    let name = with_suffix(path, &format!(".{}.{}.unplaced", end.first, token()));
    let fate = match own.put_as(name.clone()) {
        Ok(()) => format!("this run's list is {}", name.display()),
        Err(lost) => format!("this run's list is lost: {lost}"),
    };
    io::Error::new(error.kind(), format!("{error}; {fate}"))
}

fn settle(
    path: &Path,
    own: Option<&mut Placing>,
    lines: u64,
    always: bool,
    end: &RunEnd<'_>,
) -> io::Result<Option<Gathered>> {
    let first = end.first();
    let partial = if end.retries { Partial::find(path, &first) } else { None };
    let base = match &partial {
        Some(partial) => Some(partial.path.clone()),
        // The first run's list has the file's name already: this retry adds to it.
        None => end.retries.then(|| path.to_owned()).filter(|path| path.is_file()),
    };
    let lacks = match partial {
        // A retry of only some of the letters must not complete the list: the units of the other letters stay dead.
        Some(partial) => partial.lacks_after(end.retired).max(end.dead),
        None if !end.retries && !end.complete && end.dead > 0 => UNFINISHED,
        None => end.dead,
    };
    let end = &RunEnd { dead: lacks, ..*end };
    if own.is_none() && base.as_deref() == Some(path) {
        // No unit of the retry reached this stage, so there is nothing to add.
        return Ok(None);
    }
    let exists = path.symlink_metadata().is_ok();
    let objection = end.objection().filter(|because| match because {
        Because::Interrupted | Because::FirstInterrupted => true,
        Because::UnitsDied => !always,
        Because::NoUnits => exists && !always,
    });
    // The list of a complete run supersedes the partial lists of all runs.
    let only = (end.retries || !end.complete).then_some(first.as_str());
    let gathered = |fate| Ok(Some(Gathered { path: path.to_owned(), lines, fate }));
    match objection {
        None => {
            let earlier = with_suffix(path, ".old");
            let existed = list(path, own, base.as_deref(), |list| list.put_keeping(&earlier))?;
            remove_partials(path, only, None);
            gathered(Fate::Placed { earlier: existed.then_some(earlier) })
        }
        // The lines of a retry must not be lost. The lines of an interrupted run without dead letters are not kept,
        // because the user simply repeats such a run.
        Some(because) if end.dead > 0 || (end.retries && because == Because::Interrupted) => {
            let lacks = if end.dead == UNFINISHED { UNFINISHED_NAME.to_owned() } else { end.dead.to_string() };
            let partial = with_suffix(path, &format!(".{first}.{lacks}.partial"));
            list(path, own, base.as_deref(), |list| list.put_as(partial.clone()))?;
            remove_partials(path, only, Some(&partial));
            gathered(Fate::Kept { because, exists, partial: Some(partial) })
        }
        Some(because) => gathered(Fate::Kept { because, exists, partial: None }),
    }
}

/// Makes a list of the lines of `base` followed by those of `own`, and calls `put` to name the list. `own` is removed
/// only after `put` has returned.
fn list<T>(
    path: &Path,
    own: Option<&mut Placing>,
    base: Option<&Path>,
    put: impl FnOnce(&mut Placing) -> io::Result<T>,
) -> io::Result<T> {
    match (own, base) {
        (Some(own), None) => put(own),
        (own, base) => {
            let (mut list, mut file) = Placing::create(path.to_owned())?;
            for part in base.into_iter().chain(own.as_deref().map(Placing::temporary)) {
                io::copy(&mut File::open(part)?, &mut file)?;
            }
            place::close(file)?;
            put(&mut list)
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// The list of a run in which units died.
struct Partial {
    path: PathBuf,
    /// The first run's name.
    first: Vec<u8>,
    /// The number of units that are missing from the list, or [`UNFINISHED`].
    lacks: u64,
}

impl Partial {
    /// The partial list of the run `first` and its retries, in the folder of the gathered file at `path`.
    fn find(path: &Path, first: &str) -> Option<Self> {
        Self::all(path).into_iter().find(|partial| partial.first == first.as_bytes())
    }

    /// The number of units that are still missing after `retired` units were added.
    fn lacks_after(&self, retired: u64) -> u64 {
        if self.lacks == UNFINISHED { UNFINISHED } else { self.lacks.saturating_sub(retired) }
    }

    /// All partial lists of the gathered file at `path`.
    fn all(path: &Path) -> Vec<Self> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let found = entry.file_name();
                let rest = found.as_encoded_bytes().strip_prefix(name.as_encoded_bytes())?;
                let rest = rest.strip_prefix(b".")?.strip_suffix(b".partial")?;
                let dot = rest.iter().rposition(|byte| *byte == b'.')?;
                let lacks = match std::str::from_utf8(&rest[dot + 1..]).ok()? {
                    UNFINISHED_NAME => UNFINISHED,
                    number => number.parse().ok()?,
                };
                Some(Self { path: path.with_file_name(&found), first: rest[..dot].to_owned(), lacks })
            })
            .collect()
    }
}

/// Removes the partial lists of all runs, or only of the run `of`. The list `kept` stays: it is newer than the others,
/// or has all their lines.
fn remove_partials(path: &Path, of: Option<&str>, kept: Option<&Path>) {
    let is_old = |partial: &Partial| {
        of.is_none_or(|first| partial.first == first.as_bytes()) && Some(partial.path.as_path()) != kept
    };
    for partial in Partial::all(path).into_iter().filter(is_old) {
        // A partial list that cannot be removed does no harm.
        let _ = fs::remove_file(partial.path);
    }
}
