//! The report as one HTML page that needs nothing beside itself: style and pictures are inline, light and dark follow
//! the reader's setting, and there is no script.
//!
//! Bars are small SVG images whose lengths are percentages, so that they follow the width of the page while their
//! labels stay text of the page.

use std::fmt::Write as _;
use std::path::Path;

use millstream_flow::{Outcome, Report, StageReport};

use super::table::{conservation, facts, measured, mostly_for, outcome};
use super::text;
use super::xml::escape;

/// Classes of the style sheet for what units waited for; the last one serves all that is beyond.
const WAIT_COLOURS: usize = 6;

/// The page.
pub fn html(report: &Report, dead_letters: Option<&Path>) -> String {
    let flow = escape(&report.flow);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{flow} – millstream report</title>\n<style>\n{}</style>\n</head>\n<body>\n",
        include_str!("report.css")
    );
    page += &head(report, &flow);
    page += &tiles(report);
    page += &units(report, dead_letters);
    page += &time_by_stage(report);
    page += &service(report);
    page += &stages(report);
    page += &resources(report);
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(page, "<footer>millstream {version}</footer>\n</body>\n</html>");
    page
}

fn head(report: &Report, flow: &str) -> String {
    let class = if report.outcome == Outcome::Complete { "" } else { " bad" };
    format!(
        "<header>\n<h1>{flow}<span class=\"outcome{class}\">{}</span></h1>\n\
         <p class=\"faint\">in {}, with {} shared by its stages</p>\n</header>\n",
        outcome(report.outcome),
        text::seconds(report.wall_s),
        text::counted(report.workers, "worker"),
    )
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
    let _ = writeln!(out, "</div>\n<p class=\"card bottleneck\"><b>Bottleneck</b> {}</p>", escape(&report.bottleneck));
    out
}

fn units(report: &Report, dead_letters: Option<&Path>) -> String {
    let mut out = String::from("<h2>Every unit accounted for</h2>\n");
    // One lost unit among a million must still be seen.
    let seen = |n: u64| if n == 0 { 0.0 } else { (n as f64 / report.admitted.max(1) as f64).max(0.005) };
    let (dead, left) = (seen(report.dead_lettered), seen(report.left));
    let part =
        |class: &str, name: &str, n: u64, share: f64| (class.to_owned(), format!("{name} {}", text::count(n)), share);
    out += &stacked(
        &[
            part("gone", "retired", report.retired, seen(report.retired).min(1.0 - dead - left)),
            part("dead", "dead-lettered", report.dead_lettered, dead),
            part("left", "left", report.left, left),
        ],
        &conservation(report),
    );
    let _ = writeln!(out, "<p>{}</p>", escape(&conservation(report)));
    for (name, value) in facts(report).iter().filter(|(name, _)| ["oversize", "latency", "skipped"].contains(name)) {
        let _ = writeln!(out, "<p class=\"faint\">{name}: {}</p>", escape(value));
    }
    if let Some(path) = dead_letters {
        let _ = writeln!(out, "<p class=\"faint\">dead letters in {}</p>", escape(&path.to_string_lossy()));
    }
    out
}

/// Where the units' time went: running in each stage's code, and waiting before it for what. Each has a scale of its
/// own, because many units wait at once and few run.
fn time_by_stage(report: &Report) -> String {
    let colours = wait_colours(report);
    let waited = |stage: &StageReport| stage.waited_for.iter().map(|w| w.total_ns).sum::<u64>();
    let most = |of: &dyn Fn(&StageReport) -> u64| report.stages.iter().map(of).max().unwrap_or(0).max(1) as f64;
    let (most_busy, most_waited) = (most(&|stage| stage.busy_ns), most(&waited));
    let mut out = String::from("<h2>Where units spent their time</h2>\n<ul class=\"legend\">");
    let mut key = |class: &str, name: &str| {
        let _ = write!(
            out,
            "<li><svg aria-hidden=\"true\"><rect class=\"{class}\" width=\"100%\" height=\"100%\" rx=\"2\"/></svg>\
             {}</li>",
            escape(name)
        );
    };
    key("busy", "running");
    for (i, name) in colours.iter().take(WAIT_COLOURS - 1).enumerate() {
        key(&format!("w{i}"), &format!("waiting for {name}"));
    }
    if colours.len() >= WAIT_COLOURS {
        key("w5", "waiting for something else");
    }
    out += "</ul>\n<div class=\"card scroll\"><table>\n<thead><tr><th>stage</th><th></th><th>running, in all</th>\
            <th></th><th>waiting, in all</th><th class=\"words\">mostly for</th></tr></thead>\n<tbody>\n";
    for stage in &report.stages {
        let busy = text::span(stage.busy_ns);
        let running = ("busy".to_owned(), format!("running {busy}"), stage.busy_ns as f64 / most_busy);
        let waits: Vec<_> = stage
            .waited_for
            .iter()
            .map(|waited| {
                let colour = colours.iter().position(|name| *name == waited.resource).unwrap_or(0);
                let label = format!("waiting for {}: {}", waited.resource, text::span(waited.total_ns));
                (format!("w{}", colour.min(WAIT_COLOURS - 1)), label, waited.total_ns as f64 / most_waited)
            })
            .collect();
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td class=\"bar half\">{}</td><td>{busy}</td><td class=\"bar half\">{}</td><td>{}</td>\
             <td class=\"words\">{}</td></tr>",
            escape(&stage.name),
            stacked(&[running], &format!("time running in stage {}", stage.name)),
            stacked(&waits, &format!("time waiting in stage {}", stage.name)),
            text::span(waited(stage)),
            escape(&mostly_for(stage)),
        );
    }
    out + "</tbody></table></div>\n"
}

/// What units waited for, the longest in all first: the order of the colours.
fn wait_colours(report: &Report) -> Vec<&str> {
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for waited in report.stages.iter().flat_map(|stage| &stage.waited_for) {
        match sums.iter_mut().find(|(name, _)| *name == waited.resource) {
            Some((_, sum)) => *sum += waited.total_ns,
            None => sums.push((&waited.resource, waited.total_ns)),
        }
    }
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    sums.into_iter().map(|(name, _)| name).collect()
}

/// The spread of service times, on one logarithmic scale for all stages.
fn service(report: &Report) -> String {
    let measured_stages: Vec<_> = report.stages.iter().filter(|stage| stage.service_ns.count > 0).collect();
    let lowest = measured_stages.iter().map(|s| s.service_ns.p50).min().unwrap_or(0).max(1);
    let highest = measured_stages.iter().map(|s| s.service_ns.max).max().unwrap_or(0).max(2);
    if measured_stages.is_empty() {
        return String::new();
    }
    let (first, last) = (lowest.ilog10(), highest.ilog10() + 1);
    let at = |ns: u64| ((ns.max(1) as f64).log10() - f64::from(first)) / f64::from(last - first) * 100.0;

    let mut axis = String::from("<svg height=\"16\" aria-hidden=\"true\">");
    // More labels than this run into each other on a narrow page.
    let step = (last - first).div_ceil(5).max(1) as usize;
    for decade in (first..=last).step_by(step) {
        let anchor = if decade == first {
            "start"
        } else if decade == last {
            "end"
        } else {
            "middle"
        };
        let (x, label) = (at(10_u64.pow(decade)), text::span(10_u64.pow(decade)));
        let _ = write!(axis, "<text x=\"{x:.2}%\" y=\"12\" text-anchor=\"{anchor}\">{label}</text>");
    }
    axis += "</svg>";
    let mut out = format!(
        "<h2>How long a unit ran in each stage</h2>\n<p class=\"faint\">From the median to the 99th percentile, the mark \
         is the slowest; each step is ten times the one before.</p>\n<div class=\"card scroll\"><table>\n\
         <thead><tr><th>stage</th><th class=\"bar\">{axis}</th><th>p50</th><th>p90</th><th>p99</th><th>max</th></tr></thead>\n<tbody>\n"
    );
    for stage in measured_stages {
        let q = &stage.service_ns;
        let mut picture = format!(
            "<svg height=\"16\" role=\"img\" aria-label=\"service time of {}: median {}, 99th percentile {}\">",
            escape(&stage.name),
            text::span(q.p50),
            text::span(q.p99)
        );
        for decade in first..=last {
            let x = at(10_u64.pow(decade));
            let _ = write!(picture, "<line class=\"grid\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"0\" y2=\"16\"/>");
        }
        let (from, to, slowest) = (at(q.p50), at(q.p99), at(q.max));
        let _ = write!(
            picture,
            "<rect class=\"busy\" x=\"{from:.2}%\" y=\"3\" width=\"{:.2}%\" height=\"10\" rx=\"3\"/>\
             <rect class=\"w0\" x=\"{slowest:.2}%\" y=\"1\" width=\"3\" height=\"14\" rx=\"1\"/></svg>",
            (to - from).max(0.6)
        );
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td class=\"bar\">{picture}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&stage.name),
            text::span(q.p50),
            text::span(q.p90),
            text::span(q.p99),
            text::span(q.max)
        );
    }
    out + "</tbody></table></div>\n"
}

fn stages(report: &Report) -> String {
    let mut out = String::from(
        "<h2>Stages</h2>\n<div class=\"card scroll\"><table>\n<thead><tr><th>stage</th><th>units</th>\
         <th>failed attempts</th><th>tried again</th><th>dead-lettered</th><th>requeued for memory</th><th>workers</th><th>busy, mean</th>\
         <th>wait p50</th><th>wait p99</th></tr></thead>\n<tbody>\n",
    );
    for stage in &report.stages {
        let busy = if report.wall_s > 0.0 { stage.busy_ns as f64 / 1e9 / report.wall_s } else { 0.0 };
        let workers = if stage.workers_min == stage.workers_max {
            text::count(stage.workers_max)
        } else {
            format!("{} to {}", text::count(stage.workers_min), text::count(stage.workers_max))
        };
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{workers}</td><td>{busy:.2}</td>\
             <td>{}</td><td>{}</td></tr>",
            escape(&stage.name),
            text::count(stage.units),
            text::count(stage.failures),
            text::count(stage.retries),
            text::count(stage.dead_lettered),
            text::count(stage.requeued),
            measured(&stage.wait_ns, |q| q.p50),
            measured(&stage.wait_ns, |q| q.p99),
        );
    }
    out + "</tbody></table></div>\n"
}

fn resources(report: &Report) -> String {
    if report.resources.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2>Resources</h2>\n<div class=\"card scroll\"><table>\n<thead><tr><th>resource</th>\
         <th class=\"bar words\">most in use at once</th><th>peak</th><th>capacity</th><th class=\"words\">kind</th></tr></thead>\n<tbody>\n",
    );
    for resource in &report.resources {
        let share = resource.peak_in_use as f64 / resource.capacity.max(1) as f64;
        let (peak, capacity) = (text::count(resource.peak_in_use), text::count(resource.capacity));
        let label = format!("{peak} of {capacity}");
        let picture = stacked(&[("peak".to_owned(), label.clone(), share.min(1.0))], &format!("peak use {label}"));
        let capacity = match resource.rate_per_s {
            Some(rate) => format!("{}, burst {capacity}", text::rate(rate)),
            None => capacity,
        };
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td class=\"bar\">{picture}</td><td>{peak}</td><td>{capacity}</td>\
             <td class=\"words\">{}</td></tr>",
            escape(&resource.name),
            escape(&resource.kind),
        );
    }
    out + "</tbody></table></div>\n"
}

/// A bar of parts, each a class of the style sheet, a label shown when pointed at, and a share of the whole width.
fn stacked(parts: &[(String, String, f64)], label: &str) -> String {
    let mut out = format!(
        "<svg height=\"16\" role=\"img\" aria-label=\"{}\">\
         <rect class=\"track\" width=\"100%\" height=\"16\" rx=\"3\"/>",
        escape(label)
    );
    let mut x = 0.0;
    for (class, label, share) in parts {
        let width = share * 100.0;
        // Thinner parts cannot be seen, and would only make the page long.
        if width >= 0.05 {
            let _ = write!(
                out,
                "<rect class=\"{class}\" x=\"{x:.2}%\" width=\"{width:.2}%\" height=\"16\" rx=\"2\">\
                 <title>{}</title></rect>",
                escape(label)
            );
        }
        x += width;
    }
    out + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::report;

    #[test]
    fn the_page_needs_nothing_beside_itself() {
        let page = html(&report(), Some(Path::new("archive.dead-letters.jsonl")));
        for outside in ["http:", "https:", "src=", "href=", "@import", "url(", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("admitted 12,400 = retired 12,398 + dead-lettered 2 + left 0"));
        assert!(page.contains("archive.dead-letters.jsonl"));
        assert!(page.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn every_element_that_opens_closes() {
        let page = html(&report(), None);
        for element in
            ["html", "head", "body", "table", "thead", "tbody", "tr", "td", "th", "svg", "ul", "li", "div", "p"]
        {
            let opened = page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
            assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
        }
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let mut report = report();
        report.flow = "<script>alert('x')</script>".into();
        report.stages[0].name = "a\"><b>&".into();
        report.bottleneck = "<i>".into();
        report.resources[0].name = "<u>".into();
        report.stages[3].waited_for[0].resource = "<u>".into();
        let page = html(&report, None);
        for markup in ["<script", "<b>&", "<i>", "<u>"] {
            assert!(!page.contains(markup), "{markup}");
        }
        assert!(page.contains("a&quot;&gt;&lt;b&gt;&amp;"));
    }

    #[test]
    fn a_run_without_units_is_a_page_too() {
        let mut report = report();
        report.stages.clear();
        report.resources.clear();
        (report.admitted, report.retired, report.dead_lettered, report.wall_s) = (0, 0, 0, 0.0);
        let page = html(&report, None);
        assert!(!page.contains("NaN") && !page.contains("inf%"), "{page}");
    }

    #[test]
    fn the_parts_of_a_bar_stay_within_it() {
        let report = report();
        let page = html(&report, None);
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
