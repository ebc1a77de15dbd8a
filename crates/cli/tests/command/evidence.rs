//! `millstream slo`: observations, verdicts and exit statuses.

use std::io::Write;
use std::process::{Output, Stdio};
use std::time::Instant;

use crate::support::{Room, ended, text};
use millstream_verify_random::Random;
use serde_json::Value;

fn room() -> Room {
    Room::new("")
}

pub(crate) fn json(output: &Output, expected: i32) -> Value {
    let (out, _) = ended(output, expected);
    assert_eq!(out.lines().count(), 1, "one object on one line: {out}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Runs the command with `input` on its standard input.
fn fed(room: &Room, args: &[&str], input: &str) -> Output {
    let mut child =
        room.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The write may fail, because the command stops reading as soon as it has a verdict.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn the_exit_status_is_the_verdict() {
    let room = room();
    let slo = |rest: &[&str]| room.run(&[&["slo", "--quiet", "--error", "0.01"], rest].concat());
    for (args, status) in [
        (&["--at-least", "0.5", "--", "true"][..], 0),
        (&["--at-least", "0.5", "--", "false"], 1),
        (&["--at-most", "0.5", "--", "false"], 0),
        (&["--at-most", "0.5", "--", "true"], 1),
        (&["--between", "0.3..0.6", "--", "true"], 0),
        (&["--at-least", "0.99", "--limit", "3", "--", "true"], 3),
        (&["--at-least", "0.5", "--exit", "1", "--", "false"], 0),
        (&["--at-least", "0.5", "--exit", "any", "--", "false"], 0),
        (&["--at-least", "0.5", "--under", "30s", "--", "true"], 0),
        (&["--at-least", "0.5", "--under", "1ns", "--", "true"], 1),
        (&["--at-least", "0.5", "--match", "^h.llo$", "--", "echo", "hello"], 0),
        (&["--at-least", "0.5", "--match", "goodbye", "--", "echo", "hello"], 1),
        (&["--at-least", "0.5", "--timeout", "50ms", "--limit", "40", "--jobs", "8", "--", "sleep", "60"], 1),
    ] {
        let (out, _) = ended(&slo(args), status);
        let word = ["holds", "fails", "", "undecided"][status as usize];
        assert!(out.starts_with(&format!("{word}: ")), "{args:?}: {out}");
    }
}

#[test]
fn lines_beyond_the_limit_are_not_even_read() {
    let room = room();
    let args = ["slo", "--quiet", "--json", "--at-least", "0.99", "--limit", "2"];
    let value = json(&fed(&room, &args, "1\n1\nno outcome\n"), 3);
    assert_eq!((&value["trials"], &value["undecided_because"]), (&2.into(), &"the limit was reached".into()));
}

#[test]
fn senseless_questions_run_nothing() {
    let room = room();
    room.write("outcomes", "1\n");
    let run: &[&str] = &["--", "touch", "ran"];
    for (args, problem) in [
        (&["--at-least", "1.5"][..], "1.5"),
        (&["--at-least", "0"], "between 0 and 1"),
        (&["--at-least", "NaN"], "neither a number nor a time"),
        (&["--at-least", "0.5", "--error", "0"], "error"),
        (&["--at-least", "0.5", "--error", "1"], "error"),
        (&["--at-least", "0.9", "--at-most", "0.1"], "order"),
        (&["--between", "0.9..0.1"], "wrong way round"),
        (&["--at-least", "0.5", "--between", "0.1..0.2"], "cannot be used"),
        (&["--at-least", "30ms"], "add --mean"),
        (&["--at-least", "0.5", "--under", "50"], "--under 50ms"),
        (&["--at-least", "0.5", "--match", "("], "unclosed group"),
        (&["--at-least", "0.5", "--method", "guess"], "guess"),
        (&["--at-least", "0.5", "--method", "sprt"], "between two"),
        (&["--at-least", "0.5", "--limit", "0"], "nothing can be decided"),
        (&["--at-least", "0.5", "--jobs", "0"], "observe nothing"),
        (&["--at-least", "0.5", "--junit", "none/j.xml"], "make the folder"),
        (&["--at-least", "0.5", "--state", "none/state"], "make the folder"),
        (&["--at-least", "0.5", "--column", "1"], "cannot be used"),
        (&["--at-most", "30ms", "--mean"], "--timeout"),
        (&["--at-least", "0.5", "--mean", "--timeout", "1s"], "one is a time"),
        (&[], "required"),
    ] {
        let (_, err) = ended(&room.run(&[&["slo"], args, run].concat()), 2);
        assert!(err.contains(problem), "{args:?}: {err}");
    }
    assert!(!room.path("ran").exists());
    for (args, problem) in [
        (&["--input", "none"][..], "cannot be read"),
        (&["--input", "."], "is a folder"),
        (&["--input", "outcomes", "--jobs", "2"], "there is none"),
        (&["--input", "outcomes", "--timeout", "1s"], "there is none"),
        (&["--input", "outcomes", "--exit", "3"], "there is none"),
        (&["--input", "outcomes", "--separator", ";"], "--column"),
        (&["--from", "none.json"], "cannot be read"),
        (&["--from", "none.json", "--limit", "5"], "weighed as a whole"),
        (&["--from", "none.json", "--exit", "5"], "there is none"),
        (&["--", "no-such-program-anywhere"], "cannot be run"),
        (&["--", "/etc/passwd"], "cannot be run"),
    ] {
        let (_, err) = ended(&room.run(&[&["slo", "--at-least", "0.5"], args].concat()), 2);
        assert!(err.contains(problem), "{args:?}: {err}");
    }
}

#[test]
fn outcomes_and_numbers_are_read_from_standard_input() {
    let room = room();
    let slo = |args: &[&str], input: &str| {
        fed(&room, &[&["slo", "--quiet", "--error", "0.01", "--json"], args].concat(), input)
    };
    let answer = json(&slo(&["--at-least", "0.5"], &"ok\n".repeat(100)), 0);
    assert!(answer["trials"].as_u64().unwrap() < 40, "it stops as soon as it knows: {answer}");
    assert_eq!(answer["trials"], answer["successes"]);
    let mixed = "12\n60.5\n".repeat(300);
    let answer = json(&slo(&["--at-least", "0.9", "--under", "50"], &mixed), 1);
    assert_eq!(answer["first_failure"], "line 2 of standard input");
    json(&slo(&["--at-most", "0.9", "--under", "50"], &mixed), 0);
    let answer = json(&slo(&["--at-least", "0.9"], "1\n1\n"), 3);
    assert_eq!(answer["undecided_because"], "the data ran out");
    assert!(answer["holds"].is_null());
    let csv = format!("name,took\n{}", "\"a,b\",12ms\n".repeat(100));
    json(&slo(&["--at-least", "0.5", "--under", "50ms", "--column", "took"], &csv), 0);
    let lines = "{\"status\":200,\"ms\":3}\n".repeat(100);
    json(&slo(&["--at-least", "0.5", "--match", "^2..$", "--column", "status"], &lines), 0);
}

#[test]
fn invalid_data_are_a_status_of_their_own() {
    let room = room();
    for (args, input, problem) in [
        (&[][..], "", "found none"),
        (&[], "\n\n", "found none"),
        (&[], "1\nmaybe\n", "line 2: expected an outcome"),
        (&[], "0.5\n", "--under or --over"),
        (&["--under", "5"], "1\nNaN\n", "line 2: expected a number or a time, found `NaN`"),
        (&["--under", "5"], "inf\n", "expected a number"),
        (&["--under", "5ms"], "3\n", "expected a time"),
        (&["--under", "5", "--column", "3"], "1 2\n", "expected at least 3 fields"),
        (&["--column", "ok"], "{\"ok\":1}\nnothing\n", "line 2: expected a line of JSON"),
        (&["--mean", "--range", "0..1"], "2\n", "line 1"),
        (&["--mean", "--range", "0..1"], "text\n", "expected a number"),
    ] {
        let output = fed(&room, &[&["slo", "--at-least", "0.7"], args].concat(), input);
        let (out, err) = ended(&output, 4);
        assert!(err.contains(problem), "{args:?} {input:?}: {err}");
        assert_eq!(out, "");
    }
}

#[test]
fn the_command_is_not_run_once_more_than_needed() {
    let room = room();
    let args = ["slo", "--at-least", "0.5", "--error", "0.01", "--json", "--", "sh", "-c", "echo >>starts"];
    let answer = json(&room.run(&args), 0);
    assert_eq!(room.read("starts").len() as u64, answer["trials"].as_u64().unwrap());
}

#[test]
fn several_jobs_see_what_one_sees() {
    // Every third run fails after a pause. If runs counted in the order in which they end, the first dozens would all
    // be successes.
    let room = room();
    let script = "[ $((MILLSTREAM_RUN % 3)) = 0 ] && { sleep 0.3; exit 1; }; exit 0";
    let answers = ["1", "6"].map(|jobs| {
        let args = ["slo", "--at-least", "0.9", "--error", "0.05", "--json", "--jobs", jobs, "--", "sh", "-c", script];
        json(&room.run(&args), 1)
    });
    for member in ["trials", "successes", "interval", "level"] {
        assert_eq!(answers[0][member], answers[1][member], "{member}");
    }
}

#[test]
fn a_report_of_a_flow_is_evidence() {
    let room = Room::new(
        "name = \"exit\"\n[source]\nlines = \"-\"\n[[stage]]\nname = \"try\"\nop = \"exec\"\nexec = [\"sh\", \"-c\", \"exit {line}\"]\n",
    );
    room.write("in", "0\n".repeat(60) + &"1\n".repeat(3));
    ended(&room.run(&["run", "flow.toml", "in", "--report", "report.json"]), 1);
    let answer =
        json(&room.run(&["slo", "--at-least", "0.7", "--error", "0.01", "--json", "--from", "report.json"]), 0);
    assert_eq!((answer["trials"].as_u64(), answer["successes"].as_u64()), (Some(63), Some(60)));
    let stage = json(
        &room.run(&[
            "slo",
            "--at-least",
            "0.999",
            "--error",
            "0.05",
            "--json",
            "--from",
            "report.json",
            "--stage",
            "try",
        ]),
        1,
    );
    assert_eq!(stage["successes"], 60);
    room.write("report.json", "{}");
    let (_, err) = ended(&room.run(&["slo", "--at-least", "0.7", "--from", "report.json"]), 4);
    assert!(err.contains("no count of `retired`"), "{err}");
}

#[test]
fn evidence_is_carried_from_run_to_run_until_it_decides() {
    let room = room();
    let slo = |error: &str| {
        room.run(&[
            "slo",
            "--at-least",
            "0.9",
            "--error",
            error,
            "--limit",
            "20",
            "--state",
            "state",
            "--json",
            "--",
            "sh",
            "-c",
            "echo >>starts",
        ])
    };
    let mut runs = 0;
    let answer = loop {
        let output = slo("0.01");
        runs += 1;
        let status = output.status.code().unwrap();
        let answer = json(&output, status);
        assert_eq!(answer["trials"].as_u64(), Some(room.read("starts").len() as u64));
        if status != 3 {
            break answer;
        }
        assert_eq!(answer["trials_kept"].as_u64(), Some(20 * (runs - 1)));
    };
    assert!(runs > 2 && answer["holds"] == true, "{runs}: {answer}");
    // A single run over all observations gives the same verdict at the same observation.
    let whole = json(&room.run(&["slo", "--at-least", "0.9", "--error", "0.01", "--json", "--", "true"]), 0);
    for member in ["trials", "successes", "interval", "level"] {
        assert_eq!(whole[member], answer[member], "{member}");
    }
    // The saved verdict is returned again without a further run.
    let again = json(&slo("0.01"), 0);
    assert_eq!(again["trials"], answer["trials"]);
    assert_eq!(room.read("starts").len() as u64, answer["trials"].as_u64().unwrap());
    // The saved state belongs to one question, so another question is refused.
    let state = room.read("state");
    let (_, err) = ended(&slo("0.02"), 2);
    assert!(err.contains("error was `0.01") && err.contains("is now `0.02"), "{err}");
    assert_eq!(room.read("state"), state);
}

#[test]
fn the_evidence_for_a_mean_is_carried_too() {
    let room = room();
    let values = ["0.2\n", "0.4\n", "0.3\n"].concat();
    let slo = |input: &str, state: bool| {
        let state: &[&str] = if state { &["--state", "state"] } else { &[] };
        fed(
            &room,
            &[&["slo", "--mean", "--range", "0..1", "--at-most", "0.5", "--error", "0.01", "--json"], state].concat(),
            input,
        )
    };
    let mut kept = Vec::new();
    let carried = loop {
        let output = slo(&values.repeat(4), true);
        let status = output.status.code().unwrap();
        let answer = json(&output, status);
        kept.push(answer["trials"].as_u64().unwrap());
        if status != 3 {
            break answer;
        }
    };
    let whole = json(&slo(&values.repeat(200), false), 0);
    assert!(kept.len() > 1, "{kept:?}");
    for member in ["verdict", "trials", "mean", "interval"] {
        assert_eq!(whole[member], carried[member], "{member}");
    }
}

#[test]
fn a_mean_of_times_is_bounded_by_the_time_limit() {
    let room = room();
    let slo = |rest: &[&str]| room.run(&[&["slo", "--quiet", "--error", "0.01", "--json", "--mean"], rest].concat());
    let answer = json(&slo(&["--at-most", "5s", "--timeout", "10s", "--", "true"]), 0);
    assert!(answer["mean"].as_f64().unwrap() < 5.0 && answer["successes"].is_null());
    // A failed run counts like a run of the maximum time.
    let answer = json(&slo(&["--at-most", "5s", "--range", "0s..10s", "--", "false"]), 1);
    assert_eq!(answer["mean"], 10.0);
}

#[test]
fn an_answer_has_every_form() {
    let room = room();
    let args = [
        "slo",
        "--at-least",
        "0.9",
        "--error",
        "0.01",
        "--junit",
        "j.xml",
        "--svg",
        "a.svg",
        "--",
        "sh",
        "-c",
        "echo '<no>' >&2; exit 3",
    ];
    let (out, _) = ended(&room.run(&args), 1);
    assert!(
        out.contains("first failure") && out.contains("run 1 exited with status 3") && out.contains("<no>"),
        "{out}"
    );
    let junit = room.read("j.xml");
    assert!(junit.contains("<failure ") && junit.contains("&lt;no&gt;"), "{junit}");
    let picture = room.read("a.svg");
    assert!(picture.starts_with("<svg ") && picture.contains("fails") && picture.ends_with("</svg>\n"));
}

#[test]
fn json_numbers_have_seventeen_digits() {
    let room = room();
    let output = fed(&room, &["slo", "--at-least", "0.9", "--json"], "1\n1\n0\n");
    let (out, _) = ended(&output, 3);
    assert!(out.contains("\"rate\":0.66666666666666663"), "{out}");
}

#[test]
fn the_time_is_a_limit_too() {
    let room = room();
    let answer = json(&room.run(&["slo", "--at-least", "0.99", "--for", "2s", "--json", "--", "sleep", "1.2"]), 3);
    assert_eq!(answer["undecided_because"], "the time ran out");
    assert!((1..=2).contains(&answer["trials"].as_u64().unwrap()), "{answer}");
}

#[test]
fn without_a_terminal_progress_is_a_line_now_and_then() {
    let room = room();
    let begun = Instant::now();
    let output = room.run(&["slo", "--at-least", "0.99", "--for", "3s", "--", "sleep", "0.1"]);
    let (_, err) = ended(&output, 3);
    let most = 1 + (begun.elapsed().as_secs() - 2) / 3;
    assert!((1..=most).contains(&(err.lines().count() as u64)), "at most {most}: {err}");
    assert!(err.contains("at least 0.99") && err.contains("runs") && !err.contains('\x1b'), "{err}");
    let output = room.run(&["slo", "--quiet", "--at-least", "0.99", "--for", "3s", "--", "sleep", "0.1"]);
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_plan_says_how_many_runs_a_decision_takes() {
    let room = room();
    let args = [
        "slo",
        "plan",
        "--at-least",
        "0.98",
        "--error",
        "0.001",
        "--limit",
        "20000",
        "--rate",
        "0.993",
        "--rate",
        "0.98",
        "--json",
    ];
    let plan = json(&room.run(&args), 0);
    let [above, at] = [&plan["rates"][0], &plan["rates"][1]];
    assert!(above["holds"].as_f64().unwrap() > 0.999 && above["mean_trials"].as_f64().unwrap() < 2500.0, "{plan}");
    assert!(at["holds"].as_f64().unwrap() <= 0.001, "at the threshold it is wrong to say that it holds: {plan}");
    let (out, _) = ended(&room.run(&["slo", "plan", "--between", "0.96..0.98", "--limit", "3000"]), 0);
    assert!(out.contains("it holds") && out.contains("0.97"), "{out}");
}

#[test]
fn hostile_input_gives_an_error_and_never_a_panic() {
    let room = room();
    let words = [
        "1",
        "0",
        "ok",
        "",
        "-1",
        "1e999",
        "NaN",
        "nan",
        "inf",
        "-inf",
        "0x1p-3",
        "0x",
        "{",
        "{}",
        "{\"a\":1}",
        "\"",
        ",",
        ",,",
        "\t",
        "\u{0}",
        "\u{fffd}",
        "50ms",
        "5 ms",
        "1e-400",
        "99%",
        "not ok",
        "[1]",
        "9".repeat(400).leak(),
    ];
    let options: [&[&str]; 7] = [
        &[],
        &["--under", "5"],
        &["--under", "5ms"],
        &["--column", "a"],
        &["--column", "2", "--under", "1"],
        &["--match", "."],
        &["--mean", "--range", "-1..1"],
    ];
    let mut random = Random::seeded();
    let mut draw = |below: usize| random.below(below as u64) as usize;
    for _ in 0..150 {
        let input: String = (0..draw(6)).map(|_| format!("{}\n", words[draw(words.len())])).collect();
        let output =
            fed(&room, &[&["slo", "--at-least", "0.5", "--quiet"], options[draw(options.len())]].concat(), &input);
        let status = output.status.code().expect("no signal");
        assert!(matches!(status, 0 | 1 | 3 | 4), "{status} for {input:?}: {}", text(&output.stderr));
        assert!(!text(&output.stderr).contains("panicked"), "{input:?}");
    }
}
