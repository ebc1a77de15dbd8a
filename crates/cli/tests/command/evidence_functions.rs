//! `millstream csm`.

use std::process::Output;

use crate::support::{Room, ended};
use serde_json::Value;

fn json(output: &Output, expected: i32) -> Value {
    let (out, _) = ended(output, expected);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

fn csm(args: &str) -> Value {
    let words: Vec<_> = ["csm"].into_iter().chain(args.split(' ')).chain(["--json"]).collect();
    json(&Room::new("").run(&words), 0)
}

/// Whether `value` is at least `exact`, and greater by at most a share of 1e-12.
fn is_upper(value: &Value, exact: f64) -> bool {
    let value = value.as_f64().unwrap();
    value >= exact && value - exact <= 1e-12 * exact.abs().max(1.0) + 2.0 * f64::EPSILON * exact.abs()
}

#[test]
fn the_functions_answer_with_what_is_known_of_them() {
    let stop =
        csm("stop --trials 4000 --successes 3972 --threshold 0x1.f5c28f5c28f5cp-1 --log-eps -0x1.ba18a998fffa0p+2");
    assert_eq!(stop["stop"], true);
    assert!(is_upper(&stop["level"], -17.238_568_532_412_956), "{stop}");
    let stop = csm("stop --trials 1000 --successes 995 --threshold 0.98 --log-eps -6.907755278982137 --method robbins");
    assert_eq!(stop["stop"], false);
    assert!(is_upper(&stop["level"], -3.011_784_410_050_829_4), "{stop}");
}

#[test]
fn the_watched_interval_is_the_wider_one() {
    let of = |kind: &str| {
        let found = csm(&format!("interval --trials 1000 --successes 900 --error 0.05 --kind {kind}"));
        (found["low"].as_f64().unwrap(), found["high"].as_f64().unwrap())
    };
    let (watched, fixed, credible) = (of("watched"), of("fixed"), of("credible"));
    for (low, high) in [watched, fixed, credible] {
        assert!(low < 0.9 && 0.9 < high);
    }
    assert!(watched.0 < fixed.0 && fixed.1 < watched.1, "{watched:?} {fixed:?}");
    assert_eq!(of("watched"), {
        let found = csm("interval --trials 1000 --successes 900 --error 0.05");
        (found["low"].as_f64().unwrap(), found["high"].as_f64().unwrap())
    });
}

#[test]
fn a_quantile_has_ranks_and_values() {
    let ranks = csm("quantile --quantile 0.5 --error 0.01 --trials 1000");
    let (low, high) = (ranks["low_rank"].as_u64().unwrap(), ranks["high_rank"].as_u64().unwrap());
    assert!(0 < low && low < 500 && 500 < high && high <= 1000, "{ranks}");
    let room = Room::new("");
    room.write("numbers", (1..=1000).rev().map(|n| format!("{n}\n")).collect::<String>());
    let values = json(
        &room.run(&["csm", "quantile", "--quantile", "0.5", "--error", "0.01", "--input", "numbers", "--json"]),
        0,
    );
    assert_eq!((values["low"].as_f64(), values["high"].as_f64()), (Some(low as f64), Some(high as f64)));
    let nothing = csm("quantile --quantile 0.999 --error 1e-6 --trials 10");
    assert!(nothing["high_rank"].is_null(), "{nothing}");
}

#[test]
fn power_is_a_distribution() {
    let power = csm("power --between 0.96..0.98 --error 0.001 --rate 0.97 --limit 10000");
    let of = |name: &str| power[name].as_f64().unwrap();
    assert!((of("holds") + of("fails") + of("undecided") - 1.0).abs() < 1e-9, "{power}");
    assert!(of("undecided") < 0.01 && of("mean_trials") < 10_000.0, "{power}");
}

#[test]
fn senseless_functions_are_refused() {
    let room = Room::new("");
    for args in [
        "stop --trials 3 --successes 4 --threshold 0.5 --log-eps -1",
        "stop --trials 3 --successes 2 --threshold 1.5 --log-eps -1",
        "stop --trials 3 --successes 2 --threshold NaN --log-eps -1",
        "stop --trials 3 --successes 2 --threshold 0.5 --log-eps 1",
        "stop --trials -3 --successes 2 --threshold 0.5 --log-eps -1",
        "stop --trials 3 --successes 2 --threshold 0.5 --log-eps -inf",
        "stop --trials 3 --successes 2 --threshold 0.5 --log-eps -1 --method sprt",
        "interval --trials 3 --successes 4 --error 0.1",
        "interval --trials 3 --successes 2 --error 2",
        "quantile --quantile 2 --error 0.1 --trials 5",
        "quantile --quantile 0.5 --error 0.1 --input none",
        "power --at-least 0.5 --rate 2 --limit 10",
        "power --at-least 0.5 --rate 0.5 --limit 0",
        "guess --trials 3",
        "",
    ] {
        let words: Vec<_> = ["csm"].into_iter().chain(args.split_whitespace()).collect();
        let (out, err) = ended(&room.run(&words), 2);
        assert!(out.is_empty() && !err.is_empty(), "{args}");
    }
    room.write("text", "1\ntwo\n");
    room.write("empty", "");
    for (file, problem) in [("text", "line 2: expected a number"), ("empty", "found none")] {
        let (_, err) =
            ended(&room.run(&["csm", "quantile", "--quantile", "0.5", "--error", "0.1", "--input", file]), 4);
        assert!(err.contains(problem), "{err}");
    }
}

#[test]
fn nothing_left_undecided_is_a_plain_zero() {
    let room = Room::new("");
    let args = ["csm", "power", "--at-least", "0.5", "--error", "0.01", "--rate", "1", "--limit", "1000"];
    let (out, _) = ended(&room.run(&args), 0);
    assert!(out.contains("undecided      0\n") && !out.contains("-0"), "{out}");
}
