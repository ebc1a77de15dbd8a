//! Draws one run: its bottleneck, the balance of its units, its stages, resources, failures and changes.

use millstream_command::screen::text;
use millstream_flow::{Snapshot, StageSnapshot};

use super::pen::{Pen, Tone};
use super::spark::{most, spark};
use super::table::{Cell, Column, Table};
use crate::screen::frame::phase;
use crate::steer::place::Run;
use crate::top::history::History;
use crate::top::view::{self, Order, View};

/// The number of columns of a stage's sparkline.
const TREND: usize = 16;
/// The maximum number of columns of the rate's sparkline.
const RATE: usize = 100;
/// The number of keys shown for a resource.
const KEYS: usize = 3;
/// The maximum number of columns of a resource's keys.
const KEY_COLUMNS: usize = 70;

pub(super) fn draw(pen: &mut Pen<'_>, view: &View, open: &Run, history: &History) {
    let Some(now) = history.newest() else {
        pen.text(0, 0, Tone::Strong, &open.name);
        let state = if history.has_ended() { "has ended, or does not answer" } else { "is asked" };
        return pen.text(0, 1, Tone::Plain, state);
    };
    let mut row = head(pen, open, now, history);
    let end = pen.rows() - 1;
    let blank = u16::from(pen.rows() >= 24);
    row += blank;

    let sections = sections(view, now, history, pen.unicode());
    let heights = share(&sections, usize::from(end.saturating_sub(row)), usize::from(blank));
    for (section, rows) in sections.iter().zip(heights) {
        if rows >= 2 {
            row += section.draw(pen, row, rows as u16 - 1) + blank;
        }
    }
}

// ---- the head -----------------------------------------------------------------------------------------

/// Draws the lines above the tables. Returns their number.
fn head(pen: &mut Pen<'_>, open: &Run, now: &Snapshot, history: &History) -> u16 {
    let pace = history.pace();
    let gone = now.retired.saturating_add(now.dead_lettered).saturating_add(now.gathered);
    let state = if history.has_ended() { "ended" } else { phase(now.phase) };
    let mut title = vec![(Tone::Strong, format!("{} {state} {}", open.name, text::clock(now.wall_ns)))];
    match pace.total {
        Some(total) => {
            title.push((Tone::Plain, format!("{} retired of {}", text::count(now.retired), text::count(total))));
            if total > 0 {
                title.push((Tone::Good, text::percent(gone as f64 / total as f64)));
            }
        }
        None => title.push((Tone::Plain, format!("{} retired", text::count(now.retired)))),
    }
    if now.dead_lettered > 0 {
        title.push((Tone::Bad, format!("{} dead-lettered", text::count(now.dead_lettered))));
    }
    if let Some(left_ns) = pace.left_ns.filter(|_| !history.has_ended()) {
        title.push((Tone::Plain, format!("ETA {}", text::clock(left_ns))));
    }
    title.push((Tone::Plain, text::rate(pace.gone_per_s)));
    pen.toned_parts(0, &title);

    let limited = if history.has_ended() { "was limited by " } else { "limited by " };
    pen.text(0, 1, Tone::Plain, limited);
    pen.text(limited.len() as u16, 1, Tone::Busy, &now.held_by());

    let mut row = 2;
    for line in [conservation(now), in_flight(now)] {
        if pen.rows() >= 14 || row == 2 {
            pen.toned_parts(row, &line);
            row += 1;
        }
    }
    if pen.rows() >= 16 {
        rate(pen, row, history);
        row += 1;
    }
    row
}

/// Returns the balance of units: the number admitted, and where those units are.
fn conservation(now: &Snapshot) -> Vec<(Tone, String)> {
    let came = now.admitted.saturating_add(now.split);
    let mut parts = vec![(Tone::Plain, format!("{} came", text::count(came)))];
    if now.split > 0 {
        parts[0].1 += &format!(" ({} by splits)", text::count(now.split));
    }
    let mut left = vec![format!("{} retired", text::count(now.retired))];
    if now.dead_lettered > 0 {
        left.push(format!("{} dead-lettered", text::count(now.dead_lettered)));
    }
    if now.gathered > 0 {
        left.push(format!("{} gathered", text::count(now.gathered)));
    }
    left.push(format!("{} in flight", text::count(now.in_flight)));
    parts[0].1 += &format!(" = {}", left.join(" + "));
    parts
}

fn in_flight(now: &Snapshot) -> Vec<(Tone, String)> {
    let full = |is_full: bool| if is_full { Tone::Busy } else { Tone::Plain };
    let units = format!("in flight {} of {}", text::count(now.in_flight), text::count(now.inflight_cap));
    let mut parts = vec![(full(now.in_flight >= now.inflight_cap), units)];
    let bytes = text::bytes(now.bytes_in_flight);
    parts.push(match now.memory_cap {
        u64::MAX => (Tone::Plain, format!("{bytes}, no cap")),
        cap => (full(now.bytes_in_flight >= cap), format!("{bytes} of {}", text::bytes(cap))),
    });
    parts.push((
        Tone::Plain,
        format!("{} busy, {} shared", text::counted(now.workers_busy, "worker"), text::count(now.workers)),
    ));
    for (units, words) in [(now.delayed, "pausing"), (now.waiting_for_memory, "waiting for memory")] {
        if units > 0 {
            parts.push((Tone::Plain, format!("{} {words}", text::count(units))));
        }
    }
    parts
}

/// Draws the rate over the last five minutes.
fn rate(pen: &mut Pen<'_>, row: u16, history: &History) {
    let label = "5 min ";
    let columns = usize::from(pen.columns()).saturating_sub(24).min(RATE);
    let rates = history.rates(columns);
    pen.text(0, row, Tone::Faint, label);
    let bars = spark(&rates, pen.unicode());
    pen.text(label.len() as u16, row, Tone::Good, &bars);
    let most = format!("at most {}", text::rate(most(&rates)));
    pen.text((label.len() + columns) as u16 + 1, row, Tone::Faint, &most);
}

// ---- the tables ---------------------------------------------------------------------------------------

/// A part of the screen below the head.
enum Section {
    Table(Table, usize),
    /// A heading, and lines of text.
    Lines(&'static str, Vec<Cell>),
}

impl Section {
    /// Returns the number of rows that the section needs.
    fn wish(&self) -> usize {
        match self {
            Section::Table(_, rows) => 1 + rows,
            Section::Lines(_, lines) => 1 + lines.len(),
        }
    }

    /// Draws the heading, and up to `rows` rows below it. Returns the number of rows drawn, including the heading.
    fn draw(&self, pen: &mut Pen<'_>, row: u16, rows: u16) -> u16 {
        match self {
            Section::Table(table, _) => table.draw(pen, row, rows),
            Section::Lines(heading, lines) => {
                pen.text(0, row, Tone::Faint, heading);
                let shown = lines.iter().take(rows.into());
                let mut at = row + 1;
                for (tone, line) in shown {
                    pen.text(0, at, *tone, line);
                    at += 1;
                }
                at - row
            }
        }
    }
}

/// Returns the number of rows of each section. Each section first gets a few rows if there is room. The remaining rows
/// go to the sections in order.
fn share(sections: &[Section], room: usize, blank: usize) -> Vec<usize> {
    let mut rows = vec![0; sections.len()];
    let mut left = room;
    for (rows, section) in rows.iter_mut().zip(sections) {
        let least = section.wish().min(3);
        if left >= least + blank || *rows == 0 && left >= 2 && least >= 2 {
            *rows = least.min(left);
            left = left.saturating_sub(*rows + blank);
        }
    }
    for (rows, section) in rows.iter_mut().zip(sections).filter(|(rows, _)| **rows > 0) {
        let more = section.wish().saturating_sub(*rows).min(left);
        *rows += more;
        left -= more;
    }
    rows
}

/// Returns the sections in order of importance.
fn sections(view: &View, now: &Snapshot, history: &History, unicode: bool) -> Vec<Section> {
    let stages = stages(view, now, history, unicode);
    let resources = resources(view, now, history);
    let has_resources = !now.resources.is_empty();
    let mut sections = vec![stages];
    if has_resources {
        sections.push(resources);
        if view.table == view::Table::Resources {
            sections.swap(0, 1);
        }
    }
    let causes = &history.facts().causes;
    if !causes.groups.is_empty() {
        let mut lines: Vec<Cell> = causes
            .groups
            .iter()
            .map(|group| {
                let units = text::right(&text::count(group.units), 7);
                (Tone::Bad, format!("{units}  {}: {}", group.stage, group.message))
            })
            .collect();
        if causes.others > 0 {
            lines.push((Tone::Bad, format!("{}  for other reasons", text::right(&text::count(causes.others), 7))));
        }
        sections.push(Section::Lines("dead letters by cause", lines));
    }
    let steered = &history.facts().steered;
    if !steered.changes.is_empty() {
        let line = |change: &crate::steer::facts::Change| {
            let at = text::clock((change.at_s.max(0.0) * 1e9) as u64);
            (Tone::Plain, format!("at {at} user {}: {}", change.user, change.did.join(", ")))
        };
        sections.push(Section::Lines("changed, the newest first", steered.changes.iter().rev().map(line).collect()));
    }
    sections
}

fn stages(view: &View, now: &Snapshot, history: &History, unicode: bool) -> Section {
    let shown = view.stages(now);
    let cells = |of: &dyn Fn(usize, &StageSnapshot) -> Cell| -> Vec<Cell> {
        shown.iter().map(|&place| of(place, &now.stages[place])).collect()
    };
    let number = |n: u64| (if n == 0 { Tone::Faint } else { Tone::Plain }, text::count(n));
    let bad = |n: u64| (if n == 0 { Tone::Faint } else { Tone::Bad }, text::count(n));
    let rate = |place: usize| history.pace().stages_per_s.get(place).copied().unwrap_or(0.0);
    let heading = match view.order {
        Order::Flow => "stage",
        Order::Waiting => "stage (by waiting)",
        Order::Oldest => "stage (by oldest)",
    };
    let columns = vec![
        Column::names(heading, cells(&|_, stage| (Tone::Strong, stage.name.clone()))),
        Column::numbers("waiting", 0, cells(&|_, stage| number(stage.waiting))),
        Column::words("for", 1, 28, cells(&|_, stage| (Tone::Busy, waits_for(stage)))),
        Column::numbers("granted", 8, cells(&|_, stage| number(stage.granted))),
        Column::numbers("running", 3, cells(&|_, stage| number(stage.running))),
        Column::numbers("of", 6, cells(&|_, stage| (Tone::Faint, text::count(stage.workers_max)))),
        Column::numbers("done", 2, cells(&|_, stage| number(stage.units))),
        Column::numbers("failed", 5, cells(&|_, stage| bad(stage.failures))),
        Column::numbers("retried", 9, cells(&|_, stage| number(stage.retries))),
        Column::numbers("rate", 4, cells(&|place, _| (Tone::Plain, text::rate(rate(place))))),
        Column::numbers(
            "oldest",
            7,
            cells(&|_, stage| match stage.oldest_ns {
                0 => (Tone::Faint, "-".to_owned()),
                ns => (Tone::Plain, text::span(ns)),
            }),
        ),
        Column::words(
            "waiting, 5 min",
            10,
            TREND,
            cells(&|place, _| (Tone::Busy, spark(&history.waiting(place, TREND), unicode))),
        ),
    ];
    let selected = (view.table == view::Table::Stages).then(|| position(&shown, view.stage));
    let rows = shown.len();
    Section::Table(Table { columns, selected }, rows)
}

/// Returns the resource that most units in the stage's queue wait for.
fn waits_for(stage: &StageSnapshot) -> String {
    let parked: u64 = stage.waiting_for.iter().fold(0, |all, waiting| all.saturating_add(waiting.units));
    let queued = stage.waiting.saturating_sub(parked);
    match stage.waiting_for.iter().max_by_key(|waiting| waiting.units) {
        Some(most) if most.units >= queued => format!("{} ({})", most.resource, text::count(most.units)),
        _ if queued > 0 => format!("a worker ({})", text::count(queued)),
        _ if stage.open_groups > 0 => format!("members ({})", text::counted(stage.open_groups, "group")),
        _ => String::new(),
    }
}

fn resources(view: &View, now: &Snapshot, history: &History) -> Section {
    let shown = view.resources(now);
    let cells = |of: &dyn Fn(&millstream_flow::ResourceSnapshot) -> Cell| -> Vec<Cell> {
        shown.iter().map(|&place| of(&now.resources[place])).collect()
    };
    let columns = vec![
        Column::names("resource", cells(&|resource| (Tone::Strong, resource.name.clone()))),
        Column::numbers(
            "waiting",
            0,
            cells(&|resource| match resource.waiters {
                0 => (Tone::Faint, "0".to_owned()),
                units => (Tone::Busy, text::count(units)),
            }),
        ),
        Column::numbers(
            "in use",
            1,
            cells(&|resource| match resource.rate_per_s {
                Some(_) => (Tone::Faint, "-".to_owned()),
                None => (Tone::Plain, text::count(resource.in_use)),
            }),
        ),
        Column::numbers(
            "of",
            2,
            cells(&|resource| match resource.rate_per_s {
                Some(rate) => (Tone::Plain, text::rate(rate)),
                None if resource.capacity == 0 => (Tone::Bad, "0: paused".to_owned()),
                None => (Tone::Plain, text::count(resource.capacity)),
            }),
        ),
        Column::numbers(
            "keys",
            3,
            cells(&|resource| match resource.kind.starts_with("keyed") {
                true => (Tone::Plain, text::count(resource.keys)),
                false => (Tone::Faint, "-".to_owned()),
            }),
        ),
        Column::words(
            "top keys, and who waits",
            4,
            KEY_COLUMNS,
            cells(&|resource| {
                let keys = history.facts().keys.iter().filter(|key| key.resource == resource.name).take(KEYS);
                let keys = keys.map(|key| match key.waiters {
                    0 => format!("{} (in use {})", key.key, text::count(key.in_use)),
                    waiters => format!("{} ({})", key.key, text::count(waiters)),
                });
                (Tone::Plain, keys.collect::<Vec<_>>().join(", "))
            }),
        ),
    ];
    let selected = (view.table == view::Table::Resources).then(|| position(&shown, view.resource));
    let rows = shown.len();
    Section::Table(Table { columns, selected }, rows)
}

fn position(shown: &[usize], selected: usize) -> usize {
    shown.iter().position(|&place| place == selected).unwrap_or(0)
}
