//! A mistake of a program, shown in its text with carets.

use miette::{LabeledSpan, MietteDiagnostic, NamedSource, Report};
use millstream_command::screen::shown;
use millstream_stream::text::Problem;

/// The longest text that is shown with carets, in bytes.
const MAX_SHOWN: usize = 4 << 10;

/// The mistake as it is shown on a terminal.
pub(super) fn of(text: &str, problem: &Problem) -> String {
    let mut shown = MietteDiagnostic::new(shown::lines(&problem.message));
    if let Some(help) = &problem.help {
        shown = shown.with_help(shown::lines(help));
    }
    if text.trim().is_empty() || text.len() > MAX_SHOWN {
        let place = problem.labels.first().map_or(0, |(span, _)| span.start);
        return format!("{:?}", Report::new(shown.with_code(format!("at byte {place}"))));
    }
    // A place at the end is shown at the last thing that stands there.
    let last = text.trim_end().char_indices().next_back().map_or(0, |(at, _)| at);
    let labels = problem.labels.iter().map(|(span, label)| {
        let start = if span.start >= text.trim_end().len() { last } else { span.start };
        LabeledSpan::at(start..span.end.clamp(start, text.len()), shown::lines(label))
    });
    let shown = shown.with_labels(labels);
    format!("{:?}", Report::new(shown).with_source_code(NamedSource::new("EXPR", visible(text))))
}

/// The text, with as many question marks in the place of a hidden character as it has bytes, so that places stay.
fn visible(text: &str) -> String {
    let letter = |c: char| match c {
        '\n' => "\n".to_owned(),
        '\t' => " ".to_owned(),
        c if shown::is_hidden(c) => "?".repeat(c.len_utf8()),
        c => c.to_string(),
    };
    text.chars().map(letter).collect()
}
