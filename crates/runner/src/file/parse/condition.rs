//! `when` of the `filter` op.

use millstream_command::size;
use regex::bytes::Regex;

use super::super::error::Problem;
use super::super::model::{Bound, Condition, TextTest};
use super::super::reader::{Entry, Section};
use super::super::template::{Field, Template};
use crate::ops::{Moment, Number};

/// The keys that start a condition; exactly one is given.
const KINDS: [&str; 12] =
    ["exists", "missing", "has", "stale", "content", "text", "number", "date", "size", "not", "all", "any"];
/// The keys that say how `text` is compared; exactly one is given.
const TESTS: [&str; 6] = ["equals", "one_of", "contains", "starts_with", "ends_with", "matches"];
/// The keys that bound a `number` or a `date`; at least one is given.
const BOUNDS: [(&str, Bound); 5] = [
    ("equals", Bound::Equals),
    ("at_least", Bound::AtLeast),
    ("above", Bound::Above),
    ("at_most", Bound::AtMost),
    ("below", Bound::Below),
];

/// The maximum nesting of conditions; no readable filter is nested so deeply.
const MAX_DEPTH: usize = 16;

const EXAMPLE: &str =
    "write for example `{ text = \"{ext}\", one_of = [\"jpg\", \"png\"] }` or `{ missing = \"out/{name}\" }`";

pub(super) fn condition(entry: &Entry<'_>) -> Option<Condition> {
    nested(entry, 0)
}

fn nested(entry: &Entry<'_>, depth: usize) -> Option<Condition> {
    if depth == MAX_DEPTH {
        entry.senseless(format!("conditions are nested more than {MAX_DEPTH} deep"), "too deep");
        return None;
    }
    let mut section = entry.section("the condition", "a condition, which is a table")?;
    let kind = only_one(&mut section, &KINDS, "a condition", EXAMPLE)?;
    let all_of = |entry: &Entry<'_>| {
        let elements = entry.elements("an array of conditions")?;
        if elements.is_empty() {
            entry.senseless(format!("`{}` has no conditions in it", entry.name), "empty");
            return None;
        }
        let read: Vec<Option<Condition>> = elements.iter().map(|element| nested(element, depth + 1)).collect();
        read.into_iter().collect::<Option<Vec<Condition>>>()
    };
    let condition = match kind.name.as_str() {
        "exists" => kind.path_template().map(Condition::Exists),
        "missing" => kind.path_template().map(Condition::Missing),
        "content" => {
            let zstd = section.or("zstd", false, Entry::boolean);
            kind.path_template().zip(zstd).map(|(path, zstd)| Condition::Content { path, zstd })
        }
        "text" => {
            let test = text_test(&mut section);
            kind.template().zip(test).map(|(text, test)| Condition::Text { text, test })
        }
        "has" => kind.template().map(Condition::Has),
        "stale" => {
            let than = section.or("than", Template::of(Field::Path), Entry::path_template);
            kind.path_template().zip(than).map(|(target, than)| Condition::Stale { target, than })
        }
        "number" => {
            let bounds = bounds(&mut section, &kind.name, "at_least = 1", number);
            number(&kind).zip(bounds).map(|(number, bounds)| Condition::Number { number, bounds })
        }
        "date" => {
            let bounds = bounds(&mut section, &kind.name, "at_least = \"2026-01-31\"", date);
            date(&kind).zip(bounds).map(|(date, bounds)| Condition::Date { date, bounds })
        }
        "size" => kind.parsed("a range of sizes such as \"1KiB..1MiB\"", size_range),
        "not" => nested(&kind, depth + 1).map(|inner| Condition::Not(Box::new(inner))),
        "all" => all_of(&kind).map(Condition::All),
        _ => all_of(&kind).map(Condition::Any),
    };
    section.finish();
    condition
}

fn text_test(section: &mut Section<'_>) -> Option<TextTest> {
    let test = only_one(section, &TESTS, "a comparison for `text`", "add `equals = \"…\"`")?;
    Some(match test.name.as_str() {
        "equals" => TextTest::Equals(test.template()?),
        "one_of" => {
            let read: Vec<Option<Template>> =
                test.elements("an array of strings")?.iter().map(Entry::template).collect();
            TextTest::OneOf(read.into_iter().collect::<Option<_>>()?)
        }
        "contains" => TextTest::Contains(test.template()?),
        "matches" => TextTest::Matches(test.parsed("a regular expression", expression)?),
        "starts_with" => TextTest::StartsWith(test.template()?),
        _ => TextTest::EndsWith(test.template()?),
    })
}

/// The regular expression, or the message about its mistake. Lines that show the expression with a
/// caret are left out of the message.
pub(super) fn expression(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| slip(&error))
}

fn slip(error: &regex::Error) -> String {
    let told = error.to_string();
    let slip = told.lines().last().unwrap_or_default();
    format!("not a regular expression: {}", slip.trim_start_matches("error: "))
}

/// The bounds of a value of this kind, each read by `read`.
fn bounds(
    section: &mut Section<'_>,
    kind: &str,
    example: &str,
    read: impl Fn(&Entry<'_>) -> Option<Template>,
) -> Option<Vec<(Bound, Template)>> {
    let entries: Vec<_> = BOUNDS.iter().filter_map(|(key, bound)| Some((*bound, section.get(key)?))).collect();
    if entries.is_empty() {
        let keys = BOUNDS.map(|(key, _)| key).join(", ");
        let problem = Problem::new(format!("`{kind}` has no bound")).at(section.span.clone(), "needs one");
        section.reading.report(problem.help(format!("add `{example}`, or another of {keys}")));
        return None;
    }
    let values: Vec<Option<(Bound, Template)>> =
        entries.into_iter().map(|(bound, entry)| read(&entry).map(|value| (bound, value))).collect();
    values.into_iter().collect()
}

/// A number, or a template of one.
fn number(entry: &Entry<'_>) -> Option<Template> {
    let template = match entry.as_text() {
        Some(_) => entry.template()?,
        None => Template::parse(&entry.scalar()?).ok()?,
    };
    if template.constant().is_some_and(|text| Number::parse(text).is_none()) {
        entry.senseless(format!("`{}` is not a number", entry.name), "compared with a number");
        return None;
    }
    Some(template)
}

/// A date, or a template of one.
fn date(entry: &Entry<'_>) -> Option<Template> {
    let template = match entry.as_date() {
        Some(date) => Template::parse(&date).ok()?,
        None => entry.template()?,
    };
    if template.constant().is_some_and(|text| Moment::parse(text).is_none()) {
        let problem =
            Problem::new(format!("`{}` is not a date", entry.name)).at(entry.span.clone(), "compared with a date");
        entry.reading.report(problem.help("write `2026-01-31`, or with a time `2026-01-31T12:00:00Z` or `…+01:00`"));
        return None;
    }
    Some(template)
}

/// The only key of `keys` that is present; none and several are problems.
fn only_one<'a>(section: &mut Section<'a>, keys: &[&'static str], what: &str, example: &str) -> Option<Entry<'a>> {
    let mut found: Vec<Entry<'a>> = keys.iter().filter_map(|key| section.get(key)).collect();
    match found.len() {
        1 => found.pop(),
        0 => {
            let help = format!("{example}; the keys are {}", keys.join(", "));
            section
                .reading
                .report(Problem::new(format!("{what} is missing")).at(section.span.clone(), "needs one").help(help));
            None
        }
        _ => {
            let message = format!("`{}` and `{}` cannot be combined", found[0].name, found[1].name);
            let problem = Problem::new(message)
                .at(found[1].key_span.clone(), "the second")
                .at(found[0].key_span.clone(), "the first");
            section
                .reading
                .report(problem.help("join conditions with `all = [{ … }, { … }]` or `any = [{ … }, { … }]`"));
            None
        }
    }
}

/// Reads `"1KiB..1MiB"`; either end may be missing.
fn size_range(text: &str) -> Result<Condition, String> {
    let (from, to) = text
        .split_once("..")
        .ok_or("a range has two dots in it: `1KiB..` is 1 KiB and more, `..1MiB` is less than 1 MiB")?;
    let at_least = if from.trim().is_empty() { 0 } else { size::parse(from)? };
    let below = if to.trim().is_empty() { None } else { Some(size::parse(to)?) };
    if below.is_some_and(|below| below <= at_least) {
        return Err(format!("nothing is in the range `{text}`: its upper end is not above its lower end"));
    }
    Ok(Condition::Size { at_least, below })
}
