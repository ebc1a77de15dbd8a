//! `millstream csm`: the statistical functions, for scripts.

pub(crate) mod args;

use std::process::ExitCode;

use millstream_csm::{Interval, Power, Test, interval, quantile, robbins};

use self::args::{CsmArgs, CsmCommand, IntervalArgs, Kind, PowerArgs, QuantileArgs, StopArgs};
use super::claim::Stated;
use super::error::EvidenceError;
use super::json::Object;
use super::lines::{Fields, quantity};
use super::number::exact;
use super::{ended, permutation, print};

/// The maximum number of values that are read into memory.
const MAX_VALUES: usize = 1 << 28;

/// Answers one question.
pub(crate) fn csm(args: &CsmArgs) -> ExitCode {
    let answer = match &args.command {
        CsmCommand::Stop(args) => stop(args),
        CsmCommand::Interval(args) => interval_of(args),
        CsmCommand::Quantile(args) => quantile_of(args),
        CsmCommand::Power(args) => power_of(args),
        CsmCommand::Permutation(args) => return ended(permutation::permutation(args)),
    };
    ended(answer.and_then(|text| print(&text)).map(|()| super::error::HOLDS))
}

/// Formats an answer as JSON, or as lines of a name and a value.
fn tell(json: bool, object: &Object, lines: &[(&str, String)]) -> String {
    if json {
        return format!("{}\n", object.done());
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.iter().map(|(name, value)| format!("{name:<width$}  {value}\n")).collect()
}

fn stop(args: &StopArgs) -> Result<String, EvidenceError> {
    let found = if args.method == millstream_csm::Method::Robbins {
        robbins::stop(args.trials, args.threshold, args.successes, args.log_eps)
    } else {
        let test = Test::new(args.threshold, args.log_eps, args.method);
        test.and_then(|test| test.stop(args.trials, args.successes))
    };
    let found = found.map_err(EvidenceError::Question)?;
    let (stop, level) = (found.stop.is_some(), found.level);
    let object = Object::new().flag("stop", stop).number("level", level);
    Ok(tell(args.json, &object, &[("stop", if stop { "yes" } else { "no" }.to_owned()), ("level", exact(level))]))
}

fn interval_of(args: &IntervalArgs) -> Result<String, EvidenceError> {
    let of = match args.kind {
        Kind::Watched => interval::watched,
        Kind::Fixed => interval::fixed,
        Kind::Credible => interval::credible,
    };
    let found = of(args.trials, args.successes, args.error).map_err(EvidenceError::Question)?;
    Ok(tell_interval(args.json, Object::new(), found))
}

fn tell_interval(json: bool, object: Object, interval: Interval) -> String {
    let object = object.number("low", interval.low).number("high", interval.high);
    tell(json, &object, &[("low", exact(interval.low)), ("high", exact(interval.high))])
}

fn quantile_of(args: &QuantileArgs) -> Result<String, EvidenceError> {
    if let Some(trials) = args.trials {
        let ranks = quantile::ranks(trials, args.quantile, args.error).map_err(EvidenceError::Question)?;
        // A rank beyond the sample has no value.
        let (low, high) = ((ranks.low > 0).then_some(ranks.low), (ranks.high <= trials).then_some(ranks.high));
        let object = Object::new().count("low_rank", low).count("high_rank", high);
        let show = |rank: Option<u64>| rank.map_or_else(|| "none".to_owned(), |rank| rank.to_string());
        return Ok(tell(args.json, &object, &[("low rank", show(low)), ("high rank", show(high))]));
    }
    let fields = match &args.input {
        Some(path) => Fields::open(path, &args.column)?,
        None => Fields::standard_input(&args.column)?,
    };
    let mut values = read_values(fields)?;
    values.sort_by(f64::total_cmp);
    let found = quantile::interval(&values, args.quantile, args.error).map_err(EvidenceError::Question)?;
    Ok(tell_interval(args.json, Object::new().count("trials", values.len() as u64), found))
}

/// Reads all numbers of a file, at least one. They must all be times, which are returned in seconds, or all be numbers.
pub(super) fn read_values(mut fields: Fields) -> Result<Vec<f64>, EvidenceError> {
    let mut values = Vec::new();
    let mut is_time = None;
    while let Some(field) = fields.next()? {
        let value = quantity(&String::from_utf8_lossy(field)).map_err(|problem| fields.problem(problem))?;
        if *is_time.get_or_insert(value.is_time) != value.is_time {
            return Err(fields.problem("expected all lines to be times or none, found one that differs from the first"));
        }
        if values.len() == MAX_VALUES {
            return Err(fields.problem(format!("expected at most {MAX_VALUES} numbers, found more")));
        }
        values.push(value.value);
    }
    if values.is_empty() {
        let problem = "expected numbers, found none".to_owned();
        return Err(EvidenceError::Data { place: fields.place().to_owned(), problem });
    }
    Ok(values)
}

fn power_of(args: &PowerArgs) -> Result<String, EvidenceError> {
    let setup = Stated::new(&args.claim)?.rate()?;
    let found = setup.power(args.rate, args.limit).map_err(EvidenceError::Question)?;
    let count = |count: Option<u64>| count.map_or_else(|| "none".to_owned(), |count| count.to_string());
    let lines = [
        ("holds", exact(found.holds)),
        ("fails", exact(found.fails)),
        ("undecided", exact(found.undecided)),
        ("mean trials", exact(found.mean_trials)),
        ("median trials", count(found.median_trials)),
        ("p90 trials", count(found.p90_trials)),
    ];
    Ok(tell(args.json, &power_object(Object::new(), &found), &lines))
}

/// Adds the members that say how likely a decision is.
pub(super) fn power_object(object: Object, power: &Power) -> Object {
    object
        .number("holds", power.holds)
        .number("fails", power.fails)
        .number("undecided", power.undecided)
        .number("mean_trials", power.mean_trials)
        .count("median_trials", power.median_trials)
        .count("p90_trials", power.p90_trials)
}
