//! A mistake of a program, shown in its text with carets.

use millstream_command::screen::caret::{self, Severity, Source};
use millstream_command::screen::look::Look;
use millstream_stream::text::Problem;

/// Returns the mistake as it is shown on a terminal.
pub(super) fn of(text: &str, problem: &Problem) -> String {
    let Problem { message, help, labels, .. } = problem;
    let problem = caret::Problem { severity: Severity::Error, message, help: help.as_deref(), labels };
    Source::new("EXPR", text).show(&problem, Look::of_stderr().unwrap_or(Look::FILE))
}
