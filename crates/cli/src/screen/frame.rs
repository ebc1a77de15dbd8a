//! The live frame of a running flow: a pure function from a snapshot to lines of text.
//!
//! ```text
//! archive running 0:42 · 12,185 retired of 20,000 · 2 dead-lettered · 60% · ETA 0:26 · 293/s
//!   stage   passed            done  waiting  running  failed     rate
//!   read    ████████▌·····  12,305        3        1       0    293/s
//!   …
//!   in flight 213 of 256 · 12.5 MiB of 64 MiB · 2 workers busy
//!   held by disk: 10 units wait for it in write
//! ```
//!
//! The frame is never wider or higher than the terminal. On a narrow terminal, the bar and the least important columns
//! are omitted. On a low terminal, the stages with the fewest units are omitted.

use millstream_command::screen::line::Line;
use millstream_command::screen::look::{Look, Paint};
use millstream_command::screen::text;
use millstream_flow::{Phase, Snapshot, StageSnapshot};

use super::meter::Pace;

/// The number of lines of a frame in addition to those of the stages: title, heading, units in flight, and the
/// bottleneck.
const OTHER_LINES: usize = 4;
const BAR_COLUMNS: usize = 14;
/// If the lines are too wide, the names of stages are first cut to this width. Columns of the table are omitted only if
/// that is not enough.
const NAME_COLUMNS: usize = 12;
/// The maximum width of a name. A longer name is cut even if there is room for it.
const MAX_NAME_COLUMNS: usize = 24;

/// The lines of the frame, for a terminal with the properties `look`.
pub(crate) fn frame(snapshot: &Snapshot, pace: &Pace, look: Look) -> Vec<String> {
    // The last column stays empty, because some terminals wrap the line when a character is written there.
    let columns = look.columns.saturating_sub(1);
    let mut lines = vec![title(snapshot, pace, Line::new(columns, look))];
    lines.extend(stages(snapshot, pace, columns, look));
    lines.push(in_flight(snapshot, Line::new(columns, look)));
    let mut held_by = Line::new(columns, look);
    held_by.add(None, "  held by ").add(Some(Paint::Strong), &text::printable(&snapshot.held_by()));
    lines.push(held_by.done());
    lines.truncate(look.rows.saturating_sub(1).max(1));
    lines
}

/// A word for a phase of a flow.
pub(crate) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Ready => "ready",
        Phase::Running => "running",
        Phase::Draining => "finishing",
        Phase::Abandoned => "abandoned",
        Phase::Done => "done",
    }
}

fn title(snapshot: &Snapshot, pace: &Pace, mut line: Line) -> String {
    let gone = snapshot.retired.saturating_add(snapshot.dead_lettered).saturating_add(snapshot.gathered);
    let (flow, phase, clock) = (text::printable(&snapshot.flow), phase(snapshot.phase), text::clock(snapshot.wall_ns));
    line.part(Some(Paint::Strong), &format!("{flow} {phase} {clock}"));
    let retired = text::count(snapshot.retired);
    match pace.total {
        Some(total) => line.part(None, &format!("{retired} retired of {}", text::count(total))),
        None => line.part(None, &format!("{retired} retired")),
    };
    if snapshot.gathered > 0 {
        line.part(None, &format!("{} gathered", text::count(snapshot.gathered)));
    }
    if snapshot.dead_lettered > 0 {
        line.part(Some(Paint::Bad), &format!("{} dead-lettered", text::count(snapshot.dead_lettered)));
    }
    if let Some(total) = pace.total.filter(|total| *total > 0) {
        line.part(Some(Paint::Good), &text::percent(gone as f64 / total as f64));
    }
    if let Some(left_ns) = pace.left_ns {
        line.part(None, &format!("ETA {}", text::clock(left_ns)));
    }
    line.part(None, &text::rate(pace.gone_per_s));
    line.done()
}

fn in_flight(snapshot: &Snapshot, mut line: Line) -> String {
    let (units, cap) = (text::count(snapshot.in_flight), text::count(snapshot.inflight_cap));
    line.part(None, &format!("  in flight {units} of {cap}"));
    let held = text::bytes(snapshot.bytes_in_flight);
    match snapshot.memory_cap {
        u64::MAX => line.part(None, &held),
        cap => line.part(None, &format!("{held} of {}", text::bytes(cap))),
    };
    if snapshot.delayed > 0 {
        line.part(None, &format!("{} in a pause", text::count(snapshot.delayed)));
    }
    // The snapshot may come from another process with any numbers, so the sum must not overflow.
    let open_groups = snapshot.stages.iter().fold(0_u64, |all, stage| all.saturating_add(stage.open_groups));
    if open_groups > 0 {
        line.part(None, &format!("{} open", text::counted(open_groups, "group")));
    }
    if snapshot.waiting_for_memory > 0 {
        line.part(None, &format!("{} wait for memory", text::count(snapshot.waiting_for_memory)));
    }
    line.part(None, &format!("{} busy", text::counted(snapshot.workers_busy, "worker")));
    line.done()
}

/// One column of the stages' lines: its heading and a cell for each stage.
struct Column {
    heading: &'static str,
    cells: Vec<String>,
    /// The order in which columns are omitted on a narrow terminal: those with the greatest number first.
    spare: u8,
    paint: Option<Paint>,
}

impl Column {
    fn new(heading: &'static str, spare: u8, paint: Option<Paint>, cells: Vec<String>) -> Self {
        Self { heading, cells, spare, paint }
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|cell| text::width(cell)).chain([text::width(self.heading)]).max().unwrap_or(0)
    }
}

/// The layout of the stages' lines: the columns, and the widths of the name and the bar.
struct Layout {
    name: usize,
    bar: usize,
    columns: Vec<Column>,
}

impl Layout {
    /// Cuts names, then omits the bar, then omits columns, until the lines fit.
    fn fit(columns: Vec<Column>, longest_name: usize, room: usize) -> Self {
        let name = longest_name.clamp(text::width("stage"), MAX_NAME_COLUMNS);
        let mut layout = Self { name, bar: BAR_COLUMNS, columns };
        while layout.width() > room {
            layout.name = name.min(NAME_COLUMNS);
            if layout.width() <= room {
                // Names were cut more than necessary.
                layout.name += (room - layout.width()).min(name - layout.name);
            } else if layout.bar > 0 {
                layout.bar = 0;
            } else if let Some(most) = layout.columns.iter().map(|c| c.spare).max() {
                layout.columns.retain(|c| c.spare < most);
            } else {
                break;
            }
        }
        layout
    }

    fn width(&self) -> usize {
        let bar = if self.bar > 0 { self.bar + 2 } else { 0 };
        2 + self.name + bar + self.columns.iter().map(|c| c.width() + 2).sum::<usize>()
    }

    fn heading(&self, mut line: Line) -> String {
        line.add(Some(Paint::Faint), &format!("  {}", text::left("stage", self.name)));
        if self.bar > 0 {
            line.add(Some(Paint::Faint), &format!("  {}", text::left("passed", self.bar)));
        }
        for column in &self.columns {
            line.add(Some(Paint::Faint), &format!("  {}", text::right(column.heading, column.width())));
        }
        line.done()
    }

    fn row(&self, row: usize, stage: &StageSnapshot, passed: f64, mut line: Line) -> String {
        line.add(None, &format!("  {}", text::left(&text::printable(&stage.name), self.name)));
        if self.bar > 0 {
            line.add(None, "  ").bar(passed, self.bar);
        }
        for column in &self.columns {
            let cell = &column.cells[row];
            let paint = column.paint.filter(|_| cell != "0");
            line.add(paint, &format!("  {}", text::right(cell, column.width())));
        }
        line.done()
    }
}

fn stages(snapshot: &Snapshot, pace: &Pace, columns: usize, look: Look) -> Vec<String> {
    let shown = busiest(&snapshot.stages, look.rows.saturating_sub(OTHER_LINES + 1));
    let numbers = |of: fn(&StageSnapshot) -> u64| shown.iter().map(|(_, s)| text::count(of(s))).collect::<Vec<_>>();
    let mut cells = vec![
        Column::new("done", 0, None, numbers(|s| s.units)),
        Column::new("waiting", 1, None, numbers(|s| s.waiting)),
        Column::new("running", 2, None, numbers(|s| s.running)),
    ];
    if snapshot.stages.iter().any(|s| s.failures > 0) {
        cells.push(Column::new("failed", 3, Some(Paint::Bad), numbers(|s| s.failures)));
    }
    let rates = shown.iter().map(|(i, _)| text::rate(pace.stages_per_s.get(*i).copied().unwrap_or(0.0)));
    cells.push(Column::new("rate", 4, Some(Paint::Faint), rates.collect()));

    let longest_name = shown.iter().map(|(_, s)| text::width(&text::printable(&s.name))).max().unwrap_or(0);
    let layout = Layout::fit(cells, longest_name, columns);
    let units = pace.total.unwrap_or(snapshot.admitted.saturating_add(snapshot.split)).max(1) as f64;
    let mut lines = vec![layout.heading(Line::new(columns, look))];
    for (row, (_, stage)) in shown.iter().enumerate() {
        lines.push(layout.row(row, stage, stage.units as f64 / units, Line::new(columns, look)));
    }
    let hidden = snapshot.stages.len() - shown.len();
    if hidden > 0 {
        let mut line = Line::new(columns, look);
        line.add(Some(Paint::Faint), &format!("  and {} more", text::counted(hidden as u64, "stage")));
        lines.push(line.done());
    }
    lines
}

/// The stages for at most `room` lines, in the flow's order. If there are more stages, those with the most units are
/// chosen, and one line stays free for the number of omitted stages.
fn busiest(stages: &[StageSnapshot], room: usize) -> Vec<(usize, &StageSnapshot)> {
    let mut shown: Vec<_> = stages.iter().enumerate().collect();
    if stages.len() > room {
        shown.sort_by_key(|(_, stage)| std::cmp::Reverse(stage.waiting.saturating_add(stage.running)));
        shown.truncate(room.saturating_sub(1));
        shown.sort_by_key(|(i, _)| *i);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::snapshot;

    fn pace() -> Pace {
        Pace {
            gone_per_s: 293.4,
            stages_per_s: vec![293.4, 293.0, 290.0, 1_204.0],
            total: Some(20_000),
            left_ns: Some(26_600_000_000),
        }
    }

    #[test]
    fn a_frame_shows_every_stage_and_what_holds_the_flow() {
        let lines = frame(&snapshot(), &pace(), Look::FILE);
        let expected = "\
archive running 0:42 · 12,185 retired of 20,000 · 2 dead-lettered · 60% · ETA 0:26 · 293/s
  stage   passed            done  waiting  running  failed     rate
  read    ████████▌·····  12,305        3        1       0    293/s
  blake3  ████████▌·····  12,265        6        2       0    293/s
  zstd    ████████▌·····  12,225        9        0       2    290/s
  write   ████████▌·····  12,185       12        1       0  1,204/s
  in flight 213 of 256 · 12.5 MiB of 64 MiB · 2 workers busy
  held by disk: 10 units wait for it in write";
        assert_eq!(lines.join("\n"), expected);
    }

    #[test]
    fn no_frame_is_larger_than_its_terminal() {
        let mut many = snapshot();
        for i in 0..40 {
            let mut stage = many.stages[i % 4].clone();
            stage.name = format!("a stage with a rather long name, number {i}");
            many.stages.push(stage);
        }
        for unicode in [true, false] {
            for columns in 1..140 {
                for rows in [1, 2, 3, 5, 6, 7, 8, 24, 50] {
                    let look = Look { columns, rows, color: false, unicode };
                    let lines = frame(&many, &pace(), look);
                    assert!(
                        lines.len() <= rows.saturating_sub(1).max(1),
                        "{} lines at {columns} × {rows}",
                        lines.len()
                    );
                    for line in &lines {
                        assert!(text::width(line) < columns.max(2), "{columns} × {rows}: {line:?}");
                        assert!(unicode || line.is_ascii(), "{line:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn colours_change_nothing_but_escapes() {
        let coloured = frame(&snapshot(), &pace(), Look { color: true, ..Look::FILE }).join("\n");
        let plain = frame(&snapshot(), &pace(), Look::FILE).join("\n");
        assert_ne!(plain, coloured);
        assert_eq!(plain, {
            let mut stripped = String::new();
            let mut rest = coloured.as_str();
            while let Some((before, after)) = rest.split_once("\x1b[") {
                stripped += before;
                rest = after.split_once('m').expect("an escape ends").1;
            }
            stripped + rest
        });
    }

    #[test]
    fn narrow_terminals_keep_names_and_what_is_done() {
        let lines = frame(&snapshot(), &pace(), Look { columns: 30, ..Look::FILE });
        assert!(lines[1].contains("stage") && lines[1].contains("done"), "{lines:#?}");
        assert!(lines[2].contains("read") && lines[2].contains("12,305"), "{lines:#?}");
        assert!(!lines[1].contains("rate"), "{lines:#?}");
    }

    #[test]
    fn low_terminals_show_the_stages_with_work() {
        let mut flow = snapshot();
        for stage in &mut flow.stages {
            (stage.waiting, stage.running) = (0, 0);
            stage.waiting_for.clear();
        }
        flow.stages[2].waiting = 7;
        let lines = frame(&flow, &pace(), Look { rows: 7, ..Look::FILE });
        assert_eq!(lines.len(), 6, "{lines:#?}");
        assert!(lines[2].contains("zstd"), "{lines:#?}");
        assert!(lines[3].contains("and 3 stages more"), "{lines:#?}");
    }
}
