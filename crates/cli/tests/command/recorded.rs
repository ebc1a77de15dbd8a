//! `millstream page`: the page of a run from its trace, its events or its report.

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
    fn start(room: &Room, file: &str) -> Self {
        let mut child = room.command(&["page", file]).stderr(Stdio::piped()).spawn().unwrap();
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

/// The JSON data in a page.
fn data(page: &str) -> Value {
    let (_, data) = page.split_once("id=\"frozen\">").expect("data");
    serde_json::from_str(data.split_once("</script>").expect("an end").0).expect("JSON")
}

const JSON: &str = "Content-Type: application/json\r\n";

#[test]
fn a_trace_is_served_as_the_page_of_its_run() {
    let room = traced();
    let served = Served::start(&room, "run.trace");
    assert!(served.address.ip().is_loopback());
    let page = get(served.address, "/", "");
    assert_eq!(page.status, 200);
    assert!(page.headers.contains("content-security-policy: default-src 'none'"), "{}", page.headers);
    let data = data(&page.body);
    assert_eq!((&data["flow"]["flow"], &data["flow"]["steerable"]), (&"naps".into(), &false.into()));
    assert_eq!(data["flow"]["stages"][0], serde_json::json!({ "name": "load", "next": [1] }));
    let (state, report) = (&data["state"], &data["report"]);
    assert_eq!((&state["stages"][1]["done"], &state["totals"]["phase"]), (&24.into(), &"done".into()));
    // Even the page of a short run has a history of many moments.
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
    let mut served = Served::start(&room, "run.trace");
    let ask = |headers: &str, body: &str| served.post("/whatif", headers, body);
    let body = r#"{"client":"a","settings":["resource.disk=2"]}"#;
    let answer: Value = serde_json::from_str(&ask(JSON, body).body).unwrap();
    let wall = |of: &str| answer[of]["wall_s"].as_f64().unwrap();
    assert_eq!((&answer["ok"], &answer["units"], &answer["of"]), (&true.into(), &24.into(), &24.into()), "{answer}");
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
        ("run.json", "its name ends in .html"),
        ("run.txt", "expected .json or .html"),
        ("no/run.html", "make the folder"),
    ] {
        let (_, err) = ended(&room.run(&["page", "run.trace", "--report", file]), 2);
        assert!(err.contains(why), "{file}: {err}");
    }
}

/// A room with the trace, the events and the report of one run. One unit of this run fails.
fn told_three_ways() -> Room {
    let flow = "name = 'f<img src=x>'\n[resources]\nslot = 1\n[source]\nlines = \"{input}\"\n\
        [[stage]]\nname = 'try <b>'\nop = \"exec\"\nexec = [\"sh\", \"-c\", \"test $0 != bad\", \"{line}\"]\nneeds = { slot = 1 }\n";
    let room = Room::new(flow);
    room.write("in", "good\nbad\nfine\n");
    let files = ["--trace", "run.trace", "--events", "events.json", "--report", "run.json"];
    let (_, err) = ended(&room.run(&[&["run", "flow.toml", "in"], &files[..]].concat()), 1);
    assert!(err.contains("`millstream page events.json` shows them"), "{err}");
    room
}

#[test]
fn a_file_of_events_is_shown_as_lanes_whatever_its_name_is() {
    let room = told_three_ways();
    std::fs::copy(room.path("events.json"), room.path("named.trace")).unwrap();
    let served = Served::start(&room, "named.trace");
    let page = get(served.address, "/", "");
    let timeline = &data(&page.body)["timeline"];
    assert_eq!((&timeline["name"], &timeline["is_ours"]), (&"f<img src=x>".into(), &true.into()), "{timeline}");
    let stage = timeline["stages"].as_array().unwrap().iter().find(|lane| lane["name"] == "try <b>").expect("a lane");
    assert_eq!((&stage["spans"], &stage["failed"], &stage["most"]), (&3.into(), &1.into(), &1.into()), "{stage}");
    assert!(!timeline["threads"].as_array().unwrap().is_empty());
    assert!(!page.body.contains("<img") && !page.body.contains("try <b>"));
    assert_eq!(served.post("/whatif", JSON, r#"{"client":"a","settings":[]}"#).status, 405);
    assert_eq!(get(served.address, "/whatif", "").status, 404, "there are no sliders");
    ended(&room.run(&["page", "named.trace", "--report", "events.html"]), 0);
    assert!(room.read("events.html").len() < 150_000);
}

#[test]
fn a_report_is_shown_with_what_it_knows() {
    let room = told_three_ways();
    ended(&room.run(&["page", "run.json", "--report", "run.html"]), 0);
    let page = room.read("run.html");
    let data = data(&page);
    let (state, report) = (&data["state"], &data["report"]);
    assert_eq!((&state["totals"]["retired"], &state["causes"][0]["units"]), (&2.into(), &1.into()), "{state}");
    assert_eq!((&state["stages"][0]["done"], &state["resources"][0]["cap"]), (&2.into(), &1.into()), "{state}");
    assert!(state["retry"]["command"].as_str().unwrap().starts_with("millstream retry "), "{state}");
    assert_eq!(
        (&report["outcome"], &data["flow"]["lanes"]),
        (&"1 of 3 units dead-lettered".into(), &Value::from([(); 0]))
    );
    assert!(!page.contains("<img") && page.len() < 150_000, "{}", page.len());
}

#[test]
fn a_file_that_is_none_of_the_three_is_refused_with_its_kind_and_its_damage() {
    let room = told_three_ways();
    ended(&room.run(&["page", "run.trace", "--report", "run.html"]), 0);
    let trace = std::fs::read(room.path("run.trace")).unwrap();
    let mut damaged = trace.clone();
    let middle = damaged.len() - 100;
    damaged[middle] ^= 0x40;
    room.write("damaged.trace", damaged);
    room.write("cut.trace", &trace[..trace.len() - 10]);
    room.write("later.trace", [b"{\"millstream_trace\":9}\n", &trace[..]].concat());
    for file in ["events.json", "run.json"] {
        let text = room.read(file);
        room.write(format!("cut-{file}"), &text[..text.len() - 20]);
    }
    room.write("empty", "");
    room.write("wrong.json", room.read("run.json").replace("\"retired\": 2", "\"retired\": 7"));
    room.write("later.json", room.read("events.json").replace("millstream_events\":1", "millstream_events\":2"));
    room.write("other.json", "{\"a\": 1}");
    room.write("counters.json", r#"[{"ph":"C","name":"heap","ts":1,"args":{"bytes":2}}]"#);
    for (file, why) in [
        ("damaged.trace", "damaged at byte "),
        ("cut.trace", "without the summary of its run"),
        ("later.trace", "format 9"),
        ("empty", "the file is empty; expected the trace of a run (`run --trace FILE`), its events"),
        ("flow.toml", "neither a trace nor JSON; expected"),
        ("cut-events.json", "the file of events is cut off at line "),
        ("cut-run.json", "the report is cut off at line "),
        ("wrong.json", "its units do not add up: 3 came"),
        ("later.json", "of a later version"),
        ("other.json", "JSON without `traceEvents` and `admitted`: expected"),
        ("counters.json", "without a span (an event of phase `X`"),
        ("run.html", "a browser opens it"),
        ("none", "No such file"),
        (".", "directory"),
        ("/dev/zero", "not a regular file"),
    ] {
        let (_, err) = ended(&room.run(&["page", file]), 2);
        assert!(err.starts_with(&format!("error: {file}: ")) && err.contains(why), "{file}: {err}");
    }
    let (_, err) = ended(&room.run(&["page", "events.json", "--max-size", "100B"]), 2);
    assert!(err.contains("and at most 100 B are read: `--max-size` raises that"), "{err}");
    let (_, err) = ended(&room.run(&["whatif", "events.json"]), 2);
    assert!(err.contains("for `millstream page` and trace viewers"), "{err}");
}
