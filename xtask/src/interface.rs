//! The interfaces of libraries must be able to grow. Each public enum, and each public struct whose fields are all public, is
//! therefore `#[non_exhaustive]`, or is listed here as closed, with a reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::members::Member;
use crate::packages::published;

/// The types that are closed, and the reasons.
const CLOSED: [(&str, &[&str]); 6] = [
    (
        "states that a caller steers by: one more is a case that no caller may overlook",
        &[
            "csm::Progress",
            "csm::Smaller",
            "csm::Verdict",
            "flow::Doing",
            "flow::Either",
            "flow::Outcome",
            "flow::Phase",
            "flow::SourceEnd",
            "history::Limit",
            "history::Status",
            "history::Verdict",
            "ring::Polled",
            "slab::Holder",
            "stream::Guarantee",
            "sync::Activity",
            "sync::Added",
            "sync::Announced",
            "sync::Certainty",
            "sync::Overlooks",
            "sync::Sections",
            "sync::Source",
            "sync::Waited",
        ],
    ),
    (
        "errors that return the caller's value, with all the ways in which the call can fail, as in the standard library",
        &[
            "flow::SubmitError",
            "ring::RecvTimeoutError",
            "ring::SendTimeoutError",
            "ring::TryRecvError",
            "ring::TrySendError",
        ],
    ),
    (
        "terms of mathematics, which are complete",
        &[
            "csm::BetaBound",
            "csm::Claim",
            "csm::Direction",
            "csm::Interval",
            "csm::Moments",
            "csm::Null",
            "csm::Ranks",
            "csm::Side",
            "csm::Tail",
        ],
    ),
    (
        "layouts of shared memory and messages, which other processes read: a change is a new version of the layout",
        &[
            "fence::Access",
            "fence::Hello",
            "fence::PageClient",
            "fence::PageCpu",
            "fence::PageHead",
            "fence::Request",
            "fence::TimesCpu",
            "fence::TimesHead",
        ],
    ),
    (
        "settings that a caller writes as `Settings { one, ..Settings::DEFAULT }`, which compiles with more fields",
        &["history::Options", "sync::Settings"],
    ),
    (
        "data that a caller writes out or takes apart in full: of histories, graphs and values",
        &[
            "history::Call",
            "history::Datum",
            "history::Discipline",
            "history::Kind",
            "history::Model",
            "history::Operation",
            "ring::Place",
            "stream::Operator",
            "stream::Part",
            "stream::Pass",
            "stream::Value",
        ],
    ),
];

/// Fails when a public type is neither `#[non_exhaustive]` nor in [`CLOSED`], or when [`CLOSED`] has a type that does
/// not exist or is not closed.
///
/// # Errors
/// Names all such types.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let mut found = BTreeSet::new();
    for member in published(root)?.iter().filter(|member| is_promised(member)) {
        for file in files(&member.folder.join("src"))? {
            let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            found.extend(closed(&text).into_iter().map(|name| format!("{}::{name}", member.short)));
        }
    }
    let listed: BTreeSet<String> = CLOSED.iter().flat_map(|(_, names)| *names).map(|name| (*name).to_owned()).collect();
    let mut wrong: Vec<String> =
        found.difference(&listed).map(|name| format!("{name} is closed without a reason")).collect();
    wrong.extend(listed.difference(&found).map(|name| format!("{name} is listed as closed, and is not")));
    if wrong.is_empty() {
        println!("   {} closed, each for a reason", listed.len());
        return Ok(());
    }
    Err(format!(
        "interfaces that cannot grow:\n  {}\n`#[non_exhaustive]` opens one, with a constructor for those that callers make; \
         xtask/src/interface.rs lists the others",
        wrong.join("\n  ")
    ))
}

/// Returns whether a package promises a Rust interface. The libraries of the commands and the daemon do not, and the
/// library for C promises only its header.
pub(crate) fn is_promised(member: &Member) -> bool {
    member.has_library()
        && !["barrierd", "c", "cli", "command", "instruments", "runner"].contains(&member.short.as_str())
}

/// Returns the Rust files below a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// Returns the public enums, and the public structs whose fields are all public, that are not `#[non_exhaustive]`.
fn closed(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let mut closed = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let start = line.trim_start();
        let (name, is_struct) = match (start.strip_prefix("pub struct "), start.strip_prefix("pub enum ")) {
            (Some(rest), _) => (rest, true),
            (_, Some(rest)) => (rest, false),
            _ => continue,
        };
        let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let mut above = lines[..at].iter().rev().take_while(|line| !line.trim().is_empty());
        if above.any(|line| line.trim() == "#[non_exhaustive]") || is_struct && !is_of_public_fields(&lines[at..]) {
            continue;
        }
        closed.push(name);
    }
    closed
}

/// Returns whether the struct that starts here has named fields, all of them public.
fn is_of_public_fields(lines: &[&str]) -> bool {
    let indent = lines[0].len() - lines[0].trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    if !lines[0].ends_with('{') {
        return false;
    }
    let body = lines[1..].iter().take_while(|line| **line != end);
    let mut fields = body.filter_map(|line| line.strip_prefix(&" ".repeat(indent + 4))).filter(|line| {
        let name = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
        name.split_once(':').is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
    });
    let first = fields.next();
    first.is_some_and(|field| field.starts_with("pub ")) && fields.all(|field| field.starts_with("pub "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interface_is_open_or_closed_for_a_reason() {
        check(crate::root()).unwrap();
    }

    #[test]
    fn closed_are_those_that_a_new_member_would_break() {
        let text = "\
#[derive(Debug)]
pub struct Wide<T> {
    /// Docs: with a colon.
    pub one: T,
}

/// Docs.
#[non_exhaustive]
#[derive(Debug)]
pub struct Open {
    pub one: u8,
}

pub struct Hidden {
    pub one: u8,
    two: u8,
}

pub struct Tuple(pub u8);

pub enum Answer {
    Yes,
}

#[cfg_attr(
    feature = \"serde\",
    derive(serde::Serialize)
)]
#[non_exhaustive]
pub enum Growing {
    One { of: u8 },
}
pub(crate) struct Inner {
    pub one: u8,
}
";
        assert_eq!(closed(text), ["Wide", "Answer"]);
    }
}
