//! The answer as a JUnit file of one test case.
//!
//! A claim that fails to hold is a `failure`, and an undecided claim is an `error`. After an undecided claim, the build
//! must not continue as if the claim had passed, but the test has not found a fault either.

use millstream_command::screen::look::Look;
use millstream_command::screen::xml::escape;
use millstream_csm::Verdict;

use super::super::answer::Answer;
use super::text;

/// Returns the file.
pub(in crate::evidence) fn junit(answer: &Answer) -> String {
    let (failures, errors, element) = match answer.view.verdict() {
        Some(Verdict::Holds) => (0, 0, None),
        Some(Verdict::Fails) => (1, 0, Some("failure")),
        None => (0, 1, Some("error")),
    };
    let claim = escape(&answer.claim());
    let report = escape(&text::text(answer, Look::FILE));
    let seconds = format!("{:.3}", answer.wall.as_secs_f64());
    let body = match element {
        Some(element) => format!(
            "<{element} message=\"{}\" type=\"{}\">{report}</{element}>",
            escape(&answer.finding()),
            answer.word(),
        ),
        None => format!("<system-out>{report}</system-out>"),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites tests=\"1\" failures=\"{failures}\" errors=\"{errors}\" time=\"{seconds}\">\n\
         <testsuite name=\"millstream slo\" tests=\"1\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\" time=\"{seconds}\">\n\
         <testcase classname=\"{of}\" name=\"{claim}\" time=\"{seconds}\">{body}</testcase>\n\
         </testsuite>\n</testsuites>\n",
        of = escape(&answer.subject.of),
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn each_verdict_is_its_own_element() {
        let holds = junit(&sample::answer(sample::HOLDS));
        assert!(
            !holds.contains("<failure") && !holds.contains("<error") && holds.contains("failures=\"0\" errors=\"0\"")
        );
        let fails = junit(&sample::answer(sample::FAILS));
        assert!(fails.contains("<failure message=\"fails: the rate of success is not at least 0.98\""), "{fails}");
        assert!(fails.contains("failures=\"1\" errors=\"0\""));
        let undecided = junit(&sample::answer(millstream_csm::Progress::Running));
        assert!(undecided.contains("<error message=") && undecided.contains("failures=\"0\" errors=\"1\""));
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let file = junit(&sample::answer(sample::FAILS));
        assert!(file.contains("classname=\"curl &lt;http://x&gt;\""), "{file}");
        assert!(file.contains("&quot;no&quot; &amp; so on"), "{file}");
        assert_eq!(file.matches('<').count(), file.matches('>').count());
    }
}
