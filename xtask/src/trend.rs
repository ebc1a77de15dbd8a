//! The figures of earlier runs, by processor. A run is compared only with runs on the same processor.
//!
//! `docs/measured.tsv` has a line for each of Millstream's rows in a run: processor, workload, row, time divided by the
//! best peer's, date, commit. It has the last few runs of each row on each processor.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The maximum number of runs of a row on a processor.
const MAX_RUNS: usize = 5;

/// A ratio to the best peer is reported if it has grown by more than this factor. Rounds on one machine differ by less.
const WORSE: f64 = 1.25;

const HEADER: &str = "processor\tworkload\trow\tover best peer\tdate\tcommit";

/// One of Millstream's rows in a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    processor: String,
    workload: String,
    /// The headings above the row's table, and its name.
    row: String,
    over_best_peer: f64,
    date: String,
    commit: String,
}

/// The figures of earlier runs, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Trend(Vec<Figure>);

impl Trend {
    /// Reads the file's text.
    ///
    /// # Errors
    /// The error has the number of the first line that does not have the form described in the module docs.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let figure = |line: &str| {
            let [processor, workload, row, ratio, date, commit] =
                line.split('\t').collect::<Vec<_>>().try_into().ok()?;
            let [processor, workload, row, date, commit] = [processor, workload, row, date, commit].map(str::to_owned);
            Some(Figure { processor, workload, row, over_best_peer: ratio.parse().ok()?, date, commit })
        };
        let lines = (1..).zip(text.lines()).filter(|&(_, line)| line != HEADER && !line.is_empty());
        let figures = lines.map(|(number, line)| {
            figure(line)
                .ok_or_else(|| format!("line {number}: expected `{}`, found `{line}`", HEADER.replace('\t', " ⇥ ")))
        });
        Ok(Trend(figures.collect::<Result<_, _>>()?))
    }

    /// Returns the file's text.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for Figure { processor, workload, row, over_best_peer, date, commit } in &self.0 {
            let _ = writeln!(text, "{processor}\t{workload}\t{row}\t{over_best_peer}\t{date}\t{commit}");
        }
        text
    }

    /// Adds the figures of a run, and removes the oldest figures of the same rows. Returns a line for each row whose
    /// ratio to the best peer has grown by more than [`WORSE`].
    pub(crate) fn add(&mut self, figures: Vec<Figure>) -> Vec<String> {
        let mut worse = Vec::new();
        for figure in figures {
            let is_like = |other: &Figure| {
                (&other.processor, &other.workload, &other.row) == (&figure.processor, &figure.workload, &figure.row)
            };
            if let Some(before) = self.0.iter().rfind(|other| is_like(other))
                && figure.over_best_peer > WORSE * before.over_best_peer
            {
                worse.push(format!(
                    "{}: {} of the best peer's time, {} on {} (commit {})",
                    figure.row, figure.over_best_peer, before.over_best_peer, before.date, before.commit
                ));
            }
            let runs = self.0.iter().filter(|other| is_like(other)).count();
            if let Some(oldest) = self.0.iter().position(is_like).filter(|_| runs >= MAX_RUNS) {
                self.0.remove(oldest);
            }
            self.0.push(figure);
        }
        self.0.sort_by(|a, b| (&a.processor, &a.workload).cmp(&(&b.processor, &b.workload)));
        worse
    }

    /// Returns a table of the workload's rows, with a column for the last run on each processor; `None` if there is only one
    /// processor.
    pub(crate) fn by_processor(&self, workload: &str) -> Option<String> {
        let mut rows: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
        let of_workload = || self.0.iter().filter(|figure| figure.workload == workload);
        for figure in of_workload() {
            rows.entry(&figure.row).or_default().insert(&figure.processor, figure.over_best_peer);
        }
        let processors: BTreeMap<&str, &str> =
            of_workload().map(|figure| (figure.processor.as_str(), figure.date.as_str())).collect();
        if processors.len() < 2 {
            return None;
        }
        let mut text = format!("## {workload}, by processor: time over the best peer's\n\n|");
        processors.iter().for_each(|(processor, date)| _ = write!(text, " | {processor}, {date}"));
        let _ = write!(text, " |\n|---{}|\n", "|---".repeat(processors.len()));
        for (row, ratios) in rows {
            let _ = write!(text, "| {row}");
            for processor in processors.keys() {
                let ratio = ratios.get(processor).map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
                let _ = write!(text, " | {ratio}");
            }
            text.push_str(" |\n");
        }
        Some(text)
    }
}

/// Returns the figures of Millstream's rows in a report, from lines such as `ours / the best peer: 0.91, 0.88 to 0.95
/// over 5 rounds (…)`.
///
/// # Errors
/// Returns an error if the report does not begin with its machine.
pub(crate) fn figures(workload: &str, report: &str, date: &str, commit: &str) -> Result<Vec<Figure>, String> {
    let machine = report.lines().next().and_then(|line| line.strip_prefix("Machine: "));
    let machine = machine.ok_or("the report must begin with a line about the machine (`Machine: …`)")?;
    // The number of cores and the kernel follow the processor's name.
    let processor = machine.split(", ").take_while(|part| !part.ends_with(" cores")).collect::<Vec<_>>().join(", ");
    let (mut heading, mut tables, mut is_table) = (String::new(), 0, false);
    let mut figures = Vec::new();
    for line in report.lines() {
        if line.starts_with('#') {
            (heading, tables) = (line.trim_start_matches(['#', ' ']).to_owned(), 0);
        }
        tables += usize::from(line.starts_with('|') && !is_table);
        is_table = line.starts_with('|');
        let Some((names, ratio)) = line.strip_suffix("confidence)").and_then(|line| line.split_once(": ")) else {
            continue;
        };
        let (Some((ours, _)), Some((ratio, _))) = (names.split_once(" / "), ratio.split_once(',')) else {
            continue;
        };
        if let Ok(over_best_peer) = ratio.parse() {
            let table = if tables > 1 { format!(", table {tables}") } else { String::new() };
            let row = format!("{heading}{table}: {ours}");
            let [workload, date, commit] = [workload, date, commit].map(str::to_owned);
            figures.push(Figure { processor: processor.clone(), workload, row, over_best_peer, date, commit });
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "Machine: AMD EPYC, family 26, model 2, 2 cores, Linux.\n\n## ring: rings\n\n### Capacity 4\n\n\
                          | | median |\n| a | 1 |\n\nours / b: 0.910, 0.880 to 0.950 over 5 rounds (holds the true median with 93.8 % confidence)\n\n\
                          | | median |\n| a | 1 |\n\nours / c: 1.500, 1.2 to 2 over 5 rounds (holds the true median with 93.8 % confidence)\n\
                          throughput of ours / c: 0.66, 0.5 to 0.9 (target: at least 1.00)\n";

    fn run(processor: &str, date: &str, factor: f64) -> Vec<Figure> {
        let figures = figures("ring", REPORT, date, "0123").unwrap().into_iter();
        figures
            .map(|figure| Figure {
                processor: processor.to_owned(),
                over_best_peer: figure.over_best_peer * factor,
                ..figure
            })
            .collect()
    }

    #[test]
    fn the_figures_of_a_report_are_those_of_our_rows() {
        let figures = figures("ring", REPORT, "2026-11-28", "0123").unwrap();
        let rows: Vec<_> = figures.iter().map(|figure| (figure.row.as_str(), figure.over_best_peer)).collect();
        assert_eq!(rows, [("Capacity 4: ours", 0.91), ("Capacity 4, table 2: ours", 1.5)]);
        assert_eq!(figures[0].processor, "AMD EPYC, family 26, model 2");
    }

    #[test]
    fn a_row_that_became_slower_on_its_processor_is_named_and_the_last_runs_are_kept() {
        let mut trend = Trend::default();
        assert!(trend.add(run("one", "1", 1.0)).is_empty());
        assert!(trend.add(run("other", "2", 2.0)).is_empty(), "another processor's figure was taken for this one's");
        let worse = trend.add(run("one", "3", 1.3));
        assert_eq!(worse.len(), 2);
        assert!(
            worse[0].starts_with("Capacity 4: ours: 1.183") && worse[0].ends_with("0.91 on 1 (commit 0123)"),
            "{worse:?}"
        );
        (4..20).for_each(|day| _ = trend.add(run("one", &day.to_string(), 1.0)));
        assert_eq!(trend.0.len(), 2 * MAX_RUNS + 2);
        let again = Trend::parse(&trend.text()).unwrap();
        assert_eq!(again.0, trend.0);
        assert!(Trend::parse("a\tb\n").unwrap_err().starts_with("line 1: expected `processor"));
    }

    #[test]
    fn two_processors_stand_side_by_side() {
        let mut trend = Trend::default();
        trend.add(run("one", "1", 1.0));
        assert_eq!(trend.by_processor("ring"), None);
        trend.add(run("other", "2", 2.0).split_off(1));
        let table = trend.by_processor("ring").unwrap();
        assert!(table.contains("| | one, 1 | other, 2 |"), "{table}");
        assert!(
            table.contains("| Capacity 4, table 2: ours | 1.50 | 3.00 |\n| Capacity 4: ours | 0.91 | – |"),
            "{table}"
        );
    }
}
