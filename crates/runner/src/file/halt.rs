//! The policy that halts a run in which too many units fail.

use std::fmt;

use millstream_command::screen::text;

/// The minimum number of failures before a share counts: otherwise one failure among the first two units would be 50%.
pub const MIN_FAILURES: u64 = 3;

/// The condition under which a run admits no more units and starts no more work, because too many units have failed for
/// good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HaltPolicy {
    /// Whether running ops are ended as well.
    pub now: bool,
    /// The number or share of failures at which the run halts.
    pub at: TooMany,
}

/// A number or a share of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMany {
    /// This number of units.
    Units(u64),
    /// This share, in percent, of the units that have left the flow, and at least [`MIN_FAILURES`].
    Percent(u8),
}

impl HaltPolicy {
    /// Reads `5`, `10%`, `now,5` or `soon,10%`; also the form of GNU parallel, `now,fail=1`.
    ///
    /// # Errors
    /// The text has none of these forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = || "expected a number of failures or a share of the units, `5` or `10%`, or `now,5`".to_owned();
        let (now, at) = match text.split_once(',') {
            Some(("now", at)) => (true, at),
            Some(("soon", at)) => (false, at),
            Some(_) => return Err(expected()),
            None => (false, text),
        };
        let at = at.strip_prefix("fail=").unwrap_or(at);
        let at = match at.strip_suffix('%') {
            Some(percent) => match percent.parse() {
                Ok(percent @ 1..=100) => TooMany::Percent(percent),
                _ => return Err(format!("a share is from 1% to 100%, not `{at}`")),
            },
            None => match at.parse() {
                Ok(0) => return Err("a run that halts at zero failures would not begin".to_owned()),
                Ok(units) => TooMany::Units(units),
                Err(_) => return Err(expected()),
            },
        };
        Ok(Self { now, at })
    }

    /// The policy in words.
    pub fn in_words(&self) -> String {
        let at = match self.at {
            TooMany::Units(units) => text::counted(units, "dead letter"),
            TooMany::Percent(percent) => format!("{percent} dead letters of 100 units, and at least {MIN_FAILURES}"),
        };
        format!("after {at}{}", if self.now { ", at once" } else { "" })
    }

    /// Whether `dead` failures among `ended` units, including the failed ones, are too many.
    pub fn is_reached(&self, dead: u64, ended: impl FnOnce() -> u64) -> bool {
        match self.at {
            TooMany::Units(units) => dead >= units,
            TooMany::Percent(percent) => {
                dead >= MIN_FAILURES && u128::from(dead) * 100 >= u128::from(ended().max(dead)) * u128::from(percent)
            }
        }
    }
}

impl fmt::Display for HaltPolicy {
    /// The form that [`parse`](Self::parse) reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.now { "now," } else { "" })?;
        match self.at {
            TooMany::Units(units) => write!(f, "{units}"),
            TooMany::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HaltPolicy, TooMany};

    #[test]
    fn policies_are_read_and_written() {
        for (text, now, at) in [
            ("5", false, TooMany::Units(5)),
            ("soon,10%", false, TooMany::Percent(10)),
            ("now,1", true, TooMany::Units(1)),
            ("now,fail=100%", true, TooMany::Percent(100)),
        ] {
            let policy = HaltPolicy::parse(text).unwrap();
            assert_eq!(policy, HaltPolicy { now, at }, "{text}");
            assert_eq!(HaltPolicy::parse(&policy.to_string()), Ok(policy));
        }
        for wrong in ["", "0", "-1", "0%", "101%", "%", "later,5", "now", "now,", "5,now", "1.5", "success=1"] {
            assert!(HaltPolicy::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_share_needs_a_few_failures() {
        let policy = HaltPolicy::parse("10%").unwrap();
        assert!(!policy.is_reached(2, || 2));
        assert!(policy.is_reached(3, || 30) && !policy.is_reached(3, || 31));
        assert!(policy.is_reached(3, || 0), "units are counted a moment later than they fail");
        assert!(HaltPolicy::parse("2").unwrap().is_reached(2, || u64::MAX));
    }
}
