//! `op` of a stage, with the keys that belong to it.

use super::super::error::Problem;
use super::super::model::{
    CheckField, ExecSpec, ExecStderr, ExecStdin, ExecStdout, Fold, Fresh, GatherBy, GatherSpec, GzipMode, HttpSpec,
    MaxBytes, Method, OpSpec, ParseFormat, Reduce, SplitBy, SplitSpec, ZstdMode,
};
use super::super::reader::{Entry, Section, Text};
use super::super::suggest;
use super::super::template::{Field, Template};
use super::condition;
use crate::ops::{permissions, stream};

/// The op that runs a program.
pub(super) const EXEC: &str = "exec";
/// The op that fetches a URL.
pub(super) const HTTP_GET: &str = "http-get";
/// The op that tests a condition.
const FILTER: &str = "filter";
/// The op that separates the first unit with a text from later units with the same text.
const UNIQUE: &str = "unique";
/// The op that makes a request with a method other than `GET`.
pub(in crate::file) const HTTP: &str = "http";
/// The op that sends a unit to several stages.
pub(super) const COPY: &str = "copy";
/// The ops whose stages have a second exit.
pub(super) const WITH_ELSE: [&str; 2] = [FILTER, UNIQUE];

/// The maximum number of texts that `unique` keeps, unless the flow file says otherwise. They take
/// some 400 MB.
const MAX_KEYS: u64 = 10_000_000;

/// The largest payload that `stream` makes, unless the flow file says otherwise.
const MAX_STREAM: u64 = 1 << 30;

/// The maximum number of redirects that a flow file may allow.
const MAX_REDIRECTS: i64 = 1000;

/// All ops, in the order in which help lists them.
const OPS: [&str; 20] = [
    "read", "write", "append", "print", "blake3", "sha256", "check", "zstd", "gzip", EXEC, HTTP_GET, HTTP, FILTER,
    UNIQUE, "parse", "set", "stream", "split", COPY, "gather",
];

/// Reads the op named by the stage's `op`.
pub(super) fn op(section: &mut Section<'_>) -> Option<OpSpec> {
    let name = section.require("op", "op = \"read\"")?;
    let text = name.text("the name of an op in quotes")?;
    match text.value.as_str() {
        "read" => {
            let path = section.or("path", Template::of(Field::Path), Entry::path_template);
            let max_bytes = section.optional("max_bytes", Entry::bytes_cap);
            Some(OpSpec::Read { path: path?, max_bytes: max_bytes? })
        }
        "write" => write(section),
        "append" => {
            let fresh = section.or("fresh", Fresh::No, fresh);
            let path = section.require("path", "path = \"{param.out}/list\"").and_then(|entry| {
                let path = entry.path_template()?;
                let one = fresh == Some(Fresh::No) || entry.same_for_all_units(&path, "a fresh list is one file");
                one.then_some(path)
            });
            let line = section.require("line", "line = \"{path}\"").and_then(|entry| entry.template());
            Some(OpSpec::Append { path: path?, line: line?, fresh: fresh? })
        }
        "print" => {
            let tag = section.optional("tag", Entry::template);
            let ordered = section.or("ordered", false, Entry::boolean);
            Some(OpSpec::Print { tag: tag?, ordered: ordered? })
        }
        "set" => set(section, &text),
        "stream" => {
            let example = "expression = 'filter(lines(), length(it) > 0)'";
            let expression = section.require("expression", example).and_then(|entry| expression(&entry));
            let max_bytes = section.or("max_bytes", MAX_STREAM, Entry::bytes_cap);
            Some(OpSpec::Stream { expression: expression?, max_bytes: max_bytes? })
        }
        "blake3" => Some(OpSpec::Blake3),
        "sha256" => Some(OpSpec::Sha256),
        "check" => {
            let fields = [("blake3", CheckField::Blake3), ("sha256", CheckField::Sha256), ("size", CheckField::Size)];
            let field = section.require("field", "field = \"blake3\"").and_then(|entry| entry.choice(&fields));
            let equals = section.require("equals", "equals = \"{json.blake3}\"").and_then(|entry| entry.template());
            Some(OpSpec::Check { field: field?, equals: equals? })
        }
        "zstd" => zstd(section),
        "gzip" => gzip(section),
        EXEC => exec(section),
        HTTP_GET => http(section, Method::Get),
        HTTP => {
            // The first method is `GET`, which has its own op.
            let methods: Vec<_> = Method::ALL[1..].iter().map(|method| (method.name(), *method)).collect();
            let method = section.require("method", "method = \"POST\"").and_then(|entry| entry.choice(&methods));
            let read = http(section, method.unwrap_or(Method::Post));
            method.and(read)
        }
        FILTER => {
            let when = section.require("when", "when = { text = \"{ext}\", equals = \"jpg\" }");
            Some(OpSpec::Filter { when: when.and_then(|entry| condition::condition(&entry))? })
        }
        UNIQUE => {
            let by = section.or("by", Template::of(Field::Path), Entry::template);
            let max_keys = section.or("max_keys", MAX_KEYS, Entry::count);
            Some(OpSpec::Unique { by: by?, max_keys: max_keys? })
        }
        "parse" => parse(section),
        "split" => split(section),
        COPY => copy(section),
        "gather" => gather(section),
        unknown => {
            let problem = Problem::new(format!("there is no op `{unknown}`")).at(text.span, "unknown op");
            let help = match suggest::closest(unknown, OPS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("ops are {}; `exec` runs any other program", OPS.join(", ")),
            };
            section.reading.report(problem.help(help));
            None
        }
    }
}

/// Whether `name` is an op. The keys of an unknown op are not reported in addition to its name.
pub(super) fn is_known(name: &str) -> bool {
    OPS.contains(&name)
}

/// Reads the keys of a request; `http-get`, whose method is `GET`, has no `body` and no `fields`.
fn http(section: &mut Section<'_>, method: Method) -> Option<OpSpec> {
    let url = section.require("url", "url = \"{line}\"").and_then(|entry| entry.path_template());
    let max_bytes = section.optional("max_bytes", Entry::bytes_cap);
    let max_retry_after = section.optional("max_retry_after", Entry::duration);
    let max_redirects =
        section.optional("max_redirects", |entry| entry.integer(0..=MAX_REDIRECTS).map(i64::unsigned_abs));
    let downgrade = section.or("downgrade", false, Entry::boolean);
    let headers = pairs(section, "headers", "a table of header names and values");
    let (mut body, mut fields) = (Some(None), Some(Vec::new()));
    if method != Method::Get {
        body = section.optional("body", |entry| {
            if !method.has_body() {
                entry.senseless(format!("a {} request has no body", method.name()), "leave it out");
                return None;
            }
            entry.template()
        });
        fields = section.or("fields", Vec::new(), |entry| {
            let entries = entry.section("`fields`", "a table of names and response headers")?.entries();
            let header = |entry: &Entry<'_>| entry.text("the name of a header").map(|header| header.value);
            let read = entries.iter().map(|entry| header(entry).map(|value| (entry.name.clone(), value)));
            read.collect::<Vec<_>>().into_iter().collect()
        });
    }
    Some(OpSpec::Http(HttpSpec {
        url: url?,
        max_bytes: max_bytes?,
        max_retry_after: max_retry_after?,
        max_redirects: max_redirects?,
        downgrade: downgrade?,
        headers: headers?,
        method,
        body: body?,
        fields: fields?,
    }))
}

fn set(section: &mut Section<'_>, op: &Text) -> Option<OpSpec> {
    let payload = section.optional("payload", Entry::template);
    let fields = pairs(section, "fields", "a table of names and values");
    let (payload, fields) = (payload?, fields?);
    if payload.is_none() && fields.is_empty() {
        let problem = Problem::new("this `set` sets nothing").at(op.span.clone(), "needs `fields` or `payload`");
        section.reading.report(problem.help("add `fields = { thumb = \"thumbs/{name}\" }`, which sets {set.thumb}"));
        return None;
    }
    Some(OpSpec::Set { payload, fields })
}

fn parse(section: &mut Section<'_>) -> Option<OpSpec> {
    let is_regex = section.or("format", false, |entry| entry.choice(&[("json", false), ("regex", true)]));
    let Some(is_regex) = is_regex else {
        section.get("expression");
        return None;
    };
    if !is_regex {
        return Some(OpSpec::Parse { format: ParseFormat::Json });
    }
    let entry = section.require("expression", r"expression = '^(?<host>\S+) (?<status>\d+)'")?;
    let expression = entry.parsed("a regular expression", condition::expression)?;
    if expression.capture_names().flatten().next().is_none() {
        let message = "`expression` names no group, so no field would get a value";
        entry.senseless(message, r"a group with a name is `(?<status>\d+)`");
        return None;
    }
    Some(OpSpec::Parse { format: ParseFormat::Regex(expression.as_str().to_owned()) })
}

/// The program of streams, if it runs in bounded space. Otherwise, or if it is wrong, a problem is reported.
fn expression(entry: &Entry<'_>) -> Option<String> {
    let text = entry.text("a program in quotes, such as 'filter(lines(), length(it) > 0)'")?;
    let Err(found) = stream::check(&text.value) else { return Some(text.value) };
    let mut problem = Problem::new(found.message);
    for (range, label) in found.labels {
        problem = problem.at(entry.reading.within_string(&text.value, &text.span, &range), label);
    }
    problem.help = found.help;
    entry.reading.report(problem);
    None
}

/// The stages that `copy` names. Whether they exist is checked elsewhere.
fn copy(section: &mut Section<'_>) -> Option<OpSpec> {
    let to = section.require("to", "to = [\"first\", \"second\"]")?;
    let stages = to.elements("an array of the names of stages")?;
    let names: Vec<Option<Text>> = stages.iter().map(|stage| stage.text("the name of a stage")).collect();
    let names: Vec<Text> = names.into_iter().collect::<Option<_>>()?;
    if let Some(twice) =
        (1..names.len()).find(|index| names[..*index].iter().any(|name| name.value == names[*index].value))
    {
        stages[twice].senseless(format!("`{}` would get two copies", names[twice].value), "named twice");
        return None;
    }
    if names.len() < 2 {
        to.senseless("`to` names fewer than two stages, and nothing needs a copy", "at least two");
        return None;
    }
    let by = SplitBy::Copies(names.into_iter().map(|name| name.value.into()).collect());
    Some(OpSpec::Split(SplitSpec { by, max_bytes: usize::MAX }))
}

/// The largest piece that `split` takes, unless the flow file says otherwise.
const MAX_PIECE: u64 = 16 << 20;

/// The kind of the pieces, as `by` names it. The other keys, which depend on the kind, are read later.
#[derive(Clone, Copy, PartialEq)]
enum Piece {
    Lines,
    Nul,
    Separator,
    Regex,
    Blocks,
    Json,
    Csv,
    Tsv,
    Tar,
    Zip,
}

fn split(section: &mut Section<'_>) -> Option<OpSpec> {
    let kinds = [
        ("lines", Piece::Lines),
        ("nul", Piece::Nul),
        ("separator", Piece::Separator),
        ("regex", Piece::Regex),
        ("blocks", Piece::Blocks),
        ("json", Piece::Json),
        ("csv", Piece::Csv),
        ("tsv", Piece::Tsv),
        ("tar", Piece::Tar),
        ("zip", Piece::Zip),
    ];
    let kind = section.require("by", "by = \"lines\"").and_then(|entry| entry.choice(&kinds));
    let max_bytes = section.or("max_bytes", MAX_PIECE, Entry::bytes_cap);
    let Some(kind) = kind else {
        // The kind is unknown, so the keys of every kind are accepted.
        for key in ["separator", "size", "header"] {
            section.get(key);
        }
        return None;
    };
    let by = match kind {
        Piece::Lines => SplitBy::Lines,
        Piece::Nul => SplitBy::Nul,
        Piece::Json => SplitBy::Json,
        Piece::Tar => SplitBy::Tar,
        Piece::Zip => SplitBy::Zip,
        Piece::Separator => {
            let entry = section.require("separator", "separator = \"\\n\\n\"")?;
            let text = entry.text("a text in quotes")?;
            if text.value.is_empty() {
                entry.senseless("`separator` is empty", "comes between two pieces");
                return None;
            }
            SplitBy::Separator(text.value.into_bytes())
        }
        Piece::Regex => {
            let entry = section.require("separator", "separator = \"\\n={3,}\\n\"")?;
            let expression = entry.parsed("a regular expression", condition::expression)?;
            if expression.is_match(b"") {
                entry.senseless("`separator` matches the empty text, which lies between any two bytes", "can be empty");
                return None;
            }
            SplitBy::Matches(expression.as_str().to_owned())
        }
        Piece::Blocks => {
            let entry = section.get("size");
            let most = max_bytes?;
            let size = entry.as_ref().map_or(Some(most.min(1 << 20)), Entry::bytes_cap)?;
            if let Some(entry) = entry.filter(|_| size > most) {
                entry.senseless("`size` is more than `max_bytes`, the most that a piece may have", "too much");
                return None;
            }
            SplitBy::Blocks(usize::try_from(size).unwrap_or(usize::MAX))
        }
        Piece::Csv | Piece::Tsv => {
            let separator = if kind == Piece::Csv { b',' } else { b'\t' };
            SplitBy::Table { separator, header: section.or("header", true, Entry::boolean)? }
        }
    };
    let max_bytes = usize::try_from(max_bytes?).unwrap_or(usize::MAX);
    Some(OpSpec::Split(SplitSpec { by, max_bytes }))
}

fn gather(section: &mut Section<'_>) -> Option<OpSpec> {
    /// The kind of a group's payload, as `reduce` names it. The other keys, which depend on the kind, are read later.
    #[derive(Clone, Copy)]
    enum Way {
        Concat,
        Count,
        Number(Fold),
        Merge,
    }
    let by = section.or("by", GatherBy::All, |entry| match entry.as_text() {
        Some("parent") => Some(GatherBy::Parent),
        _ => {
            let key = entry.template()?;
            if key.fields().next().is_none() {
                entry.senseless("`by` has no field, so all units would join one group", "the same for every unit");
                return None;
            }
            Some(GatherBy::Key(key))
        }
    });
    let of_parent = by == Some(GatherBy::Parent);
    let may_close = |entry: &Entry<'_>| {
        if of_parent {
            let message = format!("`{}` would close a group before all pieces of its unit have come", entry.name);
            entry.senseless(message, "a part would pass for the whole");
        }
        !of_parent
    };
    let units = section.optional("units", |entry| may_close(entry).then(|| entry.count()).flatten());
    let bytes = section.optional("bytes", |entry| may_close(entry).then(|| entry.bytes_cap()).flatten());
    let wait = section.optional("wait", |entry| may_close(entry).then(|| entry.duration()).flatten());
    let max_groups = section.optional("max_groups", |entry| may_close(entry).then(|| entry.count()).flatten());
    let partial = section.or("partial", false, |entry| {
        if !of_parent && by.is_some() {
            entry.senseless("`partial` is for the pieces of one unit", "needs `by = \"parent\"`");
            return None;
        }
        entry.boolean()
    });
    let ways = [
        ("concat", Way::Concat),
        ("count", Way::Count),
        ("merge", Way::Merge),
        ("sum", Way::Number(Fold::Sum)),
        ("min", Way::Number(Fold::Min)),
        ("max", Way::Number(Fold::Max)),
        ("mean", Way::Number(Fold::Mean)),
    ];
    let way = section.or("reduce", Way::Concat, |entry| entry.choice(&ways));
    let item = section.get("item");
    let after = section.get("after");
    let reduce = match way? {
        Way::Concat => {
            let text = match &after {
                Some(entry) => entry.text("a text in quotes")?.value.into_bytes(),
                None => Vec::new(),
            };
            Reduce::Concat { after: text }
        }
        way => {
            if let Some(entry) = after {
                entry.senseless("`after` follows contents that are concatenated", "needs `reduce = \"concat\"`");
                return None;
            }
            match (way, &item) {
                (Way::Count, Some(entry)) => {
                    entry.senseless("`item` is the content of a unit, and a count has none", "leave it out");
                    return None;
                }
                (Way::Number(fold), _) => Reduce::Number(fold),
                (Way::Merge, _) => Reduce::Merge,
                (Way::Count | Way::Concat, _) => Reduce::Count,
            }
        }
    };
    let item = match &item {
        Some(entry) => Some(entry.template()?),
        None => None,
    };
    let (by, units, bytes, wait) = (by?, units?, bytes?, wait?);
    Some(OpSpec::Gather(GatherSpec {
        by,
        units,
        bytes,
        wait,
        max_groups: max_groups?,
        partial: partial?,
        item,
        reduce,
    }))
}

fn fresh(entry: &Entry<'_>) -> Option<Fresh> {
    if entry.as_text().is_some() {
        return entry.choice(&[("always", Fresh::Always)]);
    }
    entry.boolean().map(|fresh| if fresh { Fresh::IfNoneDied } else { Fresh::No })
}

fn write(section: &mut Section<'_>) -> Option<OpSpec> {
    let path = section.require("path", "path = \"{param.out}/{name}\"").and_then(|entry| entry.path_template());
    let overwrite = section.or("overwrite", false, Entry::boolean);
    let mode = section.optional("mode", mode);
    let skip = section.get("skip_existing");
    let skip_existing = skip.as_ref().map_or(Some(false), Entry::boolean);
    if let (Some(entry), Some(true), Some(true)) = (&skip, overwrite, skip_existing) {
        entry.senseless("`skip_existing` keeps a file that `overwrite` would replace", "choose one of the two");
        return None;
    }
    Some(OpSpec::Write { path: path?, overwrite: overwrite?, skip_existing: skip_existing?, mode: mode? })
}

/// Permissions in octal digits, or a template that yields octal digits.
fn mode(entry: &Entry<'_>) -> Option<Template> {
    let template = entry.template()?;
    if template.constant().is_some_and(|text| permissions(text).is_none()) {
        entry.senseless("`mode` is not a file mode", "octal digits, such as \"644\"");
        return None;
    }
    Some(template)
}

/// Whether `mode` is `"decompress"`. If the mode is unknown, the keys of both modes are accepted.
fn decompresses(section: &mut Section<'_>) -> Option<bool> {
    let decompress = section.or("mode", false, |entry| entry.choice(&[("compress", false), ("decompress", true)]));
    if decompress.is_none() {
        section.get("level");
        section.get("max_bytes");
    }
    decompress
}

fn zstd(section: &mut Section<'_>) -> Option<OpSpec> {
    if decompresses(section)? {
        let max_bytes = section.optional("max_bytes", max_bytes)?;
        return Some(OpSpec::Zstd { mode: ZstdMode::Decompress { max_bytes } });
    }
    let level = section.or("level", 3, |entry| entry.integer(1..=22))?;
    Some(OpSpec::Zstd { mode: ZstdMode::Compress { level: i32::try_from(level).ok()? } })
}

fn gzip(section: &mut Section<'_>) -> Option<OpSpec> {
    if decompresses(section)? {
        let max_bytes = section.optional("max_bytes", max_bytes)?;
        return Some(OpSpec::Gzip { mode: GzipMode::Decompress { max_bytes } });
    }
    let level = section.or("level", 6, |entry| entry.integer(1..=9))?;
    Some(OpSpec::Gzip { mode: GzipMode::Compress { level: u32::try_from(level).ok()? } })
}

/// A size, or a field whose value is one.
fn max_bytes(entry: &Entry<'_>) -> Option<MaxBytes> {
    match entry.as_text() {
        Some(text) if text.contains('{') => entry.template().map(MaxBytes::Field),
        _ => entry.bytes_cap().map(MaxBytes::Size),
    }
}

fn exec(section: &mut Section<'_>) -> Option<OpSpec> {
    let shell = section.or("shell", false, Entry::boolean);
    let argv = section
        .require("exec", "exec = [\"program\", \"argument\"]")
        .and_then(|entry| argv(&entry, shell == Some(true)));
    let stdin = section.or("stdin", ExecStdin::Payload, |entry| {
        entry.choice(&[("payload", ExecStdin::Payload), ("items", ExecStdin::Items), ("null", ExecStdin::Null)])
    });
    let stdout = section.or("stdout", ExecStdout::Payload, stdout);
    let stderr = section.or("stderr", ExecStderr::Message, stderr);
    let prints = matches!(stdout, None | Some(ExecStdout::Print)) || matches!(stderr, None | Some(ExecStderr::Print));
    let tag = section.get("tag");
    let ordered = section.get("ordered");
    for (entry, key) in [(&tag, "tag"), (&ordered, "ordered")] {
        if let (Some(entry), false) = (entry, prints) {
            let message = format!("`{key}` is for output that is printed");
            entry.senseless(message, "needs `stdout = \"print\"` or `stderr = \"print\"`");
            return None;
        }
    }
    let tag = match &tag {
        Some(entry) => entry.template().map(Some),
        None => Some(None),
    };
    let ordered = ordered.as_ref().map_or(Some(false), Entry::boolean);
    let env = pairs(section, "env", "a table of variables");
    let dir = section.optional("dir", Entry::path_template);
    Some(OpSpec::Exec(ExecSpec {
        argv: argv?,
        shell: shell?,
        stdin: stdin?,
        stdout: stdout?,
        stderr: stderr?,
        tag: tag?,
        ordered: ordered?,
        env: env?,
        dir: dir?,
    }))
}

fn argv(entry: &Entry<'_>, shell: bool) -> Option<Vec<Template>> {
    if let (Some(command), false) = (entry.as_text(), shell) {
        let words: Vec<String> = command.split_whitespace().map(|word| format!("{word:?}")).collect();
        let problem = Problem::new("`exec` takes a program and its arguments in an array, not a string");
        let help = format!("write `exec = [{}]`, or add `shell = true`", words.join(", "));
        entry.reading.report(problem.at(entry.span.clone(), "this is a string").help(help));
        return None;
    }
    let elements =
        if shell && !entry.is_array() { vec![entry.clone()] } else { entry.elements("an array of strings")? };
    let read: Vec<Option<Template>> = elements.iter().map(Entry::template).collect();
    let argv = read.into_iter().collect::<Option<Vec<Template>>>()?;
    let Some(program) = argv.first() else {
        entry.senseless("`exec` is empty", "needs a program");
        return None;
    };
    if program.constant() == Some(b"") {
        entry.senseless("`exec` names no program", "the first element is empty");
        return None;
    }
    for (template, element) in argv.iter().zip(&elements) {
        let mixed = template.fields().any(|(field, _)| *field == Field::Items) && !template.is_only(&Field::Items);
        if mixed || template.is_only(&Field::Items) && std::ptr::eq(template, program) {
            let problem =
                Problem::new("`{items}` becomes several arguments").at(element.span.clone(), "does not stand alone");
            entry.reading.report(problem.help("write it as an argument of its own: `exec = [\"gzip\", \"{items}\"]`"));
            return None;
        }
    }
    if let Some((field, range)) = program.fields().next().filter(|_| shell) {
        let first = &elements[0];
        let at = entry.reading.within_string(first.as_text().unwrap_or(""), &first.span, &range);
        let problem = Problem::new(format!("`{{{field}}}` in a shell script would let the unit's value run commands"));
        let help = "pass it as an argument: `exec = [\"wc -l \\\"$1\\\"\", \"{path}\"]`; the script sees it as \"$1\"";
        entry.reading.report(problem.at(at, "not safe here").help(help));
        return None;
    }
    Some(argv)
}

fn stdout(entry: &Entry<'_>) -> Option<ExecStdout> {
    if entry.is_table() {
        let mut section = entry.section("`stdout`", "a table")?;
        let file = section.require("file", "file = \"{param.out}/{name}\"").and_then(|entry| entry.path_template());
        let failed = section.or("failed", false, Entry::boolean);
        section.finish();
        return Some(ExecStdout::File { path: file?, failed: failed? });
    }
    entry.choice(&[
        ("payload", ExecStdout::Payload),
        ("print", ExecStdout::Print),
        ("null", ExecStdout::Null),
        ("inherit", ExecStdout::Inherit),
    ])
}

fn stderr(entry: &Entry<'_>) -> Option<ExecStderr> {
    if entry.is_table() {
        let mut section = entry.section("`stderr`", "a table")?;
        let file = section.require("file", "file = \"{param.out}/{name}.log\"").and_then(|entry| entry.path_template());
        section.finish();
        return file.map(ExecStderr::File);
    }
    entry.choice(&[("message", ExecStderr::Message), ("print", ExecStderr::Print), ("inherit", ExecStderr::Inherit)])
}

/// A table of names and templates, in the file's order.
fn pairs(section: &mut Section<'_>, key: &'static str, expected: &str) -> Option<Vec<(String, Template)>> {
    let Some(entry) = section.get(key) else { return Some(Vec::new()) };
    let entries = entry.section(format!("`{key}`"), expected)?.entries();
    let read: Vec<Option<(String, Template)>> =
        entries.into_iter().map(|entry| entry.template().map(|value| (entry.name, value))).collect();
    read.into_iter().collect()
}
