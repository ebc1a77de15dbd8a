//! Two files of numbers.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use millstream_csm::compare::{fixed_samples, samples};

use super::args::CompareArgs;
use super::report::{Against, Answer, Subject};
use crate::evidence::error::EvidenceError;
use crate::evidence::functions::read_values;
use crate::evidence::lines::Fields;

pub(super) fn compare_files(args: &CompareArgs) -> Result<u8, EvidenceError> {
    let [a, b] = args.subjects.as_slice() else {
        return Err(EvidenceError::usage("expected two files; to compare several commands, add --run"));
    };
    for (given, name) in [(args.running.timeout.is_some(), "--timeout"), (args.running.time.is_some(), "--for")] {
        if given {
            return Err(EvidenceError::usage(format!("{name} is about commands; add --run to run A and B")));
        }
    }
    if !args.paired && args.running.limit.is_some() {
        return Err(EvidenceError::usage("--limit is about pairs; add --paired or --run"));
    }
    let is_stream = |name: &OsStr| name == "-";
    if is_stream(a) && is_stream(b) {
        return Err(EvidenceError::usage("A and B cannot both be standard input"));
    }
    let read = |name: &OsString| Fields::open(Path::new(name), &args.column).and_then(read_values);
    let (first, second) = (read(a)?, read(b)?);
    let place = || format!("{} and {}", a.display(), b.display());
    let value = |source| EvidenceError::Value { place: place(), source };
    let subjects = [a, b].map(|name| Subject::file(name)).into();
    let answer = |other: Against, of, condition, reason| Answer {
        args,
        subjects,
        others: vec![other],
        of,
        condition,
        reason,
        seed: None,
    };
    if args.paired {
        if first.len() != second.len() {
            let problem = format!("expected pairs, found {} and {} lines", first.len(), second.len());
            return Err(EvidenceError::Data { place: place(), problem });
        }
        let mut paired = super::paired(args.error, args.at_most_slower)?;
        let limit = args.running.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        for (first, second) in first.iter().zip(&second).take(limit) {
            if paired.observe(*first, *second).map_err(value)?.is_some() {
                break;
            }
        }
        let reason = if first.len() > limit { "the limit was reached" } else { "the data ran out" };
        let comparison = paired.status().map_err(EvidenceError::Question)?;
        return answer(Against::pairs(comparison), "pairs of values", "", reason).tell();
    }
    let (comparison, condition) = if args.watched || (!args.fixed && (is_stream(a) || is_stream(b))) {
        (samples(&first, &second, args.error), ", right at all sizes at once")
    } else {
        (fixed_samples(&first, &second, args.error), ", if the sizes were fixed beforehand")
    };
    let other = Against::samples(comparison.map_err(value)?, args.at_most_slower);
    answer(other, "values of each", condition, "the data ran out").tell()
}
