//! The layout of a static picture. The axis shows the order of events, and is stretched where a label needs space.

use std::collections::BTreeMap;

use super::scene::Scene;

/// The minimum distance between neighbouring events, in pixels.
const GAP: f64 = 9.0;
/// The width of a letter in a label, in pixels.
const LETTER: f64 = 6.7;
/// The space on both sides of a label together, in pixels.
const PAD: f64 = 16.0;

/// Bars and lanes, in pixels; the axis begins at 0.
#[derive(Debug)]
pub(super) struct Layout {
    /// The beginning and the end of each of the scene's bars. A pending operation's bar extends to the right edge.
    pub(super) spans: Vec<(f64, f64)>,
    /// The linearization point of each bar's operation; `None` if the witness does not contain the operation.
    pub(super) points: Vec<Option<f64>>,
    /// The line of each bar. Overlapping bars of one process are on different lines.
    pub(super) lines: Vec<usize>,
    /// The processes from top to bottom, each with its first line.
    pub(super) lanes: Vec<(u32, usize)>,
    pub(super) line_count: usize,
    /// The end of the longest legal prefix; `None` if the history is legal or the end is not known.
    pub(super) until: Option<f64>,
    pub(super) width: f64,
}

/// Kinds of events, in their order at equal times. Calls come before returns, so operations that coincide in time
/// overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Call,
    /// The linearization point of the operation with this index in the witness.
    Point(usize),
    Return,
    Until,
}

impl Layout {
    pub(super) fn new(scene: &Scene) -> Self {
        let bars = &scene.bars;
        let mut events = Vec::new();
        for (i, bar) in bars.iter().enumerate() {
            events.push((bar.call, Event::Call, i));
            events.extend(bar.settled.map(|settled| (settled, Event::Return, i)));
            events.extend(bar.point.map(|(place, at)| (at, Event::Point(place), i)));
        }
        events.extend(scene.until.map(|until| (until, Event::Until, 0)));
        events.sort_unstable();

        let mut spans = vec![(0.0, 0.0); bars.len()];
        let mut points = vec![None; bars.len()];
        let (mut until, mut x, mut last) = (None, 0.0, None);
        for (time, event, i) in events {
            if last.is_some_and(|last| last != (time, event)) {
                x += GAP;
            }
            last = Some((time, event));
            match event {
                Event::Call => spans[i].0 = x,
                Event::Point(_) => points[i] = Some(x),
                Event::Return => {
                    x = x.max(spans[i].0 + room(&bars[i].label));
                    spans[i].1 = x;
                }
                Event::Until => until = Some(x),
            }
        }
        let open = || bars.iter().enumerate().filter(|(_, bar)| bar.settled.is_none());
        let width = open().map(|(i, bar)| spans[i].0 + room(&bar.label)).fold(x + GAP, f64::max);
        for (i, _) in open() {
            spans[i].1 = width;
        }
        let (lines, lanes, line_count) = stack(scene, &spans);
        Layout { spans, points, lines, lanes, line_count, until, width }
    }
}

fn room(label: &str) -> f64 {
    label.chars().count() as f64 * LETTER + PAD
}

/// Puts each bar on the first free line of its process.
fn stack(scene: &Scene, spans: &[(f64, f64)]) -> (Vec<usize>, Vec<(u32, usize)>, usize) {
    // For each process, the position from which each of its lines is free.
    let mut free: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut lines: Vec<usize> = scene
        .bars
        .iter()
        .zip(spans)
        .map(|(bar, &(from, to))| {
            let free = free.entry(bar.process).or_default();
            let line = free.iter().position(|&end| end <= from).unwrap_or(free.len());
            if line == free.len() {
                free.push(to);
            } else {
                free[line] = to;
            }
            line
        })
        .collect();
    let mut count = 0;
    let mut first = BTreeMap::new();
    for (&process, free) in &free {
        first.insert(process, count);
        count += free.len();
    }
    for (line, bar) in lines.iter_mut().zip(&scene.bars) {
        *line += first[&bar.process];
    }
    (lines, first.into_iter().collect(), count)
}

#[cfg(test)]
mod tests {
    use super::super::scene::{Bar, Mark};
    use super::*;

    fn bar(process: u32, call: u64, settled: Option<u64>) -> Bar {
        let label = "dequeue() -> 7".to_owned();
        Bar { row: 0, process, label, call, returned: settled, settled, mark: Mark::Plain, point: None }
    }

    fn layout(bars: Vec<Bar>) -> Layout {
        Layout::new(&Scene { bars, until: Some(15), left_out: 0 })
    }

    #[test]
    fn bars_overlap_exactly_if_their_operations_do() {
        let times = [(0, Some(10)), (10, Some(12)), (11, None), (13, Some(13)), (14, Some(20)), (21, Some(22))];
        let bars = times.iter().zip(0..).map(|(&(call, ret), process)| bar(process, call, ret)).collect();
        let layout = layout(bars);
        for (i, a) in times.iter().enumerate() {
            for (j, b) in times.iter().enumerate() {
                let before = a.1.is_some_and(|ret| ret < b.0);
                assert_eq!(before, layout.spans[i].1 < layout.spans[j].0, "{a:?} {b:?}");
            }
            assert!(layout.spans[i].1 - layout.spans[i].0 >= room("dequeue() -> 7"));
        }
        assert!(layout.spans[3].1 < layout.until.unwrap() && layout.until.unwrap() < layout.spans[4].1);
    }

    #[test]
    fn bars_of_one_process_do_not_cover_one_another() {
        let layout = layout(vec![bar(5, 0, Some(20)), bar(5, 10, Some(30)), bar(5, 25, Some(40)), bar(9, 0, None)]);
        assert_eq!(layout.lines, [0, 1, 0, 2]);
        assert_eq!((layout.lanes, layout.line_count), (vec![(5, 0), (9, 2)], 3));
    }
}
