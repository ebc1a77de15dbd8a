//! `millstream history check`: verdicts, exit statuses, formats, and errors with their position.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

fn line(process: u32, op: &str, value: &str, call: u64, ret: u64) -> String {
    format!("{{\"process\":{process},\"op\":\"{op}\",{value},\"call\":{call},\"return\":{ret}}}\n")
}

/// The history of a correct queue: 1 and 2 are enqueued, 1 and 2 are dequeued, and then the queue is empty.
fn sound() -> String {
    [
        line(0, "enqueue", "\"in\":1", 0, 10),
        line(0, "enqueue", "\"in\":2", 20, 30),
        line(1, "dequeue", "\"out\":1", 15, 40),
        line(1, "dequeue", "\"out\":2", 50, 60),
        line(1, "dequeue", "\"out\":null", 70, 80),
    ]
    .concat()
}

/// The queue of [`sound`] with the two dequeues in the wrong order.
fn unsound() -> String {
    sound()
        .replace("\"out\":1", "\"out\":3")
        .replace("\"out\":2", "\"out\":1")
        .replace("\"out\":3", "\"out\":2")
        .replace("\"call\":15", "\"call\":35")
}

fn check(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["history", "check"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The write may fail, because a command that refuses its arguments does not read its input.
    let _ = command.stdin.take().unwrap().write_all(input.as_bytes());
    command.wait_with_output().unwrap()
}

fn verdict(args: &[&str], input: &str) -> (i32, String) {
    let output = check(args, input);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

fn refusal(args: &[&str], input: &str) -> (i32, String) {
    let output = check(args, input);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_linearizable_history_ends_with_0() {
    let (status, said) = verdict(&["-", "--spec", "queue"], &sound());
    assert_eq!(status, 0);
    assert!(said.starts_with("linearizable\n") && said.contains("5 operations by 2 processes, as a queue"), "{said}");
}

#[test]
fn a_history_without_answers_is_nothing_to_check() {
    let unreturned = sound().replace("\"call\":", "\"status\":\"info\",\"call\":");
    for (history, says) in [("", "was anything recorded?"), (unreturned.as_str(), "No operation has returned")] {
        let (status, said) = verdict(&["-", "--spec", "queue"], history);
        assert_eq!(status, 5, "{said}");
        assert!(said.starts_with("nothing to check\n") && said.contains(says), "{said}");
        let (status, said) = verdict(&["-", "--spec", "queue", "--allow-empty"], history);
        assert!(status == 0 && said.starts_with("linearizable\n"), "{status}: {said}");
    }
    let (status, said) = verdict(&["-", "--spec", "queue", "--json"], "");
    let json: Json = serde_json::from_str(&said).unwrap();
    assert_eq!((status, &json["verdict"]), (5, &"nothing to check".into()));
}

/// A history of a store, in the format of porcupine's tests. A read of a key that was never written returns an empty
/// text.
const STORE: &str = "\
{:process 0, :type :invoke, :f :get, :key \"a\", :value nil}
{:process 1, :type :invoke, :f :append, :key \"a\", :value \"x 1 0 y\"}
{:process 0, :type :ok, :f :get, :key \"a\", :value \"\"}
{:process 2, :type :invoke, :f :put, :key \"b\", :value \"x 2 0 y\"}
{:process 1, :type :ok, :f :append, :key \"a\", :value \"x 1 0 y\"}
{:process 2, :type :ok, :f :put, :key \"b\", :value \"x 2 0 y\"}
{:process 0, :type :invoke, :f :append, :key \"b\", :value \"x 0 1 y\"}
{:process 1, :type :invoke, :f :get, :key \"b\", :value nil}
{:process 1, :type :ok, :f :get, :key \"b\", :value \"x 2 0 yx 0 1 y\"}
{:process 0, :type :ok, :f :append, :key \"b\", :value \"x 0 1 y\"}
";

#[test]
fn logs_of_stores_are_read_as_they_are() {
    let args = ["-", "--spec", "key-value:\"\""];
    assert_eq!(verdict(&args, STORE).0, 0);
    let lost = STORE.replace("x 2 0 yx 0 1 y", "x 0 1 y");
    let (status, said) = verdict(&args, &lost);
    assert!(status == 1 && said.contains(r#""b".read() -> "x 0 1 y""#), "{status}: {said}");
    // Without an initial value, the read of the empty text is wrong.
    let (status, said) = verdict(&["-", "--spec", "key-value"], STORE);
    assert!(status == 1 && said.contains(r#"--spec 'key-value:""'"#), "{status}: {said}");
    let (_, said) = verdict(&["-", "--spec", "key-value"], &lost.replace("\"\"", "nil"));
    assert!(!said.contains("No operation writes"), "{said}");
}

#[test]
fn transactions_start_from_the_initial_value_of_their_registers() {
    let log = "\
        [{:type :invoke, :f :txn, :value [[:read :x nil] [:read :y nil]], :process 0}\n\
         {:type :ok, :f :txn, :value [[:read :x 0] [:read :y 0]], :process 0}\n\
         {:type :invoke, :f :txn, :value [[:write :y 2]], :process 1}\n\
         {:type :ok, :f :txn, :value [[:write :y 2]], :process 1}]";
    assert_eq!(verdict(&["-", "--spec", "multi-register:0"], log).0, 0);
    assert_eq!(verdict(&["-", "--spec", "multi-register"], log).0, 1);
}

#[test]
fn a_call_may_have_its_answer_already() {
    let log = "[{:process 4, :type :invoke, :f :write, :value 2}\n{:process 4, :type :ok, :f :write, :value 2}\n\
               {:process 6, :type :invoke, :f :read, :value 2}\n{:process 6, :type :ok, :f :read, :value 2}]";
    assert_eq!(verdict(&["-", "--spec", "cas-register"], log).0, 0);
    assert_eq!(
        verdict(&["-", "--spec", "cas-register"], &log.replace(":f :read, :value 2", ":f :read, :value 3")).0,
        1
    );
}

#[test]
fn an_explanation_can_be_left_out_or_cut() {
    for options in [&["--no-explain"][..], &["--explain-time", "0ms"], &["--explain-memory", "1B"]] {
        let (status, said) = verdict(&[&["-", "--spec", "queue"][..], options].concat(), &unsound());
        assert!(status == 1 && said.starts_with("not linearizable\n"), "{options:?}: {status}: {said}");
    }
    let (status, said) = refusal(&["-", "--spec", "queue", "--no-explain", "--explain-time", "1s"], "");
    assert!(status == 2 && said.contains("cannot be used with"), "{said}");
}

#[test]
fn one_that_is_not_ends_with_1_and_a_small_counter_example() {
    let (status, said) = verdict(&["-", "--spec", "queue"], &unsound());
    assert_eq!(status, 1);
    assert!(said.starts_with("not linearizable\n"), "{said}");
    for shown in ["enqueue(1)", "enqueue(2)", "dequeue() -> 2", "In order up to time"] {
        assert!(said.contains(shown), "{shown} is missing in\n{said}");
    }
}

#[test]
fn json_has_the_witness_or_the_counter_example() {
    let (_, said) = verdict(&["-", "--spec", "queue", "--json"], &sound());
    let json: Json = serde_json::from_str(&said).unwrap();
    assert_eq!(json["verdict"], "linearizable");
    assert_eq!(json["order"].as_array().unwrap().len(), 5);
    assert_eq!((&json["operations"], &json["processes"], &json["spec"]), (&5.into(), &2.into(), &"queue".into()));

    let (status, said) = verdict(&["-", "--spec", "queue", "--json"], &unsound());
    let json: Json = serde_json::from_str(&said).unwrap();
    assert_eq!((status, &json["verdict"]), (1, &"not linearizable".into()));
    let example = json["counterexample"].as_array().unwrap();
    assert!(
        example.iter().any(|operation| operation["operation"] == "enqueue(1)" && operation["return"] == 10),
        "{said}"
    );
    let subject = example.iter().find(|operation| operation["row"] == json["subject"]).expect("one of the operations");
    assert_eq!(subject["operation"], "dequeue() -> 2", "{said}");
    assert!(json["prefix"]["culprit"]["operation"].as_str().unwrap().starts_with("dequeue"), "{said}");
}

#[test]
fn a_linearizable_history_is_sequentially_consistent_without_a_search() {
    // Four concurrent processes in many rounds have more orders than can be tried.
    let times = (0..2000).flat_map(|round| (0..4).map(move |process| (round, process)));
    let history = times.map(|(round, process)| {
        let (value, at) = (4 * (round / 2) + u64::from(process), 100 * round + u64::from(process));
        match round % 2 {
            0 => line(process, "enqueue", &format!("\"in\":{value}"), at, at + 90),
            _ => line(process, "dequeue", &format!("\"out\":{value}"), at, at + 90),
        }
    });
    let history: String = history.collect();
    let (status, said) = verdict(&["-", "--spec", "queue", "--compare", "--time", "20s"], &history);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("sequentially consistent  yes"), "{said}");
}

#[test]
fn nothing_is_written_over_the_history_or_twice() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queue.jsonl");
    fs::write(&file, sound()).unwrap();
    let (file, page) = (file.to_str().unwrap(), folder.path().join("page"));
    let page = page.to_str().unwrap();
    for (args, message) in [
        (["--html", file, "--spec", "queue"], "this is the history itself"),
        (["--svg", file, "--spec", "queue"], "this is the history itself"),
    ] {
        let (status, said) = refusal(&[&[file][..], &args].concat(), "");
        assert!(status == 2 && said.contains(message), "{status}: {said}");
    }
    let link = folder.path().join("link");
    fs::hard_link(file, &link).unwrap();
    let (status, said) = refusal(&[file, "--spec", "queue", "--html", link.to_str().unwrap()], "");
    assert!(status == 2 && said.contains("this is the history itself"), "{status}: {said}");
    let again = folder.path().join(".").join("page");
    for other in [page, again.to_str().unwrap()] {
        let (status, said) = refusal(&[file, "--spec", "queue", "--html", page, "--svg", other], "");
        assert!(status == 2 && said.contains("both --html and --svg"), "{status}: {said}");
    }
    assert_eq!(fs::read_to_string(file).unwrap(), sound());
}

#[test]
fn the_three_conditions_are_told_apart() {
    // In real time, the read comes after the write and does not see the written value. The history is still consistent
    // with the order of each process alone.
    let late = [line(0, "write", "\"in\":1", 0, 5), line(1, "read", "\"out\":null", 6, 8)].concat();
    let (status, said) = verdict(&["-", "--spec", "register", "--compare"], &late);
    assert_eq!(status, 1);
    for row in ["sequential               yes", "linearizable             no", "sequentially consistent  yes"] {
        assert!(said.contains(row), "{row} is missing in\n{said}");
    }
    let (_, said) = verdict(&["-", "--spec", "queue", "--compare", "--json"], &sound());
    let json: Json = serde_json::from_str(&said).unwrap();
    assert_eq!((&json["sequential"], &json["sequentially_consistent"]), (&false.into(), &true.into()));
}

#[test]
fn a_limit_that_is_reached_ends_with_3() {
    // With repeated values and high concurrency, only the search can decide whether the history is correct, and the
    // search needs memory.
    let enqueues = (0..40).map(|process| line(process, "enqueue", &format!("\"in\":{}", process % 2), 0, 100));
    let dequeues = (40..60).map(|process| line(process, "dequeue", &format!("\"out\":{}", (process / 2) % 2), 0, 1000));
    let hard: String = enqueues.chain(dequeues).collect();
    let (status, said) = verdict(&["-", "--spec", "queue", "--memory", "1KiB"], &hard);
    assert_eq!(status, 3, "{said}");
    assert!(said.starts_with("unknown\n") && said.contains("--memory"), "{said}");
    let (status, said) = verdict(&["-", "--spec", "queue", "--memory", "1KiB", "--json"], &hard);
    let json: Json = serde_json::from_str(&said).unwrap();
    assert_eq!((status, &json["limit"]), (3, &"memory".into()), "{said}");
}

#[test]
fn malformed_files_end_with_4_and_the_line() {
    let broken = [
        ("truncated", sound().trim_end_matches("80}\n").to_owned(), "line 5"),
        ("not an object", sound() + "[1]\n", "line 6"),
        ("returned before it was called", sound() + &line(5, "dequeue", "\"out\":null", 9, 3), "line 6"),
        ("two at once", sound() + &line(1, "dequeue", "\"out\":null", 75, 90), "line 6"),
        ("another object's operation", sound() + &line(1, "push", "\"in\":1", 90, 99), "line 6"),
    ];
    for (what, text, place) in broken {
        let (status, said) = refusal(&["-", "--spec", "queue", "--format", "json"], &text);
        assert_eq!(status, 4, "{what}: {said}");
        assert!(said.starts_with("error: ") && said.contains(place), "{what}: {said}");
    }
    let (status, said) = refusal(&["-", "--spec", "queue"], "once upon a time");
    assert_eq!(status, 4);
    assert!(said.contains("--format json, jepsen, jepsen-independent, etcd"), "{said}");
}

#[test]
fn wrong_arguments_end_with_2() {
    for (args, says) in [
        (&["-", "--spec", "quue"][..], "did you mean `queue`?"),
        (&["-"], "--spec"),
        (&["-", "--spec", "key-value:a"], "is not an initial value"),
        (&["-", "--spec", "queue", "--format", "xml"], "json, jepsen, jepsen-independent, etcd"),
        (&["-", "--spec", "queue", "--memory", "0"], "must be more than zero"),
        (&["/nowhere/at/all", "--spec", "queue"], "cannot be read"),
        (&["-", "--spec", "queue", "--html", "/nowhere/page.html"], "cannot be written"),
    ] {
        let (status, said) = refusal(args, "");
        assert_eq!(status, 2, "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
}

#[test]
fn other_formats_are_recognised_by_their_beginning() {
    let edn = "{:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n\
               {:process 1, :type :invoke, :f :read, :value nil}\n{:process 1, :type :ok, :f :read, :value 1}\n";
    assert_eq!(verdict(&["-", "--spec", "register"], edn).0, 0);
    let stale = edn.replace(":f :read, :value 1}", ":f :read, :value nil}");
    assert_eq!(verdict(&["-", "--spec", "register"], &stale).0, 1);
    let etcd = "INFO  jepsen.util - 0\t:invoke\t:write\t1\nINFO  jepsen.util - 0\t:ok\t:write\t1\n\
                INFO  jepsen.util - 1\t:invoke\t:read\tnil\nINFO  jepsen.util - 1\t:ok\t:read\t1\n";
    assert_eq!(verdict(&["-", "--spec", "cas-register"], etcd).0, 0);
}

#[test]
fn pictures_are_written_where_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (log, page, picture) =
        (folder.path().join("run.jsonl"), folder.path().join("run.html"), folder.path().join("run.svg"));
    fs::write(&log, unsound()).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (status, _) = verdict(&[&text(&log), "--spec", "queue", "--html", &text(&page), "--svg", &text(&picture)], "");
    assert_eq!(status, 1);
    let (page, picture) = (fs::read_to_string(page).unwrap(), fs::read_to_string(picture).unwrap());
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("run.jsonl: queue"));
    assert!(picture.starts_with("<svg ") && picture.contains("enqueue(1)") && picture.ends_with("</svg>\n"));
}
