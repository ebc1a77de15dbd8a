//! Overlays: boxes over the screen for help, typed values and confirmations.

use millstream_command::screen::text;

use super::pen::{Pen, Tone};
use crate::top::view::{Change, Overlay};

/// The help text: each line has keys and their effect.
const HELP: [(&str, &str); 17] = [
    ("up, down, PgUp, PgDn", "select a row"),
    ("Tab", "the other table: stages, resources"),
    ("Enter", "change the selected row's workers or tokens"),
    ("+ and -", "one more, one less of them"),
    ("p", "pause a resource: its tokens become 0"),
    ("i, m, w", "change inflight, memory, workers"),
    ("r", "run the units of dead letters again"),
    ("d", "drain: admit no more, finish what is in flight"),
    ("s", "sort the stages: flow, waiting, oldest wait"),
    ("/", "show only names with these letters"),
    ("Esc", "drop the filter; back to all runs; quit"),
    ("q, ^C", "quit; the run continues"),
    ("^Z", "suspend"),
    ("", ""),
    ("", "Changes are shown before they are made, and are"),
    ("", "recorded in the run's report with user and time."),
    ("", "Press any key."),
];

pub(super) fn draw(pen: &mut Pen<'_>, overlay: &Overlay) {
    match overlay {
        Overlay::None | Overlay::Filter { .. } => {}
        Overlay::Help => {
            let keys = HELP.iter().map(|(keys, _)| text::width(keys)).max().unwrap_or(0);
            let lines: Vec<String> =
                HELP.iter().map(|(key, does)| format!("{}  {does}", text::left(key, keys))).collect();
            boxed(pen, "keys", &lines);
        }
        Overlay::Edit { key, now, typed } => {
            let lines = [
                format!("{key} is {now}"),
                format!("becomes: {typed}_"),
                String::new(),
                "Enter continues, Esc cancels".to_owned(),
            ];
            boxed(pen, "change", &lines);
        }
        Overlay::Confirm(Change::Set { key, old, new }) => {
            let lines = [
                key.clone(),
                format!("{old} → {new}"),
                String::new(),
                "y applies it, any other key cancels".to_owned(),
            ];
            boxed(pen, "change?", &lines);
        }
        Overlay::Confirm(Change::Retry(dead)) => {
            let lines = [
                "Run the units of dead letters again, from the first stage.".to_owned(),
                format!("{} dead-lettered so far.", text::counted(*dead, "unit")),
                String::new(),
                "y runs them again, any other key leaves them".to_owned(),
            ];
            boxed(pen, "retry?", &lines);
        }
        Overlay::Confirm(Change::Drain) => {
            let lines = [
                "Admit no more units, and finish those in flight.".to_owned(),
                "The run then ends, as after an interrupt.".to_owned(),
                String::new(),
                "y drains it, any other key cancels".to_owned(),
            ];
            boxed(pen, "drain?", &lines);
        }
    }
}

/// Draws lines in a centred box. If the terminal is too low, only the last lines are shown, which state how to
/// continue.
fn boxed(pen: &mut Pen<'_>, title: &str, lines: &[String]) {
    let room = usize::from(pen.columns()).saturating_sub(4).max(1);
    let width =
        lines.iter().map(|line| text::width(&text::printable(line))).max().unwrap_or(0).max(title.len() + 2).min(room);
    let height = lines.len().min(usize::from(pen.rows()).saturating_sub(2));
    let (columns, rows) = (width as u16 + 4, height as u16 + 2);
    let (left, top) = ((pen.columns().saturating_sub(columns)) / 2, (pen.rows().saturating_sub(rows)) / 2);
    pen.clear(left, top, columns, rows);
    let [nw, ne, sw, se, across, down] =
        if pen.unicode() { ["╭", "╮", "╰", "╯", "─", "│"] } else { ["+", "+", "+", "+", "-", "|"] };
    let bar = |n: usize| across.repeat(n);
    pen.text(
        left,
        top,
        Tone::Faint,
        &format!("{nw}{} {title} {}{ne}", bar(1), bar(width.saturating_sub(title.len() + 1))),
    );
    let skipped = if lines.len() > height && title != "keys" { lines.len() - height } else { 0 };
    for (place, line) in lines.iter().skip(skipped).take(height).enumerate() {
        let row = top + 1 + place as u16;
        pen.text(left, row, Tone::Faint, down);
        let tone = if place + skipped < 2 && title != "keys" { Tone::Strong } else { Tone::Plain };
        pen.within(left + 2, row, width as u16, tone, line);
        pen.text(left + columns - 1, row, Tone::Faint, down);
    }
    pen.text(left, top + rows - 1, Tone::Faint, &format!("{sw}{}{se}", bar(width + 2)));
}
