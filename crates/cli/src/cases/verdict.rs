//! The differences between the expected and the actual outcome of a case.

use std::fs;
use std::io;

use millstream_command::screen::{shown, text};
use millstream_runner::file::cases::{Case, ExpectedContent, ExpectedDeath, ExpectedFile, ExpectedUnit};
use millstream_runner::stand_ins::bytes_differ;

use super::matching;
use super::outcome::{Outcome, Retired};
use super::trial::Trial;
use crate::shell_word::quoted;

/// The differences, each a few lines; none for a case that has passed.
pub(super) fn differences(case: &Case, trial: &Trial, outcome: &Outcome) -> Vec<String> {
    let mut said = outcome.trouble.clone();
    dead(&case.expect.dead, outcome, &mut said);
    if let Some(expected) = &case.expect.retired {
        retired(expected, &outcome.retired, &mut said);
    }
    let unread = |what: &str, error: io::Error| format!("{what} cannot be read: {error}");
    if let Some((expected, line)) = &case.expect.stdout {
        match trial.stdout() {
            Ok(found) => said.extend(bytes_differ(&format!("standard output (line {line})"), expected, &found)),
            Err(error) => said.push(unread("standard output", error)),
        }
    }
    said.extend(case.expect.files.iter().filter_map(|expected| file(expected, trial)));
    for (index, answer) in case.answers.iter().enumerate() {
        if !outcome.answered.contains(&index) {
            said.push(format!("{} was not asked for (line {})", answer.url, answer.line));
        }
    }
    match trial.papers().lacks() {
        // A missing definition is a mistake in the case. It is reported even if no unit died of it, since the stage
        // may ignore failures.
        Ok(lacks) => {
            let is_told = |lack: &String| outcome.dead.iter().any(|dead| dead.message.contains(first_line(lack)));
            let lacks = lacks.iter().chain(&outcome.unanswered);
            said.extend(lacks.filter(|lack| !is_told(lack)).map(|lack| format!("a failure that was skipped: {lack}")));
        }
        Err(error) => said.push(unread("the runs of programs", error)),
    }
    match trial.papers().programs() {
        Ok(runs) => {
            let idle = case.programs.iter().enumerate().filter(|(index, _)| !runs.iter().any(|(_, run)| run == index));
            said.extend(idle.map(|(_, program)| {
                let words: Vec<_> = program.run.iter().map(|word| quoted(word.as_bytes())).collect();
                format!("{} was not run (line {})", words.join(" "), program.line)
            }));
        }
        Err(error) => said.push(unread("the runs of programs", error)),
    }
    said
}

/// The dead letters that are missing, and those that were not expected.
fn dead(expected: &[ExpectedDeath], outcome: &Outcome, said: &mut Vec<String>) {
    let partners = matching::pairs(expected.len(), outcome.dead.len(), |death, dead| {
        let (death, dead) = (&expected[death], &outcome.dead[dead]);
        let fits = |part: &Option<String>, whole: &str| part.as_ref().is_none_or(|part| part == whole);
        fits(&death.unit, &dead.unit)
            && fits(&death.stage, &dead.stage)
            && death.message.as_ref().is_none_or(|part| dead.message.contains(part.as_str()))
    });
    for (death, _) in expected.iter().zip(&partners).filter(|(_, partner)| partner.is_none()) {
        let unit = death.unit.as_deref().unwrap_or("a unit");
        let stage = death.stage.as_ref().map_or_else(String::new, |stage| format!(" in {stage}"));
        let message = death.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
        said.push(format!("no such dead letter (line {}):\n- {unit} fails{stage}{message}", death.line));
    }
    for dead in others(&outcome.dead, &partners) {
        said.push(format!("an unexpected dead letter:\n+ {} fails in {}: {}", dead.unit, dead.stage, dead.message));
    }
}

/// The missing units, each with the unexpected unit nearest to it, and the remaining unexpected units.
fn retired(expected: &[ExpectedUnit], found: &[Retired], said: &mut Vec<String>) {
    let partners = matching::pairs(expected.len(), found.len(), |unit, retired| {
        let unit = &expected[unit];
        equal_fields(unit, &found[retired]) == unit.fields.len()
    });
    let mut rest: Vec<&Retired> = others(found, &partners).collect();
    for (unit, _) in expected.iter().zip(&partners).filter(|(_, partner)| partner.is_none()) {
        let nearest = (0..rest.len()).max_by_key(|index| (equal_fields(unit, rest[*index]), usize::MAX - index));
        let Some(nearest) = nearest.map(|index| rest.remove(index)) else {
            let fields: Vec<String> =
                unit.fields.iter().map(|(name, value)| format!("\n- {name} = {}", one_line(value))).collect();
            said.push(format!("no unit is retired with (line {}):{}", unit.line, fields.concat()));
            continue;
        };
        let mut difference = format!("the unit {} differs (line {}):", nearest.unit, unit.line);
        for (name, value) in &unit.fields {
            match nearest.fields.get(name) {
                Some(found) if found == value => {}
                Some(found) => {
                    difference += &format!("\n- {name} = {}\n+ {name} = {}", one_line(value), one_line(found));
                }
                None => difference += &format!("\n- {name} = {}\n+ {name} has no value", one_line(value)),
            }
        }
        said.push(difference);
    }
    for retired in rest {
        said.push(format!("an unexpected unit is retired:\n+ {}", retired.unit));
    }
}

/// The members of `found` that are paired with no expectation.
fn others<'a, T>(found: &'a [T], partners: &[Option<usize>]) -> impl Iterator<Item = &'a T> {
    let mut is_taken = vec![false; found.len()];
    partners.iter().flatten().for_each(|taken| is_taken[*taken] = true);
    found.iter().zip(is_taken).filter(|(_, is_taken)| !is_taken).map(|(found, _)| found)
}

fn equal_fields(unit: &ExpectedUnit, retired: &Retired) -> usize {
    unit.fields.iter().filter(|(name, value)| retired.fields.get(name) == Some(value)).count()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn one_line(value: &str) -> String {
    format!("{:?}", text::fit(value, 200))
}

fn file(expected: &ExpectedFile, trial: &Trial) -> Option<String> {
    let name = format!("{} (line {})", shown::path(&expected.path), expected.line);
    let path = trial.folder().join(&expected.path);
    match &expected.content {
        ExpectedContent::Any if path.is_file() => None,
        ExpectedContent::Missing if path.symlink_metadata().is_err() => None,
        ExpectedContent::Missing => Some(format!("{name} is there, and should not")),
        ExpectedContent::Any => Some(format!("{name} is not there")),
        ExpectedContent::Bytes(bytes) => match fs::read(&path) {
            Ok(found) => bytes_differ(&name, bytes, &found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(format!("{name} is not there")),
            Err(error) => Some(format!("{name} cannot be read: {error}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::retired;
    use crate::cases::outcome::Retired;
    use millstream_runner::file::cases::ExpectedUnit;

    #[test]
    fn a_missing_unit_is_compared_with_the_nearest_unexpected_one() {
        let expected = |pairs: &[(&str, &str)]| ExpectedUnit {
            fields: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            line: 7,
        };
        let found = |unit: &str, size: &str| Retired {
            unit: unit.to_owned(),
            fields: [("path".to_owned(), unit.to_owned()), ("size".to_owned(), size.to_owned())].into(),
        };
        let mut said = Vec::new();
        let units = [found("a", "1"), found("b", "2"), found("c", "3")];
        retired(&[expected(&[("path", "b"), ("size", "5")]), expected(&[("path", "a")])], &units, &mut said);
        assert_eq!(
            said,
            ["the unit b differs (line 7):\n- size = \"5\"\n+ size = \"2\"", "an unexpected unit is retired:\n+ c"]
        );
    }
}
