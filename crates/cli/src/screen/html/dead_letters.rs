//! Why units were dead-lettered: the groups of dead letters, the largest first.

use std::fmt::Write as _;

use millstream_command::screen::xml::escape;
use millstream_command::screen::{shown, text};
use millstream_flow::Cause;

use super::super::run_report::RunReport;
use super::prose;
use crate::causes::Group;

/// The most characters of a unit's text that are shown.
const MAX_EXAMPLE: usize = 120;

pub(super) fn section(run: &RunReport<'_>) -> String {
    if run.report.dead_lettered == 0 {
        return String::new();
    }
    let mut out = String::from(
        "<h2>Why units were dead-lettered</h2>\n<div class=\"card\"><table>\n<thead><tr><th>units</th><th class=\"words\">stage</th>\
         <th class=\"words\">reason</th><th class=\"words\">for example</th></tr></thead>\n<tbody>\n",
    );
    for group in &run.causes.groups {
        let noun = if group.units == 1 { "unit" } else { "units" };
        let _ = writeln!(
            out,
            "<tr><th data-name=\"{noun}\">{}</th><td class=\"words\" data-name=\"stage\">{}</td><td class=\"words text\">{}</td>\
             <td class=\"words text faint\" data-name=\"for example\">{}</td></tr>",
            text::count(group.units),
            escape(&group.stage),
            prose(&reason(group)),
            escape(&shortened(&group.example)),
        );
    }
    if run.causes.others > 0 {
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td class=\"words\"></td><td class=\"words text\">for other reasons</td>\
             <td class=\"words\"></td></tr>",
            text::count(run.causes.others)
        );
    }
    out += "</tbody></table></div>\n";
    if let Some(path) = run.dead_letters {
        let _ = writeln!(out, "<p class=\"faint\">each of them in {}</p>", escape(&shown::path(path).to_string()));
    }
    out
}

/// The text for a group: its message, after the kind of failure if that is more than an error.
fn reason(group: &Group) -> String {
    match group.cause {
        Cause::Error => group.message.clone(),
        other => format!("{other}: {}", group.message),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_EXAMPLE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
