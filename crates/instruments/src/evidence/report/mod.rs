//! The forms of an answer: text, JSON, a JUnit test case and a picture. Each form is a pure function of an
//! [`Answer`](super::answer::Answer). This module also writes the files, and checks that they can be written before
//! anything is observed.

pub(super) mod json;
pub(super) mod junit;
pub(super) mod svg;
pub(super) mod text;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use millstream_command::writable::{self, Way};

use super::answer::Answer;
use super::args::TellingArgs;
use super::error::EvidenceError;

/// Checks that the requested files can be written.
pub(super) fn check(args: &TellingArgs) -> Result<(), EvidenceError> {
    for path in [&args.junit, &args.svg].into_iter().flatten() {
        writable::check(path, Way::Replace)?;
    }
    Ok(())
}

/// Writes the requested files.
pub(super) fn write(args: &TellingArgs, answer: &Answer) -> Result<(), EvidenceError> {
    if let Some(path) = &args.junit {
        replace(path, &junit::junit(answer))?;
    }
    if let Some(path) = &args.svg {
        replace(path, &svg::svg(answer))?;
    }
    Ok(())
}

/// Writes a file: a reader sees either the old file or the complete new file.
pub(super) fn replace(path: &Path, content: &str) -> Result<(), EvidenceError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = File::create_new(&temporary)
        .and_then(|mut file| file.write_all(content.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&temporary);
        EvidenceError::System { what: format!("writing {}", path.display()), source }
    })
}

#[cfg(test)]
pub(super) mod sample {
    //! Hand-made answers for the tests of the reports.

    use std::time::Duration;

    use millstream_csm::Interval;
    use millstream_csm::{Claim, Progress, Verdict};

    use super::super::answer::{Answer, Ended, Subject};
    use super::super::claim::Stated;
    use super::super::decide::View;
    use super::super::jobs::End;

    /// An answer for 3972 successes in 4000 trials, and the claim that the rate is at least 98 %.
    pub(crate) fn answer(progress: Progress) -> Answer {
        Answer {
            stated: Stated { claim: Claim::AtLeast(0.98), error: 1e-3, method: None, is_time: false },
            method: "balanced".to_owned(),
            subject: Subject { of: "curl <http://x>".to_owned(), noun: "run", rule: "exits with 0".to_owned() },
            view: View {
                trials: 4000,
                successes: Some(3972),
                estimate: Some(0.993),
                interval: Interval { low: 0.9875, high: 0.9968 },
                spread: None,
                progress,
                level: Some((-8.5, -6.9)),
            },
            ended: Ended::Runs(if progress == Progress::Running { End::Limit } else { End::Enough }),
            kept: 0,
            wall: Duration::from_millis(61_500),
            first_failure: Some("run 17 exited with status 7; standard error: \"no\" & so on".to_owned()),
            range: None,
        }
    }

    pub(crate) const HOLDS: Progress = Progress::Decided(Verdict::Holds);
    pub(crate) const FAILS: Progress = Progress::Decided(Verdict::Fails);
}
