//! `millstream page`: the page of a run from its trace.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::http::{exchange, get};
use crate::support::{Room, end_of, ended, signal};
use crate::whatif::traced;

/// A page that is served.
struct Served {
    child: Child,
    address: SocketAddr,
}

impl Served {
    fn start(room: &Room) -> Self {
        let mut child = room.command(&["page", "run.trace"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_once("page at http://").and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
        Self { child, address: address.unwrap_or_else(|| panic!("no address: {line}")) }
    }

    fn post(&self, path: &str, headers: &str, body: &str) -> crate::http::Answer {
        let (address, length) = (self.address, body.len());
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
        exchange(address, head.as_bytes())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The data in a page.
fn data(page: &str) -> Value {
    let (_, data) = page.split_once("id=\"frozen\">").expect("data");
    serde_json::from_str(data.split_once("</script>").expect("an end").0).expect("JSON")
}

const JSON: &str = "Content-Type: application/json\r\n";

#[test]
fn a_trace_is_served_as_the_page_of_its_run() {
    let room = traced();
    let served = Served::start(&room);
    assert!(served.address.ip().is_loopback());
    let page = get(served.address, "/", "");
    assert_eq!(page.status, 200);
    assert!(page.headers.contains("content-security-policy: default-src 'none'"), "{}", page.headers);
    let data = data(&page.body);
    assert_eq!((&data["flow"]["flow"], &data["flow"]["steerable"]), (&"naps".into(), &false.into()));
    assert_eq!(data["flow"]["stages"][0], serde_json::json!({ "name": "load", "next": [1] }));
    let (state, report) = (&data["state"], &data["report"]);
    assert_eq!((&state["stages"][1]["done"], &state["totals"]["phase"]), (&24.into(), &"done".into()));
    // However short the run was, it is shown over time.
    assert!(state["history"]["moments"].as_array().unwrap().len() > 50, "{}", state["history"]);
    assert!(data["flow"]["lanes"].as_array().unwrap().len() > 50);
    let waits = state["waits"].as_array().unwrap();
    let disk = waits.iter().find(|wait| wait[1] == "disk").expect("units waited for it");
    assert!(disk[3].as_f64() > Some(1.0), "{disk}");
    assert!(report["facts"][0].as_str().unwrap().starts_with("replay of the run itself: "), "{report}");
    assert!(report["bottleneck"].as_str().unwrap().starts_with("disk"), "{report}");
    assert_eq!(data["whatif"]["command"], "millstream whatif run.trace");
    for (path, status) in [("/page.js", 200), ("/page.css", 200), ("/events", 404), ("/metrics", 404), ("/whatif", 405)]
    {
        assert_eq!(get(served.address, path, "").status, status, "{path}");
    }
}

#[test]
fn the_sliders_of_a_trace_are_answered_and_nothing_can_be_changed() {
    let room = traced();
    let mut served = Served::start(&room);
    let ask = |headers: &str, body: &str| served.post("/whatif", headers, body);
    let body = r#"{"client":"a","settings":["resource.disk=2"]}"#;
    let answer: Value = serde_json::from_str(&ask(JSON, body).body).unwrap();
    let wall = |of: &str| answer[of]["wall_s"].as_f64().unwrap();
    assert_eq!((&answer["ok"], &answer["units"]), (&true.into(), &24.into()), "{answer}");
    assert!((0.4..0.7).contains(&(wall("after") / wall("before"))), "{answer}");
    let unknown: Value = serde_json::from_str(&ask(JSON, &body.replace("disk", "dsk")).body).unwrap();
    assert!(unknown["error"].as_str().unwrap().contains("resource.disk"), "{unknown}");
    assert_eq!(ask("", body).status, 415);
    assert_eq!(ask(&format!("{JSON}Origin: http://evil.example\r\n"), body).status, 403);
    for path in ["/settings", "/retry", "/"] {
        assert_eq!(served.post(path, JSON, body).status, 405, "{path}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example"] {
        let answer = exchange(served.address, format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert_eq!(answer.status, 421, "{host}");
        assert!(!answer.body.contains("naps"), "{}", answer.body);
    }
    signal(&served.child, libc::SIGINT);
    assert_eq!(end_of(&mut served.child).code(), Some(0));
}

#[test]
fn a_trace_becomes_one_file() {
    let room = traced();
    ended(&room.run(&["page", "run.trace", "--report", "run.html"]), 0);
    let page = room.read("run.html");
    let data = data(&page);
    assert_eq!((&data["report"]["retired"], &data["whatif"]), (&24.into(), &Value::Null));
    assert!(page.len() < 150_000 && !page.contains("src=\"page.js\""), "{}", page.len());
    for (file, why) in [
        ("run.json", "whose name ends in .html"),
        ("run.txt", "expected .json or .html"),
        ("no/run.html", "make the folder"),
    ] {
        let (_, err) = ended(&room.run(&["page", "run.trace", "--report", file]), 2);
        assert!(err.contains(why), "{file}: {err}");
    }
}

#[test]
fn what_is_no_trace_is_told_with_what_it_is_and_where_it_is_damaged() {
    let room = traced();
    let others = ["run", "flow.toml", "--report", "run.json", "--events", "events.json", "0.001"];
    ended(&room.run(&others), 0);
    ended(&room.run(&["page", "run.trace", "--report", "run.html"]), 0);
    let trace = std::fs::read(room.path("run.trace")).unwrap();
    let mut damaged = trace.clone();
    let middle = damaged.len() - 100;
    damaged[middle] ^= 0x40;
    room.write("damaged.trace", damaged);
    room.write("cut.trace", &trace[..trace.len() - 10]);
    room.write("later.trace", [b"{\"millstream_trace\":9}\n", &trace[..]].concat());
    room.write("empty", "");
    for (file, why) in [
        ("damaged.trace", "damaged at byte "),
        ("cut.trace", "without the summary of its run"),
        ("later.trace", "format 9"),
        ("empty", "no first line"),
        ("flow.toml", "this is not a trace"),
        ("run.json", "`run --trace FILE` beside `--report` writes the trace"),
        ("events.json", "`run --trace FILE` beside `--events` writes the trace"),
        ("run.html", "a browser opens it"),
        ("none", "No such file"),
        (".", "directory"),
    ] {
        let (_, err) = ended(&room.run(&["page", file]), 2);
        assert!(err.starts_with(&format!("error: {file}: ")) && err.contains(why), "{file}: {err}");
    }
    let (_, err) = ended(&room.run(&["whatif", "events.json"]), 2);
    assert!(err.contains("for trace viewers"), "{err}");
}
