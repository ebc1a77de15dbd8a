//! `--goal`: a bound on a number of a run.

use millstream_command::time;

use super::answer::Answer;

/// A bound on a number of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Goal {
    text: String,
    bound: Bound,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    WallBelow(f64),
    MedianBelow(f64),
    TailBelow(f64),
    ThroughputAbove(f64),
}

impl Goal {
    /// Parses `wall<10m`, `p50<TIME`, `p99<200ms` or `throughput>100/s`.
    ///
    /// # Errors
    /// The text has none of these forms.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let expected = || "expected wall<TIME, p50<TIME, p99<TIME or throughput>RATE, such as p99<200ms".to_owned();
        let bound = if let Some((what, limit)) = text.split_once('<') {
            let seconds = time::parse(limit.trim()).map_err(|error| format!("{error}; {}", expected()))?.as_secs_f64();
            match what.trim() {
                "wall" => Bound::WallBelow(seconds),
                "p50" => Bound::MedianBelow(seconds),
                "p99" => Bound::TailBelow(seconds),
                _ => return Err(expected()),
            }
        } else if let Some(("throughput", limit)) = text.split_once('>').map(|(what, limit)| (what.trim(), limit)) {
            Bound::ThroughputAbove(time::parse_rate(limit.trim()).map_err(|error| format!("{error}; {}", expected()))?)
        } else {
            return Err(expected());
        };
        Ok(Goal { text: text.to_owned(), bound })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns how far an answer is from the goal, as a ratio. The ratio is at most 1 if the answer reaches the goal.
    pub(super) fn distance(&self, answer: &Answer) -> f64 {
        match self.bound {
            Bound::WallBelow(limit) => answer.wall_s / limit,
            Bound::MedianBelow(limit) => answer.p50_s / limit,
            Bound::TailBelow(limit) => answer.p99_s / limit,
            Bound::ThroughputAbove(limit) => limit / answer.throughput,
        }
    }

    pub(super) fn is_reached(&self, answer: &Answer) -> bool {
        self.distance(answer) < 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_bounds_of_known_numbers() {
        let answer = Answer { wall_s: 10.0, p50_s: 0.1, p99_s: 0.3, throughput: 50.0, ..Answer::default() };
        for (goal, reached) in [
            ("wall<11s", true),
            ("wall<10s", false),
            ("p50<200ms", true),
            ("p99<200ms", false),
            ("throughput>40/s", true),
        ] {
            assert_eq!(Goal::parse(goal).unwrap().is_reached(&answer), reached, "{goal}");
        }
        for wrong in ["", "p99", "p99<", "p99>3s", "p95<3s", "wall<fast", "throughput>many"] {
            assert!(Goal::parse(wrong).unwrap_err().contains("p99<200ms"), "{wrong}");
        }
    }
}
