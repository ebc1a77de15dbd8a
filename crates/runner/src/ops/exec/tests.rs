use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millstream_command::program::STDERR_TAIL;

use super::super::{OpError, Surroundings};
use super::Exec;
use crate::file::model::{ExecSpec, ExecStderr, ExecStdin, ExecStdout, MachineSpec};
use crate::file::template::Template;
use crate::machine::Machine;
use crate::ops::one_stage::{self, run_all, run_on_fiber};
use crate::payload::{Payload, Stream};
use crate::printer::Printer;
use crate::record::Record;

fn template(text: &str) -> Template {
    Template::parse(text).unwrap()
}

/// An `exec` stage for this program, with the defaults of a flow file.
fn spec(argv: &[&str]) -> ExecSpec {
    ExecSpec {
        argv: argv.iter().map(|argument| template(argument)).collect(),
        shell: false,
        stdin: ExecStdin::Payload,
        stdout: ExecStdout::Payload,
        stderr: ExecStderr::Message,
        tag: None,
        ordered: false,
        env: Vec::new(),
        dir: None,
    }
}

fn op(spec: &ExecSpec) -> Result<Exec, OpError> {
    let (printer, machine) = (Arc::new(Printer::new(0)), Arc::new(Machine::new(MachineSpec::default())));
    Exec::new(
        spec,
        &Surroundings {
            most_in_memory: u64::MAX,
            open_lists: 1,
            attempts: 1,
            fibers: true,
            printer: &printer,
            machine: &machine,
            stand_ins: None,
        },
    )
}

fn exec_with(argv: &[&str], stdin: ExecStdin, stdout: ExecStdout) -> Exec {
    op(&ExecSpec { stdin, stdout, ..spec(argv) }).unwrap()
}

fn exec(argv: &[&str]) -> Exec {
    op(&spec(argv)).unwrap()
}

fn sh(script: &str) -> Exec {
    op(&ExecSpec { shell: true, ..spec(&[script]) }).unwrap()
}

fn record(payload: impl Into<Vec<u8>>) -> Record {
    let mut record = Record::line(b"a line".to_vec());
    record.payload = Payload::Bytes(payload.into());
    record
}

/// Runs an op on a thread and on a fiber, and checks that the results are the same.
fn run(op: Exec, record: Record) -> Result<Record, String> {
    let op = Arc::new(op);
    let on_thread = one_stage::run(Arc::clone(&op), record.clone());
    let on_fiber = run_on_fiber(op, record, None);
    assert_eq!(on_thread.as_ref().err(), on_fiber.as_ref().err());
    on_fiber
}

/// As [`run`], with this time limit.
fn run_within(op: Exec, record: Record, limit: Duration) -> Result<Record, String> {
    let op = Arc::new(op);
    let on_thread = one_stage::run_within(Arc::clone(&op), record.clone(), limit);
    let on_fiber = run_on_fiber(op, record, Some(limit));
    assert_eq!(on_thread.is_ok(), on_fiber.is_ok());
    on_fiber
}

/// Whether a process with this number runs. A zombie does not count.
fn runs(process: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", process.trim()))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X']))
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "in a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_payload_goes_in_and_comes_out() {
    for length in [0, 1, 65_535, 65_536, 65_537, 3_000_000] {
        let payload: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
        let back = run(exec(&["cat"]), record(payload.clone())).unwrap().payload;
        assert!(back == payload, "{length} bytes");
        assert!(back.bytes().capacity() <= length + length / 8 + 1024);
    }
}

#[test]
fn a_payload_that_is_not_in_memory_goes_in_and_stays() {
    let mut unit = record("");
    unit.payload = Stream::of_bytes(b"content".to_vec(), 0).into();
    assert_eq!(run(exec(&["cat"]), unit.clone()).unwrap().payload, b"content");
    let checks = exec_with(&["sh", "-c", "test $(wc -c) = 7"], ExecStdin::Payload, ExecStdout::Null);
    assert!(run(checks, unit).unwrap().payload.as_bytes().is_none());
}

#[test]
fn a_program_that_writes_more_than_it_has_read_does_not_block() {
    let script = "head -c 1000000 /dev/zero; cat; head -c 1000000 /dev/zero >&2";
    assert_eq!(run(sh(script), record(vec![b'x'; 500_000])).unwrap().payload.bytes().len(), 1_500_000);
}

#[test]
fn a_program_that_does_not_want_its_input_is_no_failure() {
    assert_eq!(run(exec(&["echo", "done"]), record(vec![b'x'; 1_000_000])).unwrap().payload, b"done\n");
}

#[test]
fn arguments_are_arguments_whatever_is_in_them() {
    let mut unit = Record::line(b"$(touch /tmp/no) ; \"'* \xFF".to_vec());
    unit.payload = Payload::default();
    let back = run(exec(&["printf", "%s", "<{line}>"]), unit).unwrap().payload;
    assert_eq!(back, b"<$(touch /tmp/no) ; \"'* \xFF>");
}

#[test]
fn environment_folder_and_shell_are_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let script = ExecSpec {
        shell: true,
        stdin: ExecStdin::Null,
        env: vec![("UNIT".to_owned(), template("[{line}]"))],
        dir: Some(template(folder.path().to_str().unwrap())),
        ..spec(&["echo \"$0\" \"$1\" \"$UNIT\" \"$(pwd -P)\"", "({line})"])
    };
    let said = run(op(&script).unwrap(), record("ignored")).unwrap().payload;
    assert_eq!(
        String::from_utf8(said.bytes().clone()).unwrap(),
        format!("sh (a line) [a line] {}\n", folder.path().canonicalize().unwrap().display())
    );
}

#[test]
fn output_that_is_not_captured_leaves_the_payload() {
    let op = exec_with(&["echo", "noise"], ExecStdin::Null, ExecStdout::Null);
    assert_eq!(run(op, record("kept")).unwrap().payload, b"kept");
}

#[test]
fn an_output_file_appears_when_the_program_has_succeeded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b");
    let stdout = ExecStdout::File { path: template(path.to_str().unwrap()), failed: false };
    let op = |argv: &[&str]| exec_with(argv, ExecStdin::Payload, stdout.clone());
    assert_eq!(run(op(&["cat"]), record("content")).unwrap().payload, b"content", "the payload stays");
    assert_eq!(fs::read(&path).unwrap(), b"content");
    assert!(run(op(&["sh", "-c", "echo half; exit 1"]), record("")).is_err());
    assert_eq!(fs::read(&path).unwrap(), b"content");
    run(op(&["echo", "new"]), record("")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new\n");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn the_files_of_a_program_that_fails_are_kept_if_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| template(folder.path().join(name).to_str().unwrap());
    let script = ExecSpec {
        shell: true,
        stdout: ExecStdout::File { path: path("out"), failed: true },
        stderr: ExecStderr::File(path("err")),
        ..spec(&["echo out; echo wrong >&2; exit 7"])
    };
    let error = run(op(&script).unwrap(), record("")).unwrap_err();
    assert_eq!(error, "`sh` exited with status 7; standard error: wrong");
    assert_eq!(fs::read(folder.path().join("out")).unwrap(), b"out\n");
    assert_eq!(fs::read(folder.path().join("err")).unwrap(), b"wrong\n");
    let script = ExecSpec { stdout: ExecStdout::File { path: path("other"), failed: false }, ..script };
    run(op(&script).unwrap(), record("")).unwrap_err();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no other file, and no temporary one");
}

#[test]
fn a_failure_says_status_signal_and_standard_error() {
    let error = run(sh("echo out; echo wrong >&2; exit 7"), record("kept")).unwrap_err();
    assert_eq!(error, "`sh` exited with status 7; standard error: wrong");
    assert_eq!(run(sh("kill -SEGV $$"), record("")).unwrap_err(), "`sh` was killed by SIGSEGV (signal 11)");
    let error = run(sh("head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2; false"), record("")).unwrap_err();
    assert!(error.ends_with("xend") && error.contains("standard error: …x"), "{error}");
    assert!(error.len() < STDERR_TAIL + 100);
}

#[test]
fn a_missing_program_is_reported_before_the_first_unit() {
    let error = op(&spec(&["no-such-program-anywhere"])).err().unwrap();
    assert_eq!(error.message, "no program `no-such-program-anywhere` is on the search path");
    let error = run(exec(&["/nowhere/{line}"]), record("")).unwrap_err();
    assert!(error.contains("cannot run /nowhere/a line: No such file"), "{error}");
    let error = run(exec(&["/etc/{line}"]), Record::line(b"passwd".to_vec())).unwrap_err();
    assert!(error.contains("cannot run /etc/passwd: Permission denied"), "{error}");
    let error = op(&spec(&["/etc/passwd"])).err().unwrap();
    assert_eq!(error.message, "/etc/passwd is not executable");
}

/// Time limits, which are tried in this order. On a busy machine, a short limit may pass before the script has started
/// its processes.
const LIMITS: [Duration; 3] = [Duration::from_millis(200), Duration::from_secs(2), Duration::from_secs(20)];

/// Starts a script that writes the numbers of its processes to a file, lets its time limit pass, and checks that none
/// of these processes runs any more.
fn leaves_no_process(script: &str) {
    let folder = tempfile::tempdir().unwrap();
    let started = LIMITS.iter().any(|limit| {
        let numbers = folder.path().join(format!("{}", limit.as_millis()));
        let env = vec![("NUMBERS".to_owned(), template(numbers.to_str().unwrap()))];
        let op = op(&ExecSpec { shell: true, env, ..spec(&[script]) }).unwrap();
        let start = Instant::now();
        // The payload is larger than a pipe's buffer, so that the time limit interrupts the write as well.
        let error = run_within(op, record(vec![b'x'; 200_000]), *limit).unwrap_err();
        // The engine makes two attempts. Without the time limit, a script would take longer than this.
        assert!(start.elapsed() < 2 * *limit + Duration::from_secs(50), "{:?}", start.elapsed());
        assert!(error.contains("time limit") && error.contains("`sh` and its process group were killed"), "{error}");
        let numbers = fs::read_to_string(&numbers).unwrap_or_default();
        for number in numbers.lines() {
            // The op reaps the leader. The process that adopts the orphans reaps them a moment later.
            wait_until("the process has gone", || !runs(number));
        }
        numbers.lines().count() >= 2
    });
    assert!(started, "the script has started its processes");
}

#[test]
fn a_time_limit_ends_the_whole_group() {
    let script = "echo $$ >> $NUMBERS; sleep 100 & echo $! >> $NUMBERS; sleep 100";
    leaves_no_process(script);
}

#[test]
fn a_program_that_ignores_sigterm_is_killed() {
    let script = "trap '' TERM; echo $$ >> $NUMBERS; (while :; do sleep 0.05; done) & echo $! >> $NUMBERS; \
                  wait; while :; do :; done";
    leaves_no_process(script);
}

#[test]
fn a_child_that_outlives_the_leader_and_holds_its_output_is_killed() {
    let script = "echo $$ >> $NUMBERS; sleep 100 & echo $! >> $NUMBERS; exit 0";
    leaves_no_process(script);
}

#[test]
fn a_program_that_closes_its_output_and_stays_is_killed() {
    let script = "echo $$ >> $NUMBERS; sleep 100 >&- 2>&- <&- & echo $! >> $NUMBERS; exec >&- 2>&- <&-; wait";
    leaves_no_process(script);
}

#[test]
fn standard_error_before_the_time_limit_is_in_the_message() {
    let says_it = || sh("echo 'still at it' >&2; sleep 100");
    let mut error = String::new();
    let heard = LIMITS.iter().any(|limit| {
        error = run_within(says_it(), record(""), *limit).unwrap_err();
        error.ends_with("standard error: still at it")
    });
    assert!(heard, "{error}");
}

#[test]
fn output_of_a_child_that_outlives_the_leader_is_waited_for() {
    let said = run(sh("(sleep 0.2; echo late) & echo early"), record("")).unwrap().payload;
    assert_eq!(said, b"early\nlate\n");
}

#[test]
fn no_descriptor_and_no_child_is_left_over() {
    let count = || fs::read_dir("/proc/self/fd").unwrap().count();
    let units = |number| (0..number).map(|_| record("x"));
    run_all(exec(&["cat"]), units(10)).unwrap();
    let before = count();
    run_all(exec(&["cat"]), units(200)).unwrap();
    // Other tests run at the same time and have descriptors of their own.
    assert!(count() < before + 100, "{before} before, {} after", count());
}

#[test]
fn the_items_of_a_group_are_arguments_or_lines() {
    let group = || Record::items_of(b"a b\0\0-c".to_vec());
    let said = |op: Exec| run(op, group()).unwrap().payload.bytes().clone();
    assert_eq!(said(exec(&["printf", "<%s>", "{items}"])), b"<a b><><-c>");
    assert_eq!(said(exec_with(&["cat"], ExecStdin::Items, ExecStdout::Payload)), b"a b\n\n-c\n");
}
