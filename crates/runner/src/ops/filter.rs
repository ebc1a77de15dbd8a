//! `filter`: separates the units for which a condition is true from the others.

use std::cmp::Ordering;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use millstream_flow::{Cx, Failure};

use super::Op;
use super::failing::io_failure;
use super::safe_path::PathTemplate;
use super::{Moment, Number, same};
use crate::file::model::{Bound, Condition, TextTest};
use crate::file::template::{Fields as _, Template};
use crate::record::Record;

/// See the [module](self).
pub(super) struct Filter {
    when: Test,
}

impl Filter {
    pub(super) fn new(when: &Condition) -> Self {
        Self { when: Test::new(when) }
    }
}

impl Op for Filter {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        record.filtered = !self.when.holds(record, cx)?;
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

/// A condition of the flow file. Its paths are [`PathTemplate`]s, so that data cannot lead out of the author's folder.
enum Test {
    Exists(PathTemplate),
    Missing(PathTemplate),
    Content { path: PathTemplate, zstd: bool },
    Has(Template),
    Stale { target: PathTemplate, than: PathTemplate },
    Number { number: Template, bounds: Vec<(Bound, Template)> },
    Date { date: Template, bounds: Vec<(Bound, Template)> },
    Text { text: Template, test: TextTest },
    Size { at_least: u64, below: Option<u64> },
    Not(Box<Test>),
    All(Vec<Test>),
    Any(Vec<Test>),
}

impl Test {
    fn new(condition: &Condition) -> Self {
        match condition {
            Condition::Exists(path) => Self::Exists(PathTemplate::new(path)),
            Condition::Missing(path) => Self::Missing(PathTemplate::new(path)),
            Condition::Content { path, zstd } => Self::Content { path: PathTemplate::new(path), zstd: *zstd },
            Condition::Has(text) => Self::Has(text.clone()),
            Condition::Stale { target, than } => {
                Self::Stale { target: PathTemplate::new(target), than: PathTemplate::new(than) }
            }
            Condition::Number { number, bounds } => Self::Number { number: number.clone(), bounds: bounds.clone() },
            Condition::Date { date, bounds } => Self::Date { date: date.clone(), bounds: bounds.clone() },
            Condition::Text { text, test } => Self::Text { text: text.clone(), test: test.clone() },
            Condition::Size { at_least, below } => Self::Size { at_least: *at_least, below: *below },
            Condition::Not(inner) => Self::Not(Box::new(Self::new(inner))),
            Condition::All(inner) => Self::All(inner.iter().map(Self::new).collect()),
            Condition::Any(inner) => Self::Any(inner.iter().map(Self::new).collect()),
        }
    }

    fn holds(&self, record: &Record, cx: &Cx<'_>) -> Result<bool, Failure> {
        Ok(match self {
            Self::Exists(path) => exists(path, record)?,
            Self::Missing(path) => !exists(path, record)?,
            Self::Content { path, zstd } => same::has_content(&path.render(record)?, *zstd, &record.payload, cx)?,
            Self::Has(text) => text.fields().all(|(field, _)| record.field(field).is_some()),
            Self::Stale { target, than } => older(&target.render(record)?, &than.render(record)?)?,
            Self::Number { number, bounds } => {
                is_within(number, bounds, record, "number", Number::parse, Number::order)?
            }
            Self::Date { date, bounds } => is_within(date, bounds, record, "date", Moment::parse, Moment::order)?,
            Self::Text { text, test } => text_holds(&rendered(text, record)?, test, record)?,
            Self::Size { at_least, below } => {
                let size = record.known_size();
                size >= *at_least && below.is_none_or(|below| size < below)
            }
            Self::Not(inner) => !inner.holds(record, cx)?,
            Self::All(inner) => {
                for test in inner {
                    if !test.holds(record, cx)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Any(inner) => {
                for test in inner {
                    if test.holds(record, cx)? {
                        return Ok(true);
                    }
                }
                false
            }
        })
    }
}

/// Whether this path names a file of any kind. A dangling link counts.
fn exists(path: &PathTemplate, record: &Record) -> Result<bool, Failure> {
    let path = path.render(record)?;
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(io_failure("look for", &path, &error)),
    }
}

/// Whether [`Condition::Stale`] is true for a unit.
///
/// # Errors
/// A path template gives no path for this unit, or the file system reports an error.
pub fn is_stale(target: &Template, than: &Template, record: &Record) -> Result<bool, Failure> {
    older(&PathTemplate::new(target).render(record)?, &PathTemplate::new(than).render(record)?)
}

/// Whether `target` is missing or older than `than`. A target that exists is never older than a missing `than`.
fn older(target: &Path, than: &Path) -> Result<bool, Failure> {
    let Some(made) = modified(target)? else { return Ok(true) };
    Ok(modified(than)?.is_some_and(|changed| changed > made))
}

/// The time at which the file was last modified; `None` if there is no file.
fn modified(path: &Path) -> Result<Option<SystemTime>, Failure> {
    match path.metadata().and_then(|about| about.modified()) {
        Ok(time) => Ok(Some(time)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(io_failure("look at", path, &error)),
    }
}

/// Parses the rendered `text` and each bound with `parse`. Returns whether the value of the text is within all bounds.
/// `kind` is the name of such a value in messages.
fn is_within<T: Copy>(
    text: &Template,
    bounds: &[(Bound, Template)],
    record: &Record,
    kind: &str,
    parse: impl Fn(&[u8]) -> Option<T>,
    compare: impl Fn(T, T) -> Ordering,
) -> Result<bool, Failure> {
    let value = |template: &Template| {
        let text = rendered(template, record)?;
        parse(&text).ok_or_else(|| {
            Failure::permanent(format!("`{template}` is not a {kind}: {}", String::from_utf8_lossy(&text)))
        })
    };
    let found = value(text)?;
    for (bound, limit) in bounds {
        let order = compare(found, value(limit)?);
        let holds = match bound {
            Bound::Equals => order.is_eq(),
            Bound::AtLeast => order.is_ge(),
            Bound::Above => order.is_gt(),
            Bound::AtMost => order.is_le(),
            Bound::Below => order.is_lt(),
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

fn text_holds(text: &[u8], test: &TextTest, record: &Record) -> Result<bool, Failure> {
    Ok(match test {
        TextTest::Equals(other) => text == rendered(other, record)?,
        TextTest::OneOf(others) => {
            for other in others {
                if text == rendered(other, record)? {
                    return Ok(true);
                }
            }
            false
        }
        TextTest::Contains(part) => {
            let part = rendered(part, record)?;
            part.is_empty() || text.windows(part.len()).any(|window| window == part)
        }
        TextTest::Matches(expression) => expression.is_match(text),
        TextTest::StartsWith(start) => text.starts_with(&rendered(start, record)?),
        TextTest::EndsWith(end) => text.ends_with(&rendered(end, record)?),
    })
}

fn rendered(template: &Template, record: &Record) -> Result<Vec<u8>, Failure> {
    template.render(record).map_err(|error| Failure::from(error).to_permanent())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use std::time::SystemTime;

    use regex::bytes::Regex;

    use super::Filter;
    use crate::file::model::{Bound, Condition, TextTest};
    use crate::file::template::Template;
    use crate::ops::one_stage::run;
    use crate::record::Record;

    fn template(text: &str) -> Template {
        Template::parse(text).unwrap()
    }

    fn passes(when: &Condition, path: &str) -> bool {
        let mut record = Record::line(path.into());
        record.size = Some(100);
        !run(Filter::new(when), record).unwrap().filtered
    }

    fn text(field: &str, test: TextTest) -> Condition {
        Condition::Text { text: template(field), test }
    }

    #[test]
    fn text_tests_compare_bytes() {
        let one_of = text("{ext}", TextTest::OneOf(vec![template("rs"), template("toml")]));
        assert!(passes(&one_of, "a/b.rs") && passes(&one_of, "Cargo.toml") && !passes(&one_of, "b.RS"));
        assert!(passes(&text("{name}", TextTest::Contains(template("ab"))), "x/cabd"));
        assert!(!passes(&text("{name}", TextTest::Contains(template("ab"))), "ab/cd"));
        assert!(passes(&text("{name}", TextTest::Contains(template(""))), "x"));
        assert!(passes(&text("{name}", TextTest::StartsWith(template("c"))), "x/cabd"));
        assert!(passes(&text("{name}", TextTest::EndsWith(template("{ext}"))), "x/a.b"));
        assert!(passes(&text("{stem}", TextTest::Equals(template("a"))), "x/a.b"));
    }

    #[test]
    fn sizes_include_the_lower_end_only() {
        for (at_least, below, expected) in
            [(100, None, true), (101, None, false), (0, Some(100), false), (0, Some(101), true)]
        {
            assert_eq!(passes(&Condition::Size { at_least, below }, "x"), expected, "{at_least}..{below:?}");
        }
    }

    #[test]
    fn existing_and_missing_ask_the_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let path = template(&format!("{}/{{line}}", folder.path().display()));
        std::os::unix::fs::symlink("/nowhere/at/all", folder.path().join("link")).unwrap();
        assert!(passes(&Condition::Exists(path.clone()), "link"));
        assert!(!passes(&Condition::Missing(path.clone()), "link"));
        assert!(passes(&Condition::Missing(path.clone()), "other"));
        assert!(passes(&Condition::Missing(path), "link/below"));
    }

    #[test]
    fn numbers_lie_within_all_bounds() {
        let number = |bounds: &[(Bound, &str)]| Condition::Number {
            number: template("{line}"),
            bounds: bounds.iter().map(|(bound, limit)| (*bound, template(limit))).collect(),
        };
        let within = number(&[(Bound::AtLeast, "2"), (Bound::Below, "10")]);
        for (line, expected) in [("1", false), ("2", true), ("9.99", true), ("10", false), ("1e1", false)] {
            assert_eq!(passes(&within, line), expected, "{line}");
        }
        assert!(passes(&number(&[(Bound::Above, "1")]), "2") && !passes(&number(&[(Bound::Above, "2")]), "2"));
        let at_most = number(&[(Bound::AtMost, "{size}")]);
        assert!(passes(&at_most, "100") && !passes(&at_most, "101"));
        assert!(passes(&number(&[(Bound::Equals, "7.0")]), "7"));
        let error = run(Filter::new(&within), Record::line(b"many".to_vec())).unwrap_err();
        assert!(error.contains("`{line}` is not a number: many"), "{error}");
    }

    #[test]
    fn a_unit_has_the_fields_that_have_a_value() {
        let has = |text: &str| Condition::Has(template(text));
        assert!(passes(&has("{line}{name}"), "x") && passes(&has("no field"), "x"));
        assert!(!passes(&has("{line}{blake3}"), "x"));
    }

    #[test]
    fn a_regular_expression_matches_anywhere_unless_it_is_anchored() {
        let matches = |expression: &str| text("{line}", TextTest::Matches(Regex::new(expression).unwrap()));
        assert!(passes(&matches("b+c"), "abbcd") && !passes(&matches("^b+c$"), "abbcd"));
        assert!(passes(&matches("(?i)^é"), "ÉT"));
    }

    #[test]
    fn a_target_is_stale_when_it_is_missing_or_older() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let stale = |target: &str| {
            let when = Condition::Stale { target: template(path(target).to_str().unwrap()), than: template("{path}") };
            passes(&when, path("source").to_str().unwrap())
        };
        let at = |name: &str, seconds| {
            let file = std::fs::File::create(path(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
        };
        assert!(stale("target"));
        at("target", 100);
        assert!(!stale("target"), "there is no source");
        for (source, expected) in [(99, false), (100, false), (101, true)] {
            at("source", source);
            assert_eq!(stale("target"), expected, "{source}");
        }
    }

    #[test]
    fn a_content_is_compared_with_the_whole_payload() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let holds = |name: &str, zstd: bool, payload: &[u8]| {
            let when = Condition::Content { path: template(path(name).to_str().unwrap()), zstd };
            !run(Filter::new(&when), Record::holding(payload)).unwrap().filtered
        };
        for content in [b"content".to_vec(), (0..700_000_u32).flat_map(u32::to_le_bytes).collect()] {
            std::fs::write(path("plain"), &content).unwrap();
            let mut streamed = zstd::Encoder::new(Vec::new(), 1).unwrap();
            streamed.write_all(&content).unwrap();
            let streamed = streamed.finish().unwrap();
            assert!(holds("plain", false, &content) && !holds("plain", true, &content));
            assert!(!holds("plain", false, &content[1..]) && !holds("plain", false, &[&content[..], b"x"].concat()));
            for packed in [zstd::bulk::compress(&content, 3).unwrap(), streamed] {
                std::fs::write(path("packed"), &packed).unwrap();
                assert!(holds("packed", true, &content) && !holds("packed", false, &content));
                let mut other = content.clone();
                *other.last_mut().unwrap() ^= 1;
                for other in [&other, &content[1..], b""] {
                    assert!(!holds("packed", true, other));
                }
                for damaged in [&packed[..0], &packed[..packed.len() - 1], &packed[1..], &[&packed[..], b"x"].concat()]
                {
                    std::fs::write(path("packed"), damaged).unwrap();
                    assert!(!holds("packed", true, &content), "{} of {} bytes", damaged.len(), packed.len());
                }
            }
        }
        std::os::unix::fs::symlink("/nowhere/at/all", path("dangling")).unwrap();
        for name in ["none", "plain/below", "dangling", "."] {
            assert!(!holds(name, false, b"") && !holds(name, true, b""), "{name}");
        }
    }

    #[test]
    fn conditions_combine() {
        let yes = || Condition::Size { at_least: 0, below: None };
        let no = || Condition::Not(Box::new(yes()));
        assert!(passes(&Condition::All(vec![yes(), yes()]), "x") && !passes(&Condition::All(vec![yes(), no()]), "x"));
        assert!(passes(&Condition::Any(vec![no(), yes()]), "x") && !passes(&Condition::Any(vec![no(), no()]), "x"));
        assert!(passes(&Condition::All(vec![]), "x") && !passes(&Condition::Any(vec![]), "x"));
    }

    #[test]
    fn a_condition_on_what_is_not_known_is_a_failure() {
        let when = text("{blake3}", TextTest::Equals(template("x")));
        assert!(run(Filter::new(&when), Record::line(b"x".to_vec())).unwrap_err().contains("blake3"));
    }
}
