//! Commands with parameters: a command for each of their values.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::args::AroundArgs;
use crate::evidence::error::EvidenceError;

/// The maximum number of commands that are compared at once.
const MAX_COMMANDS: usize = 1000;

/// The parameters of one command, each with its value.
pub(super) type Values = Vec<(String, String)>;

/// Returns all combinations of the parameters' values; a single empty combination if there are no parameters.
pub(super) fn combinations(args: &AroundArgs) -> Result<Vec<Values>, EvidenceError> {
    let mut parameters: Vec<(String, Vec<String>)> = Vec::new();
    if let [name, min, max] = args.parameter_scan.as_slice() {
        parameters.push((name.clone(), scan(min, max, args.parameter_step_size.as_deref().unwrap_or("1"))?));
    }
    for pair in args.parameter_list.chunks_exact(2) {
        parameters.push((pair[0].clone(), pair[1].split(',').map(str::to_owned).collect()));
    }
    let mut all: Vec<Values> = vec![Vec::new()];
    for (name, values) in parameters {
        if all[0].iter().any(|(other, _)| *other == name) {
            return Err(EvidenceError::usage(format!("the parameter {name} is given twice; give each its own name")));
        }
        let with = |value: &String, before: &Values| [before.clone(), vec![(name.clone(), value.clone())]].concat();
        all = values.iter().flat_map(|value| all.iter().map(move |before| with(value, before))).collect();
        check_count(all.len())?;
    }
    Ok(all)
}

/// Refuses more than [`MAX_COMMANDS`].
pub(super) fn check_count(commands: usize) -> Result<(), EvidenceError> {
    if commands <= MAX_COMMANDS {
        return Ok(());
    }
    Err(EvidenceError::usage(format!(
        "expected at most {MAX_COMMANDS} commands, found {commands}; scan in larger steps"
    )))
}

/// Returns the numbers from `min` to `max`, written with as many decimals as the arguments have.
fn scan(min: &str, max: &str, step: &str) -> Result<Vec<String>, EvidenceError> {
    let number = |text: &str| -> Result<f64, EvidenceError> {
        let found = text.parse().ok().filter(|number: &f64| number.is_finite());
        found.ok_or_else(|| EvidenceError::usage(format!("--parameter-scan: expected a number, found `{text}`")))
    };
    let (low, high, distance) = (number(min)?, number(max)?, number(step)?);
    if distance <= 0.0 || low > high {
        return Err(EvidenceError::usage(format!(
            "--parameter-scan: expected MIN up to MAX in steps above zero, found {min}, {max} and {step}"
        )));
    }
    let decimals = [min, step].map(|text| text.split_once('.').map_or(0, |(_, decimals)| decimals.len()));
    let decimals = decimals[0].max(decimals[1]);
    let steps = ((high - low) / distance * (1.0 + 1e-12) + 1e-12).floor();
    check_count(steps.min(1e9) as usize + 1)?;
    Ok((0..=steps as u64).map(|step| format!("{:.decimals$}", low + step as f64 * distance)).collect())
}

/// Returns the text with each `{NAME}` replaced by its value.
pub(super) fn filled(text: &OsString, values: &Values) -> OsString {
    let mut bytes = text.as_bytes().to_vec();
    for (name, value) in values {
        let wanted = format!("{{{name}}}").into_bytes();
        let mut from = 0;
        while let Some(at) = bytes[from..].windows(wanted.len()).position(|window| window == wanted) {
            bytes.splice(from + at..from + at + wanted.len(), value.bytes());
            from += at + value.len();
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_has_both_ends_and_as_many_decimals_as_it_was_given() {
        assert_eq!(scan("1", "4", "1").unwrap(), ["1", "2", "3", "4"]);
        assert_eq!(scan("0", "0.3", "0.1").unwrap(), ["0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(scan("1", "2.5", "1").unwrap(), ["1", "2"]);
        for (min, max, step) in
            [("2", "1", "1"), ("1", "2", "0"), ("x", "2", "1"), ("0", "1e9", "1"), ("0", "inf", "1")]
        {
            assert!(scan(min, max, step).is_err(), "{min} {max} {step}");
        }
    }

    #[test]
    fn every_place_of_a_parameter_is_filled() {
        let values = vec![("n".to_owned(), "{n}".to_owned()), ("m".to_owned(), "7".to_owned())];
        assert_eq!(filled(&"a {n} {m}{m} {x}".into(), &values), "a {n} 77 {x}");
    }
}
