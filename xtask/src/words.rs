//! The words of comments, pages, messages and names, and the links of pages.
//!
//! The step rejects banned words, and suggests a better form for each. It limits the number of words that are wrong
//! only in some contexts, and prints their counts. It rejects broken links. It reads every file that git tracks or
//! would add.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::links;
use crate::prose::{self, Kind, Paragraph, Split, Word};

/// Banned words, and the form to write instead. `/` separates spellings of one word.
const BANNED: &[(&str, &str)] = &[
    ("anew", "again"),
    ("in vain", "without success, or name the failure"),
    ("for ever", "forever, or without end"),
    ("so many", "the number, or a name for it (`N sleeps`)"),
    ("how-manieth", "the number of"),
    ("besides", "also, as well; before a noun: in addition to"),
    ("he/him/his/himself", "the thread, the reader, the waiter"),
    ("she/her/hers/herself", "the thread, the reader, the waiter"),
    ("look/looks/looked/looking whether", "check whether"),
    ("have/has/having/had a look", "check"),
    ("data of processors", "per-CPU data"),
    ("by intent", "deliberately"),
    ("later and later", "with back-off"),
    ("wherefore", "so"),
    ("whereupon", "and then"),
    ("thereupon", "then"),
    ("whosoever", "the reader, the waiter"),
    ("thrice", "three times"),
    ("formerly", "nothing: comments tell no history"),
    ("now also", "also: comments tell no history"),
    ("from now on also", "also: comments tell no history"),
    ("on a day", "nothing: figures name a machine and a commit, not a day"),
    ("on an hour", "nothing: figures name a machine and a commit, not an hour"),
    ("safety as above", "a sentence that names the fact"),
    ("safety the caller's promise", "a sentence that names the promise"),
];

/// Relatives and pronouns that are often used instead of a noun. Lines with such a word are counted.
const HEADLESS: [&str; 6] = ["who", "whom", "whoever", "nobody", "somebody", "anybody"];

/// The maximum number of lines of comments and pages with a word of [`HEADLESS`].
const MAX_HEADLESS_LINES: usize = 59;

/// The maximum number of documents that begin with "What" as a noun ("What the server answers").
const MAX_WHAT_DOCS: usize = 0;

/// The maximum length of a test's name.
const MAX_TEST_NAME: usize = 80;

/// Words that do not name a subject in the name of a test.
const VAGUE_IN_TESTS: [&str; 4] = ["who", "whoever", "nobody", "somebody"];

/// Words in the names of limits, and the form to write instead.
const LIMITS: [(&str, &str); 4] = [("MOST", "MAX_…"), ("LONGEST", "MAX_…"), ("LEAST", "MIN_…"), ("SHORTEST", "MIN_…")];

/// Findings that are accepted: the file, the word, and the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[("xtask/src/words.rs", "*", "the lists, and the texts of the tests")];

/// Fails on banned words and names, on counts beyond their limits, and on broken links. Prints the counts.
///
/// # Errors
/// The error has one line for each finding: position, word, better form.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let files = files(root)?;
    let mut found = Findings::default();
    for (path, text) in &files {
        if let Some(split) = prose::split(path, text) {
            found.read(path, &split);
        }
    }
    print!("{}", found.counts());
    let pages: Vec<_> = files.into_iter().filter(|(path, _)| path.ends_with(".md")).collect();
    let mut report = found.report();
    report.extend(links::broken(root, &pages));
    if report.is_empty() {
        println!("   {} exception(s), the links of {} pages resolve", EXCEPTIONS.len(), pages.len());
        return Ok(());
    }
    Err(format!("{} finding(s):\n  {}", report.len(), report.join("\n  ")))
}

/// Returns the tree's files that are text, sorted by path.
fn files(root: &Path) -> Result<Vec<(String, String)>, String> {
    let command = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(command).current_dir(root).output();
    let output = output.map_err(|error| format!("could not start git: {error}"))?;
    if !output.status.success() {
        return Err(format!("`git ls-files`: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let names = String::from_utf8_lossy(&output.stdout);
    let mut names: Vec<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    // Files that are deleted but still in git's index, and files that are not text, are left out.
    Ok(names
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), fs::read_to_string(root.join(name)).ok()?)))
        .collect())
}

/// Counts of a crate or another folder of the tree.
#[derive(Default)]
struct Counts {
    code: usize,
    docs: usize,
    comments: usize,
    headless: usize,
    what: usize,
}

#[derive(Default)]
struct Findings {
    /// Position, word, better form.
    banned: Vec<(String, String, &'static str)>,
    headless: Vec<String>,
    what: Vec<String>,
    folders: BTreeMap<String, Counts>,
    used: Vec<usize>,
    rules: Rules,
}

impl Findings {
    fn read(&mut self, path: &str, split: &Split) {
        let mut counts = self.folders.remove(folder(path)).unwrap_or_default();
        counts.code += split.code.iter().filter(|line| !line.trim().is_empty()).count();
        for paragraph in &split.paragraphs {
            match paragraph.kind {
                Kind::Doc => counts.docs += paragraph.lines.len(),
                Kind::Comment => counts.comments += paragraph.lines.len(),
                Kind::Page | Kind::Message => {}
            }
            let words = prose::words(paragraph);
            for (line, word, better) in self.rules.broken(&words) {
                self.add(path, line, word, better);
            }
            if paragraph.kind == Kind::Message {
                continue;
            }
            let mut lines: Vec<_> =
                words.iter().filter(|word| HEADLESS.contains(&word.text.as_str())).map(|word| word.line).collect();
            lines.dedup();
            if !self.excepted(path, "who") {
                counts.headless += lines.len();
                self.headless.extend(lines.iter().map(|line| format!("{path}:{line}")));
            }
            if is_what(paragraph, &words) && !self.excepted(path, "what") {
                counts.what += 1;
                self.what.push(format!("{path}:{}", paragraph.lines[0].0));
            }
        }
        if path.ends_with(".rs") {
            self.names(path, &split.code);
        }
        self.folders.insert(folder(path).to_owned(), counts);
    }

    /// Checks the names of tests and constants.
    fn names(&mut self, path: &str, code: &[String]) {
        for (line, name) in tests(code) {
            let vague = name.split('_').find(|word| VAGUE_IN_TESTS.contains(word));
            if let Some(word) = vague {
                self.add(path, line, format!("{word} (in `{name}`)"), "a noun: reader, waiter, worker, program");
            }
            if name.len() > MAX_TEST_NAME {
                self.add(path, line, format!("{name} ({} characters)", name.len()), "a name of at most 80");
            }
        }
        for (line, name) in constants(code) {
            // These names are not limits: claims are worded with "at most" and "at least".
            if name.ends_with("AT_MOST") || name.ends_with("AT_LEAST") {
                continue;
            }
            let limit = LIMITS.iter().find(|(word, _)| name.split('_').any(|part| part == *word));
            if let Some((_, better)) = limit {
                self.add(path, line, name.to_owned(), better);
            }
        }
    }

    fn add(&mut self, path: &str, line: usize, word: String, better: &'static str) {
        if !self.excepted(path, &word) {
            self.banned.push((format!("{path}:{line}"), word, better));
        }
    }

    /// Returns whether the list of exceptions has the word in this file.
    fn excepted(&mut self, path: &str, word: &str) -> bool {
        let place = EXCEPTIONS.iter().position(|(file, what, _)| *file == path && (*what == "*" || *what == word));
        self.used.extend(place);
        place.is_some()
    }

    fn report(&self) -> Vec<String> {
        let mut report: Vec<String> =
            self.banned.iter().map(|(place, word, better)| format!("{place}: \"{word}\": write {better}")).collect();
        if self.headless.len() > MAX_HEADLESS_LINES {
            report.extend(self.headless.iter().map(|place| format!("{place}: a headless relative: name the subject")));
        }
        if self.what.len() > MAX_WHAT_DOCS {
            report.extend(self.what.iter().map(|place| format!("{place}: begins with \"What\": begin with a noun")));
        }
        let unused = EXCEPTIONS.iter().enumerate().filter(|(place, _)| !self.used.contains(place));
        report.extend(unused.map(|(_, (file, word, _))| format!("{file}: the exception for \"{word}\" is not needed")));
        report
    }

    /// Returns a line for each folder, and the sums with their limits.
    fn counts(&self) -> String {
        let mut text = format!(
            "   {:<20} {:>7} {:>7} {:>9} {:>9} {:>5} {:>5}\n",
            "folder", "code", "docs", "comments", "per code", "who", "What"
        );
        for (folder, counts) in self.folders.iter().filter(|(_, counts)| counts.code > 0) {
            let ratio = counts.comments as f64 / counts.code as f64;
            let _ = writeln!(
                text,
                "   {folder:<20} {:>7} {:>7} {:>9} {ratio:>9.3} {:>5} {:>5}",
                counts.code, counts.docs, counts.comments, counts.headless, counts.what
            );
        }
        let lines: usize = self.folders.values().map(|counts| counts.docs + counts.comments).sum();
        let _ = writeln!(
            text,
            "   {} lines with {} (at most {MAX_HEADLESS_LINES}), {lines} lines of comments",
            self.headless.len(),
            HEADLESS.join("/")
        );
        let _ = writeln!(text, "   {} documents that begin with \"What\" (at most {MAX_WHAT_DOCS})", self.what.len());
        text
    }
}

/// Returns the folder that a file is counted with: a crate, or a folder of the root.
fn folder(path: &str) -> &str {
    let depth = if path.starts_with("crates/") || path.starts_with("bindings/") { 2 } else { 1 };
    path.match_indices('/').nth(depth - 1).map_or("root", |(end, _)| &path[..end])
}

/// Returns whether a document begins with "What" and asks no question.
fn is_what(paragraph: &Paragraph, words: &[Word]) -> bool {
    paragraph.kind == Kind::Doc
        && words.first().is_some_and(|word| word.text == "what")
        && paragraph.lines[0].1.starts_with("What")
        && words.iter().find_map(|word| word.end) != Some('?')
}

/// Returns the functions under `#[test]`, with their lines.
fn tests(code: &[String]) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut test = false;
    for (line, text) in (1..).zip(code.iter().map(|line| line.trim())) {
        if text == "#[test]" {
            test = true;
        } else if let Some(name) = text.strip_prefix("fn ") {
            if test {
                found.push((line, identifier(name)));
            }
            test = false;
        } else if !text.is_empty() && !text.starts_with("#[") {
            test = false;
        }
    }
    found
}

/// Returns the constants and statics, with their lines.
fn constants(code: &[String]) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(code) {
        for keyword in ["const ", "static "] {
            for (at, _) in text.match_indices(keyword) {
                let name = identifier(&text[at + keyword.len()..]);
                if name.len() > 1
                    && name.chars().all(|letter| letter.is_ascii_uppercase() || "_0123456789".contains(letter))
                {
                    found.push((line, name));
                }
            }
        }
    }
    found
}

fn identifier(text: &str) -> &str {
    &text[..text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len())]
}

/// [`BANNED`], by the first word of each entry.
struct Rules {
    by_first: HashMap<&'static str, Vec<Rule>>,
}

struct Rule {
    /// The words after the first, each in its spellings.
    others: Vec<Vec<&'static str>>,
    better: &'static str,
}

impl Default for Rules {
    fn default() -> Self {
        let mut by_first: HashMap<_, Vec<_>> = HashMap::new();
        for (words, better) in BANNED {
            let words: Vec<Vec<&str>> = words.split(' ').map(|word| word.split('/').collect()).collect();
            for &first in &words[0] {
                by_first.entry(first).or_default().push(Rule { others: words[1..].to_vec(), better });
            }
        }
        Self { by_first }
    }
}

impl Rules {
    /// Returns the banned words among `words`: line, word, better form. No match crosses the end of a sentence.
    fn broken(&self, words: &[Word]) -> Vec<(usize, String, &'static str)> {
        let mut found = Vec::new();
        for (at, first) in words.iter().enumerate() {
            for Rule { others, better } in self.by_first.get(first.text.as_str()).into_iter().flatten() {
                let Some(span) = words.get(at..=at + others.len()) else {
                    continue;
                };
                let follow =
                    span[1..].iter().zip(others).all(|(word, spellings)| spellings.contains(&word.text.as_str()));
                if follow && span[..others.len()].iter().all(|word| word.end.is_none()) {
                    let shown: Vec<&str> = span.iter().map(|word| word.text.as_str()).collect();
                    found.push((first.line, shown.join(" "), *better));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Findings {
        let mut found = Findings::default();
        found.read(path, &prose::split(path, text).unwrap());
        found
    }

    fn banned(path: &str, text: &str) -> Vec<(String, String)> {
        found(path, text).banned.into_iter().map(|(place, word, _)| (place, word)).collect()
    }

    fn one(place: &str, word: &str) -> Vec<(String, String)> {
        vec![(place.to_owned(), word.to_owned())]
    }

    #[test]
    fn banned_words_are_found_in_comments_pages_and_messages() {
        assert_eq!(banned("a.rs", "// Starts\n// anew.\n"), one("a.rs:2", "anew"));
        assert_eq!(banned("a.md", "Anew."), one("a.md:1", "anew"));
        assert_eq!(banned("a.py", "x = 1  # Anew."), one("a.py:1", "anew"));
        assert_eq!(banned("a.rs", "f(\"waited in vain\")"), one("a.rs:1", "in vain"));
        assert_eq!(banned("a.rs", "let anew = renewed; // renew"), []);
    }

    #[test]
    fn a_phrase_is_found_across_lines_and_not_across_sentences() {
        assert_eq!(banned("a.rs", "/// waits for so\n/// many units\n"), one("a.rs:1", "so many"));
        assert_eq!(banned("a.rs", "/// It says so. Many do.\n"), []);
        assert_eq!(banned("a.rs", "/// `so many`\n"), []);
    }

    #[test]
    fn spellings_of_one_word_share_a_rule() {
        assert_eq!(
            banned("a.md", "It looks whether his lock is free"),
            [("a.md:1".to_owned(), "looks whether".to_owned()), ("a.md:1".to_owned(), "his".to_owned())]
        );
    }

    #[test]
    fn headless_relatives_are_counted_by_the_line() {
        let found = found("a.rs", "/// Who waits for nobody.\n/// A reader.\nfn who() { f(\"who waits\") }\n");
        assert_eq!(found.headless, ["a.rs:1"]);
    }

    #[test]
    fn a_document_that_begins_with_what_counts_unless_it_is_a_question() {
        let text = "/// What it is.\nfn a() {}\n/// What is it? That.\nfn b() {}\n// What it is.\n";
        assert_eq!(found("a.rs", text).what, ["a.rs:1"]);
    }

    #[test]
    fn names_of_tests_have_a_subject_and_an_end() {
        let long = "x".repeat(MAX_TEST_NAME + 1);
        let text =
            format!("#[test]\n#[ignore]\nfn it_waits_for_nobody() {{}}\n#[test]\nfn {long}() {{}}\nfn who() {{}}\n");
        let words: Vec<String> = banned("a.rs", &text).into_iter().map(|(place, _)| place).collect();
        assert_eq!(words, ["a.rs:3", "a.rs:5"]);
    }

    #[test]
    fn limits_are_called_max_and_min() {
        assert_eq!(banned("a.rs", "pub(crate) const NAP_LONGEST: u8 = 1;"), one("a.rs:1", "NAP_LONGEST"));
        assert_eq!(banned("a.rs", "const MOST_SENT: u8 = 1;"), one("a.rs:1", "MOST_SENT"));
        assert_eq!(banned("a.rs", "const MAX_NAP: u8 = 1; const X_AT_MOST: u8 = 2; // const A_MOST"), []);
    }

    #[test]
    fn counts_go_to_the_crate_and_limits_are_reported() {
        assert_eq!(folder("crates/ring/src/lib.rs"), "crates/ring");
        assert_eq!(folder("benches/src/lib.rs"), "benches");
        assert_eq!(folder("README.md"), "root");
        let lines = "// who\n".repeat(MAX_HEADLESS_LINES);
        let report = |text: &str| found("a.rs", text).report().iter().filter(|line| line.contains("headless")).count();
        assert_eq!(report(&lines), 0);
        assert_eq!(report(&format!("{lines}// who\n")), MAX_HEADLESS_LINES + 1);
    }

    #[test]
    fn every_rule_has_a_better_form_that_breaks_no_rule() {
        for (words, better) in BANNED {
            assert!(!better.is_empty(), "{words}");
            let text = format!("/// {better}\n");
            assert_eq!(banned("a.rs", &text), [], "{words}");
        }
    }
}
