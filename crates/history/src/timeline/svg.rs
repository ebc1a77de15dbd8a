//! The static picture.

use std::fmt::Write as _;

use super::layout::Layout;
use super::scene::{Bar, Mark, Scene};
use super::{Timeline, escape, words};

const LINE: f64 = 30.0;
const BAR: f64 = 22.0;
const MARGIN: f64 = 16.0;
/// The width of the processes' names, in pixels like all lengths here.
const NAMES: f64 = 84.0;
const MIN_WIDTH: f64 = 608.0;
/// The width of a letter in the text above the picture.
const LETTER: f64 = 6.6;
/// The width of a letter of the title.
const TITLE_LETTER: f64 = 10.5;

const STYLE: &str = include_str!("picture.css");

pub(super) fn picture(timeline: &Timeline<'_>) -> String {
    let scene = Scene::close(timeline, super::MAX_IN_PICTURE);
    let layout = Layout::new(&scene);
    let (verdict, class) = words::verdict(timeline);
    let title = (timeline.title.chars().count() + verdict.len()) as f64 * TITLE_LETTER + 12.0;
    let width = (NAMES + layout.width).max(title).max(MIN_WIDTH) + 2.0 * MARGIN;
    let said = said(timeline, &scene, width - 2.0 * MARGIN);
    let top = 44.0 + 18.0 * said.len() as f64 + 10.0;
    let height = top + LINE * layout.line_count as f64 + MARGIN;

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}: {verdict}\">\n<style>{STYLE}</style>\n\
         <defs><linearGradient id=\"open\"><stop offset=\".6\" stop-color=\"#fff\"/>\
         <stop offset=\"1\" stop-color=\"#fff\" stop-opacity=\"0\"/></linearGradient>\
         <mask id=\"fade\" maskContentUnits=\"objectBoundingBox\"><rect width=\"1\" height=\"1\" fill=\"url(#open)\"/></mask></defs>\n\
         <rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"30\">{}<tspan class=\"{class}\" dx=\"12\">{verdict}</tspan></text>\n",
        escape(timeline.title),
        escape(timeline.title),
    );
    for (i, line) in said.iter().enumerate() {
        let _ = writeln!(svg, "<text class=\"said\" x=\"{MARGIN}\" y=\"{}\">{}</text>", 54 + 18 * i, escape(line));
    }
    let _ = writeln!(svg, "<g transform=\"translate({},{top})\">", MARGIN + NAMES);
    lanes(&mut svg, &layout, width - 2.0 * MARGIN);
    // The line is drawn before the bars, so that it crosses no label.
    if let Some(x) = layout.until {
        let _ = writeln!(
            svg,
            "<path class=\"until\" d=\"M{x:.1} -4V{:.1}\"><title>in order up to here</title></path>",
            LINE * layout.line_count as f64
        );
    }
    for (i, bar) in scene.bars.iter().enumerate() {
        draw(&mut svg, bar, &layout, i);
    }
    svg += "</g>\n</svg>\n";
    svg
}

/// The text above the picture, in lines that fit its width.
fn said(timeline: &Timeline<'_>, scene: &Scene, width: f64) -> Vec<String> {
    let letters = (width / LETTER) as usize;
    let mut lines = Vec::new();
    for sentence in words::findings(timeline).into_iter().chain([format!("Shown: {}.", words::extent(timeline, scene))])
    {
        let mut line = String::new();
        for word in sentence.split(' ') {
            if !line.is_empty() && line.chars().count() + word.chars().count() >= letters {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
        lines.push(line);
    }
    lines
}

fn lanes(svg: &mut String, layout: &Layout, width: f64) {
    for &(process, first) in &layout.lanes {
        let y = LINE * first as f64;
        let _ = writeln!(
            svg,
            "<path class=\"rule\" d=\"M{:.0} {y:.1}H{:.0}\"/><text class=\"name\" x=\"{:.0}\" y=\"{:.1}\">process {process}</text>",
            -NAMES,
            width - NAMES,
            -NAMES,
            y + LINE / 2.0 + 4.0
        );
    }
}

fn draw(svg: &mut String, bar: &Bar, layout: &Layout, i: usize) {
    let (from, to) = layout.spans[i];
    let y = LINE * layout.lines[i] as f64 + (LINE - BAR) / 2.0;
    let class = bar.mark.name();
    let open = if bar.settled.is_none() && bar.mark != Mark::Failed { " mask=\"url(#fade)\"" } else { "" };
    let label = escape(&bar.label);
    let _ = write!(
        svg,
        "<g class=\"{class}\"><title>{label}, row {}, called {}, {}</title>\
         <rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"4\"{open}/>\
         <text x=\"{:.1}\" y=\"{:.1}\">{label}</text>",
        bar.row,
        bar.call,
        bar.returned.map_or("no return".to_owned(), |returned| format!("returned {returned}")),
        to - from,
        from + 8.0,
        y + BAR / 2.0 + 4.0
    );
    if let Some(x) = layout.points[i] {
        let _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"3.5\"/>", y + BAR);
    }
    svg.push_str("</g>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Builder;
    use crate::operation::{Op, Operation};
    use crate::value::Value;
    use crate::verdict::{Counterexample, Prefix, Verdict};

    #[test]
    fn the_subject_of_the_reason_stands_out_from_the_next_return() {
        let mut builder = Builder::new();
        let rows = [
            (Op::ENQUEUE, Some(1), None),
            (Op::ENQUEUE, Some(2), None),
            (Op::DEQUEUE, None, Some(2)),
            (Op::ENQUEUE, Some(3), None),
        ];
        for (row, (op, input, output)) in (0..).zip(rows) {
            let [input, output] = [input, output].map(|value: Option<u32>| value.map_or(Value::NULL, Value::from));
            let operation = Operation::new(row, op, input);
            let call = 10 * u64::from(row);
            builder.push(Operation { output, call, ret: Some(call + 5), ..operation }).unwrap();
        }
        let history = builder.finish().unwrap();
        let verdict = Verdict::Fails(Counterexample {
            operations: vec![0, 1, 2],
            reason: "a value is removed, and one that was inserted earlier is still there".to_owned(),
            subject: Some(2),
            start: None,
            prefix: Some(Prefix { until: 30, operations: 3, culprit: 3 }),
        });
        let svg = picture(&Timeline::new("a queue", &history, &verdict));
        let class = |label: &str| {
            let bar = svg.lines().find(|line| line.contains(&format!("<title>{label},"))).expect("it is drawn");
            bar.split('"').nth(1).expect("a class").to_owned()
        };
        assert_eq!(["enqueue(1)", "dequeue() -&gt; 2", "enqueue(3)"].map(class), ["broken", "subject", "next"]);
        let place = |what: &str| svg.find(what).expect("it is drawn");
        assert!(place("class=\"until\"") < place("class=\"broken\""), "the line is behind the labels");
    }
}
