//! The changes from outside while the run went on.

use std::fmt::Write as _;

use millstream_command::screen::text;
use millstream_command::screen::xml::escape;

use crate::steer::facts::Steered;

pub(super) fn section(steered: &Steered) -> String {
    if steered.changes.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2>Changed while it ran</h2>\n<div class=\"card\"><table>\n<thead><tr><th>after</th><th class=\"words\">change</th>\
         <th class=\"words\">by</th></tr></thead>\n<tbody>\n",
    );
    for change in &steered.changes {
        let _ = writeln!(
            out,
            "<tr><th data-name=\"after\">{}</th><td class=\"words text\" data-name=\"change\">{}</td>\
             <td class=\"words faint\" data-name=\"by\">user {}, {}</td></tr>",
            text::seconds(change.at_s),
            escape(&change.did.join(", ")),
            change.user,
            escape(&change.at.replace('T', " ").replace('Z', " UTC")),
        );
    }
    if steered.older > 0 {
        let older = text::counted(steered.older, "earlier change");
        let _ = writeln!(out, "<tr><th></th><td class=\"words text\">and {older}</td><td class=\"words\"></td></tr>");
    }
    out + "</tbody></table></div>\n"
}
