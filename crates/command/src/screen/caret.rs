//! Shows a problem in a text, with carets below the places that it concerns.
//!
//! ```
//! use millstream_command::screen::caret::{Problem, Severity, Source};
//! use millstream_command::screen::look::Look;
//!
//! let source = Source::new("fetch.toml", "inflight = 8\nworkres = 4\n");
//! let labels = [(13..20, "no such key".to_owned())];
//! let problem = Problem {
//!     severity: Severity::Error,
//!     message: "a flow has no key `workres`",
//!     help: Some("did you mean `workers`?"),
//!     labels: &labels,
//! };
//! let page = "\
//! error: a flow has no key `workres`
//!   ╭▸ fetch.toml:2:1
//!   │
//! 1 │ inflight = 8
//! 2 │ workres = 4
//!   │ ━━━━━━━ no such key
//!   │
//!   ╰ help: did you mean `workers`?
//! ";
//! assert_eq!(source.show(&problem, Look::FILE), page);
//! ```

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use super::look::Look;
use super::shown;

/// The maximum length in bytes of a line that is shown. For a place in a longer line, only the numbers of the line and
/// the column are shown.
const MAX_LINE: usize = 4 << 10;

/// Whether a text with the problem is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The text is refused.
    Error,
    /// The text is used in spite of the problem.
    Warning,
}

/// A problem in a text. The strings may contain any characters: those that would control a terminal are shown by their
/// numbers.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Whether the text is used.
    pub severity: Severity,
    /// The problem: what was expected, and what was found.
    pub message: &'a str,
    /// The remedy.
    pub help: Option<&'a str>,
    /// Places in the text, each with a label. A place is a range of bytes that starts and ends between characters. The
    /// first place is the main one. A place after the end of the text is shown at the last character that is not white
    /// space. If a place has several lines, only the first line is shown.
    pub labels: &'a [(Range<usize>, String)],
}

/// A text with problems. It is prepared once for all problems.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    name: Cow<'a, str>,
    text: &'a str,
    shown: String,
    /// The characters that are longer in the shown text than in the text. Each entry is the offset of such a character,
    /// and the total difference in length up to and including this character.
    growth: Vec<(usize, usize)>,
}

impl<'a> Source<'a> {
    /// Prepares a text. `name` is shown above the text, and may be a path. Takes O(length) time and memory.
    pub fn new(name: &'a str, text: &'a str) -> Self {
        let (mut visible, mut growth) = (String::with_capacity(text.len()), Vec::new());
        for (at, c) in text.char_indices() {
            match c {
                // A carriage return before a newline is part of the line end. A space replaces it, so offsets stay the same.
                '\r' if text[at..].starts_with("\r\n") => visible.push(' '),
                c => visible.push_str(&shown::lines(c.encode_utf8(&mut [0; 4]))),
            }
            let by = visible.len() - at - c.len_utf8();
            if growth.last().map_or(0, |(_, before)| *before) < by {
                growth.push((at, by));
            }
        }
        Self { name: shown::line(name), text, shown: visible, growth }
    }

    /// The problem as lines for a terminal with the properties `look`. Takes O(length of the text) time.
    ///
    /// # Panics
    /// A place within the text starts or ends inside a character.
    pub fn show(&self, problem: &Problem<'_>, look: Look) -> String {
        let level = match problem.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(shown::lines(problem.message)));
        group = group.elements(self.places(problem.labels));
        if let Some(help) = problem.help {
            group = group.element(Level::HELP.message(shown::lines(help)));
        }
        let renderer = if look.color { Renderer::styled() } else { Renderer::plain() };
        let decor = if look.unicode { DecorStyle::Unicode } else { DecorStyle::Ascii };
        let mut page = renderer.term_width(look.columns).decor_style(decor).render(&[group]);
        page.push('\n');
        page
    }

    /// The lines with the places. A place in a line that is too long is shown only by the numbers of its line and column.
    fn places<'p>(&'p self, labels: &'p [(Range<usize>, String)]) -> Vec<Element<'p>> {
        if labels.is_empty() {
            return Vec::new();
        }
        if self.text.trim().is_empty() {
            return vec![Origin::path(&*self.name).into()];
        }
        let (mut annotations, mut elements) = (Vec::new(), Vec::new());
        for (index, (span, label)) in labels.iter().enumerate() {
            let start = span.start.min(self.last());
            let line = line_at(self.text, start);
            let label = (!label.is_empty()).then(|| shown::lines(label));
            if line.len() > MAX_LINE {
                let number = self.text[..line.start].matches('\n').count() + 1;
                let column = self.text[line.start..start].chars().count() + 1;
                elements.push(Origin::path(&*self.name).line(number).char_column(column).into());
                elements.extend(label.map(|label| Level::NOTE.message(label).into()));
                continue;
            }
            let place = self.moved(start)..self.moved(span.end.clamp(start, line.end));
            annotations.extend(self.around(place.start));
            let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            annotations.push(kind.span(place).label(label));
        }
        if !annotations.is_empty() {
            let snippet = Snippet::source(self.shown.as_str()).path(&*self.name).annotations(annotations);
            elements.insert(0, snippet.into());
        }
        elements
    }

    /// The offset of the last character that is not white space.
    fn last(&self) -> usize {
        self.text.trim_end().char_indices().next_back().map_or(0, |(at, _)| at)
    }

    /// The offset in the shown text for an offset in the text.
    fn moved(&self, place: usize) -> usize {
        let behind = self.growth.partition_point(|(at, _)| *at < place);
        place + behind.checked_sub(1).map_or(0, |last| self.growth[last].1)
    }

    /// The lines before and after the line that contains this offset of the shown text, except blank and long lines.
    fn around(&self, place: usize) -> Vec<Annotation<'_>> {
        let line = line_at(&self.shown, place);
        let before = line.start.checked_sub(1).map(|end| line_at(&self.shown, end));
        let behind = (line.end < self.shown.len()).then(|| line_at(&self.shown, line.end + 1));
        let tells = |line: &Range<usize>| line.len() <= MAX_LINE && !self.shown[line.clone()].trim().is_empty();
        let lines = [before, behind].into_iter().flatten().filter(tells);
        lines.map(|line| AnnotationKind::Visible.span(line.start..line.start)).collect()
    }
}

/// The range of the line that contains an offset, without the line end.
fn line_at(text: &str, place: usize) -> Range<usize> {
    let start = text[..place].rfind('\n').map_or(0, |newline| newline + 1);
    start..text[place..].find('\n').map_or(text.len(), |newline| place + newline)
}

#[cfg(test)]
mod tests {
    use millstream_verify_random::Random;

    use super::*;

    const PLAIN: Look = Look { unicode: false, ..Look::FILE };

    fn show(text: &str, labels: &[(Range<usize>, &str)], look: Look) -> String {
        let labels: Vec<_> = labels.iter().map(|(span, label)| (span.clone(), (*label).to_owned())).collect();
        let problem = Problem { severity: Severity::Error, message: "wrong", help: None, labels: &labels };
        Source::new("f", text).show(&problem, look)
    }

    #[test]
    fn a_problem_without_a_place_is_its_message_and_help() {
        let problem = Problem { severity: Severity::Warning, message: "wrong", help: Some("right\n  so"), labels: &[] };
        let page = Source::new("f", "text").show(&problem, Look::FILE);
        assert_eq!(page, "warning: wrong\n │\n ╰ help: right\n           so\n");
    }

    #[test]
    fn places_in_one_line_are_told_apart() {
        let text = "x = lines(); zip(every(x, 2), x)";
        let page = show(text, &[(4..11, "`x` forks"), (17..28, "1 of 2"), (30..31, "1 of 1")], PLAIN);
        let expected = "\
error: wrong
 --> f:1:5
  |
1 | x = lines(); zip(every(x, 2), x)
  |     ^^^^^^^      -----------  - 1 of 1
  |     |            |
  |     |            1 of 2
  |     `x` forks
";
        assert_eq!(page, expected);
    }

    #[test]
    fn a_place_at_the_end_is_shown_at_the_last_visible_character() {
        assert!(show("ab\ncd\n\n", &[(7..7, "")], PLAIN).contains("--> f:2:2\n"));
        assert!(show("ab", &[(900..1000, "")], PLAIN).contains("--> f:1:2\n"));
        assert_eq!(show(" \n", &[(2..2, "here")], PLAIN), "error: wrong\n--> f\n");
    }

    #[test]
    fn carets_stand_below_their_word_behind_hidden_wide_and_joined_characters() {
        for before in ["", "\u{9b}\u{202e}", "日本", "\t", "e\u{301}", "\r"] {
            let text = format!("one\r\n{before}\"x\" = wrong\r\ntwo\r\n");
            let at = text.find("wrong").unwrap();
            let page = show(&text, &[(at..at + 5, "")], PLAIN);
            let mut lines = page.lines().skip_while(|line| !line.contains("= wrong"));
            let (line, carets) = (lines.next().unwrap(), lines.next().unwrap());
            let column = |line: &str, what: &str| super::super::text::width(&line[..line.find(what).unwrap()]);
            assert_eq!(column(carets, "^^^^^"), column(line, "wrong"), "{page}");
            assert!(page.contains("one") && page.contains("two") && !page.contains(['\u{9b}', '\u{202e}', '\r']));
        }
    }

    #[test]
    fn a_wide_line_is_cut_around_the_place_and_a_huge_one_is_told_by_numbers() {
        let text = |length: usize| format!("name = \"{}\" x", "é".repeat(length));
        let of = |length: usize| (8 + 2 * length + 2, 8 + length + 2 + 1);
        let (at, column) = of(300);
        let page = show(&text(300), &[(at..at + 1, "here")], PLAIN);
        assert!(page.contains(&format!("f:1:{column}\n")) && page.contains("^ here"), "{page}");
        assert!(page.lines().all(|line| line.chars().count() <= PLAIN.columns), "{page}");
        let (at, column) = of(30_000);
        let page = show(&text(30_000), &[(at..at + 1, "here")], PLAIN);
        assert_eq!(page, format!("error: wrong\n--> f:1:{column}\n = note: here\n"));
    }

    #[test]
    fn nothing_steers_the_terminal_and_colours_are_for_terminals_that_have_them() {
        let bad = "a\x1b[31m\u{9b}b";
        let labels = [(0..1, bad.to_owned())];
        let problem = Problem { severity: Severity::Error, message: bad, help: Some(bad), labels: &labels };
        let page = Source::new(bad, bad).show(&problem, Look::FILE);
        assert!(page.chars().all(|c| c == '\n' || !shown::is_hidden(c)), "{page:?}");
        let page = Source::new("f", "a").show(&problem, Look { color: true, ..Look::FILE });
        assert!(page.contains("\x1b[1m") && !page.contains("\x1b[31m"), "{page:?}");
        assert_eq!(shown::page(&page), page, "each sequence is of a colour or a weight");
    }

    #[test]
    fn any_text_with_any_places_is_shown() {
        const ALPHABET: [char; 14] =
            ['a', 'b', ' ', '\n', '\t', 'é', '日', '👩', '\u{200d}', '\u{301}', '\r', '"', '\u{9b}', '\u{202e}'];
        let mut random = Random::seeded();
        let mut below = |n: usize| random.below(n as u64) as usize;
        for round in 0..3000 {
            let length = below(if round % 100 == 0 { 6000 } else { 60 });
            let letters = if round % 3 == 0 { 3 } else { ALPHABET.len() };
            let text: String = (0..length).map(|_| ALPHABET[below(letters)]).collect();
            let borders: Vec<usize> =
                text.char_indices().map(|(at, _)| at).chain([text.len(), text.len() + 9]).collect();
            let labels: Vec<(Range<usize>, &str)> = (0..1 + below(3))
                .map(|_| {
                    let start = below(borders.len());
                    let end = start + below(borders.len() - start);
                    (borders[start]..borders[end], ["", "here"][below(2)])
                })
                .collect();
            let look = Look { columns: [1, 20, 80][below(3)], unicode: round % 2 == 0, ..Look::FILE };
            let page = show(&text, &labels, look);
            assert!(page.starts_with("error: wrong\n") && page.ends_with('\n'), "{text:?} {labels:?}: {page}");
        }
    }
}
