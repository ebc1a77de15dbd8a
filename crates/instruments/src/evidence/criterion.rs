//! Criteria of success.

use std::process::ExitStatus;
use std::time::Duration;

use regex::bytes::Regex;

use super::args::SuccessArgs;
use super::error::EvidenceError;
use super::number::{self, Quantity};

/// The exit statuses of a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitRule {
    /// This status.
    Status(u8),
    /// Any status of a program that was not killed.
    Any,
}

impl ExitRule {
    /// Reads a status or `any`.
    ///
    /// # Errors
    /// Returns an error if the text is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "any" => Ok(Self::Any),
            _ => text.parse().map(Self::Status).map_err(|_| "expected a status from 0 to 255, or `any`".to_owned()),
        }
    }

    fn admits(self, status: ExitStatus) -> bool {
        match self {
            Self::Status(wanted) => status.code() == Some(i32::from(wanted)),
            Self::Any => status.code().is_some(),
        }
    }
}

/// The criterion of a success: all its conditions.
#[derive(Debug, Clone)]
pub(super) struct Criterion {
    under: Option<Quantity>,
    over: Option<Quantity>,
    matches: Option<Regex>,
    exit: ExitRule,
}

impl Criterion {
    /// Returns the criterion for runs of a command.
    pub(super) fn of_runs(args: &SuccessArgs) -> Result<Self, EvidenceError> {
        for (name, limit) in [("--under", args.under), ("--over", args.over)] {
            if let Some(limit) = limit.filter(|limit| !limit.is_time) {
                let number = number::short(limit.value);
                return Err(EvidenceError::usage(format!(
                    "{name} {number}: the limit for a run is a time; write {name} {number}ms"
                )));
            }
        }
        Ok(Self { under: args.under, over: args.over, matches: args.matches.clone(), exit: args.exit })
    }

    /// Returns the criterion for lines of data.
    pub(super) fn of_data(args: &SuccessArgs) -> Result<Self, EvidenceError> {
        if args.exit != ExitRule::Status(0) {
            return Err(EvidenceError::usage("--exit is about a command, and there is none"));
        }
        Ok(Self { under: args.under, over: args.over, matches: args.matches.clone(), exit: args.exit })
    }

    /// Returns whether the criterion searches the standard output of runs.
    pub(super) fn needs_output(&self) -> bool {
        self.matches.is_some()
    }

    /// Returns whether a run was a success.
    pub(super) fn of_run(&self, status: ExitStatus, took: Duration, output: &[u8]) -> bool {
        self.exit.admits(status) && self.admits_value(took.as_secs_f64()) && self.admits_text(output)
    }

    /// Returns whether a field of data is a success.
    ///
    /// # Errors
    /// Returns the problem with the field, in words.
    pub(super) fn of_field(&self, field: &[u8]) -> Result<bool, String> {
        let text = || String::from_utf8_lossy(field);
        if self.under.is_none() && self.over.is_none() {
            return match &self.matches {
                Some(regex) => Ok(regex.is_match(field)),
                None => outcome(field).ok_or_else(|| {
                    format!(
                        "expected an outcome (1 or 0, true or false, ok or fail, pass or fail, yes or no), found `{}`; \
                         for numbers say what a success is, with --under or --over",
                        super::lines::excerpt(field)
                    )
                }),
            };
        }
        let value = super::lines::quantity(&text())?;
        for limit in [self.under, self.over].into_iter().flatten() {
            if limit.is_time != value.is_time {
                let (wanted, found) =
                    if limit.is_time { ("a time", "a bare number") } else { ("a bare number", "a time") };
                return Err(format!(
                    "expected {wanted}, like the {} it is compared with, found {found}, `{}`",
                    limit.show(),
                    text()
                ));
            }
        }
        Ok(self.admits_value(value.value) && self.admits_text(field))
    }

    fn admits_value(&self, value: f64) -> bool {
        self.under.is_none_or(|limit| value < limit.value) && self.over.is_none_or(|limit| value > limit.value)
    }

    fn admits_text(&self, text: &[u8]) -> bool {
        self.matches.as_ref().is_none_or(|regex| regex.is_match(text))
    }

    /// Returns the criterion for runs in words, which are compared with those in a state file.
    pub(super) fn describe_run(&self) -> String {
        let exit = match self.exit {
            ExitRule::Status(status) => format!("exits with {status}"),
            ExitRule::Any => "exits".to_owned(),
        };
        [exit].into_iter().chain(self.describe("takes", "prints a match of")).collect::<Vec<_>>().join(", ")
    }

    /// Returns the criterion for data, in words.
    pub(super) fn describe_field(&self) -> String {
        let parts: Vec<_> = self.describe("is", "matches").collect();
        if parts.is_empty() { "says so (1, true, ok, pass, yes)".to_owned() } else { parts.join(", ") }
    }

    fn describe(&self, is: &str, matches: &str) -> impl Iterator<Item = String> {
        let parts = [
            self.under.map(|limit| format!("{is} less than {}", limit.show())),
            self.over.map(|limit| format!("{is} more than {}", limit.show())),
            self.matches.as_ref().map(|regex| format!("{matches} /{regex}/")),
        ];
        parts.into_iter().flatten()
    }
}

/// Returns the outcome that the field names; `None` for any other field.
fn outcome(field: &[u8]) -> Option<bool> {
    const SUCCESS: [&str; 8] = ["1", "true", "ok", "pass", "passed", "success", "yes", "t"];
    const FAILURE: [&str; 9] = ["0", "false", "fail", "failed", "failure", "error", "no", "f", "not ok"];
    let is = |word: &&str| field.eq_ignore_ascii_case(word.as_bytes());
    if SUCCESS.iter().any(is) {
        Some(true)
    } else if FAILURE.iter().any(is) {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn criterion(under: Option<&str>, matches: Option<&str>, exit: ExitRule) -> Criterion {
        let under = under.map(|text| Quantity::parse(text).unwrap());
        Criterion { under, over: None, matches: matches.map(|text| Regex::new(text).unwrap()), exit }
    }

    #[test]
    fn a_run_has_to_meet_all_that_is_asked() {
        let exited = |status: i32| ExitStatus::from_raw(status << 8);
        let killed = ExitStatus::from_raw(9);
        let quick = Duration::from_millis(10);
        let both = criterion(Some("50ms"), Some("^ok"), ExitRule::Status(0));
        assert!(both.of_run(exited(0), quick, b"ok then"));
        assert!(!both.of_run(exited(1), quick, b"ok then"));
        assert!(!both.of_run(exited(0), Duration::from_millis(50), b"ok then"), "50 ms is not less than 50 ms");
        assert!(!both.of_run(exited(0), quick, b"not ok"));
        let any = criterion(None, None, ExitRule::Any);
        assert!(any.of_run(exited(7), quick, b"") && !any.of_run(killed, quick, b""));
        assert_eq!(both.describe_run(), "exits with 0, takes less than 50ms, prints a match of /^ok/");
    }

    #[test]
    fn outcomes_have_words() {
        let plain = criterion(None, None, ExitRule::Status(0));
        for (field, success) in [("1", true), ("OK", true), ("fail", false), ("False", false), ("0", false)] {
            assert_eq!(plain.of_field(field.as_bytes()), Ok(success), "{field}");
        }
        for field in ["", "2", "0.5", "maybe", "\u{e9}"] {
            assert!(plain.of_field(field.as_bytes()).unwrap_err().contains("expected an outcome"), "{field}");
        }
    }

    #[test]
    fn values_are_compared_with_thresholds_of_their_kind() {
        let number = criterion(Some("50"), None, ExitRule::Status(0));
        assert_eq!(number.of_field(b"49.9"), Ok(true));
        assert_eq!(number.of_field(b"50"), Ok(false));
        assert!(number.of_field(b"50ms").unwrap_err().contains("expected a bare number"));
        assert!(number.of_field(b"NaN").is_err());
        let over = Criterion { under: None, over: Some(Quantity::parse("50").unwrap()), ..number };
        assert_eq!((over.of_field(b"50"), over.of_field(b"50.1")), (Ok(false), Ok(true)), "50 is not more than 50");
        let time = criterion(Some("50ms"), None, ExitRule::Status(0));
        assert_eq!(time.of_field(b"1.5ms"), Ok(true));
        assert!(time.of_field(b"1.5").unwrap_err().contains("expected a time"));
    }
}
