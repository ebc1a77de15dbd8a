//! `millstream csm bins`, as a script sees it.

use std::process::{Command, Output};

use serde_json::Value;

fn bins(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
    command.args(["csm", "bins"]).args(arguments.split_whitespace()).output().expect("the command runs")
}

fn json(arguments: &str) -> (Option<i32>, Value) {
    let output = bins(&format!("{arguments} --json"));
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), value.unwrap_or_else(|error| panic!("{error}: {text}{complaint}")))
}

const LAYOUT: &str = "--bins 1000 --capacity 30000 --seed 1";

#[test]
fn the_fill_is_told_with_its_spread() {
    let (status, answer) = json(LAYOUT);
    assert_eq!(status, Some(0));
    assert_eq!((&answer["trials"], &answer["seed"]), (&10_000.into(), &1.into()));
    assert!((answer["mean"].as_f64().unwrap() - 0.9814).abs() < 0.0002, "{answer}");
    assert!((answer["deviation"].as_f64().unwrap() - 0.0020).abs() < 0.0001, "{answer}");
    assert!(answer.get("fill").is_none() && answer.get("verdict").is_none(), "{answer}");
}

#[test]
fn the_probability_of_a_fill_is_enclosed() {
    let (status, answer) = json(&format!("{LAYOUT} --fill 98%"));
    assert_eq!(status, Some(0));
    let (low, high) = (answer["low"].as_f64().unwrap(), answer["high"].as_f64().unwrap());
    assert!(0.75 < low && low < 0.786 && 0.786 < high && high < 0.82, "{answer}");
    assert!(answer["verdict"].is_null(), "{answer}");
}

#[test]
fn a_claim_ends_with_the_status_of_its_verdict() {
    for (claim, status, verdict) in [
        ("--at-least 0.7", 0, "holds"),
        ("--at-least 0.85", 1, "fails"),
        ("--at-most 0.85", 0, "holds"),
        ("--at-least 0.7 --at-most 0.85", 0, "holds"),
        ("--between 0.8..0.9", 1, "fails"),
        ("--at-least 0.786 --trials 100", 3, "undecided"),
    ] {
        let (found, answer) = json(&format!("{LAYOUT} --fill 0.98 {claim}"));
        assert_eq!(found, Some(status), "{claim}: {answer}");
        assert_eq!(answer["verdict"], verdict, "{claim}");
    }
}

#[test]
fn throwing_every_ball_gives_the_same_answer() {
    let layout = "--bins 20 --capacity 500 --trials 2000 --seed 2";
    let mean = |arguments: &str| json(arguments).1["mean"].as_f64().unwrap();
    let (drawn, thrown) = (mean(layout), mean(&format!("{layout} --direct")));
    assert!((drawn - thrown).abs() < 0.005, "{drawn} and {thrown}");
    assert!(drawn != thrown, "--direct uses the random numbers in another way");
}

#[test]
fn a_seed_repeats_an_answer_and_a_fresh_one_is_told() {
    let layout = "--bins 10 --capacity 100 --trials 50";
    let (_, first) = json(layout);
    assert_eq!(json(&format!("{layout} --seed {}", first["seed"])).1, first);
    assert_ne!(json(layout).1["seed"], first["seed"]);
}

#[test]
fn the_text_says_what_was_found() {
    let output = bins(&format!("{LAYOUT} --fill 0.975 --at-least 0.98"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for words in ["1000 bins of 30000 balls", "seed 1", "mean 0.981", "P(fill >= 0.975)", "the claim holds"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn wrong_arguments_are_refused() {
    for arguments in [
        "--bins 0 --capacity 10",
        "--bins 10",
        "--bins 10 --capacity 10 --at-least 0.5",
        "--bins 10 --capacity 10 --fill x",
        "--bins 10 --capacity 10 --fill 0.5 --at-least 2",
        "--bins 10 --capacity 10 --trials 0",
        "--bins -1 --capacity 10",
    ] {
        let output = bins(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(!output.stderr.is_empty(), "{arguments}");
    }
}
