//! Spans of time as strips: the number of simultaneous spans at each moment, from the first to the last.

use serde_json::{Value, json};

/// The number of steps of a strip.
const STEPS: usize = 160;
/// The maximum number of lanes that are shown; the lanes with the least time are merged into one.
pub(super) const MAX_LANES: usize = 64;
/// The maximum length of a lane's name, in characters.
const MAX_NAME: usize = 120;

/// A span of time, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from: f64,
    pub(super) to: f64,
    /// The number of the span's name.
    pub(super) name: u32,
    /// The number of the span's thread.
    pub(super) thread: u32,
    pub(super) failed: bool,
}

/// The first and the last moment of all spans; `None` if there are none.
pub(super) fn range(spans: &[Span]) -> Option<(f64, f64)> {
    let (first, rest) = spans.split_first()?;
    Some(rest.iter().fold((first.from, first.to), |(from, to), span| (from.min(span.from), to.max(span.to))))
}

/// A lane of spans.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) spans: u64,
    pub(super) failed: u64,
    pub(super) busy_s: f64,
    /// The maximum number of simultaneous spans.
    pub(super) most: u64,
    first: f64,
    strip: Vec<f64>,
    failed_strip: Vec<f64>,
}

impl Lane {
    /// The lane of these spans. Its strip covers the time between the two moments.
    fn of(name: &str, spans: &[Span], (from, to): (f64, f64)) -> Self {
        let step = ((to - from) / STEPS as f64).max(1e-6);
        let mut lane = Lane {
            name: cut(name),
            spans: spans.len() as u64,
            first: spans.iter().fold(f64::INFINITY, |first, span| first.min(span.from)),
            most: most_at_once(spans),
            strip: vec![0.0; STEPS],
            failed_strip: vec![0.0; STEPS],
            ..Lane::default()
        };
        for span in spans {
            lane.busy_s += (span.to - span.from) / 1e6;
            lane.failed += u64::from(span.failed);
            let place = |at: f64| (((at - from) / step) as usize).min(STEPS - 1);
            for at in place(span.from)..=place(span.to) {
                let (begin, end) = (from + step * at as f64, from + step * (at + 1) as f64);
                let share = (span.to.min(end) - span.from.max(begin)).max(0.0) / step;
                lane.strip[at] += share;
                if span.failed {
                    lane.failed_strip[at] += share;
                }
            }
        }
        lane
    }

    fn json(&self) -> Value {
        let rounded = |strip: &[f64]| strip.iter().map(|n| (n * 100.0).round() / 100.0).collect::<Vec<_>>();
        let failed = if self.failed > 0 { rounded(&self.failed_strip) } else { Vec::new() };
        json!({
            "name": self.name, "spans": self.spans, "failed": self.failed, "busy_s": self.busy_s, "most": self.most,
            "strip": rounded(&self.strip), "failed_strip": failed,
        })
    }
}

/// Makes a lane of all spans for which `by` returns the same number. Returns the lanes in the order of their first
/// spans, and the number of lanes that were merged into one.
pub(super) fn lanes(spans: &mut [Span], by: fn(&Span) -> u32, names: &[String]) -> (Vec<Lane>, usize) {
    let Some(range) = range(spans) else { return (Vec::new(), 0) };
    spans.sort_unstable_by_key(by);
    let groups: Vec<&[Span]> = spans.chunk_by(|a, b| by(a) == by(b)).collect();
    let busy = |group: &&[Span]| group.iter().map(|span| span.to - span.from).sum::<f64>();
    let mut by_time: Vec<(f64, &[Span])> = groups.iter().map(|group| (busy(group), *group)).collect();
    by_time.sort_by(|a, b| b.0.total_cmp(&a.0));
    let rest = by_time.split_off(by_time.len().min(MAX_LANES));
    let mut lanes: Vec<Lane> =
        by_time.iter().map(|(_, group)| Lane::of(&names[by(&group[0]) as usize], group, range)).collect();
    lanes.sort_by(|a, b| a.first.total_cmp(&b.first));
    if !rest.is_empty() {
        let together: Vec<Span> = rest.iter().flat_map(|(_, group)| group.iter().copied()).collect();
        lanes.push(Lane::of("all others", &together, range));
    }
    (lanes, rest.len())
}

/// The lanes as JSON.
pub(super) fn json(lanes: &[Lane]) -> Value {
    lanes.iter().map(Lane::json).collect()
}

/// Two spans that overlap by less than this, in microseconds, count as successive, since times in files are
/// rounded.
const TOUCH: f64 = 0.0005;

/// The maximum number of simultaneous spans. A span that ends as another begins does not overlap it.
fn most_at_once(spans: &[Span]) -> u64 {
    let sorted = |of: fn(&Span) -> f64| {
        let mut times: Vec<f64> = spans.iter().map(of).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let (begins, ends) = (sorted(|span| span.from), sorted(|span| span.to));
    let (mut most, mut ended) = (0, 0);
    for (begun, at) in begins.iter().enumerate() {
        // A span of length zero ends where it begins. `ended < begun` keeps it from ending before it is counted.
        while ended < begun && ends[ended] <= *at + TOUCH {
            ended += 1;
        }
        most = most.max(begun + 1 - ended);
    }
    most as u64
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(name: u32, from: f64, to: f64) -> Span {
        Span { from, to, name, thread: 0, failed: false }
    }

    #[test]
    fn a_strip_has_the_time_of_its_spans() {
        let mut spans = [span(0, 0.0, 160.0), span(1, 40.0, 80.5), Span { failed: true, ..span(1, 60.0, 60.25) }];
        let (lanes, others) = lanes(&mut spans, |span| span.name, &["a".into(), "b".into()]);
        assert_eq!((lanes.len(), others), (2, 0));
        assert_eq!((lanes[0].name.as_str(), lanes[0].most, lanes[1].most), ("a", 1, 2));
        assert!(lanes[0].strip.iter().all(|n| (n - 1.0).abs() < 1e-9));
        assert!((lanes[1].strip.iter().sum::<f64>() - 40.75).abs() < 1e-9);
        assert!((lanes[1].failed_strip[60] - 0.25).abs() < 1e-9 && lanes[1].failed == 1);
        assert_eq!(lanes[0].json()["failed_strip"], json!([]));
    }

    #[test]
    fn successive_spans_do_not_overlap() {
        let chain: Vec<Span> = (0..50).map(|n| span(0, f64::from(n), f64::from(n + 1))).collect();
        assert_eq!(most_at_once(&chain), 1);
        let rounded: Vec<Span> = (0..5_000).map(|n| f64::from(n) * 0.1).map(|from| span(0, from, from + 0.1)).collect();
        assert_eq!(most_at_once(&rounded), 1);
        assert_eq!(most_at_once(&[span(0, 1.0, 1.0), span(0, 1.0, 1.0), span(0, 1.0, 3.0), span(0, 2.0, 3.0)]), 2);
        assert_eq!(most_at_once(&[]), 0);
    }

    #[test]
    fn many_lanes_are_merged() {
        let names: Vec<String> = (0..1000).map(|n| format!("{n}{}", "x".repeat(500))).collect();
        let mut spans: Vec<Span> = (0..1000).map(|n| span(n, f64::from(n), f64::from(2 * n))).collect();
        let (lanes, others) = lanes(&mut spans, |span| span.name, &names);
        assert_eq!((lanes.len(), others), (MAX_LANES + 1, 1000 - MAX_LANES));
        assert_eq!(lanes.iter().map(|lane| lane.spans).sum::<u64>(), 1000);
        assert!(lanes.iter().all(|lane| lane.name.chars().count() <= MAX_NAME + 1));
    }

    #[test]
    fn extreme_times_make_finite_strips() {
        let far = 1e17;
        for (from, to) in [(-far, far), (far, far), (0.0, 0.0), (-far, -far)] {
            let (lanes, _) = lanes(&mut [span(0, from, to)], |span| span.name, &["a".into()]);
            assert!(lanes[0].strip.iter().all(|n| n.is_finite() && *n >= 0.0), "{from} {to}");
        }
    }
}
