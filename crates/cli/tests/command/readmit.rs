//! Dead letters that a live run runs again, at the request of the page, of a client of the control socket, or of `top`.

use std::io::Write;
use std::process::{ChildStdin, Stdio};

use serde_json::Value;

use crate::http::{Answer, address, exchange};
use crate::support::{Room, Running, code, ended, until};

const TOKEN: &str = "0123456789abcdef-token";
const LETTERS: &str = "mend.dead-letters.jsonl";

/// Lines that start with `bad` die until there is a file `mended`. After that, they run until there is a file `open`.
const MEND: &str = r#"
name = "mend"
inflight = 4
[source]
lines = "-"
[[stage]]
name = "try"
op = "exec"
exec = ["sh", "-c", "echo \"$0\" >> ran; case $0 in bad*) test -e mended || exit 1; while [ ! -e open ]; do sleep 0.02; done;; esac", "{line}"]
[[stage]]
name = "list"
op = "append"
path = "list"
line = "{line}"
fresh = true
"#;

/// Starts a run that reads lines as long as its input is open.
fn start(room: &Room, args: &[&str]) -> (Running, ChildStdin) {
    let mut command = room.command(&[&["run", "flow.toml"], args].concat());
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    let input = running.child.stdin.take().expect("piped");
    (running, input)
}

fn waits_for_dead(room: &Room, dead: u64) {
    until(&format!("{dead} are dead"), || {
        let now = room.status("mend");
        now["dead_lettered"] == dead && now["in_flight"] == 0
    });
}

/// Sends the request `retry` to the control socket.
fn retry(running: &Running) -> Value {
    let mut stream = std::os::unix::net::UnixStream::connect(&running.control).expect("the run listens");
    stream.write_all(b"{\"do\":\"retry\"}\n").expect("a request");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut line).expect("an answer");
    serde_json::from_str(&line).expect("JSON")
}

fn post(server: std::net::SocketAddr, token: &str, body: &str) -> Answer {
    let length = body.len();
    let head = format!(
        "POST /retry HTTP/1.1\r\nHost: {server}\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    exchange(server, head.as_bytes())
}

fn letters(room: &Room) -> Vec<String> {
    let mut lines: Vec<_> =
        room.json_lines(LETTERS).iter().map(|letter| letter["line"].as_str().expect("a line").to_owned()).collect();
    lines.sort();
    lines
}

/// The files of letters, except the run's own file.
fn others(room: &Room) -> Vec<String> {
    let names = std::fs::read_dir(room.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.starts_with(LETTERS) && name != LETTERS)
        .collect()
}

#[test]
fn the_page_runs_dead_letters_again_and_each_unit_has_one_letter_or_none() {
    let room = Room::new(MEND);
    let (mut running, mut input) =
        start(&room, &["--page", "--page-token", TOKEN, "--report", "report.json", "--dead-letters", LETTERS]);
    let server = address(&mut running, "page");
    assert_eq!(post(server, TOKEN, "{}").status, 409, "there are none yet");
    input.write_all(b"good 1\nbad 1\nbad 2\ngood 2\n").unwrap();
    waits_for_dead(&room, 2);
    for (token, body, status) in [("0123456789abcdef-tokem", "{}", 401), (TOKEN, "[", 400), (TOKEN, "{\"all\":1}", 400)]
    {
        assert_eq!(post(server, token, body).status, status, "{body}");
    }
    assert_eq!(letters(&room), ["bad 1", "bad 2"]);

    let answer = post(server, TOKEN, "{}");
    assert_eq!((answer.status, answer.body.contains("2 dead letters are run again")), (200, true), "{answer:?}");
    running.line_with("changed from the page: 2 dead letters are run again");
    waits_for_dead(&room, 4);
    assert_eq!(letters(&room), ["bad 1", "bad 2"], "they died again");

    room.write("mended", "");
    room.write("open", "");
    until("they are run again", || post(server, TOKEN, "{}").status == 200);
    until("all are retired", || room.status("mend")["retired"] == 4);
    drop(input);
    let (status, _, err) = running.end();
    assert_eq!(code(status), 0, "{err}");
    assert!(err.contains("4 dead letters were run again"), "{err}");
    assert!(!room.path(LETTERS).exists() && others(&room).is_empty(), "{:?}", others(&room));
    let report = room.json("report.json");
    let of = |member: &str| report[member].as_u64().unwrap();
    assert_eq!((of("admitted"), of("retired"), of("dead_lettered"), of("left"), of("ran_again")), (8, 4, 4, 0, 4));
    assert_eq!(report["steered"][0]["did"][0], "from the page: 2 dead letters are run again");
    assert_eq!(report["gathered_files"][0]["placed"], true, "no unit is dead");
    let mut list: Vec<_> = room.read("list").lines().map(str::to_owned).collect();
    list.sort();
    assert_eq!(list, ["bad 1", "bad 2", "good 1", "good 2"]);
}

#[test]
fn an_interrupt_puts_back_the_letters_of_units_that_did_not_end() {
    let room = Room::new(MEND);
    let (mut running, mut input) = start(&room, &["--dead-letters", LETTERS]);
    input.write_all(b"bad 1\nbad 2\nbad 3\n").unwrap();
    waits_for_dead(&room, 3);
    room.write("mended", "");
    assert_eq!(retry(&running)["changed"][0], "3 dead letters are run again");
    running.line_with("3 units of dead letters came in again");
    until("they run", || room.status("mend")["in_flight"] == 3);
    assert!(!room.path(LETTERS).exists());
    assert_eq!(others(&room).len(), 1, "set apart, and not yet settled");
    running.signal(libc::SIGINT);
    running.line_with("interrupted");
    running.signal(libc::SIGINT);
    let (status, _, err) = running.end();
    assert_eq!(code(status), 3, "{err}");
    assert_eq!(letters(&room), ["bad 1", "bad 2", "bad 3"]);
    assert!(others(&room).is_empty(), "{:?}", others(&room));
    room.write("open", "");
    ended(&room.run(&["retry", LETTERS]), 0);
}

#[test]
fn a_killed_run_leaves_the_letters_that_were_set_apart() {
    let room = Room::new(MEND);
    let (mut running, mut input) = start(&room, &["--dead-letters", LETTERS]);
    input.write_all(b"bad 1\nbad 2\n").unwrap();
    waits_for_dead(&room, 2);
    room.write("mended", "");
    assert_eq!(retry(&running)["ok"], true);
    assert!(!room.path(LETTERS).exists(), "an answer comes when the letters are set apart");
    running.line_with("2 units of dead letters came in again");
    running.signal(libc::SIGKILL);
    let (..) = running.end();
    let apart = others(&room);
    assert_eq!(apart.len(), 1);
    room.write("open", "");
    let (_, err) = ended(&room.run(&["retry", &apart[0], "--dead-letters", "again.jsonl"]), 0);
    assert!(err.contains("retrying 2 units"), "{err}");
}

#[test]
fn rounds_that_have_ended_leave_nothing_to_a_retry_after_a_kill() {
    let room = Room::new(MEND);
    let (running, mut input) = start(&room, &["--dead-letters", LETTERS]);
    input.write_all(b"bad 1\nbad 2\n").unwrap();
    waits_for_dead(&room, 2);
    let again = |dead: u64| {
        until("they are run again", || retry(&running)["ok"] == true);
        waits_for_dead(&room, dead);
        until("the file of the round is removed", || others(&room).is_empty());
        assert_eq!(letters(&room), ["bad 1", "bad 2"]);
    };
    again(4);
    again(6);
    room.write("mended", "");
    room.write("open", "");
    until("they are run again", || retry(&running)["ok"] == true);
    until("all are retired", || room.status("mend")["retired"] == 2);
    until("the file of the round is removed", || others(&room).is_empty());
    running.signal(libc::SIGKILL);
    let (..) = running.end();
    assert!(!room.path(LETTERS).exists() && others(&room).is_empty(), "nothing is left to retry");
}

#[test]
fn a_run_that_admits_no_more_names_the_command_that_runs_letters_again() {
    let room = Room::new(MEND);
    let (running, mut input) = start(&room, &["--dead-letters", LETTERS]);
    input.write_all(b"bad 1\n").unwrap();
    waits_for_dead(&room, 1);
    room.write("mended", "");
    input.write_all(b"bad 2\n").unwrap();
    drop(input);
    until("it drains", || room.status("mend")["phase"] == "draining");
    let answer = retry(&running);
    assert_eq!(answer["ok"], false);
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("admits no more") && error.contains(&format!("millstream retry {LETTERS}")), "{error}");
    room.write("open", "");
    let (status, ..) = running.end();
    assert_eq!(code(status), 1);
    assert_eq!(letters(&room), ["bad 1"]);
}

#[test]
fn a_flow_that_remembers_its_units_keeps_its_letters() {
    let unique = r#"
name = "mend"
[source]
lines = "-"
[[stage]]
name = "first"
op = "unique"
by = "{line}"
else = "end"
[[stage]]
name = "try"
op = "exec"
exec = ["false"]
"#;
    let room = Room::new(unique);
    let (running, mut input) = start(&room, &["--dead-letters", LETTERS]);
    input.write_all(b"a\nb\n").unwrap();
    waits_for_dead(&room, 2);
    let error = retry(&running)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("stage first drops units whose text it has seen"), "{error}");
    assert_eq!(letters(&room), ["a", "b"]);
    drop(input);
    let (status, ..) = running.end();
    assert_eq!(code(status), 1);
}
