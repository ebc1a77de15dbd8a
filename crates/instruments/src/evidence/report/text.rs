//! The answer as a few lines for a person.

use millstream_command::screen::look::{Look, Paint};
use millstream_command::screen::text;

use super::super::answer::{Answer, Ended};
use super::super::number;

/// Returns the lines, each with its line end.
///
/// ```text
/// holds: the rate of success is at least 0.98
///   observed      4,000 runs of `curl …`, 3,972 successes, rate 0.993
///   …
/// ```
pub(in crate::evidence) fn text(answer: &Answer, look: Look) -> String {
    let paint = match answer.word() {
        "holds" => Paint::Good,
        "fails" => Paint::Bad,
        _ => Paint::Strong,
    };
    let mut out = format!("{}\n", answer.finding().replacen(answer.word(), &look.paint(paint, answer.word()), 1));
    let mut line = |name: &str, value: &str| {
        out += &format!("  {} {}\n", look.paint(Paint::Faint, &format!("{name:<13}")), text::printable(value));
    };
    if let Some(reason) = answer.reason() {
        line("because", reason);
    }
    line("observed", &observed(answer));
    if !answer.subject.rule.is_empty() {
        line(if answer.range.is_some() { "a value" } else { "a success" }, &answer.subject.rule);
    }
    line("interval", &format!("{}, right at all times at once", answer.interval()));
    line(
        "wrong",
        &format!("with a probability of at most {}, verdict and interval together", number::short(answer.stated.error)),
    );
    line("method", &answer.method);
    if answer.ended != Ended::Before {
        line("took", &text::seconds(answer.wall.as_secs_f64()));
    }
    if let Some(failure) = &answer.first_failure {
        line("first failure", failure);
    }
    out
}

/// Returns the observations, on one line.
pub(in crate::evidence) fn observed(answer: &Answer) -> String {
    let view = &answer.view;
    let mut line = format!("{} of {}", text::counted(view.trials, answer.subject.noun), answer.subject.of);
    if let Some(successes) = view.successes {
        line += &format!(
            ", {}",
            match successes {
                1 => "1 success".to_owned(),
                _ => format!("{} successes", text::count(successes)),
            }
        );
    }
    if let Some(estimate) = view.estimate {
        let what = if answer.range.is_some() { "mean" } else { "rate" };
        line += &format!(", {what} {}", answer.stated.show(estimate));
    }
    match (answer.kept, answer.ended) {
        (0, _) => {}
        (_, Ended::Before) => line += "; all of it from before, which already decides",
        (kept, _) => line += &format!("; {} of them from before", text::count(kept)),
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_first_line_is_the_verdict() {
        let text = text(&sample::answer(sample::HOLDS), Look::FILE);
        assert!(text.starts_with("holds: the rate of success is at least 0.98\n"), "{text}");
        assert!(text.contains("4,000 runs of curl <http://x>, 3,972 successes, rate 0.993\n"), "{text}");
        assert!(text.contains("0.9875 to 0.9968"), "{text}");
        assert!(text.contains("at most 0.001"), "{text}");
    }

    #[test]
    fn what_is_undecided_says_why() {
        let answer = sample::answer(millstream_csm::Progress::Running);
        let text = text(&answer, Look::FILE);
        assert!(text.starts_with("undecided: whether the rate of success is at least 0.98\n"), "{text}");
        assert!(text.contains("the limit was reached"), "{text}");
    }
}
