//! Case files: inputs with which `millstream test` runs a flow, and the expected outcomes.
//!
//! The cases of `fetch.toml` are in the file `fetch.test.toml` beside it. Case files are read in the same way as flow
//! files: all mistakes of a file are reported together, each with its position.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::error::{FlowError, Problem, Refusal};
use super::model::{FlowFile, Method};
use super::parse::{document, read_text};
use super::reader::{Entry, Reading, Section};
use super::suggest;
use super::template::Template;
use crate::web_url;

/// The cases of a flow.
#[derive(Debug)]
pub struct CaseFile {
    /// The path from which the cases were read.
    pub path: PathBuf,
    /// The cases, in the file's order; at least one.
    pub cases: Vec<Case>,
}

/// One `[[case]]`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Case {
    /// Unique in the file.
    pub name: String,
    /// The INPUTs of the command line.
    pub input: Vec<String>,
    /// Standard input.
    pub stdin: Vec<u8>,
    /// Parameters that differ from their defaults.
    pub params: Vec<(String, String)>,
    /// The files that exist before the run.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// The responses of servers.
    pub answers: Vec<Answer>,
    /// The results of programs.
    pub programs: Vec<Program>,
    /// The expected outcome.
    pub expect: Expect,
}

/// One `[[case.http]]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// The requested URL, without a user's name and password.
    pub url: String,
    /// The method of the request; any method if absent.
    pub method: Option<String>,
    /// The body that the request must have; any body if absent.
    pub request: Option<Vec<u8>>,
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The line of this response in the case file.
    pub line: usize,
}

/// One `[[case.program]]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Program {
    /// The program and its arguments.
    pub run: Vec<String>,
    /// The standard input that the program must get; any input if absent.
    pub stdin: Option<Vec<u8>>,
    /// The program's standard output.
    pub stdout: Vec<u8>,
    /// The program's standard error.
    pub stderr: Vec<u8>,
    /// The program's exit status.
    pub status: u8,
    /// The files that the program makes.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// The line of this result in the case file.
    pub line: usize,
}

/// `[case.expect]`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Expect {
    /// The units that are retired; not checked if absent.
    pub retired: Option<Vec<ExpectedUnit>>,
    /// The units that become dead letters.
    pub dead: Vec<ExpectedDeath>,
    /// Standard output, and its line in the case file; not checked if absent.
    pub stdout: Option<(Vec<u8>, usize)>,
    /// The files that are expected after the run.
    pub files: Vec<ExpectedFile>,
}

/// A unit that is retired.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExpectedUnit {
    /// The unit's fields and their values; the field `payload` is the unit's payload.
    pub fields: Vec<(String, String)>,
    /// The line of this unit in the case file.
    pub line: usize,
}

/// A unit that becomes a dead letter.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExpectedDeath {
    /// The unit's path, line or argument; any unit if absent.
    pub unit: Option<String>,
    /// The stage in which the unit fails; any stage if absent.
    pub stage: Option<String>,
    /// A part of the failure's message; any message if absent.
    pub message: Option<String>,
    /// The line of this unit in the case file.
    pub line: usize,
}

/// A file that is expected after the run, or expected to be missing.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExpectedFile {
    /// The file's path in the case's folder.
    pub path: PathBuf,
    /// The expected content.
    pub content: ExpectedContent,
    /// The line of this file in the case file.
    pub line: usize,
}

/// The expected content of a file after the run.
#[derive(Debug, Serialize, Deserialize)]
pub enum ExpectedContent {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Any content.
    Any,
    /// The file must not exist.
    Missing,
}

/// The case file of a flow file: `fetch.test.toml` for `fetch.toml`.
pub fn beside(flow: &Path) -> PathBuf {
    flow.with_extension("test.toml")
}

/// Whether a path leads out of the folder to which it is relative, provided that the folder contains no symbolic link.
pub fn leads_out(path: &Path) -> bool {
    path.is_absolute() || path.components().any(|component| component == Component::ParentDir)
}

/// Reads and checks the case file at `path`, whose cases test `flow`.
///
/// # Errors
/// The file cannot be read, is not text, or contains mistakes; the error has all of them.
pub fn load(path: &Path, flow: &FlowFile) -> Result<CaseFile, FlowError> {
    parse(path, &read_text(path)?, flow)
}

/// Checks a case file's text; `path` is its name in errors.
///
/// # Errors
/// [`FlowError::Refused`] with all mistakes found.
pub fn parse(path: &Path, text: &str, flow: &FlowFile) -> Result<CaseFile, FlowError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let shared: Arc<str> = text.into();
    let refuse = |problems| FlowError::from(Refusal::new(path, shared.clone(), problems));
    let document = document(text).map_err(|problem| refuse(vec![problem]))?;
    let reading = Reading::new(text);
    let mut file = Section::new(&reading, document.as_table(), "the case file".to_owned(), 0..0);
    let cases = file.get("case");
    if cases.is_none() {
        let problem = Problem::new("the file has no cases");
        reading.report(problem.help("add `[[case]]` with a `name`, what it gives, and `[case.expect]`"));
    }
    let elements = cases.and_then(|entry| entry.elements("tables, `[[case]]`")).unwrap_or_default();
    file.finish();
    let reader = Reader { text, flow };
    let read: Vec<Option<(Case, Range<usize>)>> = elements.iter().map(|entry| reader.case(entry)).collect();
    let mut cases: Vec<Case> = Vec::new();
    for (case, name) in read.into_iter().flatten() {
        if cases.iter().any(|other| other.name == case.name) {
            let problem = Problem::new(format!("two cases are called `{}`", case.name)).at(name, "the second");
            reading.report(problem.help("names tell cases apart: give it another"));
        }
        cases.push(case);
    }
    let problems = reading.into_problems();
    if problems.is_empty() { Ok(CaseFile { path: path.to_owned(), cases }) } else { Err(refuse(problems)) }
}

/// Reads cases.
struct Reader<'a> {
    text: &'a str,
    flow: &'a FlowFile,
}

impl Reader<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        self.text.as_bytes()[..span.start].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// The case, and the position of its name.
    fn case(&self, entry: &Entry<'_>) -> Option<(Case, Range<usize>)> {
        let mut case = entry.section("the case", "a table, `[[case]]`")?;
        let name = case.require("name", "name = \"…\"").and_then(|entry| entry.identifier());
        if let Some(name) = &name {
            case.what = format!("case `{}`", name.value);
        }
        let input = case.or("input", Vec::new(), inputs);
        let stdin = case.or("stdin", Vec::new(), content);
        let params = case.or("params", Vec::new(), |entry| self.params(entry));
        let files = case.or("files", Vec::new(), files);
        let answers =
            case.or("http", Vec::new(), |entry| all(entry, "tables, `[[case.http]]`", |entry| self.answer(entry)));
        let programs = case
            .or("program", Vec::new(), |entry| all(entry, "tables, `[[case.program]]`", |entry| self.program(entry)));
        let expect = case.require("expect", "[case.expect]").map(|entry| self.expect(&entry));
        case.finish();
        let name = name?;
        let case = Case {
            name: name.value,
            input: input?,
            stdin: stdin?,
            params: params?,
            files: files?,
            answers: answers?,
            programs: programs?,
            expect: expect??,
        };
        Some((case, name.span))
    }

    fn params(&self, entry: &Entry<'_>) -> Option<Vec<(String, String)>> {
        let section = entry.section("`params`", "a table of parameters and values")?;
        let read = section.entries().into_iter().map(|entry| {
            if !self.flow.params.contains_key(&entry.name) {
                let problem = Problem::new(format!("the flow has no parameter `{}`", entry.name))
                    .at(entry.key_span.clone(), "unknown parameter");
                let names = self.flow.params.keys().map(String::as_str);
                entry.reading.report(problem.help(choose(
                    &entry.name,
                    names,
                    "it declares none",
                    "its parameters are",
                )));
                return None;
            }
            Some((entry.name.clone(), entry.scalar()?))
        });
        read.collect::<Vec<_>>().into_iter().collect()
    }

    fn answer(&self, entry: &Entry<'_>) -> Option<Answer> {
        let mut section = entry.section("the response", "a table, `[[case.http]]`")?;
        let url = section.require("url", "url = \"http://…\"").and_then(|entry| {
            let url = entry.parsed("a URL", web_url::parse)?;
            Some(String::from(web_url::without_login(&url).0))
        });
        let methods = Method::ALL.map(|method| (method.name(), method.name()));
        let method = section.optional("method", |entry| entry.choice(&methods));
        let request = section.optional("request", content);
        let status = section.or("status", 200, |entry| entry.integer(200..=599));
        let headers = section.or("headers", Vec::new(), texts);
        let body = section.or("body", Vec::new(), content);
        section.finish();
        let status = u16::try_from(status?).ok()?;
        Some(Answer {
            url: url?,
            method: method?.map(str::to_owned),
            request: request?,
            status,
            headers: headers?,
            body: body?,
            line: self.line(&entry.span),
        })
    }

    fn program(&self, entry: &Entry<'_>) -> Option<Program> {
        let mut section = entry.section("the program", "a table, `[[case.program]]`")?;
        let run = section.require("run", "run = [\"program\", \"argument\"]");
        let run = run.and_then(|entry| {
            let words = all(&entry, "an array of words", |word| word.text("a word").map(|word| word.value))?;
            if words.is_empty() {
                entry.senseless("`run` names no program", "empty");
                return None;
            }
            Some(words)
        });
        let stdin = section.optional("stdin", content);
        let stdout = section.or("stdout", Vec::new(), content);
        let stderr = section.or("stderr", Vec::new(), content);
        let status = section.or("status", 0, |entry| entry.integer(0..=255));
        let files = section.or("files", Vec::new(), files);
        section.finish();
        Some(Program {
            run: run?,
            stdin: stdin?,
            stdout: stdout?,
            stderr: stderr?,
            status: u8::try_from(status?).ok()?,
            files: files?,
            line: self.line(&entry.span),
        })
    }

    fn expect(&self, entry: &Entry<'_>) -> Option<Expect> {
        let mut section = entry.section("`expect`", "a table, `[case.expect]`")?;
        let retired = section.optional("retired", |entry| all(entry, "an array of tables", |unit| self.unit(unit)));
        let dead = section.or("dead", Vec::new(), |entry| all(entry, "an array of tables", |unit| self.death(unit)));
        let stdout = section.optional("stdout", |entry| Some((content(entry)?, self.line(&entry.span))));
        let files = section.or("files", Vec::new(), |entry| self.expected_files(entry));
        section.finish();
        Some(Expect { retired: retired?, dead: dead?, stdout: stdout?, files: files? })
    }

    fn unit(&self, entry: &Entry<'_>) -> Option<ExpectedUnit> {
        let mut fields = Vec::new();
        read_fields(entry, "", &mut fields)?;
        Some(ExpectedUnit { fields, line: self.line(&entry.span) })
    }

    fn death(&self, entry: &Entry<'_>) -> Option<ExpectedDeath> {
        let mut section =
            entry.section("a dead letter", "a table: `{ unit = \"…\", stage = \"…\", message = \"…\" }`")?;
        let text = |entry: &Entry<'_>| entry.text("a text").map(|text| text.value);
        let unit = section.optional("unit", text);
        let stage = section.optional("stage", |entry| {
            let stage = entry.text("the name of a stage")?;
            let names = || self.flow.stages.iter().map(|stage| stage.name.as_str());
            if !names().any(|name| name == stage.value) {
                let problem =
                    Problem::new(format!("the flow has no stage `{}`", stage.value)).at(stage.span, "unknown");
                entry.reading.report(problem.help(choose(&stage.value, names(), "it has none", "its stages are")));
                return None;
            }
            Some(stage.value)
        });
        let message = section.optional("message", text);
        section.finish();
        Some(ExpectedDeath { unit: unit?, stage: stage?, message: message?, line: self.line(&entry.span) })
    }

    fn expected_files(&self, entry: &Entry<'_>) -> Option<Vec<ExpectedFile>> {
        let section = entry.section("`files`", "a table of paths and contents")?;
        let read = section.entries().into_iter().map(|entry| {
            let path = inner_path(&entry);
            let content = match (entry.as_text().is_some() || entry.is_table(), entry.as_flag()) {
                (false, Some(true)) => Some(ExpectedContent::Any),
                (false, Some(false)) => Some(ExpectedContent::Missing),
                _ => content(&entry).map(ExpectedContent::Bytes),
            };
            Some(ExpectedFile { path: path?, content: content?, line: self.line(&entry.key_span) })
        });
        read.collect::<Vec<_>>().into_iter().collect()
    }
}

/// The elements of an array. Even if one of them is wrong, the others are read, so that every mistake is reported.
fn all<'a, T>(entry: &Entry<'a>, expected: &str, read: impl Fn(&Entry<'a>) -> Option<T>) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = entry.elements(expected)?.iter().map(read).collect();
    read.into_iter().collect()
}

/// The advice for an unknown name: the nearest known name, or else all known names after `some`; `none` if no name is
/// known.
fn choose<'n>(name: &str, known: impl Iterator<Item = &'n str> + Clone, none: &str, some: &str) -> String {
    match suggest::closest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.clone().next().is_none() => none.to_owned(),
        None => format!("{some} {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// One INPUT, or an array of them.
fn inputs(entry: &Entry<'_>) -> Option<Vec<String>> {
    let input = |entry: &Entry<'_>| entry.text("an INPUT, or an array of them").map(|text| text.value);
    if entry.is_array() { all(entry, "an array of INPUTs", input) } else { Some(vec![input(entry)?]) }
}

/// Bytes: a text, or `{ base64 = "…" }`.
fn content(entry: &Entry<'_>) -> Option<Vec<u8>> {
    if !entry.is_table() {
        return Some(entry.text("a text, or `{ base64 = \"…\" }`")?.value.into_bytes());
    }
    let mut section = entry.section(format!("`{}`", entry.name), "a text, or `{ base64 = \"…\" }`")?;
    let bytes = section.require("base64", "base64 = \"…\"").and_then(|entry| {
        entry.parsed("base64 in quotes", |text| STANDARD.decode(text).map_err(|error| format!("not base64: {error}")))
    });
    section.finish();
    bytes
}

/// A table of texts.
fn texts(entry: &Entry<'_>) -> Option<Vec<(String, String)>> {
    let section = entry.section(format!("`{}`", entry.name), "a table of texts")?;
    let read = section.entries().into_iter().map(|entry| Some((entry.name.clone(), entry.text("a text")?.value)));
    read.collect::<Vec<_>>().into_iter().collect()
}

/// A table of paths and contents.
fn files(entry: &Entry<'_>) -> Option<Vec<(PathBuf, Vec<u8>)>> {
    let section = entry.section("`files`", "a table of paths and contents")?;
    let read = section.entries().into_iter().map(|entry| {
        let (path, content) = (inner_path(&entry), content(&entry));
        Some((path?, content?))
    });
    read.collect::<Vec<_>>().into_iter().collect()
}

/// The path that a key names, which must lie in the case's folder.
fn inner_path(entry: &Entry<'_>) -> Option<PathBuf> {
    let path = PathBuf::from(&entry.name);
    if leads_out(&path) || path.file_name().is_none() || entry.name.ends_with('/') || entry.name.contains('\0') {
        let problem = Problem::new(format!("`{}` is not a file in the folder of the case", entry.name));
        entry.reading.report(
            problem
                .at(entry.key_span.clone(), "leads out of it, or names a folder")
                .help("write a path such as \"in/a.txt\""),
        );
        return None;
    }
    Some(path)
}

/// The fields of a unit: `size = 5`, `json.user = "x"`, `payload = "…"`.
fn read_fields(entry: &Entry<'_>, family: &str, found: &mut Vec<(String, String)>) -> Option<()> {
    let section = entry.section("a unit", "a table of fields and values")?;
    let mut sound = Some(());
    for entry in section.entries() {
        let name = format!("{family}{}", entry.name);
        if entry.is_table() {
            sound = read_fields(&entry, &format!("{name}."), found).and(sound);
            continue;
        }
        let known = if name == "payload" { Ok(()) } else { Template::parse(&format!("{{{name}}}")).map(drop) };
        if let Err(error) = known {
            entry.reading.report(Problem::new(error.message).at(entry.key_span.clone(), "here").help(error.help));
            sound = None;
            continue;
        }
        match entry.scalar() {
            Some(value) => found.push((name, value)),
            None => sound = None,
        }
    }
    sound
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse as parse_flow;
    use super::{ExpectedContent, parse};

    const FLOW: &str = "[params]\nout = \"o\"\n[source]\nlines = \"-\"\n[[stage]]\nname = \"get\"\nop = \"http-get\"\nurl = \"{line}\"\n\
        [[stage]]\nname = \"keep\"\nop = \"write\"\npath = \"{param.out}/{name}\"\n";

    fn problems(text: &str) -> String {
        let flow = parse_flow("f.toml".as_ref(), FLOW, &[]).unwrap();
        parse("f.test.toml".as_ref(), text, &flow).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn a_case_is_read_as_it_says() {
        let flow = parse_flow("f.toml".as_ref(), FLOW, &[]).unwrap();
        let text = r#"
            [[case]]
            name = "one"
            input = ["list"]
            stdin = { base64 = "AAE=" }
            params = { out = "x" }
            files = { "list" = "http://a.test/" }
            [[case.http]]
            url = "http://me:pass@A.test:80/"
            status = 404
            headers = { X = "y" }
            [[case.program]]
            run = ["a", "b"]
            stdin = "in"
            status = 3
            files = { "made" = "by it" }
            [case.expect]
            retired = [{ json.user.id = 5, payload = "p" }]
            dead = [{ unit = "u", stage = "get", message = "404" }]
            stdout = ""
            files = { "a" = "b", "c" = true, "d" = false }
        "#;
        let file = parse("f.test.toml".as_ref(), text, &flow).unwrap_or_else(|error| panic!("{}", error.render()));
        let case = &file.cases[0];
        assert_eq!((case.input.as_slice(), case.stdin.as_slice()), (&["list".to_owned()][..], &[0, 1][..]));
        assert_eq!(case.answers[0].url, "http://a.test/", "as it is asked for");
        assert_eq!((case.programs[0].status, case.programs[0].line), (3, 12));
        let fields = &case.expect.retired.as_ref().unwrap()[0].fields;
        assert_eq!(fields[0], ("json.user.id".to_owned(), "5".to_owned()));
        assert_eq!(case.expect.dead[0].stage.as_deref(), Some("get"));
        let contents: Vec<bool> =
            case.expect.files.iter().map(|file| matches!(file.content, ExpectedContent::Bytes(_))).collect();
        assert_eq!(contents, [true, false, false]);
    }

    #[test]
    fn every_mistake_is_reported_with_its_line() {
        let case = |rest: &str| format!("[[case]]\nname = \"c\"\n{rest}\n");
        for (text, said) in [
            (String::new(), "the file has no cases"),
            ("[[case]]\n[case.expect]".to_owned(), "f.test.toml:1: the case has no `name`"),
            (case(""), "f.test.toml:1: case `c` has no `expect`"),
            (case("[case.expect]\n[[case]]\nname = \"c\"\n[case.expect]"), "f.test.toml:5: two cases are called `c`"),
            (case("params = { uot = 1 }\n[case.expect]"), "f.test.toml:3: the flow has no parameter `uot`"),
            (case("files = { \"../x\" = \"\" }\n[case.expect]"), "f.test.toml:3: `../x` is not a file in the folder"),
            (case("files = { x = 5 }\n[case.expect]"), "f.test.toml:3: `x` takes a text"),
            (case("stdin = { base64 = \"?\" }\n[case.expect]"), "f.test.toml:3: `base64`: not base64"),
            (case("[[case.http]]\nurl = \"nowhere\"\n[case.expect]"), "f.test.toml:4: `url`:"),
            (case("[[case.http]]\nurl = \"http://a/\"\nstatus = 99\n[case.expect]"), "f.test.toml:5: `status` is 99"),
            (case("[[case.program]]\nrun = []\n[case.expect]"), "f.test.toml:4: `run` names no program"),
            (case("[case.expect]\nretired = [{ sise = 1 }]"), "f.test.toml:4: no field is called `sise`"),
            (case("[case.expect]\ndead = [{ stage = \"gte\" }]"), "f.test.toml:4: the flow has no stage `gte`"),
            (case("[case.expect]\nfiles = { \"/etc/x\" = true }"), "f.test.toml:4: `/etc/x` is not a file"),
            (case("[case.expect]\nfile = { }"), "f.test.toml:4: `expect` has no key `file`"),
            ("[[case]".to_owned(), "this is not TOML"),
        ] {
            let found = problems(&text);
            assert!(found.contains(said), "{text}\n{found}");
        }
    }
}
