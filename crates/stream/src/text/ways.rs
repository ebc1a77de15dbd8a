//! The problem for a refused program: its spans in the text, and the ways out, each as a text to write instead.

use std::ops::Range;

use crate::check::{Cause, Refusal, Way};
use crate::graph::Graph;

use super::problem::Problem;

pub(super) fn problem(text: &str, graph: &Graph, refusal: &Refusal, rereadable: bool, spillable: bool) -> Problem {
    let join = &graph.nodes()[refusal.join];
    let whole = join.span.clone().unwrap_or(0..text.len());
    let argument = |path: usize| join.input_spans.get(refusal.paths[path].port).cloned().unwrap_or(whole.clone());
    let fork = refusal.fork_label();
    let label = |path: usize| match (refusal.rate_in_words(path), refusal.paths[path].rate) {
        (words, Some(_)) => format!("{words} of `{fork}`"),
        (words, None) => words,
    };
    let problem = Problem::new(refusal.to_string(), argument(0), label(0)).and(argument(1), label(1));
    let problem = match &graph.nodes()[refusal.fork].span {
        Some(span) => problem.and(span.clone(), format!("`{fork}` forks")),
        None => problem,
    };
    let [slow, fast] = [argument(1 - refusal.growing), argument(refusal.growing)];
    let written = Written { text, whole, slow, fast };
    let mut help = "write instead, for example".to_owned();
    for way in refusal.ways().into_iter().filter(|way| spillable || *way != Way::Spill) {
        for (text, effect) in written.ways(way, refusal, rereadable) {
            help += &format!("\n  {text}\n    {effect}");
        }
    }
    problem.help(help)
}

/// The text of a join, with the spans of the arguments that are the slower and the faster path.
struct Written<'a> {
    text: &'a str,
    whole: Range<usize>,
    slow: Range<usize>,
    fast: Range<usize>,
}

impl Written<'_> {
    /// Returns the texts to write for a way out, each with a description of its effect.
    fn ways(&self, way: Way, refusal: &Refusal, rereadable: bool) -> Vec<(String, String)> {
        let (slow, fast) = (&self.text[self.slow.clone()], &self.text[self.fast.clone()]);
        let fork = refusal.fork_label();
        // If the data decide on both paths, either path may lag behind the other.
        let both = refusal.paths.iter().all(|path| path.rate.is_none());
        let is_name = |text: &str| text.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        let room = |with: &dyn Fn(&str) -> String| {
            if both { self.with_both(with) } else { self.with(&self.fast, &with(fast)) }
        };
        match way {
            Way::Buffer(values) => {
                let end = match (refusal.overflows_at(values), refusal.cause) {
                    (Some(n), Cause::Data) => format!("at the earliest after {n} values of `{fork}`"),
                    (Some(n), _) => format!("after {n} values of `{fork}`"),
                    (None, _) => "with longer inputs".to_owned(),
                };
                let text = room(&|path| format!("buffer({path}, {values})"));
                let each = if both { " on each path" } else { "" };
                vec![(text, format!("up to {values} values wait{each}; the run fails when there are more, {end}"))]
            }
            Way::Reread => {
                let condition = if rereadable { "" } else { "; each input must be a file, which can be read twice" };
                let text = self.with(&self.fast, &format!("reread({fast})"));
                vec![(text, format!("reads the input a second time, at the other pace{condition}"))]
            }
            Way::Spill => {
                let text = room(&|path| format!("spill({path}, \"/tmp\")"));
                vec![(text, "the values that wait are kept in that folder, as many as the disk holds".to_owned())]
            }
            // These ways out contain the text of the faster path twice. If that text contains a filter, it would become two
            // different filters.
            Way::Align | Way::Hold if both && !is_name(fast) => Vec::new(),
            Way::Align => {
                let text = self.with(&self.slow, &format!("align({slow}, {fast})"));
                vec![(text, "an empty value fills in where the slower path has none".to_owned())]
            }
            Way::Hold => {
                let held = self.with(&self.slow, &format!("hold({slow}, {fast})"));
                let mut ways = vec![(held, "the slower path's last value is repeated until it has another".to_owned())];
                // The text for sampling contains the text of the slower path twice.
                if refusal.cause == Cause::Rates || is_name(slow) {
                    let sampled = self.with(&self.fast, &format!("hold({fast}, {slow})"));
                    ways.push((sampled, "the faster path is sampled when the slower one has a value".to_owned()));
                }
                ways
            }
        }
    }

    /// Returns the text of the join, with `other` applied to both arguments.
    fn with_both(&self, other: &dyn Fn(&str) -> String) -> String {
        let [first, last] =
            if self.slow.start < self.fast.start { [&self.slow, &self.fast] } else { [&self.fast, &self.slow] };
        let text = |range: Range<usize>| &self.text[range];
        let (before, between, after) = (self.whole.start..first.start, first.end..last.start, last.end..self.whole.end);
        let [first, last] = [first, last].map(|argument| other(text(argument.clone())));
        format!("{}{first}{}{last}{}", text(before), text(between), text(after))
    }

    /// Returns the text of the join, with another text in place of one argument.
    fn with(&self, argument: &Range<usize>, other: &str) -> String {
        let (before, after) = (&self.text[self.whole.start..argument.start], &self.text[argument.end..self.whole.end]);
        format!("{before}{other}{after}")
    }
}
