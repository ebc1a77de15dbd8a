//! Units that left the flow a second, over the time of the run.

use std::fmt::Write as _;

use millstream_command::screen::text;

use super::super::throughput::{Span, Throughput};

/// Spans that make a picture; with fewer the mean says it all.
const MIN_SPANS: usize = 3;
/// The picture's own units, which the page stretches to its width.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

pub(super) fn section(throughput: &Throughput) -> String {
    let spans = throughput.spans();
    let Some(last) = spans.last().filter(|_| spans.len() >= MIN_SPANS) else { return String::new() };
    let highest = spans.iter().map(|span| span.retired_per_s + span.dead_per_s).fold(0.0, f64::max);
    if highest == 0.0 {
        return String::new();
    }
    let died = spans.iter().any(|span| span.dead_per_s > 0.0);
    let mut out = String::from("<h2>Throughput over time</h2>\n");
    if died {
        out += "<ul class=\"legend\"><li><i class=\"gone\"></i>retired</li><li><i class=\"dead\"></i>dead-lettered</li></ul>\n";
    }
    let _ = write!(
        out,
        "<div class=\"card chart\"><span class=\"faint\">{}</span>\n\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"units a second over the time of the run, at most {}\">",
        text::rate(highest),
        text::rate(highest),
    );
    let area = |class: &str, of: &dyn Fn(&Span) -> f64| {
        let x = |seconds: f64| seconds / last.to_s * WIDTH;
        let mut path = format!("<path class=\"{class}\" d=\"M0 {HEIGHT}");
        for span in &spans {
            let y = HEIGHT * (1.0 - of(span) / highest);
            let _ = write!(path, "V{y:.1}H{:.1}", x(span.to_s));
        }
        path + &format!("V{HEIGHT}Z\"/>")
    };
    if died {
        out += &area("dead", &|span| span.retired_per_s + span.dead_per_s);
    }
    out += &area("gone", &|span| span.retired_per_s);
    let _ = writeln!(
        out,
        "</svg>\n<p class=\"axis faint\"><span>0</span><span>{}</span></p></div>",
        text::seconds(last.to_s)
    );
    out
}
