//! The report as the frozen page of the run: one file with the last state, the history of the whole run, and the facts
//! that are known only at the end.

use millstream_command::screen::look::Look;
use millstream_command::screen::xml::escape;
use millstream_command::screen::{shown, text};
use millstream_flow::Report;
use serde_json::{Value, json};

use super::run_report::{RunReport, is_good, outcome};
use super::table::{facts, table};
use crate::serve::page;

/// The frozen page.
pub(crate) fn html(run: &RunReport<'_>) -> String {
    let gathered = run.gathered.iter().map(|(stage, file)| format!("{stage}: {file}"));
    page::frozen(&data(run, gathered), &plain(run.report))
}

/// The data of the page, as JSON. `gathered` has a line for each gathered file.
pub(crate) fn data(run: &RunReport<'_>, gathered: impl Iterator<Item = String>) -> String {
    let data = format!("{{{},\"report\":{}}}", run.page, report(run, gathered));
    shown::json(&data).into_owned()
}

/// The markup of a report for a reader without scripts.
pub(crate) fn plain(report: &Report) -> String {
    format!("<pre>{}</pre>", escape(&table(report, Look::FILE)))
}

/// The facts that are not in the state of a page. Long lists, such as the inputs, are cut.
fn report(run: &RunReport<'_>, gathered: impl Iterator<Item = String>) -> Value {
    let report = run.report;
    let told = ["oversize", "latency", "skipped", "groups"];
    let facts = facts(report).into_iter().filter(|(name, _)| told.contains(name));
    let ran_again = (run.ran_again.ran() > 0)
        .then(|| format!("dead letters that were run again: {}", text::count(run.ran_again.ran())));
    let lost = run.metrics_lost.map(|lost| format!("metrics: {lost}"));
    let facts: Vec<_> =
        facts.map(|(name, value)| format!("{name}: {value}")).chain(ran_again).chain(lost).chain(gathered).collect();
    let mut told = numbers(report);
    told["outcome"] = outcome(report).into();
    told["good"] = is_good(report).into();
    told["identity"] = json!(identity(run));
    told["facts"] = facts.into();
    told["dead_letters"] = json!(run.dead_letters.map(|path| path.to_string_lossy()));
    told
}

/// The numbers of a report.
pub(crate) fn numbers(report: &Report) -> Value {
    json!({
        "wall_s": report.wall_s,
        "workers": report.workers,
        "bottleneck": report.bottleneck,
        "retired": report.retired,
        "dead_lettered": report.dead_lettered,
        "left": report.left,
        "peak_in_flight": report.peak_in_flight,
        "inflight_cap": report.inflight_cap,
        "peak_bytes_in_flight": report.peak_bytes_in_flight,
        "memory_cap": Some(report.memory_cap).filter(|cap| *cap != u64::MAX),
    })
}

/// The identity of the run, as names and values.
fn identity(run: &RunReport<'_>) -> Vec<(&'static str, String)> {
    let identity = run.identity;
    let params = identity.params.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>();
    let dead_letters = run.dead_letters.map(|path| shown::path(path).to_string()).unwrap_or_default();
    let mut facts = vec![
        ("run", format!("{} on {}", identity.name, identity.host)),
        ("started", identity.started.replace('T', " ").replace('Z', " UTC")),
        ("flow file", identity.flow_file.clone()),
        ("folder", identity.folder.clone()),
        ("inputs", listed(&identity.inputs)),
        ("parameters", listed(&params)),
        ("dead letters", dead_letters),
        ("millstream", identity.version.clone()),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// The first few of many names.
fn listed(names: &[String]) -> String {
    const MAX_SHOWN: usize = 8;
    let shown = names.iter().take(MAX_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_SHOWN) {
        0 => shown,
        more => format!("{shown} and {} more", text::count(more as u64)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::screen::sample::{RunSample, report as sample};

    /// The JSON data in a page.
    fn data(page: &str) -> Value {
        let (_, data) = page.split_once("id=\"frozen\">").expect("data");
        serde_json::from_str(data.split_once("</script>").expect("an end").0).expect("JSON")
    }

    #[test]
    fn the_page_says_which_run_it_is_about_and_how_it_ended() {
        let (run, mut report) = (RunSample::new(), sample());
        let page = html(&RunReport { dead_letters: Some(Path::new("archive.dead-letters.jsonl")), ..run.of(&report) });
        for said in
            ["archive-4711 on mill", "2026-11-23 15:00:00 UTC", "/flows/archive.toml", "out = /backup", "photos"]
        {
            assert!(page.contains(said), "{said}");
        }
        let told = &data(&page)["report"];
        assert_eq!((&told["outcome"], &told["good"]), (&"2 of 12,400 units dead-lettered".into(), &false.into()));
        assert_eq!(told["dead_letters"], "archive.dead-letters.jsonl");
        assert_eq!(told["facts"][0], "oversize: 1 unit was larger than the whole byte budget and ran alone");
        report.dead_lettered = 0;
        assert_eq!(data(&html(&run.of(&report)))["report"]["good"], true);
    }

    #[test]
    fn a_reader_without_scripts_has_the_table() {
        let (run, report) = (RunSample::new(), sample());
        let page = html(&run.of(&report));
        let (_, plain) = page.split_once("<noscript>").unwrap();
        let plain = plain.split_once("</noscript>").unwrap().0;
        assert!(plain.contains("admitted 12,400 = retired 12,398 + dead-lettered 2 + left 0"), "{plain}");
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let (mut run, mut report) = (RunSample::new(), sample());
        report.flow = "<script>alert('x')</script>".into();
        report.bottleneck = "</script><img src=x>".into();
        report.stages[0].name = "<img src=x>".into();
        run.identity.inputs = vec!["<img src=x>".into()];
        let page = html(&run.of(&report));
        assert!(!page.contains("<img") && !page.contains("<script>alert"), "{page}");
        assert_eq!(data(&page)["report"]["bottleneck"], "</script><img src=x>");
    }

    #[test]
    fn a_command_line_of_any_length_makes_a_short_list() {
        let (mut run, report) = (RunSample::new(), sample());
        run.identity.inputs = (0..100_000).map(|n| format!("input-{n}")).collect();
        let page = html(&run.of(&report));
        assert!(page.contains("input-7 and 99,992 more") && page.len() < 100_000, "{}", page.len());
    }
}
