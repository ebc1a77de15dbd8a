//! `millstream doctor`: the features of this machine and its kernel, and their consequences.

use std::process::ExitCode;

use millstream_command::screen::out;
use millstream_fence::probe::{Finding, findings};

/// Prints the findings.
#[must_use]
pub(crate) fn doctor() -> ExitCode {
    match out::print(&render(&findings())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out::complain(format!("millstream doctor: standard output: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Renders a line for each finding, with the answers aligned in a column, and a note on the line below its answer.
fn render(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { name, found, note, .. } in findings {
        text.push_str(&format!("{name:width$}  {found}\n"));
        if let Some(note) = note {
            text.push_str(&format!("{:width$}  → {note}\n", ""));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_notes_are_aligned() {
        let text = render(&[Finding::new("io_uring", "offered"), Finding::new("tick", "4 ms").with_note("short")]);
        assert_eq!(text, "io_uring  offered\ntick      4 ms\n          → short\n");
    }
}
