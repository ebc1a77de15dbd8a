//! The capabilities of this machine and its kernel. Each call probes them again.
//!
//! The findings explain to the user why something is slow or refused. The fences do not use the findings. Probing has no
//! effect, except that it chooses the fences' back-ends.
//!
//! ```
//! for finding in millstream_fence::probe::findings() {
//!     println!("{}: {}", finding.name, finding.found);
//! }
//! ```

mod daemon;
mod erratum;
mod kernel;
mod null_gs;
mod processor;

pub use erratum::has_erratum_147;

use crate::Fence;

/// One property of the machine, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the property.
    pub name: &'static str,
    /// The value, as a phrase.
    pub found: String,
    /// The consequence, if the user should know it.
    pub note: Option<&'static str>,
}

impl Finding {
    /// Returns a finding without a note.
    pub fn new(name: &'static str, found: impl Into<String>) -> Self {
        Finding { name, found: found.into(), note: None }
    }

    /// Returns this finding with a note.
    #[must_use]
    pub fn with_note(mut self, note: &'static str) -> Self {
        self.note = Some(note);
        self
    }
}

/// Returns all findings, in the order in which to show them.
///
/// Takes about 20 ms for system calls, a few small files, one child process, and a grace period of the kernel.
#[must_use]
pub fn findings() -> Vec<Finding> {
    let mut findings = vec![
        Finding::new("fence, fast", Fence::FAST.describe()),
        Finding::new("fence, cheap", Fence::CHEAP.describe()),
        Finding::new("fence, quiet", Fence::QUIET.describe()),
    ];
    findings.extend(processor::findings());
    findings.extend(kernel::findings());
    findings.push(daemon::finding());
    findings.push(null_gs::finding());
    findings
}

/// Returns the first line of a small file, if the file can be read and the line is not empty.
fn line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_answered_once() {
        let findings = findings();
        let mut names: Vec<_> = findings.iter().map(|finding| finding.name).collect();
        assert!(findings.iter().all(|finding| !finding.found.is_empty()), "{findings:?}");
        names.sort_unstable();
        let asked = names.len();
        names.dedup();
        assert_eq!(names.len(), asked);
    }
}
