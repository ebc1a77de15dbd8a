//! The report as one HTML page that needs nothing beside itself: style and pictures are inline, light and dark follow
//! the reader's setting, and there is no script. On a narrow page every row of a table becomes a block.

mod bar;
mod dead_letters;
mod stages;
mod steered;
mod throughput;

use std::borrow::Cow;
use std::fmt::Write as _;

use millstream_command::screen::text;
use millstream_command::screen::xml::escape;
use millstream_flow::Report;

use self::bar::{Part, stacked};
use super::run_report::{RunReport, is_good, outcome};
use super::table::{conservation, facts};

/// The page.
pub(crate) fn html(run: &RunReport<'_>) -> String {
    let report = run.report;
    let flow = escape(&report.flow);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{flow} – millstream report</title>\n<style>\n{}</style>\n</head>\n<body>\n",
        include_str!("../report.css")
    );
    page += &head(run, &flow);
    page += &tiles(report);
    page += &units(run);
    page += &dead_letters::section(run);
    page += &throughput::section(run.throughput);
    page += &stages::sections(report);
    page += &steered::section(run.steered);
    let _ = writeln!(page, "<footer>millstream {}</footer>\n</body>\n</html>", escape(&run.identity.version));
    page
}

fn head(run: &RunReport<'_>, flow: &str) -> String {
    let report = run.report;
    let class = if is_good(report) { "" } else { " bad" };
    let mut out = format!(
        "<header>\n<h1>{flow}<span class=\"outcome{class}\">{}</span></h1>\n\
         <p class=\"faint\">in {}, with {} shared by its stages</p>\n<dl class=\"identity\">\n",
        outcome(report),
        text::seconds(report.wall_s),
        text::counted(report.workers, "worker"),
    );
    let mut fact = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(value));
        }
    };
    let identity = run.identity;
    fact("run", &format!("{} on {}", identity.name, identity.host));
    fact("started", &identity.started.replace('T', " ").replace('Z', " UTC"));
    fact("flow file", &identity.flow_file);
    fact("folder", &identity.folder);
    fact("inputs", &listed(&identity.inputs));
    let params: Vec<String> = identity.params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    fact("parameters", &params.join(", "));
    out + "</dl>\n</header>\n"
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

fn tiles(report: &Report) -> String {
    let mean = if report.wall_s > 0.0 { report.retired as f64 / report.wall_s } else { 0.0 };
    let bad = |n: u64| if n > 0 { " bad" } else { "" };
    let tiles = [
        ("", text::count(report.retired), "units retired".to_owned()),
        (bad(report.dead_lettered), text::count(report.dead_lettered), "dead-lettered".to_owned()),
        (bad(report.left), text::count(report.left), "left".to_owned()),
        ("", text::rate(mean), "retired, on average".to_owned()),
        (
            "",
            text::count(report.peak_in_flight),
            format!("units in flight at most, of {}", text::count(report.inflight_cap)),
        ),
        (
            "",
            text::bytes(report.peak_bytes_in_flight),
            match report.memory_cap {
                u64::MAX => "payload in flight at most".to_owned(),
                cap => format!("payload in flight at most, of {}", text::bytes(cap)),
            },
        ),
    ];
    let mut out = String::from("<div class=\"tiles\">\n");
    for (class, value, name) in tiles {
        let _ = writeln!(out, "<div class=\"tile{class}\"><b>{value}</b><span>{name}</span></div>");
    }
    let _ = writeln!(out, "</div>\n<p class=\"card bottleneck\"><b>Bottleneck</b> {}</p>", prose(&report.bottleneck));
    out
}

fn units(run: &RunReport<'_>) -> String {
    let report = run.report;
    let mut out = String::from("<h2>Every unit accounted for</h2>\n");
    // One lost unit among a million must still be seen.
    let seen = |n: u64| if n == 0 { 0.0 } else { (n as f64 / report.units().max(1) as f64).max(0.005) };
    let (dead, gathered, left) = (seen(report.dead_lettered), seen(report.gathered), seen(report.left));
    let part = |class: &str, name: &str, n: u64, share: f64| Part {
        class: class.to_owned(),
        label: format!("{name} {}", text::count(n)),
        share,
    };
    out += &stacked(
        &[
            part("gone", "retired", report.retired, seen(report.retired).min(1.0 - dead - gathered - left)),
            part("gathered", "gathered", report.gathered, gathered),
            part("dead", "dead-lettered", report.dead_lettered, dead),
            part("left", "left", report.left, left),
        ],
        &conservation(report),
    );
    let _ = writeln!(out, "<p>{}</p>", escape(&conservation(report)));
    for (name, value) in
        facts(report).iter().filter(|(name, _)| ["oversize", "latency", "skipped", "groups"].contains(name))
    {
        let _ = writeln!(out, "<p class=\"faint\">{name}: {}</p>", escape(value));
    }
    for (stage, file) in run.gathered {
        let _ = writeln!(out, "<p class=\"faint\">{}: {}</p>", escape(stage), escape(&file.to_string()));
    }
    out
}

/// Text of a message, in which backticks set names and commands off.
fn prose(message: &str) -> String {
    let parts: Vec<Cow<'_, str>> = message.split('`').map(|part| escape(part).into()).collect();
    // A backtick without a partner is a character like any other.
    let paired = parts.len() - usize::from(parts.len().is_multiple_of(2));
    let mut out = String::with_capacity(message.len());
    for (i, part) in parts.iter().enumerate() {
        match i {
            _ if i >= paired => out += &format!("`{part}"),
            _ if i % 2 == 1 => out += &format!("<code>{part}</code>"),
            _ => out += part,
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::causes::{Group, Groups};
    use crate::screen::sample::{RunSample, report};

    fn page(report: &Report) -> String {
        html(&RunSample::new().of(report))
    }

    #[test]
    fn the_page_needs_nothing_beside_itself() {
        let sample = RunSample::new();
        let page =
            html(&RunReport { dead_letters: Some(Path::new("archive.dead-letters.jsonl")), ..sample.of(&report()) });
        for outside in ["http:", "https:", "src=", "href=", "@import", "url(", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("admitted 12,400 = retired 12,398 + dead-lettered 2 + left 0"));
        assert!(page.contains("archive.dead-letters.jsonl"));
        assert!(page.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn the_page_says_which_run_it_is_about() {
        let page = page(&report());
        for said in
            ["archive-4711 on mill", "2026-11-23 15:00:00 UTC", "/flows/archive.toml", "out = /backup", "photos"]
        {
            assert!(page.contains(said), "{said}");
        }
    }

    #[test]
    fn a_run_whose_units_died_is_not_called_complete() {
        let mut report = report();
        assert!(page(&report).contains("<span class=\"outcome bad\">2 of 12,400 units dead-lettered</span>"));
        report.dead_lettered = 0;
        assert!(page(&report).contains("<span class=\"outcome\">complete</span>"));
    }

    #[test]
    fn every_element_that_opens_closes() {
        let page = page(&report());
        for element in [
            "html", "head", "body", "table", "thead", "tbody", "tr", "td", "th", "svg", "ul", "li", "div", "p", "dl",
            "dt", "dd", "code",
        ] {
            let opened = page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
            assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
        }
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let mut report = report();
        report.flow = "<script>alert('x')</script>".into();
        report.stages[0].name = "a\"><b>&".into();
        report.bottleneck = "<i> `<u>` `<i>".into();
        report.resources[0].name = "<u>".into();
        report.stages[3].waited_for[0].resource = "<u>".into();
        let mut sample = RunSample::new();
        sample.identity.inputs = vec!["<u>".into()];
        sample.identity.params.insert("<u>".into(), "<i>".into());
        let group = |text: &str| Group {
            message: text.into(),
            example: text.into(),
            stage: text.into(),
            ..sample.causes.groups[0].clone()
        };
        sample.causes = Groups { groups: vec![group("<u>"), group("`<i>`")], others: 1 };
        let page = html(&sample.of(&report));
        for markup in ["<script", "<b>&", "<i>", "<u>"] {
            assert!(!page.contains(markup), "{markup}");
        }
        assert!(page.contains("a&quot;&gt;&lt;b&gt;&amp;"));
    }

    #[test]
    fn backticks_set_words_off() {
        assert_eq!(prose("`sh` exited"), "<code>sh</code> exited");
        assert_eq!(prose("a `b` c `d"), "a <code>b</code> c `d");
        assert_eq!(prose("plain"), "plain");
    }

    #[test]
    fn a_run_without_units_is_a_page_too() {
        let mut report = report();
        report.stages.clear();
        report.resources.clear();
        (report.admitted, report.retired, report.dead_lettered, report.wall_s) = (0, 0, 0, 0.0);
        let page = page(&report);
        assert!(!page.contains("NaN") && !page.contains("inf%"), "{page}");
    }

    #[test]
    fn the_parts_of_a_bar_stay_within_it() {
        let page = page(&report());
        for rect in page.split("<rect ").skip(1) {
            let of = |name: &str| {
                rect.split_once(&format!("{name}=\""))
                    .and_then(|(_, after)| after.split_once('%'))
                    .and_then(|(number, _)| number.parse::<f64>().ok())
            };
            if let (Some(x), Some(width)) = (of(" x"), of("width")) {
                assert!(x >= 0.0 && x + width <= 100.1, "{rect}");
            }
        }
    }
}
