//! `millstream slo`: observes until a claim is decided.

use std::process::ExitCode;
use std::time::Instant;

use millstream_command::screen::look::Look;
use millstream_csm::Driver;
use millstream_csm::means::{MeanDriver, Moments};
use serde_json::Value;

use super::answer::{Answer, Ended, Subject};
use super::args::{SloArgs, SloCommand};
use super::bar::Bar;
use super::claim::Stated;
use super::decide::{Decider, Question};
use super::error::EvidenceError;
use super::jobs::End;
use super::source::{Session, Source};
use super::state::{StateFile, Terms};
use super::{ended, number, plan, print, report};

/// Decides a claim and returns the exit status.
pub(crate) fn slo(args: &SloArgs) -> ExitCode {
    match &args.other {
        Some(SloCommand::Plan(args)) => plan::plan(args),
        None => ended(decide(args)),
    }
}

fn decide(args: &SloArgs) -> Result<u8, EvidenceError> {
    let stated = Stated::new(&args.claim)?;
    let mut source = Source::open(args)?;
    let range = if args.mean { Some(source.range(args)?) } else { None };
    let question = match range {
        None => Question::Rate(stated.rate()?),
        Some(range) => Question::Mean(stated.mean(range)?),
    };
    let mut decider = question.open().map_err(EvidenceError::Question)?;
    report::check(&args.telling)?;
    let method = match &question {
        Question::Rate(setup) => setup.method.to_string(),
        Question::Mean(_) => "empirical Bernstein".to_owned(),
    };
    let subject = source.subject(range);
    let mut state = match &args.state {
        Some(path) => Some(StateFile::open(path, terms(&stated, &method, &subject))?),
        None => None,
    };
    if let Some(state) = &state {
        decider = resume(&question, state)?;
    }
    let kept = decider.view().trials;

    let mut session = Session {
        stated: &stated,
        subject: &subject,
        range: range.map(|(low, high)| (low.value, high.value)),
        decider,
        kept,
        bar: Bar::open(args.telling.quiet),
        first_failure: None,
    };
    let start = Instant::now();
    let ended =
        if session.decider.view().verdict().is_some() { Ended::Before } else { source.observe(args, &mut session)? };
    let wall = start.elapsed();
    session.bar.clear();
    let saved = match state.as_mut() {
        Some(state) if ended != Ended::Runs(End::Abandoned) && ended != Ended::Before => {
            state.save(evidence(&session.decider))
        }
        _ => Ok(()),
    };
    let answer = Answer {
        view: session.decider.view(),
        range: session.range,
        first_failure: session.first_failure,
        stated: stated.clone(),
        method,
        subject: subject.clone(),
        ended,
        kept,
        wall,
    };
    // A report that cannot be written is an error, but the answer is still printed.
    let written = report::write(&args.telling, &answer);
    let look = Look::of_stdout().unwrap_or(Look::FILE);
    print(&if args.telling.json { report::json::json(&answer) } else { report::text::text(&answer, look) })?;
    saved.and(written)?;
    Ok(answer.status())
}

/// Returns the terms that the state file must match.
fn terms(stated: &Stated, method: &str, subject: &Subject) -> Terms {
    vec![
        ("claim", stated.exact_words()),
        ("error", number::exact(stated.error)),
        ("method", method.to_owned()),
        ("of", subject.of.clone()),
        ("rule", subject.rule.clone()),
    ]
}

/// Returns a decider that continues from the evidence in a state file.
fn resume(question: &Question, state: &StateFile) -> Result<Decider, EvidenceError> {
    let invalid = EvidenceError::Question;
    Ok(match question {
        Question::Rate(setup) => {
            let (trials, successes) = (state.count("trials")?, state.count("successes")?);
            Decider::Rate(Box::new(Driver::resume(setup, trials, successes).map_err(invalid)?))
        }
        Question::Mean(setup) => {
            let moments = Moments {
                trials: state.count("trials")?,
                sum: state.number("sum")?,
                sum_rest: state.number("sum_rest")?,
                squares: state.number("squares")?,
            };
            Decider::Mean(Box::new(MeanDriver::resume(setup, moments).map_err(invalid)?))
        }
    })
}

/// Returns the evidence for the state file.
fn evidence(decider: &Decider) -> Vec<(&'static str, Value)> {
    match decider {
        Decider::Rate(driver) => {
            let status = driver.status();
            vec![("trials", status.trials.into()), ("successes", status.successes.into())]
        }
        Decider::Mean(driver) => {
            let Moments { trials, sum, sum_rest, squares } = driver.state();
            let exact = |value| Value::from(number::exact(value));
            vec![
                ("trials", trials.into()),
                ("sum", exact(sum)),
                ("sum_rest", exact(sum_rest)),
                ("squares", exact(squares)),
            ]
        }
    }
}
