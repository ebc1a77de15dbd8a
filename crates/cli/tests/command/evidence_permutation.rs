//! `millstream csm permutation`: the exact test of two files.

use crate::evidence::json;
use crate::support::{Room, ended, text};

/// A room with three files. The numbers in one file are shifted by 3; the third file is like the first.
fn room() -> Room {
    let room = Room::new("");
    let file = |shift: i32| (0..60).map(|i| format!("{}\n", 10 + i * 7 % 13 + shift)).collect::<String>();
    room.write("a", file(0));
    room.write("b", file(3));
    room.write("same", file(0));
    room
}

fn permutation<'a>(files: [&'a str; 2], rest: &[&'a str]) -> Vec<&'a str> {
    [&["csm", "permutation"], &files[..], &["--seed", "5"], rest].concat()
}

#[test]
fn the_exit_status_says_whether_it_is_chance() {
    let room = room();
    for (files, rest, status, head) in [
        (["a", "b"], &[][..], 0, "not chance: the p-value is less than 0.01"),
        (["a", "b"], &["--statistic", "median", "--p-below", "0.2"], 0, "not chance: the p-value is less than 0.2"),
        (["a", "b"], &["--tail", "less"], 0, "not chance"),
        (["a", "b"], &["--tail", "greater"], 1, "may be chance: the p-value is more than 0.01"),
        (["b", "a"], &["--tail", "greater"], 0, "not chance"),
        (["a", "b"], &["--tail", "two-sided"], 0, "not chance"),
        (["a", "same"], &[], 1, "may be chance"),
        (["a", "b"], &["--shift", "3"], 1, "may be chance"),
        (["a", "b"], &["--limit", "10"], 3, "undecided: whether the p-value is less than 0.01"),
    ] {
        let (out, _) = ended(&room.run(&permutation(files, rest)), status);
        assert!(out.starts_with(head), "{files:?} {rest:?}: {out}");
    }
}

#[test]
fn a_seed_repeats_the_answer_and_json_has_all_of_it() {
    let room = room();
    let run = || json(&room.run(&permutation(["a", "b"], &["--json"])), 0);
    let answer = run();
    assert_eq!(answer, run());
    assert_eq!((&answer["verdict"], &answer["statistic"], &answer["seed"]), (&"holds".into(), &(-3).into(), &5.into()));
    assert!(answer["interval"]["high"].as_f64().unwrap() <= 0.02, "{answer}");
    let (trials, successes) = (answer["trials"].as_u64().unwrap(), answer["successes"].as_u64().unwrap());
    assert!(successes <= trials && trials > 100, "{answer}");
}

#[test]
fn equal_values_are_equal_in_any_order() {
    // One division in three has the observed sum. Floating-point sums in different orders would differ.
    let room = Room::new("");
    room.write("a", "0.1\n0.2\n0.3\n");
    room.write("b", "0.3\n0.1\n0.2\n");
    let answer = json(&room.run(&permutation(["a", "b"], &["--json", "--tail", "greater", "--limit", "2000"])), 1);
    let rate = answer["successes"].as_f64().unwrap() / answer["trials"].as_f64().unwrap();
    assert!(rate > 0.5, "{answer}");
}

#[test]
fn senseless_tests_are_refused() {
    let room = room();
    room.write("words", "1\ntwo\n");
    room.write("empty", "");
    room.write("nan", "1\nnan\n");
    for (files, rest, status) in [
        (["a", "none"], &[][..], 2),
        (["-", "-"], &[], 2),
        (["a", "b"], &["--scale", "0"], 2),
        (["a", "b"], &["--p-below", "1.5"], 2),
        (["a", "b"], &["--error", "0"], 2),
        (["a", "b"], &["--method", "sprt"], 2),
        (["a", "words"], &[], 4),
        (["a", "empty"], &[], 4),
        (["a", "nan"], &[], 4),
    ] {
        let output = room.run(&permutation(files, rest));
        assert_eq!(output.status.code(), Some(status), "{files:?} {rest:?}: {}", text(&output.stderr));
        assert!(!output.stderr.is_empty());
    }
}
