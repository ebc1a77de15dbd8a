//! Claims: read from the command line, and turned into questions for the mathematics and into words.

use millstream_csm::means::MeanSetup;
use millstream_csm::{Claim, Driver, Interval, Method, Setup, Verdict};

use super::args::ClaimArgs;
use super::error::EvidenceError;
use super::number::{self, Quantity};

/// A claim, and how its thresholds were written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stated {
    pub(super) claim: Claim,
    pub(super) error: f64,
    pub(super) method: Option<Method>,
    /// Whether the thresholds are times.
    pub(super) is_time: bool,
}

impl Stated {
    /// Returns the claim of a command line.
    pub(super) fn new(args: &ClaimArgs) -> Result<Self, EvidenceError> {
        let (claim, quantity) = match (args.at_least, args.at_most, args.between) {
            (Some(low), Some(high), _) => {
                same_kind(low, high)?;
                (Claim::Within { low: low.value, high: high.value }, low)
            }
            (Some(low), None, _) => (Claim::AtLeast(low.value), low),
            (None, Some(high), _) => (Claim::AtMost(high.value), high),
            (None, None, Some((low, high))) => (Claim::Between { low: low.value, high: high.value }, low),
            (None, None, None) => {
                return Err(EvidenceError::usage("nothing is claimed: give --at-least, --at-most or --between"));
            }
        };
        Ok(Self { claim, error: args.error, method: args.method, is_time: quantity.is_time })
    }

    /// Returns the question of whether a rate of success is as claimed.
    pub(super) fn rate(&self) -> Result<Setup, EvidenceError> {
        if self.is_time {
            return Err(EvidenceError::usage(format!(
                "{}: a rate is a number from 0 to 1; to claim something about times add --mean, or say what a success is \
                 with --under and claim a rate of successes with --at-least 0.99",
                self.words()
            )));
        }
        let mut setup = Setup::new(self.claim, self.error);
        if let Some(method) = self.method {
            setup = setup.method(method);
        }
        // Creating a driver checks the set-up. The cost is small, because the results that this driver computes are
        // cached for the next one.
        Driver::new(&setup).map_err(EvidenceError::Question)?;
        Ok(setup)
    }

    /// Returns the question of whether the mean of values within `range` is as claimed.
    pub(super) fn mean(&self, range: (Quantity, Quantity)) -> Result<MeanSetup, EvidenceError> {
        if let Some(method) = self.method {
            return Err(EvidenceError::usage(format!("--method {method} is for rates; a mean has one method only")));
        }
        if self.is_time != range.0.is_time {
            return Err(EvidenceError::usage(format!(
                "the claim ({}) and the range of the values ({}..{}): one is a time and the other is not",
                self.words(),
                range.0.show(),
                range.1.show()
            )));
        }
        Ok(MeanSetup::new(self.claim, self.error, range.0.value, range.1.value))
    }

    /// Returns the thresholds, the smaller one first.
    pub(super) fn thresholds(&self) -> Vec<f64> {
        match self.claim {
            Claim::AtLeast(threshold) | Claim::AtMost(threshold) => vec![threshold],
            Claim::Within { low, high } | Claim::Between { low, high } => vec![low, high],
        }
    }

    /// Formats a value for display, in the unit of the thresholds.
    pub(super) fn show(&self, value: f64) -> String {
        if self.is_time { time(value, number::short) } else { number::short(value) }
    }

    /// Formats an interval for display, rounded outwards.
    pub(super) fn show_interval(&self, interval: Interval) -> String {
        let show = |value: f64, round: fn(f64) -> String| match (value.is_finite(), self.is_time) {
            (false, _) => "anything".to_owned(),
            (true, true) => time(value, round),
            (true, false) => round(value),
        };
        format!("{} to {}", show(interval.low, number::short_low), show(interval.high, number::short_high))
    }

    /// Returns the claim in words: `at least 0.99`.
    pub(super) fn words(&self) -> String {
        self.words_with(|value| self.show(value))
    }

    /// Returns the verdict in words: `at least 0.99`, `not at least 0.99`.
    pub(super) fn found(&self, verdict: Verdict) -> String {
        match (verdict, self.claim) {
            (Verdict::Holds, Claim::Between { low, .. }) => format!("above {}", self.show(low)),
            (Verdict::Fails, Claim::Between { high, .. }) => format!("below {}", self.show(high)),
            (Verdict::Holds, _) => self.words(),
            (Verdict::Fails, _) => format!("not {}", self.words()),
        }
    }

    /// Returns the claim in exact words, which a state file must match.
    pub(super) fn exact_words(&self) -> String {
        let unit = if self.is_time { " s" } else { "" };
        self.words_with(|value| format!("{}{unit}", number::exact(value)))
    }

    fn words_with(&self, show: impl Fn(f64) -> String) -> String {
        match self.claim {
            Claim::AtLeast(threshold) => format!("at least {}", show(threshold)),
            Claim::AtMost(threshold) => format!("at most {}", show(threshold)),
            Claim::Within { low, high } => format!("at least {} and at most {}", show(low), show(high)),
            Claim::Between { low, high } => format!("above {} rather than below {}", show(low), show(high)),
        }
    }
}

/// Formats a time, given in seconds, in a suitable unit.
pub(super) fn time(seconds: f64, round: fn(f64) -> String) -> String {
    let (factor, unit) = match seconds.abs() {
        0.0 => return "0 s".to_owned(),
        s if s < 1e-6 => (1e9, "ns"),
        s if s < 1e-3 => (1e6, "µs"),
        s if s < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    format!("{} {unit}", round(seconds * factor))
}

fn same_kind(low: Quantity, high: Quantity) -> Result<(), EvidenceError> {
    if low.is_time == high.is_time {
        return Ok(());
    }
    Err(EvidenceError::usage("--at-least and --at-most must both be times or both be numbers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(claim: Claim) -> Stated {
        Stated { claim, error: 1e-6, method: None, is_time: false }
    }

    #[test]
    fn words_for_people_are_short_and_words_for_a_state_file_are_exact() {
        let claim = stated(Claim::Within { low: 0.1, high: 1.0 / 3.0 });
        assert_eq!(claim.words(), "at least 0.1 and at most 0.333333");
        assert_eq!(claim.exact_words(), "at least 0.10000000000000001 and at most 0.33333333333333331");
        let between = stated(Claim::Between { low: 0.96, high: 0.98 });
        assert_eq!(between.words(), "above 0.96 rather than below 0.98");
        assert_eq!(
            (between.found(Verdict::Holds), between.found(Verdict::Fails)),
            ("above 0.96".into(), "below 0.98".into())
        );
        let time = Stated { is_time: true, ..stated(Claim::AtMost(0.03)) };
        assert_eq!(
            (time.words(), time.exact_words()),
            ("at most 30 ms".into(), "at most 0.029999999999999999 s".into())
        );
    }
}
