//! Tests the screen at many sizes, with few and many stages, and with extreme names and numbers.

use millstream_flow::{Cause, KeySnapshot, Snapshot, StageSnapshot};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::causes::{Group, Groups};
use crate::screen::sample::{filled, snapshot};
use crate::steer::facts::{Audit, Facts, Peer};
use crate::steer::place::Run;
use crate::top::view::{Change, Order, Table};

const PLAIN: Theme = Theme { color: false, unicode: true };

fn open() -> Run {
    Run { name: "archive-7".into(), path: "/run/archive-7".into() }
}

fn facts(now: &Snapshot, keys: usize) -> Facts {
    let audit = Audit::begin();
    audit.note(Peer { user: 1000, process: 7 }, vec!["inflight=64 (was 256)".into()]);
    let group = Group {
        stage: "zstd".into(),
        cause: Cause::Error,
        message: "disk is gone".into(),
        units: 2,
        example: "a".into(),
    };
    let key = |n: usize| {
        filled!(KeySnapshot {
            resource: now.resources[0].name.clone(),
            key: format!("{n}.example"),
            waiters: (keys - n) as u64,
            in_use: 1,
        })
    };
    Facts {
        total: Some(20_000),
        keys: (0..keys.min(5)).map(key).collect(),
        causes: Groups { groups: vec![group], others: 0 },
        steered: audit.steered(),
    }
}

fn history(stages: usize, keys: usize) -> History {
    let mut history = History::default();
    for second in 0..400 {
        let mut now = snapshot();
        now.wall_ns = (42 + second) * 1_000_000_000;
        now.retired += second * second;
        let sample: Vec<StageSnapshot> = now.stages.clone();
        now.stages = (0..stages)
            .map(|n| {
                let mut stage = sample[n % sample.len()].clone();
                if n >= sample.len() {
                    stage.name = format!("{}-{n}", stage.name);
                }
                stage.waiting += second % 50;
                stage
            })
            .collect();
        now.resources[0].keys = keys as u64;
        now.resources[0].kind = "keyed tokens".into();
        let facts = facts(&now, keys);
        history.add(now, facts);
    }
    history
}

/// Returns the lines of the terminal, without trailing blanks.
fn drawn(size: (u16, u16), theme: Theme, view: &View, list: &[Listed], history: &History) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| draw(frame.buffer_mut(), theme, view, list, history)).unwrap();
    let buffer = terminal.backend().buffer();
    let line =
        |row: u16| (0..size.0).map(|column| buffer[(column, row)].symbol()).collect::<String>().trim_end().to_owned();
    (0..size.1).map(line).collect()
}

#[test]
fn a_usual_terminal_shows_everything_of_a_small_flow() {
    let lines = drawn((120, 30), PLAIN, &View::new(Some(open())), &[], &history(4, 9));
    let page = lines.join("\n");
    assert!(lines[0].starts_with("archive-7 running 7:21 · 171,386 retired of 20,000"), "{page}");
    assert_eq!(lines[1], "limited by zstd: 58 units wait, 2 workers busy", "{page}");
    assert!(lines[2].contains("12,400 came = 171,386 retired + 2 dead-lettered + 213 in flight"), "{page}");
    assert!(lines[3].starts_with("in flight 213 of 256 · 12.5 MiB of 64 MiB · 2 workers busy, 2 shared"), "{page}");
    assert!(lines[4].starts_with("5 min ") && lines[4].contains('█') && lines[4].contains("at most "), "{page}");
    for expected in ["for", "granted", "oldest", "waiting, 5 min", "disk", "0.example (9), 1.example (8)", "50/s"] {
        assert!(page.contains(expected), "{expected} in\n{page}");
    }
    assert!(
        page.contains("      2  zstd: disk is gone") && page.contains("user 1000: inflight=64 (was 256)"),
        "{page}"
    );
    assert!(lines[29].starts_with("? help · q quits"), "{page}");
}

#[test]
fn every_size_is_drawn_with_any_number_of_stages_and_keys() {
    for stages in [1, 3, 12, 60] {
        for keys in [0, 100_000] {
            let history = history(stages, keys);
            for table in [Table::Stages, Table::Resources] {
                for order in [Order::Flow, Order::Oldest] {
                    let view = View { table, order, stage: stages - 1, ..View::new(Some(open())) };
                    for size in [(1, 1), (20, 4), (40, 10), (80, 24), (200, 50), (500, 200)] {
                        for theme in [PLAIN, Theme { color: true, unicode: false }] {
                            let lines = drawn(size, theme, &view, &[], &history);
                            let is_ascii = lines
                                .iter()
                                .all(|line| line.is_ascii() && !line.contains('?') || line.contains("? help"));
                            assert!(theme.unicode || is_ascii, "{lines:#?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_small_terminal_keeps_what_matters() {
    let history = history(12, 3);
    let view = View { stage: 11, ..View::new(Some(open())) };
    let lines = drawn((40, 10), PLAIN, &view, &[], &history);
    let page = lines.join("\n");
    assert!(lines[0].starts_with("archive-7 running") && lines[1].starts_with("limited by "), "{page}");
    assert!(page.contains("waiting") && page.contains("write-11"), "the selected stage is visible:\n{page}");
    assert!(page.contains("of 12"), "{page}");
    assert!(lines[9].starts_with("? help"), "{page}");
    let view = View { table: Table::Resources, ..View::new(Some(open())) };
    assert!(drawn((40, 10), PLAIN, &view, &[], &history).join("\n").contains("disk"));
}

#[test]
fn names_cannot_control_the_terminal_and_numbers_of_any_size_fit() {
    let mut now = snapshot();
    now.flow = "\x1b]0;x\x07".into();
    now.stages[0].name = "a\x1b[2Jb".into();
    now.stages[1].name = "日本語".repeat(30);
    now.stages[2].name = "☁\u{fe0f}\u{202e}".repeat(20);
    now.stages[3].name = String::new();
    now.resources[0].name = "\r\n\t".into();
    for stage in &mut now.stages {
        (stage.waiting, stage.running, stage.units, stage.failures) = (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        (stage.oldest_ns, stage.workers_max, stage.retries) = (u64::MAX, u64::MAX, u64::MAX);
    }
    (now.admitted, now.split, now.retired, now.in_flight) = (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
    (now.bytes_in_flight, now.memory_cap, now.wall_ns) = (u64::MAX, u64::MAX - 1, u64::MAX);
    now.resources.truncate(2);
    now.resources[1].rate_per_s = Some(f64::NAN);
    let mut facts = facts(&snapshot(), 5);
    facts.keys.iter_mut().for_each(|key| (key.resource, key.key) = ("\r\n\t".into(), "\x1b[1m".into()));
    facts.causes.groups[0].message = "\u{9b}31m".into();
    facts.steered.changes[0].did = vec!["\x07".into()];
    (facts.steered.changes[0].at_s, facts.total) = (f64::INFINITY, Some(u64::MAX));
    let mut history = History::default();
    history.add(now.clone(), facts.clone());
    history.add(now.clone(), facts);
    let run = Run { name: "\x1b[31mrun".into(), path: "/x".into() };
    let list = [
        Listed { run: run.clone(), state: Ok(Box::new(now)), ended: false },
        Listed { run: run.clone(), state: Err("\x1b[2J".into()), ended: false },
    ];
    for open in [Some(run), None] {
        for size in [(40, 10), (80, 24), (300, 60)] {
            let change =
                Change::Set { key: "stage.\x1b.workers".into(), old: "\n".into(), new: "日本語".repeat(40) };
            for overlay in [Overlay::None, Overlay::Confirm(change)] {
                let view = View { overlay, ..View::new(open.clone()) };
                let page = drawn(size, PLAIN, &view, &list, &history).join("\n");
                assert!(page.chars().all(|c| c == '\n' || !c.is_control()), "{page:?}");
                assert!(!page.contains('\u{202e}'), "{page:?}");
            }
        }
    }
}

#[test]
fn the_list_marks_runs_that_are_silent_or_over() {
    let listed = |name: &str, state, ended| Listed {
        run: Run { name: name.into(), path: format!("/run/{name}").into() },
        state,
        ended,
    };
    let list = [
        listed("archive-7", Ok(Box::new(snapshot())), false),
        listed("fetch-9", Ok(Box::new(snapshot())), true),
        listed("stuck-11", Err("does not answer".into()), false),
    ];
    let lines = drawn((100, 12), PLAIN, &View::new(None), &list, &History::default());
    let page = lines.join("\n");
    assert!(lines[0].contains("2 flows running"), "{page}");
    assert!(lines[3].contains("archive-7") && lines[3].contains("disk: 10 units wait"), "{page}");
    assert!(
        lines[4].contains("ended") && lines[5].contains("silent") && lines[5].contains("does not answer"),
        "{page}"
    );
    let none = drawn((100, 12), PLAIN, &View::new(None), &[], &History::default()).join("\n");
    assert!(none.contains("no flow is running"), "{none}");
}

#[test]
fn a_run_that_has_ended_keeps_its_last_numbers() {
    let mut history = history(4, 0);
    history.end();
    let lines = drawn((80, 24), PLAIN, &View::new(Some(open())), &[], &history);
    assert!(lines[0].contains("ended") && lines[0].contains("171,386 retired"), "{lines:#?}");
    assert!(lines[1].starts_with("was limited by"), "{lines:#?}");
}

#[test]
fn overlays_fit_into_small_terminals() {
    let history = history(4, 0);
    let change = Change::Set { key: "stage.zstd.workers".into(), old: "1..4".into(), new: "1..2".into() };
    for (overlay, expected) in [
        (Overlay::Help, "up, down"),
        (Overlay::Confirm(Change::Drain), "y drains it"),
        (Overlay::Confirm(change), "1..4 → 1..2"),
        (Overlay::Edit { key: "inflight".into(), now: "4".into(), typed: "8".into() }, "becomes: 8_"),
        (Overlay::Filter { typed: "zs".into() }, "show names with: zs_"),
    ] {
        let view = View { overlay, ..View::new(Some(open())) };
        for size in [(40, 10), (80, 24)] {
            let page = drawn(size, PLAIN, &view, &[], &history).join("\n");
            assert!(page.contains(expected), "{expected} at {size:?}:\n{page}");
        }
    }
}

#[test]
fn a_theme_without_colours_draws_none() {
    let mut terminal = Terminal::new(TestBackend::new(120, 30)).unwrap();
    let (view, history) = (View::new(Some(open())), history(4, 3));
    for color in [false, true] {
        terminal.draw(|frame| draw(frame.buffer_mut(), Theme { color, unicode: true }, &view, &[], &history)).unwrap();
        let cells = &terminal.backend().buffer().content;
        let coloured = cells.iter().any(|cell| cell.fg != ratatui::style::Color::Reset);
        assert_eq!(coloured, color);
    }
}
