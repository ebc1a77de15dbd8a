//! `--report FILE`: the path and the format of the report, checked before the run begins.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use millstream_command::screen::shown;
use millstream_command::writable::{self, NotWritable, Way};
use millstream_runner::leftovers;
use millstream_runner::ops::place::{Existing, Placing};

use super::run_report::RunReport;
use super::{html, json};

/// The reason why a report cannot be written to the requested file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportFileError {
    /// The extension of the file's name does not belong to a known format.
    #[error("--report {}: its name ends in {found}; expected .json or .html", shown::path(path))]
    Ending {
        /// The requested file.
        path: PathBuf,
        /// The actual extension, in words.
        found: String,
    },
    /// The file is for a page, and its extension is not `.html`.
    #[error("--report {}: the page is HTML, so its name ends in .html", shown::path(path))]
    NoPage {
        /// The requested file.
        path: PathBuf,
    },
    /// The file cannot be written at that path.
    #[error(transparent)]
    Place(#[from] NotWritable),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Html,
}

/// The path of a page. It was checked when this value was made.
#[derive(Debug, Clone)]
pub(crate) struct Html(PathBuf);

impl Html {
    /// Checks the file's extension, and checks that a file can be created in the folder.
    ///
    /// # Errors
    /// [`ReportFileError`], whose text states the remedy.
    pub(crate) fn check(path: &Path) -> Result<Self, ReportFileError> {
        match ReportFile::check(path)? {
            ReportFile { path, form: Form::Html } => Ok(Self(path)),
            ReportFile { path, form: Form::Json } => Err(ReportFileError::NoPage { path }),
        }
    }

    /// Writes the page. A reader sees either the old file or the whole new file.
    ///
    /// # Errors
    /// The errors of the file system. An old file is then unchanged.
    pub(crate) fn write(&self, page: &str) -> Result<(), NotWritable> {
        put(&self.0, page, "the file that it shows is as it was")
    }
}

/// The path and the format of a report. Both were checked when this value was made.
#[derive(Debug, Clone)]
pub(crate) struct ReportFile {
    path: PathBuf,
    form: Form,
}

impl ReportFile {
    /// Checks the file's extension, and checks that a file can be created in the folder.
    ///
    /// # Errors
    /// [`ReportFileError`], whose text states the remedy.
    pub(crate) fn check(path: &Path) -> Result<Self, ReportFileError> {
        let ending = path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase);
        let form = match ending.as_deref() {
            Some("json") => Form::Json,
            Some("html" | "htm") => Form::Html,
            _ => {
                let found = path.extension().map_or_else(|| "nothing".into(), |e| format!(".{}", e.to_string_lossy()));
                return Err(ReportFileError::Ending { path: path.to_owned(), found });
            }
        };
        writable::check_listed(path, Way::Replace, leftovers::note)?;
        Ok(Self { path: path.to_owned(), form })
    }

    /// Writes the report. A reader sees either the old file or the whole new file.
    ///
    /// # Errors
    /// The errors of the file system. An old file is then unchanged.
    pub(crate) fn write(&self, run: &RunReport<'_>) -> Result<(), NotWritable> {
        let text = match self.form {
            Form::Json => json::json(run),
            Form::Html => html::html(run),
        };
        put(&self.path, &text, "the run itself is over and its results stand")
    }
}

/// Replaces the content of a file atomically. `help` becomes part of the error.
fn put(path: &Path, text: &str, help: &str) -> Result<(), NotWritable> {
    let written = Placing::create(path.to_owned()).and_then(|(placing, mut file)| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        placing.put(Existing::Replace)
    });
    written.map_err(|source| NotWritable { path: path.to_owned(), source, help: help.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::screen::sample::{RunSample, report};

    #[test]
    fn only_json_and_html_are_known() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["report", "report.txt", "report.json.gz", ".json"] {
            let error = ReportFile::check(&folder.path().join(name)).unwrap_err().to_string();
            assert!(error.contains("expected .json or .html"), "{error}");
        }
        for name in ["report.json", "report.html", "REPORT.HTML"] {
            ReportFile::check(&folder.path().join(name)).unwrap();
        }
    }

    #[test]
    fn a_place_that_cannot_hold_a_file_is_refused_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let error = ReportFile::check(&folder.path().join("none/report.json")).unwrap_err().to_string();
        assert!(error.contains("make the folder"), "{error}");
    }

    #[test]
    fn a_report_replaces_the_old_one_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        fs::write(&path, "old").unwrap();
        ReportFile::check(&path).unwrap().write(&RunSample::new().of(&report())).unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains("\"archive\""));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
