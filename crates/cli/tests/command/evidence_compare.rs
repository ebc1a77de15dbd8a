//! `millstream compare`.

use crate::evidence::json;
use crate::support::{Room, ended};

#[test]
fn the_smaller_file_wins() {
    let room = Room::new("");
    let numbers =
        |scale: f64| (0..400).map(|i| format!("{}\n", scale * f64::from(100 + i * 37 % 41))).collect::<String>();
    room.write("a", numbers(1.0));
    room.write("b", numbers(1.5));
    for paired in [&[][..], &["--paired"]] {
        let run = |a: &str, b: &str| room.run(&[&["compare", "--json", "--error", "0.001", a, b], paired].concat());
        let answer = json(&run("a", "b"), 0);
        assert_eq!(answer["smaller"], "a");
        assert!(answer["interval"]["low"].as_f64().unwrap() > 1.0, "{answer}");
        assert_eq!(json(&run("b", "a"), 1)["smaller"], "b");
        let answer = json(&run("a", "a"), 3);
        assert!(answer["smaller"].is_null() && answer["undecided_because"] == "the data ran out", "{answer}");
    }
    room.write("short", "1\n");
    room.write("zero", "0\n");
    room.write("empty", "");
    for (files, status) in [(["a", "short"], 4), (["zero", "zero"], 4), (["a", "empty"], 4), (["a", "none"], 2)] {
        ended(&room.run(&["compare", "--paired", files[0], files[1]]), status);
    }
}

#[test]
fn the_faster_command_wins() {
    let room = Room::new("");
    let run =
        |a: &str, b: &str| room.run(&["compare", "--run", "--quiet", "--json", "--error", "0.01", "--seed", "7", a, b]);
    let answer = json(&run("sleep 0.01", "sleep 0.3"), 0);
    assert!(answer["ratio"].as_f64().unwrap() > 1.5, "{answer}");
    assert_eq!(answer["seed"], 7);
    json(&run("sleep 0.3", "sleep 0.01; true"), 1);
    let (_, err) = ended(&run("true", "exit 3; "), 4);
    assert!(err.contains("exited with status 3"), "{err}");
    ended(&run("true", "no-such-program-anywhere"), 2);
    let limited = room.run(&["compare", "--run", "--json", "--limit", "3", "true", "true"]);
    assert_eq!(json(&limited, 3)["undecided_because"], "the limit was reached");
}

/// Numbers that vary by 20 %.
fn numbers(scale: f64) -> String {
    (0..300).map(|i| format!("{}\n", scale * (1.0 + 0.4 * f64::from(i * 181 % 300) / 300.0))).collect()
}

#[test]
fn files_are_samples_of_fixed_sizes_unless_they_are_watched() {
    let room = Room::new("");
    room.write("a", numbers(1.0));
    room.write("b", numbers(1.1));
    let run = |rest: &[&str]| room.run(&[&["compare", "a", "b"], rest].concat());
    let (out, _) = ended(&run(&[]), 0);
    assert!(out.contains("if the sizes were fixed beforehand"), "{out}");
    let (out, _) = ended(&run(&["--watched"]), 3);
    assert!(out.contains("right at all sizes at once"), "{out}");
    let piped = |rest: &str| format!("cat b | {} compare a - {rest}", env!("CARGO_BIN_EXE_millstream"));
    for (rest, status) in [("", 3), ("--fixed", 0)] {
        let output = std::process::Command::new("sh").args(["-c", &piped(rest)]).current_dir(room.path(".")).output();
        ended(&output.unwrap(), status);
    }
    json(&run(&["--json", "--at-most-slower", "30%"]), 0);
    json(&run(&["--json", "--at-most-slower", "1%"]), 1);
    json(&run(&["--json", "--at-most-slower", "10%"]), 3);
    for wrong in [&["--run", "--paired"][..], &["--watched", "--fixed"], &["--warmup", "3"], &["--at-most-slower", "0"]]
    {
        ended(&run(wrong), 2);
    }
    ended(&room.run(&["compare", "a", "b", "a"]), 2);
}

#[test]
fn equal_commands_are_soon_within_a_claim() {
    let room = Room::new("");
    let args =
        ["compare", "--run", "--json", "--error", "0.01", "--at-most-slower", "300%", "sleep 0.02", "sleep 0.02"];
    let answer = json(&room.run(&args), 0);
    assert_eq!((&answer["verdict"], &answer["at_most_slower"]), (&"holds".into(), &3.into()));
    assert!(answer["pairs"].as_u64().unwrap() < 100, "{answer}");
    let (out, _) = ended(
        &room.run(&["compare", "--run", "--error", "0.01", "--at-most-slower", "5%", "sleep 0.001", "sleep 0.3"]),
        1,
    );
    assert!(out.starts_with("fails: not B at most 5 % slower than A\n"), "{out}");
}

#[test]
fn several_commands_are_compared_with_the_first_and_their_times_shown() {
    let room = Room::new("");
    let args = ["compare", "--run", "--error", "0.05", "sleep 0.01", "sleep 0.2", "sleep 0.3"];
    let (out, _) = ended(&room.run(&args), 0);
    assert!(out.starts_with("A is faster than all others: sleep 0.01\n"), "{out}");
    for part in ["  B / A ", "  C / A ", "median ", "mean ", " ± ", "user ", "system "] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let answer =
        json(&room.run(&["compare", "--run", "--json", "--error", "0.05", "sleep 0.2", "sleep 0.01", "sleep 0.3"]), 1);
    assert_eq!(answer["with_first"][0]["is_above"], false);
    assert!(answer["commands"][2]["median"].as_f64().unwrap() > 0.25, "{answer}");
    assert!(answer["commands"].as_array().unwrap().len() == 3 && answer["smaller"].is_null(), "{answer}");
}

#[test]
fn commands_around_the_runs_run_as_often_as_documented() {
    let room = Room::new("");
    let args = [
        "compare",
        "--run",
        "--json",
        "--limit",
        "2",
        "--warmup",
        "3",
        "--setup",
        "echo >>setup",
        "--prepare",
        "echo >>prepare",
        "--cleanup",
        "echo >>cleanup",
        "-n",
        "one",
        "-n",
        "other",
        "echo >>a",
        "echo >>b",
    ];
    let answer = json(&room.run(&args), 3);
    assert_eq!((&answer["a"], &answer["b"]), (&"one".into(), &"other".into()));
    for (file, lines) in [("setup", 1), ("prepare", 10), ("cleanup", 1), ("a", 5), ("b", 5)] {
        assert_eq!(room.read(file).len(), lines, "{file}");
    }
    // The cleanup also runs after a failure. A failure of a command before or after a run is an error.
    let (_, err) = ended(&room.run(&["compare", "--run", "--cleanup", "echo >>cleanup", "false", "true"]), 4);
    assert!(err.contains("--ignore-failure") && room.read("cleanup").len() == 2, "{err}");
    let (_, err) = ended(&room.run(&["compare", "--run", "--prepare", "false", "true", "true"]), 4);
    assert!(err.contains("--prepare `false`: expected it to exit with status 0"), "{err}");
    json(&room.run(&["compare", "--run", "--json", "--limit", "2", "-i", "false", "true"]), 3);
    let (_, err) = ended(&room.run(&["compare", "--run", "-n", "one", "true", "true"]), 2);
    assert!(err.contains("a --command-name for each of 2 commands, found 1"), "{err}");
}

#[test]
fn parameters_make_commands_and_times_are_exported() {
    let room = Room::new("");
    let args = [
        "compare",
        "--run",
        "--limit",
        "2",
        "-P",
        "t",
        "1",
        "3",
        "-L",
        "word",
        "x,y",
        "--export-json",
        "t.json",
        "--export-csv",
        "t.csv",
        "echo {t} {word} >>said",
    ];
    room.run(&args);
    assert_eq!(room.read("said").lines().count(), 12);
    assert!(room.read("said").contains("3 y"));
    let results = room.json("t.json")["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), 6);
    assert_eq!(results[5]["parameters"], serde_json::json!({"t": "3", "word": "y"}));
    assert_eq!(
        (results[0]["times"].as_array().unwrap().len(), &results[0]["exit_codes"]),
        (2, &serde_json::json!([0, 0]))
    );
    for figure in ["mean", "stddev", "median", "user", "system", "min", "max"] {
        assert!(results[0][figure].as_f64().unwrap() >= 0.0, "{figure}");
    }
    let csv = room.read("t.csv");
    assert!(csv.starts_with("command,mean,stddev,median,user,system,min,max,parameter_t,parameter_word\n"), "{csv}");
    assert_eq!(csv.lines().count(), 7);
    for wrong in [&["true"][..], &["-P", "t", "3", "1", "echo {t}"], &["-L", "t", "1,2", "-L", "t", "3", "echo {t}"]] {
        ended(&room.run(&[&["compare", "--run"], wrong].concat()), 2);
    }
}
