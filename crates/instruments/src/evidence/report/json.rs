//! The answer as one JSON object on one line; numbers have 17 significant digits, and null means that a value is
//! unknown.

use super::super::answer::Answer;
use super::super::json::Object;
use millstream_csm::Verdict;

/// Returns the object's text and a line end.
pub(in crate::evidence) fn json(answer: &Answer) -> String {
    let view = &answer.view;
    let interval = Object::new().number("low", view.interval.low).number("high", view.interval.high);
    let object = Object::new()
        .text("verdict", answer.word())
        .flag("holds", view.verdict().map(|verdict| verdict == Verdict::Holds))
        .text("claim", answer.claim().as_str())
        .number("error", answer.stated.error)
        .text("method", answer.method.as_str())
        .text("of", answer.subject.of.as_str())
        .text("rule", answer.subject.rule.as_str())
        .count("trials", view.trials)
        .count("trials_kept", answer.kept)
        .count("successes", view.successes)
        .maybe(if answer.range.is_some() { "mean" } else { "rate" }, view.estimate)
        .object("interval", &interval)
        .maybe("level", view.level.map(|(level, _)| level))
        .maybe("log_eps", view.level.map(|(_, log_eps)| log_eps))
        .text("undecided_because", answer.reason())
        .text("first_failure", answer.first_failure.as_deref())
        .number("wall_s", answer.wall.as_secs_f64());
    format!("{}\n", object.done())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample;
    use super::*;

    #[test]
    fn every_figure_is_there() {
        let value: Value = serde_json::from_str(&json(&sample::answer(sample::FAILS))).unwrap();
        assert_eq!(value["verdict"], "fails");
        assert_eq!(value["holds"], false);
        assert_eq!(value["trials"], 4000);
        assert_eq!(value["successes"], 3972);
        assert_eq!(value["rate"], 0.993);
        assert_eq!(value["interval"]["low"], 0.9875);
        assert_eq!(value["error"], 1e-3);
        assert!(value["undecided_because"].is_null());
        let value: Value = serde_json::from_str(&json(&sample::answer(millstream_csm::Progress::Running))).unwrap();
        assert!(value["holds"].is_null());
        assert_eq!(value["undecided_because"], "the limit was reached");
    }
}
