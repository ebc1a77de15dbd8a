//! Dead letters grouped by cause, so that a report says why units failed and not only how many did.
//!
//! Letters form a group when their stage, their cause and their message are the same. Since most messages name their
//! unit, the unit's own text in a message is replaced by the field with that text: `cannot read {path}: Permission
//! denied`. Long hexadecimal numbers are replaced by an ellipsis.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use millstream_flow::{Cause, DeadLetter};
use millstream_runner::file::template::{Field, Fields};
use millstream_runner::record::Record;
use serde::{Deserialize, Serialize};

/// The maximum number of groups; the letters of further groups are only counted.
const MAX_GROUPS: usize = 64;

/// The maximum length of a message, in characters; a longer message is cut off.
const MAX_MESSAGE: usize = 240;

/// The number of newest letters that are kept for display.
const MAX_NEWEST: usize = 12;

/// The minimum length of a unit's text that is recognised in a message: a shorter text may occur anywhere by chance.
const MIN_TEXT: usize = 4;

/// The minimum length of a sequence of hexadecimal digits that cannot be a word or a small number.
const MIN_HEX: usize = 16;

/// The dead letters of one run, by cause.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    tally: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    groups: Groups,
    /// The number of letters by stage and kind of failure. There are at most as many entries as stages times kinds.
    counts: Vec<(String, Cause, u64)>,
    newest: VecDeque<Newest>,
}

/// A letter in the form in which a live run shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Newest {
    /// The stage in which the unit failed for good.
    pub stage: String,
    /// The unit's text, without logins.
    pub unit: String,
    /// The message, on one line.
    pub message: String,
}

/// The result of [`Causes`]: the groups, the largest first, and the number of letters in no group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Groups {
    /// The groups.
    pub groups: Vec<Group>,
    /// The number of letters in no group, because [`MAX_GROUPS`] groups existed already.
    pub others: u64,
}

/// Dead letters of one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Group {
    /// The stage in which the units failed for good.
    pub stage: String,
    /// The kind of failure.
    pub cause: Cause,
    /// The message, with fields in place of the texts that differ from unit to unit.
    pub message: String,
    /// The number of units.
    pub units: u64,
    /// The text of the first unit.
    pub example: String,
}

impl Causes {
    /// Counts a letter; any thread may call this.
    pub(crate) fn add(&self, letter: &DeadLetter) {
        let record = letter.input::<Record>();
        let message = without_unit(&letter.message, record);
        let text = record.map(|record| String::from_utf8_lossy(&record.shown_text()).into_owned()).unwrap_or_default();
        let newest = Newest { stage: letter.stage.clone(), unit: cut(&text), message: cut(&one_line(&letter.message)) };
        let mut tally = self.tally();
        tally.newest.push_front(newest);
        tally.newest.truncate(MAX_NEWEST);
        match tally.counts.iter_mut().find(|(stage, cause, _)| *stage == letter.stage && *cause == letter.cause) {
            Some((.., units)) => *units += 1,
            None => tally.counts.push((letter.stage.clone(), letter.cause, 1)),
        }
        let groups = &mut tally.groups;
        let same =
            |group: &&mut Group| group.stage == letter.stage && group.cause == letter.cause && group.message == message;
        if let Some(group) = groups.groups.iter_mut().find(same) {
            group.units += 1;
        } else if groups.groups.len() < MAX_GROUPS {
            let stage = letter.stage.clone();
            groups.groups.push(Group { stage, cause: letter.cause, message, units: 1, example: text });
        } else {
            groups.others += 1;
        }
    }

    /// The groups so far.
    pub(crate) fn groups(&self) -> Groups {
        let mut groups = self.tally().groups.clone();
        groups.groups.sort_by_key(|group| std::cmp::Reverse(group.units));
        groups
    }

    /// The number of letters so far, by stage and kind of failure.
    pub(crate) fn counts(&self) -> Vec<(String, Cause, u64)> {
        self.tally().counts.clone()
    }

    /// The newest letters, newest first.
    pub(crate) fn newest(&self) -> Vec<Newest> {
        self.tally().newest.iter().cloned().collect()
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The message with the names of fields in place of the unit's text, on one line.
fn without_unit(message: &str, record: Option<&Record>) -> String {
    let mut message = one_line(message);
    for field in [Field::Path, Field::Rel, Field::Name, Field::Stem, Field::Host] {
        let value = match field {
            // Messages show a unit's text in its safe form.
            Field::Path => record.map(Record::shown_text),
            _ => record.and_then(|record| record.field(&field)),
        };
        let Some(value) = value else { continue };
        if let Some(text) = std::str::from_utf8(&value).ok().filter(|text| text.len() >= MIN_TEXT) {
            let shown = if field == Field::Path && record.is_some_and(|record| record.line_text().is_some()) {
                Field::Line
            } else {
                field
            };
            message = message.replace(text, &format!("{{{shown}}}"));
        }
    }
    cut(&without_hex(&message))
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text, with an ellipsis in place of the characters after the first [`MAX_MESSAGE`].
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The text with an ellipsis in place of each long hexadecimal number.
fn without_hex(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let digits = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        match digits {
            0 => {
                shown.push(first);
                rest = &rest[first.len_utf8()..];
            }
            _ => {
                shown.push_str(if digits >= MIN_HEX { "…" } else { &rest[..digits] });
                rest = &rest[digits..];
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(message: &str, text: &str) -> DeadLetter {
        let input = Record::file(text.as_bytes().to_vec(), 0);
        let mut letter = DeadLetter::new(0, "read", Cause::Error, message);
        letter.input = Some(Box::new(input));
        letter
    }

    #[test]
    fn letters_that_differ_in_their_units_are_one_group() {
        let causes = Causes::default();
        for name in ["photo.jpg", "notes.txt", "a long name"] {
            causes.add(&letter(&format!("cannot write out/{name}: No space left on device"), &format!("in/{name}")));
        }
        causes.add(&letter("status 404", "in/0"));
        let Groups { groups, others } = causes.groups();
        let told: Vec<_> = groups.iter().map(|group| (group.message.as_str(), group.units)).collect();
        assert_eq!(told, [("cannot write out/{name}: No space left on device", 3), ("status 404", 1)]);
        assert_eq!((groups[0].example.as_str(), others), ("in/photo.jpg", 0));
    }

    #[test]
    fn short_texts_stay_and_hashes_go() {
        assert_eq!(without_unit("exited with status 7", Some(&Record::line(b"7".to_vec()))), "exited with status 7");
        let message = format!("blake3 is {}, expected {}", "0a".repeat(32), "b1".repeat(32));
        assert_eq!(without_unit(&message, None), "blake3 is …, expected …");
        assert_eq!(without_unit("ä deadbeef\n  ß", None), "ä deadbeef ß");
        assert_eq!(without_unit(&"x".repeat(1000), None).chars().count(), MAX_MESSAGE + 1);
    }

    #[test]
    fn memory_is_bounded_and_every_letter_counts() {
        let causes = Causes::default();
        for number in 0..1000 {
            causes.add(&letter(&format!("number {number}"), "x"));
        }
        let Groups { groups, others } = causes.groups();
        assert_eq!((groups.len(), others), (MAX_GROUPS, 1000 - MAX_GROUPS as u64));
        assert_eq!(causes.counts(), [("read".to_owned(), Cause::Error, 1000)]);
    }
}
