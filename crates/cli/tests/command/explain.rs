//! `millstream explain`: units, resources and keys of a running flow.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use serde_json::Value;

use crate::steer::{GATE, gated, stop};
use crate::support::{Room, code, ended, text, until};

/// The stage runs until there is a file `open`. Meanwhile, units wait for the only token of their key.
const KEYED: &str = r#"
name = "keyed"
inflight = 4
[resources]
"host:*" = 1
[source]
lines = "{input}"
[[stage]]
name = "visit"
op = "exec"
exec = ["sh", "-c", "while [ ! -e open ]; do sleep 0.02; done"]
needs = { "host:{host}" = 1 }
"#;

fn explained(room: &Room, what: &str) -> Value {
    let (out, _) = ended(&room.run(&["explain", "gate", what, "--json"]), 0);
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_unit_is_explained_with_the_holder_of_the_resource_it_waits_for() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    until("one runs and three wait", || {
        let now = room.status("gate");
        now["stages"][0]["running"] == 1 && now["resources"][0]["waiters"] == 3
    });
    let first = &explained(&room, "0")["unit"];
    assert_eq!((&first["doing"], &first["stage"]), (&"running".into(), &"pass".into()), "{first}");
    assert_eq!(first["holds"][0]["resource"], "slot");
    let last = &explained(&room, "3")["unit"];
    assert_eq!((&last["doing"], &last["waits_for"]["ahead"]), (&"waiting".into(), &2.into()), "{last}");
    assert_eq!(last["waits_for"]["line"]["holders"][0]["unit"], 0);
    let (out, _) = ended(&room.run(&["explain", "gate", "2"]), 0);
    assert!(out.starts_with("unit 2 waits in pass for "), "{out}");
    assert!(out.contains("for       slot, behind 1 unit\n") && out.contains("unit 0, which runs in pass"), "{out}");
    let (out, _) = ended(&room.run(&["explain", "gate", "slot"]), 0);
    assert!(out.starts_with("slot (tokens)\n") && out.contains("waiting   units 1, 2, 3\n"), "{out}");
    for (what, expected) in [
        ("99", "numbers up to"),
        ("slto", "did you mean `slot`?"),
        ("slot:x", "has no keys"),
        ("18446744073709551616", "not the number or text of a unit"),
        ("", "resources: slot, api"),
    ] {
        let output = room.run(&["explain", "gate", what]);
        assert_eq!(code(output.status), 2, "{what}");
        assert!(text(&output.stderr).contains(expected), "{what}: {}", text(&output.stderr));
    }
    stop(&room, running, 0);
    let output = room.run(&["explain", "gate", "0"]);
    assert_eq!(code(output.status), 2);
}

#[test]
fn a_key_is_found_with_and_without_its_resource() {
    let room = Room::new(KEYED);
    room.write("in", "http://a.example/1\nhttp://a.example/2\nhttp://b.example/1\nhttp://a.example/3\n");
    let running = room.start(&["run", "flow.toml", "in"]);
    until("two wait", || room.status("keyed")["resources"][0]["waiters"] == 2);
    for what in ["host:a.example", "a.example"] {
        let (out, _) = ended(&room.run(&["explain", "keyed", what]), 0);
        assert!(out.starts_with("host:a.example (keyed tokens)\n") && out.contains("units 1, 3\n"), "{out}");
    }
    let (out, _) = ended(&room.run(&["explain", "keyed", "http://a.example/3"]), 0);
    assert!(out.starts_with("unit 3 waits in visit for "), "{out}");
    let (out, _) = ended(&room.run(&["explain", "keyed", "//a.ex"]), 0);
    assert!(out.starts_with("2 units that wait have `//a.ex` in their text\n  unit "), "{out}");
    for unit in ["unit 1, which waits in visit for ", ": http://a.example/2\n", "unit 3, which waits in visit for "] {
        assert!(out.contains(unit), "{unit}: {out}");
    }
    let output = room.run(&["explain", "keyed", "http://a.example/1"]);
    assert!(text(&output.stderr).contains("of 2 units in workers' hands are not searched"), "{}", text(&output.stderr));
    let (out, _) = ended(&room.run(&["explain", "keyed", "host"]), 0);
    assert!(out.starts_with("host has 2 keys in use\n  host:a.example: 1 in use, 2 units waiting\n"), "{out}");
    let output = room.run(&["explain", "keyed", "host:a.exmaple"]);
    assert!(text(&output.stderr).contains("did you mean `host:a.example`?"), "{}", text(&output.stderr));
    stop(&room, running, 0);
}

#[test]
fn a_run_of_another_version_is_reported_as_such() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    // A request of a later version is refused, the refusal names the request, and the connection stays open.
    let mut stream = UnixStream::connect(&running.control).unwrap();
    stream.write_all(b"{\"do\":\"dance\",\"to\":7}\n{\"do\":\"status\"}\n").unwrap();
    let answers: Vec<Value> =
        BufReader::new(&stream).lines().take(2).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!(
        (&answers[0]["ok"], &answers[0]["unknown"], &answers[1]["ok"]),
        (&false.into(), &true.into(), &true.into())
    );
    assert!(answers[0]["error"].as_str().unwrap().contains("no request `dance`"), "{}", answers[0]);
    stop(&room, running, 0);

    // The refusals of an earlier version, and of a later version without this request.
    for refusal in [
        r#"{"ok":false,"error":"not understood: unknown variant `explain`, expected `status` or `set` at line 1 column 15"}"#,
        r#"{"ok":false,"unknown":true,"error":"no"}"#,
    ] {
        let path = room.path("older");
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let served = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            stream.write_all(format!("{refusal}\n").as_bytes()).unwrap();
        });
        let output = room.run(&["explain", path.to_str().unwrap(), "7"]);
        served.join().unwrap();
        assert_eq!(code(output.status), 2);
        assert!(text(&output.stderr).contains("older is a run of an older millstream, which cannot explain"));
    }
}
