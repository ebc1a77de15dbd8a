//! `[source]`.

use super::super::error::Problem;
use super::super::model::{LinesFrom, SourceSpec};
use super::super::names::Names;
use super::super::reader::Entry;
use super::super::template::Template;

/// The maximum number of items in one unit: more than fit on a command line.
const MAX_GROUP: i64 = 1 << 20;

/// The maximum size of a block of lines, and of a single line, in bytes.
const MAX_BLOCK: usize = 16 << 20;

/// Reads the source, and the number of its items that make a unit.
pub(super) fn source(entry: &Entry<'_>) -> Option<(SourceSpec, usize)> {
    let mut section = entry.section("[source]", "a table, `[source]`")?;
    let kinds: Vec<Entry<'_>> = ["walk", "lines", "args"].into_iter().filter_map(|kind| section.get(kind)).collect();
    let kind = match kinds.as_slice() {
        [kind] => kind,
        [] => {
            let problem = Problem::new("[source] does not say where units come from")
                .at(section.span.clone(), "needs one of three keys");
            section.reading.report(problem.help("add `walk = \"{input}\"`, `lines = \"-\"` or `args = true`"));
            section.finish();
            return None;
        }
        [first, second, ..] => {
            let message =
                format!("[source] has both `{}` and `{}`, but units come from one place", first.name, second.name);
            let problem = Problem::new(message).at(second.key_span.clone(), "a second source");
            section.reading.report(problem.at(first.key_span.clone(), "the first").help("keep one of them"));
            // Each source has its own keys, and it is unknown which source was meant.
            return None;
        }
    };
    let mut flag = |key, default| section.or(key, default, Entry::boolean);
    let mut source = match kind.name.as_str() {
        "walk" => {
            let (hidden, ignored, follow) = (flag("hidden", true), flag("ignored", true), flag("follow", false));
            let except = section.or("except", Vec::new(), paths);
            let names = section.or("name", Names::default(), names);
            constant_path(kind).and_then(|root| {
                let (hidden, ignored, follow) = (hidden?, ignored?, follow?);
                Some(SourceSpec::Walk { root, hidden, ignored, follow, except: except?, names: names? })
            })
        }
        "lines" => {
            let null = flag("null", false);
            let from = if kind.as_text() == Some("-") {
                Some(LinesFrom::Stdin)
            } else {
                constant_path(kind).map(LinesFrom::File)
            };
            from.and_then(|from| Some(SourceSpec::Lines { from, null: null?, block: None }))
        }
        _ => match kind.boolean() {
            Some(true) => Some(SourceSpec::Args),
            Some(false) => {
                kind.senseless(
                    "`args` is false, so no unit would ever enter the flow",
                    "write `true`, or name another source",
                );
                None
            }
            None => None,
        },
    };
    let group = section.or("group", 1, |entry| match (entry.as_text(), &mut source) {
        (None, _) => entry.integer(1..=MAX_GROUP),
        (Some(_), Some(SourceSpec::Lines { block, .. })) => {
            *block =
                Some(usize::try_from(entry.bytes_cap()?).ok().filter(|size| *size <= MAX_BLOCK).or_else(|| {
                    entry.senseless(
                        format!("`group` is more than {MAX_BLOCK} bytes, the most that a block may have"),
                        "too large",
                    );
                    None
                })?);
            Some(1)
        }
        (Some(_), Some(_)) => {
            entry.senseless(
                "a `group` in bytes consists of lines, but this source has no lines",
                "write a number of items",
            );
            None
        }
        (Some(_), None) => None,
    });
    section.finish();
    Some((source?, usize::try_from(group?).ok()?))
}

/// A path without fields of a unit: the source runs before there are units.
fn constant_path(entry: &Entry<'_>) -> Option<Template> {
    let path = entry.path_template()?;
    entry.same_for_all_units(&path, "the source runs before there is a unit").then_some(path)
}

/// One pattern of names, or an array of them.
fn names(entry: &Entry<'_>) -> Option<Names> {
    let one = |entry: &Entry<'_>| entry.parsed("a pattern of names such as \"*.jpg\"", Names::pattern);
    if entry.as_text().is_some() {
        return Some(vec![one(entry)?].into());
    }
    let elements = entry.elements("a pattern of names such as \"*.jpg\", or an array of them")?;
    if elements.is_empty() {
        entry.senseless("`name` has no pattern in it, so no file would be taken", "empty");
        return None;
    }
    let read: Vec<_> = elements.iter().map(one).collect();
    Some(read.into_iter().collect::<Option<Vec<_>>>()?.into())
}

/// One path, or an array of them.
fn paths(entry: &Entry<'_>) -> Option<Vec<Template>> {
    if entry.as_text().is_some() {
        return Some(vec![constant_path(entry)?]);
    }
    let read: Vec<Option<Template>> =
        entry.elements("a path or an array of paths")?.iter().map(constant_path).collect();
    read.into_iter().collect()
}
