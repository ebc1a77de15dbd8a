//! `millstream each`: runs one program for each item.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Room, code, ended, peak_bytes};

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Runs `millstream each ARGS…` with the file `items` as its standard input.
fn each_of(room: &Room, items: &[u8], args: &[&str]) -> Output {
    room.write("items", items);
    let mut command = room.command(&["each"]);
    command.args(args).stdin(Stdio::from(fs::File::open(room.path("items")).unwrap()));
    command.output().unwrap()
}

#[test]
fn a_program_runs_once_for_each_item() {
    let room = Room::new("");
    let (out, err) = ended(&room.run(&["each", "echo", "<{}>", ":::", "a", "b c", "-n"]), 0);
    assert_eq!(sorted(&out), ["<-n>", "<a>", "<b c>"]);
    assert!(err.contains("echo: complete") && err.contains("admitted 3 = retired 3"), "{err}");
    let (out, _) = ended(&each_of(&room, b"one\ntwo\n", &["-q", "echo"]), 0);
    assert_eq!(sorted(&out), ["one", "two"]);
    let (out, _) = ended(&each_of(&room, b"a\nb\0c\0", &["-q", "-0", "printf", "[%s]", "{}"]), 0);
    assert!(["[a\nb][c]", "[c][a\nb]"].contains(&out.as_str()), "{out}");
}

#[test]
fn no_items_are_nothing_to_do() {
    let room = Room::new("");
    let (out, err) = ended(&room.run(&["each", "echo", ":::"]), 0);
    assert!(out.is_empty() && err.contains("nothing to do"), "{err}");
    let (out, _) = ended(&each_of(&room, b"", &["-q", "echo"]), 0);
    assert_eq!(out, "");
}

#[test]
fn a_program_may_take_several_items_at_once() {
    let room = Room::new("");
    let items: String = (0..10).map(|item| format!("{item}\n")).collect();
    let (out, _) = ended(&each_of(&room, items.as_bytes(), &["-q", "-k", "-N", "4", "echo"]), 0);
    assert_eq!(out, "0 1 2 3\n4 5 6 7\n8 9\n");
    let (out, _) = ended(&room.run(&["each", "-q", "-k", "-N2", "printf", "<%s>", "a{}", "{}", ":::", "x y"]), 2);
    assert_eq!(out, "", "an item is an argument of its own");
    let (out, _) =
        ended(&room.run(&["each", "-q", "-k", "-N2", "printf", "<%s>", "{}", ".", ":::", "x y", "", "z"]), 0);
    assert_eq!(out, "<x y><><.><z><.>");
    let (out, _) = ended(&room.run(&["each", "-n", "-N2", "rm", "-f", ":::", "a b", "-r", "c"]), 0);
    assert_eq!(out, "rm -f 'a b' -r\nrm -f c\n");
    // A group that fails becomes one dead letter, and is retried as a whole.
    let script = "test -e mended || exit 1; echo $#: \"$@\" >> got";
    let odd = OsStr::from_bytes(b"\xff b");
    let mut command = room.command(&["each", "-q", "-N", "3", "sh", "-c", script, "sh", "{}", ":::", "a"]);
    ended(&command.arg(odd).args(["c d", "e"]).output().unwrap(), 1);
    assert_eq!(room.json_lines("sh.dead-letters.jsonl").len(), 2);
    room.write("mended", "");
    ended(&room.run(&["retry", "-q"]), 0);
    let got = fs::read(room.path("got")).unwrap();
    let mut lines: Vec<&[u8]> = got.trim_ascii_end().split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    assert_eq!(lines, [&b"1: e"[..], b"3: a \xff b c d"]);
    let (_, err) = ended(&room.run(&["each", "-N", "2", "--tag", "echo", ":::", "a"]), 2);
    assert!(err.contains("cannot be used with"), "{err}");
    let (_, err) = ended(&room.run(&["each", "-N", "2", "echo", "out/{/}", ":::", "a"]), 2);
    assert!(err.contains("`{/}` in the argument `out/{/}` stands for one item") && !err.contains("{name}"), "{err}");
}

#[test]
fn a_retry_keeps_the_order_too() {
    let room = Room::new("");
    let script = "sleep 0.0$((9 - $1)); test -e mended || exit 1; echo $1";
    let items: Vec<String> = (1..9).map(|item| item.to_string()).collect();
    let mut args = vec!["each", "-q", "-k", "-j4", "sh", "-c", script, "sh", "{}", ":::"];
    args.extend(items.iter().map(String::as_str));
    ended(&room.run(&args), 1);
    room.write("mended", "");
    let (out, _) = ended(&room.run(&["retry", "-q"]), 0);
    assert_eq!(out, "1\n2\n3\n4\n5\n6\n7\n8\n");
}

#[test]
fn an_item_is_never_a_command() {
    let room = Room::new("");
    let (out, _) = ended(&room.run(&["each", "-q", "echo", ":::", "$(touch oops)", "; touch oops"]), 0);
    assert_eq!(sorted(&out), ["$(touch oops)", "; touch oops"]);
    assert!(!room.path("oops").exists());
    for quotes in ["{}", "\"{}\"", "'{}'", "\"$(printf %s {})\""] {
        let items = ["$(touch oops)", "; touch oops;", "' ; touch oops; '", "\" ; touch oops; \"", "a  b"];
        let script = format!("printf '<%s>\\n' {quotes}");
        let mut args = vec!["each", "-q", "-k", "--shell", &script, ":::"];
        args.extend(items);
        let (out, _) = ended(&room.run(&args), 0);
        assert_eq!(out, items.map(|item| format!("<{item}>\n")).concat(), "{quotes}");
        assert!(!room.path("oops").exists(), "{quotes}");
    }
    let (out, _) = ended(&room.run(&["each", "-n", "--shell", "wc -l < {}", ":::", "a b"]), 0);
    assert_eq!(out, "sh -c 'wc -l < \"${1}\"' sh 'a b'\n");
    room.write("a", "1\n2\n");
    let (out, _) = ended(&room.run(&["each", "-q", "--shell", "wc -l < \"$1\"", "{}", ":::", "a"]), 0);
    assert_eq!(out.trim(), "2");
}

#[test]
fn parts_of_an_item_have_names_and_other_braces_stay() {
    let room = Room::new("");
    let (out, _) =
        ended(&room.run(&["each", "-q", "echo", "{/}", "{/.}", "{//}", "{ext}", "{print $1}", ":::", "a/b.tar.gz"]), 0);
    assert_eq!(out, "b.tar.gz b.tar a gz {print $1}\n");
    let (_, err) = ended(&room.run(&["each", "echo", "{nmae}", ":::", "a"]), 2);
    assert!(err.contains("did you mean `{name}`?"), "{err}");
}

#[test]
fn outputs_do_not_mix_and_may_bear_their_item() {
    let room = Room::new("");
    let script = "for i in 1 2 3 4 5 6 7 8; do echo \"$1\"; done";
    let items: Vec<String> = (0..40).map(|item| format!("{item}\n")).collect();
    let (out, _) = ended(&each_of(&room, items.concat().as_bytes(), &["-q", "-j8", "sh", "-c", script, "sh", "{}"]), 0);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 320);
    assert!(lines.chunks(8).all(|chunk| chunk.iter().all(|line| *line == chunk[0])), "{out}");
    let (out, _) = ended(&room.run(&["each", "-q", "--tag", "printf", "1\n2", ":::", "x"]), 0);
    assert_eq!(out, "x\t1\nx\t2\n");
}

#[test]
fn output_is_shown_whether_or_not_its_program_succeeded() {
    let room = Room::new("");
    let script = "echo out $1; echo err $1 >&2; test $1 != bad";
    let (out, err) =
        ended(&room.run(&["each", "-q", "--tag", "sh", "-c", script, "sh", "{}", ":::", "good", "bad"]), 1);
    assert_eq!(sorted(&out), ["bad\tout bad", "good\tout good"]);
    assert!(err.contains("good\terr good\n") && err.contains("bad\terr bad\n"), "{err}");
    let again = "echo said >&2; test -e tried || { touch tried; exit 1; }";
    let (_, err) = ended(&room.run(&["each", "-q", "--retry", "1", "sh", "-c", again, ":::", "x"]), 0);
    assert_eq!(err, "said\n", "an attempt that is repeated says nothing");
    let stuck = "echo before; exec sleep 600";
    let (out, _) = ended(&room.run(&["each", "-q", "--timeout", "300ms", "sh", "-c", stuck, ":::", "x"]), 1);
    assert_eq!(out, "before\n");
}

#[test]
fn outputs_may_keep_the_order_of_their_items() {
    let room = Room::new("");
    // The first program ends last, one program fails, one prints nothing, and one is retried.
    let script = "case $1 in 0) sleep 0.3;; 7) exit 1;; 9) exit 0;; 11) mkdir seen || exit 0; exit 1;; esac; echo $1";
    let items: String = (0..60).map(|item| format!("{item}\n")).collect();
    let args = ["-q", "-k", "-j8", "--retry", "1", "--backoff", "1ms..1ms", "sh", "-c", script, "sh", "{}"];
    let (out, _) = ended(&each_of(&room, items.as_bytes(), &args), 1);
    let expected: Vec<String> =
        (0..60).filter(|item| ![7, 9, 11].contains(item)).map(|item| item.to_string()).collect();
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_reader_that_has_seen_enough_stops_the_rest() {
    let room = Room::new("");
    let items: String = (0..5000).map(|item| format!("{item}\n")).collect();
    room.write("items", items);
    let line = format!(
        "{} each -q -j2 sh -c 'echo $1 >> ran; echo $1' sh {{}} < items | head -n 1; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_millstream")
    );
    let output = std::process::Command::new("bash").args(["-c", &line]).current_dir(room.path("")).output().unwrap();
    let (out, _) = ended(&output, 3);
    assert_eq!(out.lines().count(), 1);
    assert!(room.read("ran").lines().count() < 500, "units that wait do not start");
}

#[test]
fn the_exit_status_says_whether_the_reader_left_early() {
    let room = Room::new("");
    let status = |line: &str| {
        let line = line.replace("EACH", &format!("{} each -q", env!("CARGO_BIN_EXE_millstream")));
        let output = std::process::Command::new("bash")
            .args(["-c", &format!("{line}; exit ${{PIPESTATUS[0]}}")])
            .current_dir(room.path(""))
            .output()
            .unwrap();
        output.status.code()
    };
    assert_eq!(status("EACH head -c 300000 ::: /dev/zero | sleep 1"), Some(3), "the flow was over before");
    assert_eq!(status("EACH -u sh -c 'echo x >> ran; echo x' ::: $(seq 1000) | head -n 1"), Some(3));
    assert!(room.read("ran").lines().count() < 500, "programs that write by themselves are not started either");
}

#[test]
fn a_machine_that_is_short_of_memory_starts_nothing() {
    let room = Room::new("");
    let mut run = room.start(&["each", "--memfree", "1000TiB", "--load", "1000", "touch", ":::", "made"]);
    run.line_with("programs wait for the machine: ");
    run.signal(libc::SIGINT);
    run.signal(libc::SIGTERM);
    let (status, _, err) = run.end();
    assert_eq!(code(status), 3, "{err}");
    assert!(!room.path("made").exists());
    let (out, _) = ended(&room.run(&["each", "-q", "--memfree", "1MiB", "--load", "1000%", "echo", ":::", "a"]), 0);
    assert_eq!(out, "a\n");
    for (option, value) in [("--load", "0"), ("--load", "much"), ("--load", "-5%"), ("--memfree", "0")] {
        ended(&room.run(&["each", &format!("{option}={value}"), "echo", ":::", "a"]), 2);
    }
}

#[test]
fn an_interrupted_run_waits_for_a_retry_but_not_for_a_busy_machine() {
    let room = Room::new("");
    let script = "test -e tried || { touch tried; exit 1; }; touch again";
    let run = room.start(&[
        "each",
        "--load",
        "1000000",
        "--retry",
        "1",
        "--backoff",
        "2s..2s",
        "sh",
        "-c",
        script,
        ":::",
        "x",
    ]);
    room.wait_for("tried");
    run.signal(libc::SIGINT);
    let (status, _, err) = run.end();
    assert_eq!(code(status), 3, "{err}");
    assert!(room.path("again").exists(), "a unit in a pause is in flight, and is finished: {err}");
    let mut run = room.start(&["each", "--memfree", "1000TiB", "touch", ":::", "made"]);
    run.line_with("programs wait for the machine: ");
    run.signal(libc::SIGINT);
    let (status, _, err) = run.end();
    assert!(code(status) == 3 && err.contains("1 unit left") && !room.path("made").exists(), "{err}");
}

#[test]
fn the_order_of_outputs_is_part_of_no_cycle_of_waits() {
    // The first unit waits for a resource that other units hold. The outputs of these units wait until the first unit's
    // output is printed.
    let stage =
        |name: &str, rest: &str| format!("[[stage]]\nname = \"{name}\"\nop = \"exec\"\nstdin = \"null\"\n{rest}\n");
    let flow = [
        "memory = \"1MiB\"\nworkers = 4\ninflight = 8\n[resources]\nt = 1\n[source]\nargs = true\n",
        &stage(
            "say",
            "exec = ['[ \"$1\" = 0 ] && sleep 0.5; head -c 300000 /dev/zero', \"{line}\"]\nshell = true\n\
             stdout = \"print\"\nordered = true",
        ),
        &stage("hold", "exec = [\"true\"]\nstdout = \"null\"\nneeds = { t = { amount = 1, until = \"out\" } }"),
        &stage("out", "exec = [\"echo\", \"{line}\"]\nstdout = \"print\""),
    ];
    let room = Room::new(&flow.concat());
    let mut args = vec!["run", "-q", "flow.toml"];
    args.extend(["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    let (out, _) = ended(&room.run(&args), 0);
    assert_eq!(out.len(), 10 * 300_000 + 20);
}

#[test]
fn an_interrupt_ends_the_wait_for_a_reader_and_loses_nothing_else() {
    let room = Room::new(concat!(
        "[source]\nargs = true\n[[stage]]\nname = \"say\"\nop = \"exec\"\nexec = [\"head\", \"-c\", \"300000\", \"/dev/zero\"]\n",
        "stdout = \"print\"\n[[stage]]\nname = \"list\"\nop = \"append\"\npath = \"list\"\nline = \"{line}\"\nfresh = true\n"
    ));
    // The run's output is not read before the run ends.
    let mut run = room.start(&["run", "--report", "r.json", "flow.toml", "1", "2", "3"]);
    run.line_with("outputs wait until standard output is read");
    run.signal(libc::SIGINT);
    let (status, _, err) = run.end();
    assert_eq!(code(status), 3, "{err}");
    assert!(err.contains("outputs are lost") && err.contains("list has 3 lines"), "{err}");
    assert_eq!(room.json("r.json")["retired"], 3);
    assert_eq!(room.read("list").lines().count(), 3);
}

#[test]
fn a_full_disk_is_reported_and_stops_the_other_programs() {
    let room = Room::new("");
    let items: String = (0..5000).map(|item| format!("{item}\n")).collect();
    room.write("items", items);
    let mut command = room.command(&["each", "-j2", "sh", "-c", "echo $1 >> ran; echo $1", "sh", "{}"]);
    command.stdin(Stdio::from(fs::File::open(room.path("items")).unwrap()));
    command.stdout(Stdio::from(fs::File::options().write(true).open("/dev/full").unwrap()));
    let (_, err) = ended(&command.output().unwrap(), 4);
    assert!(err.contains("cannot write to standard output: No space left on device"), "{err}");
    assert!(room.read("ran").lines().count() < 500, "units that wait do not start");
}

#[test]
fn a_slow_reader_costs_no_time_limit_and_little_memory() {
    let room = Room::new("");
    let line = format!(
        "{} each -q -j4 --memory 1MiB --timeout 2s sh -c 'head -c 100000 /dev/zero' ::: $(seq 100) | (sleep 3; wc -c)",
        env!("CARGO_BIN_EXE_millstream")
    );
    let output = std::process::Command::new("bash").args(["-c", &line]).current_dir(room.path("")).output().unwrap();
    let (out, _) = ended(&output, 0);
    assert_eq!(out.trim(), "10000000");
}

#[test]
fn output_to_a_file_goes_on_where_others_stopped() {
    let room = Room::new("");
    let out = fs::File::create(room.path("out")).unwrap();
    for items in [["a", "b"], ["c", "d"]] {
        let mut command = room.command(&["each", "-q", "echo", ":::"]);
        command.args(items).stdout(out.try_clone().unwrap());
        assert!(command.status().unwrap().success());
        (&out).write_all(b"-\n").unwrap();
    }
    let text = room.read("out");
    assert_eq!(text.len(), 12, "{text:?}");
    assert_eq!((sorted(&text[..4]), sorted(&text[6..10])), (vec!["a", "b"], vec!["c", "d"]), "{text:?}");
}

#[test]
fn jobs_and_needs_bound_what_runs_at_once() {
    let room = Room::new("");
    // Each program creates a file while it runs, and prints the number of these files.
    let script = "touch run.$1; ls run.* | wc -l; sleep 0.05; rm run.$1";
    for (args, most) in [(&["-j3"][..], 3), (&["-j8", "--needs", "gpu=2"], 2), (&["-j8", "--needs", "k:{ext}=1"], 1)] {
        let mut all = args.to_vec();
        all.extend(["-q", "sh", "-c", script, "sh", "{}"]);
        let items: String = (0..16).map(|item| format!("{item}.a\n")).collect();
        let (out, err) = ended(&each_of(&room, items.as_bytes(), &all), 0);
        let seen = out.lines().map(|line| line.trim().parse::<u32>().unwrap()).max().unwrap();
        assert!(seen <= most, "{args:?}: {seen} at once; {err}");
    }
}

#[test]
fn starts_keep_their_distance() {
    let room = Room::new("");
    for limit in [&["--rate", "20/s"][..], &["--delay", "50ms"]] {
        let began = Instant::now();
        let mut args = vec!["each", "-q", "-j4"];
        args.extend(limit);
        args.extend(["true", ":::", "1", "2", "3", "4", "5"]);
        ended(&room.run(&args), 0);
        assert!(began.elapsed() >= Duration::from_millis(190), "{limit:?}: {:?}", began.elapsed());
    }
}

#[test]
fn a_failed_program_is_tried_again_and_its_item_kept_for_a_retry() {
    let room = Room::new("");
    let script = "echo x >> tries.$1; test -e mended || test \"$1\" != bad";
    let args = ["each", "--retry", "2", "--backoff", "1ms..2ms", "sh", "-c", script, "sh", "{}", ":::", "good", "bad"];
    let (_, err) = ended(&room.run(&args), 1);
    assert!(err.contains("sh.dead-letters.jsonl"), "{err}");
    assert_eq!(room.read("tries.bad").lines().count(), 3);
    room.write("mended", "");
    let (_, err) = ended(&room.run(&["retry"]), 0);
    assert!(err.contains("retrying 1 unit of sh-"), "{err}");
    assert_eq!(room.read("tries.bad").lines().count(), 4);
    assert_eq!(room.read("tries.good").lines().count(), 1);
}

#[test]
fn a_program_that_takes_too_long_is_killed() {
    let room = Room::new("");
    let began = Instant::now();
    let (_, err) = ended(&room.run(&["each", "--timeout", "100ms", "sleep", ":::", "600"]), 1);
    assert!(began.elapsed() < Duration::from_secs(120), "{err}");
    assert_eq!(room.json_lines("sleep.dead-letters.jsonl")[0]["cause"], "timeout");
}

#[test]
fn the_first_failure_may_stop_the_rest() {
    let room = Room::new("");
    let items: String = (0..2000).map(|item| format!("{item}\n")).collect();
    let script = "echo $1 >> ran; exit 1";
    let args = ["-j1", "--halt", "3", "sh", "-c", script, "sh", "{}"];
    let (_, err) = ended(&each_of(&room, items.as_bytes(), &args), 1);
    assert!(err.contains("halted after 3 failures") && err.contains("units left"), "{err}");
    assert_eq!(room.read("ran").lines().count(), 3, "units that wait do not start");
    room.write("ran", "");
    let script = "echo $1 >> ran; test $(($1 % 5)) != 4";
    let args = ["-q", "-j1", "--halt", "20%", "sh", "-c", script, "sh", "{}"];
    ended(&each_of(&room, items.as_bytes(), &args), 1);
    assert_eq!(room.read("ran").lines().count(), 15);
}

#[test]
fn a_halt_now_ends_what_runs() {
    let room = Room::new("");
    let began = Instant::now();
    let script = "test $1 = bad && { sleep 0.2; exit 1; }; sleep 600";
    let args = ["each", "-q", "-j2", "--halt", "now,1", "sh", "-c", script, "sh", "{}", ":::", "slow", "bad"];
    ended(&room.run(&args), 1);
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn results_are_kept_by_item() {
    let room = Room::new("");
    ended(&room.run(&["each", "-q", "--results", "out", "echo", "hello", "{}", ":::", "a/b", "c"]), 0);
    assert_eq!(room.read("out/a/b/stdout"), "hello a/b\n");
    assert_eq!(room.read("out/c/stdout"), "hello c\n");
    let script = "echo some; echo wrong >&2; exit 1";
    ended(&room.run(&["each", "-q", "--results", "out", "sh", "-c", script, ":::", "bad"]), 1);
    assert_eq!((room.read("out/bad/stdout"), room.read("out/bad/stderr")), ("some\n".into(), "wrong\n".into()));
}

#[test]
fn items_whose_file_exists_already_are_left_out() {
    let room = Room::new("");
    fs::create_dir(room.path("in")).unwrap();
    for name in ["in/a", "in/b"] {
        room.write(name, "x");
    }
    let script = "mkdir -p out; cp \"$1\" out/; echo $1";
    let args = ["each", "-q", "--walk", "in", "--creates", "out/{/}", "sh", "-c", script, "sh", "{}"];
    let (out, _) = ended(&room.run(&args), 0);
    assert_eq!(sorted(&out), ["in/a", "in/b"]);
    let (out, _) = ended(&room.run(&args), 0);
    assert_eq!(out, "", "both are there");
    let old = std::time::SystemTime::UNIX_EPOCH;
    fs::File::options().write(true).open(room.path("out/b")).unwrap().set_modified(old).unwrap();
    let (out, _) = ended(&room.run(&[&args[..2], &["-n"], &args[2..]].concat()), 0);
    assert!(out.ends_with("sh in/b\n") && out.lines().count() == 1, "{out}");
    let (out, _) = ended(&room.run(&args), 0);
    assert_eq!(out, "in/b\n", "its source is newer");
}

#[test]
fn a_dry_run_prints_what_a_shell_could_run() {
    let room = Room::new("");
    let (out, _) = ended(&room.run(&["each", "-n", "mv", "{}", "old/{/}", ":::", "a b", "it's", "c"]), 0);
    assert_eq!(out, "mv 'a b' 'old/a b'\nmv 'it'\\''s' 'old/it'\\''s'\nmv c old/c\n");
    assert!(!room.path("old").exists());
}

#[test]
fn a_saved_line_is_a_flow_that_does_the_same() {
    let room = Room::new("");
    let line = [
        "each",
        "-j3",
        "--needs",
        "host:{host}=2",
        "--rate",
        "50/s",
        "--retry",
        "3",
        "--timeout",
        "30s",
        "--tag",
        "--save",
        "line.toml",
        "printf",
        "%s {1}\n",
        "{}",
    ];
    let (_, err) = ended(&room.run(&line), 0);
    assert!(err.contains("millstream run line.toml"), "{err}");
    ended(&room.run(&["plan", "line.toml"]), 0);
    room.write("urls", "http://x/1\nhttp://y/2\n");
    let (out, _) = ended(&room.run(&["run", "-q", "line.toml", "urls"]), 0);
    assert_eq!(sorted(&out), ["http://x/1\thttp://x/1 {1}", "http://y/2\thttp://y/2 {1}"]);
    let (_, err) = ended(&room.run(&line), 2);
    assert!(err.contains("--save line.toml: File exists"), "{err}");
    let (_, err) = ended(&room.run(&["each", "--save", "my line.toml", "cat", ":::", "a b", "it's", "c"]), 0);
    assert!(err.contains(r"`millstream run 'my line.toml' 'a b' 'it'\''s' c` does the same"), "{err}");
}

#[test]
fn files_of_a_walk_are_items_whatever_their_names() {
    let room = Room::new("");
    fs::create_dir(room.path("in")).unwrap();
    room.write(OsStr::from_bytes(b"in/\xff\n"), "x");
    room.write("in/a", "y");
    let (out, _) = ended(&room.run(&["each", "-q", "--walk", "in", "cat", "{}"]), 0);
    assert!(out == "xy" || out == "yx", "{out}");
}

#[test]
fn a_walk_takes_the_files_whose_names_match() {
    let room = Room::new("");
    fs::create_dir_all(room.path("in/deep.jpg")).unwrap();
    for name in ["in/a.jpg", "in/b.png", "in/notes.txt", "in/deep.jpg/c.jpg", "in/deep.jpg/d"] {
        room.write(name, "");
    }
    let walk = ["each", "-q", "--walk", "in", "--name", "*.jpg"];
    let (out, _) = ended(&room.run(&[&walk[..], &["echo"]].concat()), 0);
    assert_eq!(sorted(&out), ["in/a.jpg", "in/deep.jpg/c.jpg"]);
    let (out, _) = ended(&room.run(&[&walk[..], &["--name", "*.{png,gif}", "-n", "echo"]].concat()), 0);
    assert_eq!(out.lines().count(), 3, "{out}");
    ended(&room.run(&[&walk[..], &["--name", "*.{png,gif}", "--save", "line.toml", "echo"]].concat()), 0);
    let flow = room.read("line.toml");
    assert!(flow.contains("name = [\"*.jpg\", \"*.{png,gif}\"]"), "{flow}");
    let (out, _) = ended(&room.run(&["run", "-q", "line.toml", "in"]), 0);
    assert_eq!(sorted(&out), ["in/a.jpg", "in/b.png", "in/deep.jpg/c.jpg"]);
    let (plan, _) = ended(&room.run(&["plan", "line.toml"]), 0);
    assert!(plan.contains("the files below {input} named *.jpg or *.{png,gif}"), "{plan}");
}

#[test]
fn mistakes_are_refused_before_anything_runs() {
    let room = Room::new("");
    for (args, reason) in [
        (&["each"][..], "PROGRAM"),
        (&["each", ":::", "a"], "no program before `:::`"),
        (&["each", "echo", ":::", "a", ":::", "b"], "a second `:::`"),
        (&["each", "no-such-program-here", ":::", "a"], "no program `no-such-program-here` is on the search path"),
        (&["each", "--walk", ".", "echo", ":::", "a"], "leave one of them out"),
        (&["each", "--name", "*.jpg", "echo", ":::", "a"], "--walk <DIR>"),
        (&["each", "--walk", ".", "--name", "photos/*.jpg", "echo"], "write `*.jpg` here"),
        (&["each", "--walk", ".", "--name", "[a", "echo"], "unclosed character class"),
        (&["each", "-j0", "echo", ":::", "a"], "zero programs"),
        (&["each", "--needs", "gpu", "echo", ":::", "a"], "expected NAME=N"),
        (&["each", "--needs", "jobs=2", "echo", ":::", "a"], "`--jobs` sets"),
        (&["each", "--rate", "fast", "echo", ":::", "a"], "is not a rate"),
        (&["each", "--retry", "0", "echo", ":::", "a"], "0"),
        (&["each", "--halt", "0", "echo", ":::", "a"], "zero failures"),
        (&["each", "-k", "--results", "out", "echo", ":::", "a"], "cannot be used with"),
    ] {
        let (out, err) = ended(&room.run(args), 2);
        assert!(err.contains(reason) && out.is_empty(), "{args:?}: {err}");
    }
}

#[test]
fn a_block_of_lines_is_the_standard_input_of_a_program() {
    let room = Room::new("");
    let input: Vec<u8> = (0..5000).flat_map(|n| format!("line {n}\r\n\0").into_bytes()).chain(*b"no end").collect();
    let (out, _) = ended(&each_of(&room, &input, &["-q", "-k", "-j3", "--pipe", "--block", "1KiB", "cat"]), 0);
    assert!(out.as_bytes() == input, "every byte comes through, in order");
    let (out, _) = ended(&each_of(&room, b"a\nb\nc\nd\ne\n", &["-q", "-k", "--pipe", "-N2", "wc", "-l"]), 0);
    assert_eq!(out.split_whitespace().collect::<Vec<_>>(), ["2", "2", "1"]);
    let (out, _) = ended(&each_of(&room, b"a\nb\n", &["-q", "-k", "--pipe", "-N1", "tr", "\\n", "+"]), 0);
    assert_eq!(out, "a+b+");
    let (out, _) = ended(&each_of(&room, b"a\0bc\0", &["-q", "-0", "--pipe", "cat"]), 0);
    assert_eq!(out, "a\0bc\0");
    let (out, _) = ended(&each_of(&room, b"", &["-q", "--pipe", "cat"]), 0);
    assert_eq!(out, "");
    let (_, err) = ended(&room.run(&["each", "--pipe", "cat", ":::", "a"]), 2);
    assert!(err.contains("items come from `:::` and from `--pipe`"), "{err}");
    ended(&room.run(&["each", "--block", "1KiB", "cat"]), 2);
    ended(&room.run(&["each", "--pipe", "--block", "1GiB", "cat"]), 2);
}

#[test]
fn a_block_whose_program_fails_is_kept_and_retried_whole() {
    let room = Room::new("");
    let script = "if grep -q bad && ! test -e mended; then exit 1; fi; echo passed";
    let args = ["--pipe", "--block", "6B", "--save", "blocks.toml", "sh", "-c", script];
    ended(&each_of(&room, b"", &args), 0);
    room.write("items", b"one\ntwo\nbad\nthree\nlast\n");
    let (out, err) = ended(&room.run(&["run", "blocks.toml", "items", "--dead-letters", "dead.jsonl"]), 1);
    assert!(out == "passed\npassed\n" && err.contains("admitted 3 = retired 2 + dead-lettered 1"), "{out}{err}");
    let letters = room.json_lines("dead.jsonl");
    assert_eq!(letters[0]["line"], "bad\nthree\n", "an input that is gone is not needed for a retry");
    room.write("items", "");
    room.write("mended", "");
    let (out, _) = ended(&room.run(&["retry", "dead.jsonl", "-q"]), 0);
    assert_eq!((out.as_str(), room.path("dead.jsonl").exists()), ("passed\n", false));
}

#[test]
fn blocks_of_a_long_input_take_little_memory() {
    let room = Room::new("");
    let line = "a line of thirty-two characters\n";
    let bytes = 100_000_000 / line.len() * line.len();
    let mut source = std::process::Command::new("bash");
    source.args(["-c", &format!("yes '{}' | head -c {bytes}", line.trim_end())]).stdout(Stdio::piped());
    let mut source = source.spawn().unwrap();
    let mut command = room.command(&["each", "-q", "-j2", "--pipe", "wc", "-c"]);
    command.stdin(source.stdout.take().unwrap()).stdout(fs::File::create(room.path("counts")).unwrap());
    let peak = peak_bytes(command.spawn().unwrap(), 0);
    source.wait().unwrap();
    let sum: usize = room.read("counts").split_whitespace().map(|count| count.parse::<usize>().unwrap()).sum();
    assert_eq!(sum, bytes);
    assert!(peak < 60 << 20, "{peak} bytes for blocks of 1 MiB");
}
