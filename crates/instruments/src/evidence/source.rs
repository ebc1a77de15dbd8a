//! The sources of observations (a command, lines, reports of flows), and the weighing of observations one by one.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use millstream_command::program::how;
use millstream_csm::Error;

use super::answer::{Ended, Subject};
use super::args::SloArgs;
use super::bar::{self, Bar};
use super::claim::{self, Stated};
use super::criterion::{Criterion, ExitRule};
use super::decide::{Decider, Observation};
use super::error::EvidenceError;
use super::jobs::{self, Allowance, End, Interrupts};
use super::lines::{Fields, quantity};
use super::number::{self, Quantity};
use super::program::{Program, Run};
use super::{flow_report, supervised};

/// The maximum number of runs of a command unless `--limit` says otherwise. Without a maximum, a command whose true
/// rate is exactly at the threshold would run forever.
const MAX_RUNS: u64 = 1_000_000;

/// The number of lines of data between two readings of the clock.
const LINES_A_LOOK: u64 = 1 << 12;

/// One question as it is being answered.
pub(super) struct Session<'a> {
    pub(super) stated: &'a Stated,
    pub(super) subject: &'a Subject,
    pub(super) range: Option<(f64, f64)>,
    pub(super) decider: Decider,
    /// Observations kept from earlier sessions.
    pub(super) kept: u64,
    pub(super) bar: Bar,
    pub(super) first_failure: Option<String>,
}

impl Session<'_> {
    /// Weighs one observation; returns whether another is wanted.
    fn observe(&mut self, observation: Observation) -> Result<ControlFlow<()>, Error> {
        Ok(if self.decider.observe(observation)? { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn show(&mut self) {
        let Self { stated, subject, range, decider, bar, .. } = self;
        bar.show(|clock, look| bar::lines(stated, subject, *range, &decider.view(), clock, look));
    }
}

/// A source of observations.
pub(super) enum Source {
    Command { program: Program, criterion: Criterion },
    Lines { fields: Fields, criterion: Criterion },
    Reports { units: Vec<flow_report::Units>, of: String, is_stage: bool },
}

impl Source {
    pub(super) fn open(args: &SloArgs) -> Result<Self, EvidenceError> {
        let running = &args.running;
        let only_for_commands = |given: bool, name: &str| {
            if given {
                Err(EvidenceError::usage(format!("{name} is about a command, and there is none")))
            } else {
                Ok(())
            }
        };
        if !args.command.is_empty() {
            let criterion = Criterion::of_runs(&args.success)?;
            let timeout = running.timeout.or(args.range.map(|(_, high)| Duration::from_secs_f64(high.value.max(0.0))));
            let program = Program::new(&args.command, timeout, criterion.needs_output())?;
            return Ok(Self::Command { program, criterion });
        }
        only_for_commands(running.timeout.is_some(), "--timeout")?;
        only_for_commands(running.time.is_some(), "--for")?;
        only_for_commands(args.jobs > 1, "--jobs")?;
        if !args.from.is_empty() {
            only_for_commands(args.success.exit != ExitRule::Status(0), "--exit")?;
            if running.limit.is_some() {
                return Err(EvidenceError::usage("--limit: a report is one set of units, and weighed as a whole"));
            }
            let read = |path| flow_report::read(path, args.stage.as_deref());
            let units = args.from.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
            let of = args.stage.as_ref().map_or_else(|| "a flow".to_owned(), |stage| format!("stage {stage}"));
            return Ok(Self::Reports { units, of, is_stage: args.stage.is_some() });
        }
        let criterion = Criterion::of_data(&args.success)?;
        let fields = match &args.input {
            Some(path) => Fields::open(path, &args.column)?,
            None => Fields::standard_input(&args.column)?,
        };
        Ok(Self::Lines { fields, criterion })
    }

    /// Returns the range that must contain every value whose mean is taken.
    pub(super) fn range(&self, args: &SloArgs) -> Result<(Quantity, Quantity), EvidenceError> {
        match (self, args.range, args.running.timeout) {
            (Self::Command { .. }, Some((low, high)), timeout) => {
                if !high.is_time || low.value < 0.0 {
                    return Err(EvidenceError::usage("--range takes times for a command, such as 0s..1s"));
                }
                if timeout.is_some_and(|timeout| timeout.as_secs_f64() > high.value) {
                    return Err(EvidenceError::usage(
                        "--timeout lets a run take longer than --range admits; give one of them",
                    ));
                }
                Ok((low, high))
            }
            (Self::Command { .. }, None, Some(timeout)) => {
                let time = |value| Quantity { value, is_time: true };
                Ok((time(0.0), time(timeout.as_secs_f64())))
            }
            (Self::Command { .. }, None, None) => {
                Err(EvidenceError::usage("a mean is bounded only if the runs are: bound them, with --timeout 1s"))
            }
            (_, Some(range), _) => Ok(range),
            (_, None, _) => Err(EvidenceError::usage(
                "a mean is bounded only if the values are: say what they lie within, with --range 0..1",
            )),
        }
    }

    pub(super) fn subject(&self, range: Option<(Quantity, Quantity)>) -> Subject {
        let within = |(low, high): (Quantity, Quantity)| format!("lies within {} and {}", low.show(), high.show());
        match self {
            Self::Command { program, criterion } => Subject {
                of: format!("`{}`", program.line()),
                noun: "run",
                rule: match range {
                    Some(range) => format!("{}; a run that fails counts as the upper one", within(range)),
                    None => criterion.describe_run(),
                },
            },
            Self::Lines { fields, criterion } => Subject {
                of: fields.subject(),
                noun: "line",
                rule: range.map_or_else(|| criterion.describe_field(), within),
            },
            Self::Reports { of, is_stage, .. } => {
                let (noun, rule) =
                    if *is_stage { ("attempt", "succeeds") } else { ("unit", "is retired with a result") };
                Subject { of: of.clone(), noun, rule: rule.to_owned() }
            }
        }
    }

    /// Observes until the claim is decided or no more observations are available.
    pub(super) fn observe(&mut self, args: &SloArgs, session: &mut Session<'_>) -> Result<Ended, EvidenceError> {
        match self {
            Self::Command { program, criterion } => observe_runs(program, criterion, args, session),
            Self::Lines { fields, criterion } => observe_lines(fields, criterion, args, session),
            Self::Reports { units, of, .. } => {
                let Decider::Rate(driver) = &mut session.decider else { unreachable!("--from is not for means") };
                for units in units {
                    let value = |source| EvidenceError::Value { place: of.clone(), source };
                    if driver.observe_set(units.trials, units.successes).map_err(value)?.is_some() {
                        break;
                    }
                }
                Ok(Ended::Data)
            }
        }
    }
}

fn observe_runs(
    program: &Program,
    criterion: &Criterion,
    args: &SloArgs,
    session: &mut Session<'_>,
) -> Result<Ended, EvidenceError> {
    let allowance = Allowance {
        runs: args.running.limit.unwrap_or(MAX_RUNS),
        until: args.running.time.map(|time| Instant::now() + time),
        jobs: args.jobs,
        first: session.kept + 1,
    };
    let interrupts = Interrupts::count()?;
    let mut number = session.kept;
    let session = std::cell::RefCell::new(session);
    let take = |run: Run| {
        let session = &mut **session.borrow_mut();
        number += 1;
        let success = run.status.is_some_and(|status| criterion.of_run(status, run.took, &run.output));
        if !success && session.first_failure.is_none() {
            session.first_failure = Some(failure(number, &run));
        }
        let observation = match session.range {
            None => Observation::Outcome(success),
            Some((low, high)) => {
                Observation::Value(if success { run.took.as_secs_f64().clamp(low, high) } else { high })
            }
        };
        session.observe(observation).map_err(|source| EvidenceError::Value { place: program.line(), source })
    };
    let look = || session.borrow_mut().show();
    supervised(|| jobs::run(program, &allowance, &interrupts, take, look)).map(Ended::Runs)
}

/// Returns the reason why a run was not a success.
fn failure(number: u64, run: &Run) -> String {
    let took = claim::time(run.took.as_secs_f64(), number::short);
    match run.status {
        None => format!("run {number} was stopped after {took}{}", run.complaint),
        Some(status) => format!("run {number} {} after {took}{}", how(status), run.complaint),
    }
}

fn observe_lines(
    fields: &mut Fields,
    criterion: &Criterion,
    args: &SloArgs,
    session: &mut Session<'_>,
) -> Result<Ended, EvidenceError> {
    let limit = args.running.limit.unwrap_or(u64::MAX);
    fields.interrupts().listen()?;
    let mut count = 0;
    while count < limit {
        let Some(field) = fields.next()? else {
            if fields.interrupts().any() {
                return Ok(Ended::Runs(End::Interrupted));
            }
            if count == 0 {
                let problem = "expected outcomes or numbers, found none".to_owned();
                return Err(EvidenceError::Data { place: fields.place().to_owned(), problem });
            }
            return Ok(Ended::Data);
        };
        count += 1;
        let observation = match session.range {
            None => criterion.of_field(field).map(Observation::Outcome),
            Some(_) => value(field, session.stated.is_time).map(Observation::Value),
        };
        let observation = observation.map_err(|problem| fields.problem(problem))?;
        if observation == Observation::Outcome(false) && session.first_failure.is_none() {
            session.first_failure = Some(fields.position());
        }
        if session.observe(observation).map_err(|error| fields.problem(error.to_string()))?.is_break() {
            return Ok(Ended::Runs(End::Enough));
        }
        if count % LINES_A_LOOK == 0 {
            session.show();
        }
    }
    Ok(Ended::Runs(End::Limit))
}

/// Reads a value of the kind that the claim is about.
fn value(field: &[u8], is_time: bool) -> Result<f64, String> {
    let value = quantity(&String::from_utf8_lossy(field))?;
    match (is_time, value.is_time) {
        (true, false) => Err(format!("expected a time, like the claim's, found the bare number {}", value.show())),
        (false, true) => Err(format!("expected a bare number, like the claim's, found the time {}", value.show())),
        _ => Ok(value.value),
    }
}
