//! Splits a file of the tree into its prose, paragraph by paragraph, and its code.
//!
//! Prose is the text of comments, of Markdown outside code, and of Rust string literals. Code keeps its lines, without
//! comments and without the contents of strings, so that a search of it finds neither.

/// The kind of a paragraph, which decides the rules that apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `///`, `//!`, `/** */`.
    Doc,
    /// Every other comment.
    Comment,
    /// A page of Markdown.
    Page,
    /// A string literal.
    Message,
}

/// A paragraph of prose, without a blank line, code or another kind of prose in between.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Paragraph {
    pub(crate) kind: Kind,
    /// Each line's number, from 1, and its text.
    pub(crate) lines: Vec<(usize, String)>,
}

/// A file's prose and code.
#[derive(Debug, Default)]
pub(crate) struct Split {
    pub(crate) paragraphs: Vec<Paragraph>,
    /// The code, line by line; empty for pages.
    pub(crate) code: Vec<String>,
}

/// Splits `text`, whose language follows from `path` and the first line; `None` for a language that is not checked.
pub(crate) fn split(path: &str, text: &str) -> Option<Split> {
    let extension = path.rsplit('/').next()?.rsplit_once('.').map(|(_, extension)| extension);
    match extension {
        Some("rs") => Some(slashes(text, true)),
        Some("c" | "h" | "java" | "go") => Some(slashes(text, false)),
        Some("py" | "pyi") => Some(hashes(text, true)),
        Some("toml" | "service" | "sh") => Some(hashes(text, false)),
        Some("md") => Some(Split { paragraphs: page(text), code: Vec::new() }),
        _ if text.starts_with("#!") => Some(hashes(text, false)),
        _ => None,
    }
}

/// Gathers pieces of prose into paragraphs.
#[derive(Default)]
struct Gatherer {
    paragraphs: Vec<Paragraph>,
    /// Whether the next piece begins a new paragraph.
    broken: bool,
    /// Whether the text is inside a fenced block of code.
    fenced: bool,
}

impl Gatherer {
    fn add(&mut self, kind: Kind, line: usize, text: &str) {
        let text = text.trim();
        let follows = self
            .paragraphs
            .last()
            .and_then(|last| (last.kind == kind).then(|| last.lines.last().map_or(0, |(line, _)| *line)))
            .is_some_and(|last| last == line || last + 1 == line);
        if text.starts_with("```") || text.starts_with("~~~") {
            self.fenced = !self.fenced;
            self.broken = true;
            return;
        }
        if self.fenced && kind != Kind::Message {
            return;
        }
        if text.is_empty() {
            self.broken = true;
            return;
        }
        // An item of a list, a row of a table and a heading are separate paragraphs.
        let alone = ["- ", "* ", "| ", "#", "> "].iter().any(|start| text.starts_with(start));
        if follows && !self.broken && !alone && kind != Kind::Message {
            let last = self.paragraphs.last_mut().expect("a paragraph that this one follows");
            last.lines.push((line, text.to_owned()));
        } else {
            self.paragraphs.push(Paragraph { kind, lines: vec![(line, text.to_owned())] });
        }
        self.broken = text.starts_with('#') || text.starts_with('|');
    }

    /// Ends a paragraph, because code follows.
    fn cut(&mut self) {
        self.broken = true;
        self.fenced = false;
    }
}

/// Splits a text of Rust, C, Java or Go.
fn slashes(text: &str, rust: bool) -> Split {
    let mut scan = Scan { text, at: 0, line: 1, code: String::new(), prose: Gatherer::default() };
    while let Some(next) = scan.rest().chars().next() {
        let rest = scan.rest();
        if rest.starts_with("//") {
            scan.line_comment(rust);
        } else if rest.starts_with("/*") {
            scan.block_comment(rust);
        } else if let Some(hashes) = raw_string(rest, scan.before()).filter(|_| rust) {
            scan.raw_string(hashes);
        } else if next == '"' {
            scan.string(rust);
        } else if next == '\'' {
            scan.quote(rust);
        } else {
            scan.take(next.len_utf8(), true);
        }
    }
    Split { paragraphs: scan.prose.paragraphs, code: scan.code.lines().map(str::to_owned).collect() }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    code: String,
    prose: Gatherer,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn before(&self) -> Option<char> {
        self.text[..self.at].chars().next_back()
    }

    /// Consumes `bytes`, and adds them to the code if they are code. Line ends are always added to the code.
    fn take(&mut self, bytes: usize, code: bool) -> &'a str {
        let taken = &self.rest()[..bytes];
        self.at += bytes;
        for letter in taken.chars() {
            if letter == '\n' {
                self.line += 1;
            }
            if code || letter == '\n' {
                self.code.push(letter);
            }
        }
        if code && !taken.trim().is_empty() {
            self.prose.cut();
        }
        taken
    }

    fn line_comment(&mut self, rust: bool) {
        let rest = self.rest();
        let line = self.line;
        let comment = self.take(rest.find('\n').unwrap_or(rest.len()), false);
        let doc = rust && (comment.starts_with("//!") || comment.starts_with("///") && !comment.starts_with("////"));
        let text = comment.trim_start_matches('/').trim_start_matches('!');
        self.prose.add(if doc { Kind::Doc } else { Kind::Comment }, line, text);
    }

    fn block_comment(&mut self, rust: bool) {
        let rest = self.rest();
        let mut depth = 0_usize;
        let mut end = 0;
        while end < rest.len() {
            let tail = &rest.as_bytes()[end..];
            if tail.starts_with(b"/*") && (rust || depth == 0) {
                depth += 1;
                end += 2;
            } else if tail.starts_with(b"*/") {
                depth -= 1;
                end += 2;
                if depth == 0 {
                    break;
                }
            } else {
                end += 1;
            }
        }
        let first = self.line;
        let comment = self.take(end, false);
        let doc = comment.starts_with("/**") || comment.starts_with("/*!");
        let kind = if doc { Kind::Doc } else { Kind::Comment };
        let inner = comment.trim_start_matches(['/', '*', '!']).trim_end_matches(['/', '*']);
        for (offset, text) in inner.lines().enumerate() {
            self.prose.add(kind, first + offset, text.trim_start().trim_start_matches('*'));
        }
    }

    fn raw_string(&mut self, hashes: usize) {
        let start = self.rest().find('"').map_or(0, |at| at + 1);
        self.take(start, true);
        let close = format!("\"{}", "#".repeat(hashes));
        let rest = self.rest();
        self.message(rest.find(&close).unwrap_or(rest.len()));
        self.take(close.len().min(self.rest().len()), true);
    }

    fn string(&mut self, rust: bool) {
        self.take(1, true);
        let mut escaped = false;
        let end = self.rest().find(|letter| {
            let ends = (letter == '"' || letter == '\n' && !rust) && !escaped;
            escaped = letter == '\\' && !escaped;
            ends
        });
        self.message(end.unwrap_or(self.rest().len()));
        self.take(self.rest().len().min(1), true);
    }

    /// Consumes the contents of a string, which are prose if they contain a space.
    fn message(&mut self, bytes: usize) {
        let first = self.line;
        let contents = self.take(bytes, false);
        if contents.contains(' ') {
            for (offset, text) in contents.lines().enumerate() {
                self.prose.add(Kind::Message, first + offset, text.trim_end_matches('\\'));
            }
        }
    }

    /// Consumes a character, a lifetime, or a lone quote.
    fn quote(&mut self, rust: bool) {
        let rest = &self.rest()[1..];
        let mut letters = rest.char_indices();
        let length = match letters.next() {
            Some((_, '\\')) => {
                rest[1..].char_indices().skip(1).find(|(_, letter)| *letter == '\'').map(|(at, _)| at + 3)
            }
            Some((_, letter)) if !rust || rest[letter.len_utf8()..].starts_with('\'') => {
                rest[letter.len_utf8()..].find('\'').map(|at| letter.len_utf8() + at + 2)
            }
            _ => None,
        };
        self.take(1, true);
        if let Some(length) = length {
            self.take(length - 2, false);
            self.take(1, true);
        }
    }
}

/// Returns the number of hashes of a raw string that begins here.
fn raw_string(rest: &str, before: Option<char>) -> Option<usize> {
    if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
        return None;
    }
    let after = ["r", "br", "cr"].iter().find_map(|prefix| rest.strip_prefix(prefix))?;
    let quoted = after.trim_start_matches('#');
    quoted.starts_with('"').then_some(after.len() - quoted.len())
}

/// Splits a text of Python (with its docstrings), shell or TOML.
fn hashes(text: &str, python: bool) -> Split {
    let mut prose = Gatherer::default();
    let mut code = Vec::new();
    // The closing quotes, if the line is inside a docstring.
    let mut open: Option<&str> = None;
    for (line, text) in (1..).zip(text.lines()) {
        let trimmed = text.trim();
        if let Some(close) = open {
            prose.add(Kind::Comment, line, trimmed.trim_end_matches(close));
            if trimmed.contains(close) {
                open = None;
                prose.cut();
            }
            code.push(String::new());
            continue;
        }
        let quote =
            ["\"\"\"", "'''"].into_iter().find(|quote| python && trimmed.trim_start_matches('r').starts_with(quote));
        if let Some(quote) = quote {
            let inner = trimmed.trim_start_matches('r').trim_start_matches(quote);
            prose.cut();
            prose.add(Kind::Comment, line, inner.trim_end_matches(quote));
            if !inner.contains(quote) {
                open = Some(quote);
            }
            code.push(String::new());
            continue;
        }
        let start = hash(text);
        let before = start.map_or(text, |at| &text[..at]);
        if !before.trim().is_empty() {
            prose.cut();
        }
        match start {
            Some(at) if !text[at..].starts_with("#!") => {
                prose.add(Kind::Comment, line, text[at..].trim_start_matches('#'));
            }
            _ if trimmed.is_empty() => prose.cut(),
            _ => {}
        }
        code.push(before.to_owned());
    }
    Split { paragraphs: prose.paragraphs, code }
}

/// Returns the position of the `#` that begins the line's comment: outside quotes, at the start or after white space.
fn hash(line: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = ' ';
    for (at, letter) in line.char_indices() {
        match quote {
            Some(open) if letter == open && before != '\\' => quote = None,
            Some(_) => {}
            None if letter == '#' && before.is_whitespace() => return Some(at),
            None if letter == '"' || letter == '\'' && !before.is_alphanumeric() => quote = Some(letter),
            None => {}
        }
        before = letter;
    }
    None
}

/// Splits a page of Markdown, without fenced code and HTML comments.
fn page(text: &str) -> Vec<Paragraph> {
    let mut prose = Gatherer::default();
    for (line, text) in (1..).zip(text.lines()) {
        if text.starts_with("<!--") {
            prose.add(Kind::Page, line, "");
        } else {
            prose.add(Kind::Page, line, text);
        }
    }
    prose.paragraphs
}

/// A word of a paragraph, in lower case.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) line: usize,
    /// The mark that ends a sentence or a part of it: `.`, `?`, `!` or `;`.
    pub(crate) end: Option<char>,
}

/// Returns the words of a paragraph. Code between backticks is one word that no rule names; the targets of links are left out.
pub(crate) fn words(paragraph: &Paragraph) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    // Code may be longer than its line.
    let mut code = false;
    for (line, text) in &paragraph.lines {
        let mut rest = text.as_str();
        while let Some(letter) = rest.chars().next() {
            if letter == '`' {
                code = !code;
                if code {
                    words.push(Word { text: "`".to_owned(), line: *line, end: None });
                }
                rest = &rest[1..];
            } else if code {
                rest = &rest[letter.len_utf8()..];
            } else if let Some(target) = rest.strip_prefix("](") {
                rest = target.find(')').map_or("", |end| &target[end + 1..]);
            } else if letter.is_alphanumeric() {
                let inner = |letter: char| letter.is_alphanumeric() || matches!(letter, '\'' | '’' | '-' | '_');
                let length = rest.find(|letter| !inner(letter)).unwrap_or(rest.len());
                words.push(Word { text: rest[..length].to_lowercase(), line: *line, end: None });
                rest = &rest[length..];
            } else {
                if matches!(letter, '.' | '?' | '!' | ';')
                    && let Some(last) = words.last_mut()
                {
                    last.end = Some(letter);
                }
                rest = &rest[letter.len_utf8()..];
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(path: &str, text: &str) -> Vec<(Kind, usize, String)> {
        let join =
            |lines: &[(usize, String)]| lines.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" ");
        let paragraphs = split(path, text).unwrap().paragraphs;
        paragraphs.iter().map(|found| (found.kind, found.lines[0].0, join(&found.lines))).collect()
    }

    fn is(kind: Kind, line: usize, text: &str) -> (Kind, usize, String) {
        (kind, line, text.to_owned())
    }

    #[test]
    fn rust_comments_are_told_from_strings_lifetimes_and_characters() {
        let text = "/// One\n/// two.\n///\n/// Three.\nfn f<'a>(x: &'a str) { g('\"', '\\'', \"no // comment\", r#\"a \"b\" c\"#) } // four\n";
        let expected = [
            is(Kind::Doc, 1, "One two."),
            is(Kind::Doc, 4, "Three."),
            is(Kind::Message, 5, "no // comment"),
            is(Kind::Message, 5, "a \"b\" c"),
            is(Kind::Comment, 5, "four"),
        ];
        assert_eq!(prose("a.rs", text), expected);
        assert_eq!(split("a.rs", text).unwrap().code[4], "fn f<'a>(x: &'a str) { g('', '', \"\", r#\"\"#) } ");
    }

    #[test]
    fn block_comments_nest_in_rust_only() {
        assert_eq!(prose("a.rs", "/* a /* b */ c */ x"), [is(Kind::Comment, 1, "a /* b */ c")]);
        assert_eq!(prose("a.c", "/* a /* b */ x(); // d"), [is(Kind::Comment, 1, "a /* b"), is(Kind::Comment, 1, "d")]);
    }

    #[test]
    fn fenced_code_is_no_prose() {
        assert_eq!(prose("a.md", "One\n```\nno\n```\ntwo"), [is(Kind::Page, 1, "One"), is(Kind::Page, 5, "two")]);
        assert_eq!(prose("a.rs", "//! One\n//! ```\n//! no\n//! ```\n"), [is(Kind::Doc, 1, "One")]);
    }

    #[test]
    fn python_has_comments_and_documentation_strings() {
        let text = "\"\"\"One\ntwo.\"\"\"\nx = '#'  # three\n";
        assert_eq!(prose("a.py", text), [is(Kind::Comment, 1, "One two."), is(Kind::Comment, 3, "three")]);
    }

    #[test]
    fn files_of_other_languages_have_no_prose() {
        assert!(split("a.svg", "<!-- x -->").is_none());
        assert!(split(".ci/run", "#!/bin/sh\n# yes").is_some());
    }

    #[test]
    fn unfinished_text_is_split_without_a_panic() {
        for text in ["\"", "'", "'\\", "/*", "r#\"", "//", "/// ```", "'ä", "\"\\"] {
            let _ = split("a.rs", text);
            let _ = split("a.c", text);
            let _ = split("a.py", text);
        }
    }

    #[test]
    fn words_leave_out_code_and_targets() {
        let paragraph =
            Paragraph { kind: Kind::Page, lines: vec![(7, "A `so many` [link](anew.md). It's on-line".to_owned())] };
        let found: Vec<_> = words(&paragraph).into_iter().map(|word| (word.text, word.end)).collect();
        let plain = |text: &str| (text.to_owned(), None);
        let expected = [plain("a"), plain("`"), ("link".to_owned(), Some('.')), plain("it's"), plain("on-line")];
        assert_eq!(found, expected);
    }
}
