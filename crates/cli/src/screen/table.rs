//! The report as tables of text.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use millstream_command::screen::look::Look;
use millstream_command::screen::text;
use millstream_flow::{Quantiles, Report, StageReport};

use super::run_report::outcome;

/// The whole report as it is printed, with a newline at the end.
///
/// ```text
/// archive: complete in 42.1 s, 12,400 units retired, 295/s
///
///  stage   units  failed      busy  service p50     p99  wait p99  waited mostly for, in all
///  read   12,398       0     2.5 s       120 µs  600 µs    4.5 ms  a worker 80 ms
///  …
///
///  resource  kind    capacity  peak in use
///  disk      tokens         2            2
///
/// bottleneck  disk: units waited 31 s for its 2 tokens in write
/// in flight   at most 256 (cap 256), 60 MiB (cap 64 MiB)
/// latency     p50 5 ms, p99 25 ms, max 45 ms
/// units       admitted 12,400 = retired 12,398 + dead-lettered 2 + left 0
/// ```
pub(crate) fn table(report: &Report, look: Look) -> String {
    let mut out = format!("{}\n\n{}\n", headline(report), trimmed(&stages(report, look)));
    if !report.resources.is_empty() {
        out += &format!("{}\n", trimmed(&resources(report, look)));
    }
    for (name, value) in facts(report) {
        out += &format!("{name:<12}{value}\n");
    }
    out
}

/// The result of the run, in one line.
pub(crate) fn headline(report: &Report) -> String {
    let mean = if report.wall_s > 0.0 { report.retired as f64 / report.wall_s } else { 0.0 };
    format!(
        "{}: {} in {}, {} retired, {}",
        text::printable(&report.flow),
        outcome(report),
        text::seconds(report.wall_s),
        text::counted(report.retired, "unit"),
        text::rate(mean)
    )
}

/// The equation between the numbers of units, which is true for every run.
pub(crate) fn conservation(report: &Report) -> String {
    let split = match report.split {
        0 => String::new(),
        units => format!(" + split {}", text::count(units)),
    };
    let gathered = match report.gathered {
        0 => String::new(),
        units => format!(" + gathered {}", text::count(units)),
    };
    format!(
        "admitted {}{} = retired {} + dead-lettered {}{} + left {}",
        text::count(report.admitted),
        split,
        text::count(report.retired),
        text::count(report.dead_lettered),
        gathered,
        text::count(report.left)
    )
}

/// The cause for which a stage's units waited longest in total, with that time.
pub(crate) fn mostly_for(stage: &StageReport) -> String {
    stage.waited_for.iter().find(|waited| waited.total_ns > 0).map_or_else(String::new, |waited| {
        format!("{} {}", text::printable(&waited.resource), text::span(waited.total_ns))
    })
}

/// A quantile, or a dash if nothing was measured.
pub(crate) fn measured(quantiles: &Quantiles, of: fn(&Quantiles) -> u64) -> String {
    if quantiles.count == 0 { "–".to_owned() } else { text::span(of(quantiles)) }
}

/// The facts about the whole run, as names and values.
pub(crate) fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let mut facts = vec![("bottleneck", text::printable(&report.bottleneck).into_owned())];
    let memory = match report.memory_cap {
        u64::MAX => text::bytes(report.peak_bytes_in_flight),
        cap => format!("{} (cap {})", text::bytes(report.peak_bytes_in_flight), text::bytes(cap)),
    };
    facts.push((
        "in flight",
        format!("at most {} (cap {}), {memory}", text::count(report.peak_in_flight), text::count(report.inflight_cap)),
    ));
    if report.oversize > 0 {
        let alone = if report.oversize == 1 { "was larger" } else { "were larger" };
        facts.push((
            "oversize",
            format!("{} {alone} than the whole byte budget and ran alone", text::counted(report.oversize, "unit")),
        ));
    }
    let latency = &report.latency_ns;
    facts.push((
        "latency",
        format!(
            "p50 {}, p99 {}, max {}",
            measured(latency, |q| q.p50),
            measured(latency, |q| q.p99),
            measured(latency, |q| q.max)
        ),
    ));
    if report.skipped > 0 {
        facts.push(("skipped", format!("{}, counted as retired", text::counted(report.skipped, "unit"))));
    }
    for stage in report.stages.iter().filter(|stage| stage.torn > 0) {
        let torn = text::counted(stage.torn, "group");
        facts.push(("groups", format!("{torn} of {} closed early, for lack of room", text::printable(&stage.name))));
    }
    for (stage, stacks) in report.stages.iter().filter_map(|stage| Some((stage, stage.stacks?))) {
        let (deepest, all) = (text::bytes(stacks.deepest_bytes), text::bytes(stacks.stack_bytes));
        facts.push(("stacks", format!("the deepest of {} {deepest} of {all}", text::printable(&stage.name))));
    }
    if report.refused_fibers > 0 {
        let latest = report.latest_refusal.as_deref().map_or_else(String::new, |why| format!(", the latest: {why}"));
        let refused = text::counted(report.refused_fibers, "fiber");
        facts.push(("refused", format!("{refused} not started at once{}", text::printable(&latest))));
    }
    facts.push(("units", conservation(report)));
    facts
}

fn stages(report: &Report, look: Look) -> Table {
    let heading = ["stage", "units", "failed", "busy", "service p50", "p99", "wait p99", "waited mostly for, in all"];
    let mut table = bare(&heading, look);
    for stage in &report.stages {
        table.add_row(aligned([
            text::printable(&stage.name).into_owned(),
            text::count(stage.units),
            text::count(stage.failures),
            text::span(stage.busy_ns),
            measured(&stage.service_ns, |q| q.p50),
            measured(&stage.service_ns, |q| q.p99),
            measured(&stage.wait_ns, |q| q.p99),
            mostly_for(stage),
        ]));
    }
    table
}

fn resources(report: &Report, look: Look) -> Table {
    let mut table = bare(&["resource", "capacity", "peak in use", "kind"], look);
    for resource in &report.resources {
        let capacity = match resource.rate_per_s {
            Some(rate) => format!("{}, burst {}", text::rate(rate), text::count(resource.capacity)),
            None => text::count(resource.capacity),
        };
        table.add_row(aligned([
            text::printable(&resource.name).into_owned(),
            capacity,
            text::count(resource.peak_in_use),
            resource.kind.clone(),
        ]));
    }
    table
}

/// The table's lines, each with a newline and without trailing spaces.
fn trimmed(table: &Table) -> String {
    table.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// A table as wide as the terminal or the file allows. No lines are drawn between its columns.
fn bare(heading: &[&str], look: Look) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(look.columns).unwrap_or(u16::MAX))
        .set_header(aligned(heading.iter().map(|text| (*text).to_owned())));
    table
}

/// The cells of a line: the first and the last contain words and are aligned left, and the others contain numbers and
/// are aligned right.
fn aligned(cells: impl IntoIterator<Item = String>) -> Vec<Cell> {
    let cells: Vec<_> = cells.into_iter().collect();
    let last = cells.len() - 1;
    let align = |i| if i == 0 || i == last { CellAlignment::Left } else { CellAlignment::Right };
    cells.into_iter().enumerate().map(|(i, text)| Cell::new(text).set_alignment(align(i))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::report;

    #[test]
    fn the_report_names_the_bottleneck_and_accounts_for_every_unit() {
        let text = table(&report(), Look::FILE);
        assert!(text.starts_with("archive: 2 of 12,400 units dead-lettered in 42.1 s, 12,398 units retired, 294/s\n"));
        assert!(text.contains("bottleneck  disk: units waited 31 s for its 2 tokens in write\n"));
        assert!(text.ends_with("units       admitted 12,400 = retired 12,398 + dead-lettered 2 + left 0\n"));
        let write = text.lines().find(|line| line.trim_start().starts_with("write")).unwrap();
        assert!(write.contains("12,398") && write.contains("10 s") && write.ends_with("disk 31 s"), "{write:?}");
        assert!(text.contains("50/s, burst 10"));
        assert!(text.lines().all(|line| text::width(line) <= 100), "{text}");
    }

    #[test]
    fn the_report_shows_the_stacks_of_fibers_and_those_that_could_not_be_started() {
        let mut report = report();
        assert!(!table(&report, Look::FILE).contains("stacks"));
        let mut stacks = millstream_flow::StackUse::default();
        (stacks.stack_bytes, stacks.deepest_bytes) = (64 << 10, 12 << 10);
        report.stages[1].stacks = Some(stacks);
        (report.refused_fibers, report.latest_refusal) = (3, Some("no stack".to_owned()));
        let text = table(&report, Look::FILE);
        let name = &report.stages[1].name;
        assert!(text.contains(&format!("stacks      the deepest of {name} 12 KiB of 64 KiB\n")), "{text}");
        assert!(text.contains("refused     3 fibers not started at once, the latest: no stack\n"), "{text}");
    }

    #[test]
    fn a_narrow_terminal_wraps_cells_and_loses_none() {
        let text = table(&report(), Look { columns: 50, ..Look::FILE });
        let stages: Vec<_> = text.lines().skip(1).take_while(|line| !line.contains("resource")).collect();
        assert!(stages.iter().all(|line| text::width(line) <= 50), "{text}");
        assert!(text.contains("12,398"), "{text}");
    }

    #[test]
    fn only_a_run_without_dead_letters_is_called_complete() {
        let mut report = report();
        report.dead_lettered = 0;
        assert!(headline(&report).starts_with("archive: complete in "));
        (report.dead_lettered, report.outcome) = (3, millstream_flow::Outcome::Stopped);
        assert!(headline(&report).starts_with("archive: stopped, 3 of 12,400 units dead-lettered in "));
    }

    #[test]
    fn a_stage_without_units_shows_no_times() {
        let mut report = report();
        report.stages[0].service_ns = Quantiles::default();
        report.stages[0].wait_ns = Quantiles::default();
        let text = table(&report, Look::FILE);
        let read = text.lines().find(|line| line.trim_start().starts_with("read")).unwrap();
        assert_eq!(read.matches('–').count(), 3, "{read:?}");
    }
}
