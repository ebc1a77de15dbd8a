//! The work of each stage, and the use of resources.

use std::fmt::Write as _;

use millstream_command::screen::text;
use millstream_command::screen::xml::escape;
use millstream_flow::{Report, StageReport};

use super::super::table::{measured, mostly_for};
use super::bar::{Part, stacked};

/// Classes of the style sheet for what units waited for; the last one serves all that is beyond.
const WAIT_COLOURS: usize = 6;

/// More labels of an axis than spaces between them, and they run into each other.
const MAX_LABEL_STEPS: u32 = 3;

pub(super) fn sections(report: &Report) -> String {
    time(report) + &service(report) + &counts(report) + &resources(report)
}

/// Where the units' time went: running in each stage's code and waiting before it, all on one scale.
fn time(report: &Report) -> String {
    let colours = wait_colours(report);
    let waited = |stage: &StageReport| stage.waited_for.iter().map(|w| w.total_ns).sum::<u64>();
    let most = report.stages.iter().map(|stage| stage.busy_ns + waited(stage)).max().unwrap_or(0).max(1) as f64;
    let mut out = String::from(
        "<h2>Where units spent their time</h2>\n<p class=\"faint\">All units together; every bar has the same scale.</p>\n\
         <ul class=\"legend\">",
    );
    let mut key = |class: &str, name: &str| {
        let _ = write!(out, "<li><i class=\"{class}\"></i>{}</li>", escape(name));
    };
    key("busy", "running");
    for (i, name) in colours.iter().take(WAIT_COLOURS - 1).enumerate() {
        key(&format!("w{i}"), &format!("waiting for {name}"));
    }
    if colours.len() >= WAIT_COLOURS {
        key("w5", "waiting for something else");
    }
    out += "</ul>\n<div class=\"card\"><table>\n<thead><tr><th>stage</th><th></th><th>running</th>\
            <th>waiting</th><th class=\"words\">mostly for</th></tr></thead>\n<tbody>\n";
    for stage in &report.stages {
        let busy = text::span(stage.busy_ns);
        let running =
            Part { class: "busy".to_owned(), label: format!("running {busy}"), share: stage.busy_ns as f64 / most };
        let waits = stage.waited_for.iter().map(|waited| {
            let colour = colours.iter().position(|name| *name == waited.resource).unwrap_or(0);
            Part {
                class: format!("w{}", colour.min(WAIT_COLOURS - 1)),
                label: format!("waiting for {}: {}", waited.resource, text::span(waited.total_ns)),
                share: waited.total_ns as f64 / most,
            }
        });
        let parts: Vec<Part> = std::iter::once(running).chain(waits).collect();
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td class=\"bar\">{}</td><td data-name=\"running\">{busy}</td>\
             <td data-name=\"waiting\">{}</td><td class=\"words\" data-name=\"mostly for\">{}</td></tr>",
            escape(&stage.name),
            stacked(&parts, &format!("time of units in stage {}", stage.name)),
            text::span(waited(stage)),
            escape(&mostly_for(stage)),
        );
    }
    out + "</tbody></table></div>\n"
}

/// The causes of waiting, the longest in all first: the order of the colours.
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

/// A logarithmic scale of whole decades.
struct Decades {
    first: u32,
    last: u32,
}

impl Decades {
    fn over(lowest_ns: u64, highest_ns: u64) -> Self {
        Self { first: lowest_ns.max(1).ilog10(), last: highest_ns.max(2).ilog10() + 1 }
    }

    /// Where a time stands, in percent.
    fn at(&self, ns: u64) -> f64 {
        ((ns.max(1) as f64).log10() - f64::from(self.first)) / f64::from(self.last - self.first) * 100.0
    }

    fn axis(&self) -> String {
        let mut axis = String::from("<svg height=\"16\" aria-hidden=\"true\">");
        let step = (self.last - self.first).div_ceil(MAX_LABEL_STEPS).max(1) as usize;
        for decade in (self.first..=self.last).step_by(step) {
            let anchor = match decade {
                first if first == self.first => "start",
                last if last == self.last => "end",
                _ => "middle",
            };
            let (x, label) = (self.at(10_u64.pow(decade)), text::span(10_u64.pow(decade)));
            let _ = write!(axis, "<text x=\"{x:.2}%\" y=\"12\" text-anchor=\"{anchor}\">{label}</text>");
        }
        axis + "</svg>"
    }

    fn picture(&self, stage: &StageReport) -> String {
        let q = &stage.service_ns;
        let mut picture = format!(
            "<svg height=\"16\" role=\"img\" aria-label=\"service time of {}: median {}, 99th percentile {}\">",
            escape(&stage.name),
            text::span(q.p50),
            text::span(q.p99)
        );
        for decade in self.first..=self.last {
            let x = self.at(10_u64.pow(decade));
            let _ = write!(picture, "<line class=\"grid\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"0\" y2=\"16\"/>");
        }
        let (from, to, slowest) = (self.at(q.p50), self.at(q.p99), self.at(q.max));
        let _ = write!(
            picture,
            "<rect class=\"busy\" x=\"{from:.2}%\" y=\"3\" width=\"{:.2}%\" height=\"10\" rx=\"3\"/>\
             <rect class=\"w0\" x=\"{slowest:.2}%\" y=\"1\" width=\"3\" height=\"14\" rx=\"1\"/></svg>",
            (to - from).max(0.6)
        );
        picture
    }
}

/// The spread of service times, on one logarithmic scale for all stages.
fn service(report: &Report) -> String {
    let stages: Vec<_> = report.stages.iter().filter(|stage| stage.service_ns.count > 0).collect();
    if stages.is_empty() {
        return String::new();
    }
    let lowest = stages.iter().map(|stage| stage.service_ns.p50).min().unwrap_or(0);
    let highest = stages.iter().map(|stage| stage.service_ns.max).max().unwrap_or(0);
    let scale = Decades::over(lowest, highest);
    let axis = scale.axis();
    let mut out = format!(
        "<h2>How long a unit ran in each stage</h2>\n<p class=\"faint\">From the median to the 99th percentile; the mark \
         is the slowest. Each step is ten times the one before.</p>\n<div class=\"card\"><div class=\"narrow\">{axis}</div>\
         <table>\n<thead><tr><th>stage</th><th class=\"bar\">{axis}</th><th>p50</th><th>p90</th><th>p99</th><th>max</th>\
         </tr></thead>\n<tbody>\n"
    );
    for stage in stages {
        let q = &stage.service_ns;
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td class=\"bar\">{}</td><td data-name=\"p50\">{}</td><td data-name=\"p90\">{}</td>\
             <td data-name=\"p99\">{}</td><td data-name=\"max\">{}</td></tr>",
            escape(&stage.name),
            scale.picture(stage),
            text::span(q.p50),
            text::span(q.p90),
            text::span(q.p99),
            text::span(q.max)
        );
    }
    out + "</tbody></table></div>\n"
}

/// A table of numbers: its rows begin with a name.
fn numbers(title: &str, heading: &[&str], rows: &[Vec<String>]) -> String {
    let mut out = format!("<h2>{title}</h2>\n<div class=\"card\"><table>\n<thead><tr>");
    heading.iter().for_each(|name| out += &format!("<th>{name}</th>"));
    out += "</tr></thead>\n<tbody>\n";
    for row in rows {
        let mut cells = row.iter().zip(heading);
        if let Some((name, _)) = cells.next() {
            let _ = write!(out, "<tr><th>{}</th>", escape(name));
        }
        for (cell, name) in cells {
            let _ = write!(out, "<td data-name=\"{name}\">{}</td>", escape(cell));
        }
        out += "</tr>\n";
    }
    out + "</tbody></table></div>\n"
}

fn counts(report: &Report) -> String {
    let heading = [
        "stage",
        "units",
        "failed attempts",
        "tried again",
        "dead-lettered",
        "requeued",
        "workers",
        "busy, mean",
        "wait p50",
        "wait p99",
    ];
    let row = |stage: &StageReport| {
        let busy = if report.wall_s > 0.0 { stage.busy_ns as f64 / 1e9 / report.wall_s } else { 0.0 };
        let workers = if stage.workers_min == stage.workers_max {
            text::count(stage.workers_max)
        } else {
            format!("{} to {}", text::count(stage.workers_min), text::count(stage.workers_max))
        };
        vec![
            stage.name.clone(),
            text::count(stage.units),
            text::count(stage.failures),
            text::count(stage.retries),
            text::count(stage.dead_lettered),
            text::count(stage.requeued),
            workers,
            format!("{busy:.2}"),
            measured(&stage.wait_ns, |q| q.p50),
            measured(&stage.wait_ns, |q| q.p99),
        ]
    };
    numbers("Stages", &heading, &report.stages.iter().map(row).collect::<Vec<_>>())
}

fn resources(report: &Report) -> String {
    if report.resources.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2>Resources</h2>\n<div class=\"card\"><table>\n<thead><tr><th>resource</th>\
         <th class=\"bar words\">most in use at once</th><th>peak</th><th>capacity</th><th class=\"words\">kind</th></tr></thead>\n<tbody>\n",
    );
    for resource in &report.resources {
        let (peak, capacity) = (text::count(resource.peak_in_use), text::count(resource.capacity));
        // What a rate has granted is spent: nothing of it is in use.
        let (picture, peak, capacity) = match resource.rate_per_s {
            Some(rate) => (String::new(), "–".to_owned(), format!("{}, burst {capacity}", text::rate(rate))),
            None => {
                let share = resource.peak_in_use as f64 / resource.capacity.max(1) as f64;
                let label = format!("{peak} of {capacity}");
                let part = Part { class: "peak".to_owned(), label: label.clone(), share: share.min(1.0) };
                (stacked(&[part], &format!("peak use {label}")), peak, capacity)
            }
        };
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td class=\"bar\">{picture}</td><td data-name=\"peak\">{peak}</td>\
             <td data-name=\"capacity\">{capacity}</td><td class=\"words\" data-name=\"kind\">{}</td></tr>",
            escape(&resource.name),
            escape(&resource.kind),
        );
    }
    out + "</tbody></table></div>\n"
}
