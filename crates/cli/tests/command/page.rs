//! `--page`: the page of a run, the states that the page shows, and changes to the run from the page.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::{Answer, address, connect, exchange, get};
use crate::steer::{GATE, gated, stop};
use crate::support::{Room, ended, until};
use crate::whatif::{behind_a_slow_host, busy, let_end};

const TOKEN: &str = "0123456789abcdef-token";

/// A client that reads the stream of states.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(server: SocketAddr) -> Self {
        let mut stream = connect(server);
        stream.write_all(format!("GET /events HTTP/1.1\r\nHost: {server}\r\n\r\n").as_bytes()).unwrap();
        let mut events = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            events.read_line(&mut line).unwrap();
            assert!(!line.is_empty() && !line.contains("HTTP/1.1 5"), "{line}");
        }
        Self(events)
    }

    /// The name and the data of the next event; `None` at the end.
    fn next(&mut self) -> Option<(String, Value)> {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(event) = line.strip_prefix("event: ") {
                name = event.trim_end().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).unwrap()));
            }
        }
    }

    fn expect(&mut self, expected: &str) -> Value {
        let (name, data) = self.next().expect("an event");
        assert_eq!(name, expected, "{data}");
        data
    }
}

/// Sends a `POST` request with settings. `headers` are further headers, each with its line end.
fn post(server: SocketAddr, headers: &str, body: &str) -> Answer {
    let length = body.len();
    let head = format!("POST /settings HTTP/1.1\r\nHost: {server}\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
    exchange(server, head.as_bytes())
}

#[test]
fn the_page_needs_nothing_from_elsewhere_and_writes_no_markup() {
    let room = Room::new(GATE);
    let mut running = gated(&room, &["--page"]);
    let server = address(&mut running, "page");
    assert!(server.ip().is_loopback());
    let mut weight = 0;
    for (path, kind) in [("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")] {
        let answer = get(server, path, "");
        assert_eq!(answer.status, 200, "{path}");
        for header in [
            &format!("content-type: {kind}"),
            "x-content-type-options: nosniff",
            "cache-control: no-store",
            "content-security-policy: default-src 'none'",
            "frame-ancestors 'none'",
            "referrer-policy: no-referrer",
        ] {
            assert!(answer.headers.contains(header), "{path}: {header} in {}", answer.headers);
        }
        assert!(!answer.headers.contains("unsafe") && !answer.headers.contains("access-control"), "{}", answer.headers);
        let body = answer.body.replace("http://www.w3.org/2000/svg", "");
        for outside in ["http:", "https:", "//cdn", "@import", "url("] {
            assert!(!body.contains(outside), "{path}: {outside}");
        }
        for markup in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", " on", "style="]
        {
            // The page's policy forbids inline handlers and styles.
            let found = if markup == " on" {
                body.contains(" onclick") || body.contains(" onload")
            } else {
                body.contains(markup)
            };
            assert!(!found, "{path}: {markup}");
        }
        weight += body.len();
    }
    assert!(weight <= 150_000, "{weight} bytes");
    assert_eq!(get(server, "/metrics", "").status, 404);
    assert_eq!(get(server, "/page/../page.js", "").status, 404);
    stop(&room, running, 0);
}

#[test]
fn the_page_names_the_run_as_commands_reach_it() {
    let room = Room::new(GATE);
    let socket = room.path("socket");
    let mut running = gated(&room, &["--page", "--control", "socket", "--set", "resource.slot=0"]);
    let server = address(&mut running, "page");
    let flow = Events::open(server).expect("flow");
    assert_eq!(flow["reach"], socket.to_str().unwrap());
    let id = running.child.id();
    assert_eq!(flow["run"], format!("gate-{id}"), "the name that it has otherwise");
    ended(&room.run(&["set", flow["reach"].as_str().unwrap(), "resource.slot=1"]), 0);
    stop(&room, running, 0);
    std::fs::remove_file(room.path("open")).unwrap();
    let mut running = gated(&room, &["--page"]);
    let server = address(&mut running, "page");
    let flow = Events::open(server).expect("flow");
    assert_eq!(flow["reach"], flow["run"]);
    stop(&room, running, 0);
}

#[test]
fn a_client_gets_the_flow_then_its_states_and_at_last_the_end() {
    let room = Room::new(GATE);
    let mut running = gated(&room, &["--page=127.0.0.1:0"]);
    let server = address(&mut running, "page");
    let mut events = Events::open(server);
    let flow = events.expect("flow");
    assert_eq!((&flow["flow"], &flow["steerable"]), (&"gate".into(), &false.into()));
    assert_eq!(flow["stages"][0]["name"], "pass");
    let first = events.expect("state");
    for member in ["totals", "stages", "waits", "resources", "history", "causes", "letters", "retry", "changes"] {
        assert!(!first[member].is_null(), "{member}");
    }
    let began = Instant::now();
    let mut states = 0;
    let mut sent = 0;
    while began.elapsed() < Duration::from_millis(2200) {
        let state = events.expect("state");
        states += 1;
        sent += usize::from(!state["causes"].is_null());
    }
    assert!((2..=6).contains(&states), "{states} states in two seconds");
    assert_eq!(sent, 0, "what has not changed is not sent");
    room.write("open", "");
    let mut last = Value::Null;
    while let Some((name, data)) = events.next() {
        if name == "end" {
            break;
        }
        last = data;
    }
    assert_eq!((&last["totals"]["phase"], &last["totals"]["retired"]), (&"done".into(), &20.into()));
    assert!(events.next().is_none());
    stop(&room, running, 0);
}

#[test]
fn fifty_clients_many_of_which_do_not_read_delay_neither_the_run_nor_each_other() {
    let room = Room::new(GATE);
    let mut running = gated(&room, &["--page", "--metrics=0"]);
    let server = address(&mut running, "metrics");
    let mut readers: Vec<_> = (0..20).map(|_| Events::open(server)).collect();
    let silent: Vec<_> = (0..36)
        .map(|_| {
            let mut stream = connect(server);
            stream.write_all(format!("GET /events HTTP/1.1\r\nHost: {server}\r\n\r\n").as_bytes()).unwrap();
            stream
        })
        .collect();
    for reader in &mut readers {
        reader.expect("flow");
        reader.expect("state");
        reader.expect("state");
    }
    // One server serves the page, the metrics and the streams. It refuses a further stream.
    assert_eq!(get(server, "/", "").status, 200);
    assert_eq!(get(server, "/metrics", "").status, 200);
    until("a further stream is refused", || {
        let mut further = connect(server);
        further.write_all(format!("GET /events HTTP/1.1\r\nHost: {server}\r\n\r\n").as_bytes()).unwrap();
        let mut head = [0; 12];
        further.read_exact(&mut head).unwrap();
        head.ends_with(b"503")
    });
    let began = Instant::now();
    stop(&room, running, 0);
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
    for mut reader in readers {
        let mut names = Vec::new();
        while let Some((name, _)) = reader.next() {
            names.push(name);
        }
        assert_eq!(names.last().map(String::as_str), Some("end"));
    }
    drop(silent);
}

#[test]
fn nothing_of_the_page_is_answered_under_a_foreign_name() {
    let room = Room::new(GATE);
    let mut running = gated(&room, &["--page", "--page-token", TOKEN]);
    let server = address(&mut running, "page");
    let body = r#"{"settings":["inflight=9"]}"#;
    let length = body.len();
    for host in ["evil.example", "127.0.0.1.evil.example", &format!("evil.example:{}", server.port())] {
        for path in ["/", "/page.js", "/page.css", "/events", "/healthz"] {
            let answer = exchange(server, format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
            assert_eq!(answer.status, 421, "{host}{path}");
            assert!(!answer.body.contains("gate"), "{host}{path}: {}", answer.body);
        }
        // A page under the foreign name would have the origin of this request. The server refuses the request in spite
        // of this origin and the token.
        for path in ["/settings", "/retry"] {
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nSec-Fetch-Site: same-origin\r\n\
                 Content-Type: application/json\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            assert_eq!(exchange(server, head.as_bytes()).status, 421, "{host}{path}");
        }
    }
    assert_eq!(room.status("gate")["inflight_cap"], 4);
    stop(&room, running, 0);
}

#[test]
fn a_page_without_a_token_changes_nothing() {
    let room = Room::new(GATE);
    let mut running = gated(&room, &["--page"]);
    let server = address(&mut running, "page");
    let json = format!("Content-Type: application/json\r\nAuthorization: Bearer {TOKEN}\r\n");
    let answer = post(server, &json, r#"{"settings":["inflight=9"]}"#);
    assert_eq!(answer.status, 403);
    assert!(answer.body.contains("--page-token-file"), "{}", answer.body);
    assert_eq!(post(server, &json.replace("settings", "x"), "").status, 403);
    assert_eq!(get(server, "/settings", "").status, 405);
    assert_eq!(get(server, "/retry", "").status, 405);
    assert_eq!(room.status("gate")["inflight_cap"], 4);
    stop(&room, running, 0);
}

#[test]
fn only_the_page_itself_with_the_right_token_changes_the_run() {
    let room = Room::new(GATE);
    room.write("token", format!("{TOKEN}\n"));
    let mut running = gated(&room, &["--page", "--page-token-file", "token"]);
    let server = address(&mut running, "page");
    let mut events = Events::open(server);
    assert_eq!(events.expect("flow")["steerable"], true);
    let body = r#"{"settings":["inflight=9"]}"#;
    let json = "Content-Type: application/json\r\n";
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    for (headers, status) in [
        (json.to_owned(), 401),
        (format!("{json}Authorization: Basic {TOKEN}\r\n"), 401),
        (format!("{json}{bearer}Origin: http://evil.example\r\n"), 403),
        (format!("{json}{bearer}Origin: http://localhost:1\r\n"), 403),
        (format!("{json}{bearer}Origin: null\r\n"), 403),
        (format!("{json}{bearer}Origin: https://{server}\r\n"), 403),
        (format!("{json}{bearer}Origin: http://{server}\r\nOrigin: http://{server}\r\n"), 403),
        (format!("{json}{bearer}Sec-Fetch-Site: cross-site\r\n"), 403),
        (format!("Content-Type: text/plain\r\n{bearer}"), 415),
        (format!("Content-Type: application/x-www-form-urlencoded\r\n{bearer}"), 415),
    ] {
        let answer = post(server, &headers, body);
        assert_eq!(answer.status, status, "{headers}: {answer:?}");
    }
    assert_eq!(room.status("gate")["inflight_cap"], 4);

    let own = format!("{json}{bearer}Origin: http://{server}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(post(server, &own, r#"{"settings":[]}"#).status, 200);
    let answer = post(server, &own, body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let told: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(told["changed"][0], "inflight=9 (was 4)");
    // A status may be some milliseconds old.
    until("the cap has changed", || room.status("gate")["inflight_cap"] == 9);
    running.line_with("changed from the page: inflight=9 (was 4)");
    let mut changes = Value::Null;
    while changes != serde_json::json!(["from the page: inflight=9 (was 4)"]) {
        let state = events.expect("state");
        changes = if state["changes"].is_null() { changes } else { state["changes"][0]["did"].clone() };
    }
    for (wrong, why) in [
        (r#"{"settings":["inflight=8","resource.slto=2"]}"#, "cannot be set"),
        (r#"{"settings":["inflight=0"]}"#, "cap of zero"),
        (r#"{"settings":"inflight=8"}"#, "not understood"),
        ("", "not understood"),
    ] {
        let answer = post(server, &own, wrong);
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
        assert!(answer.body.contains(why), "{wrong}: {}", answer.body);
    }
    assert_eq!(room.status("gate")["inflight_cap"], 9, "all settings or none");
    drop(events);
    stop(&room, running, 0);
}

#[test]
fn wrong_tokens_are_answered_slowly_and_too_many_at_once_are_refused() {
    let room = Room::new(GATE);
    let mut running = gated(&room, &["--page", "--page-token", TOKEN]);
    let server = address(&mut running, "page");
    let attempt = |token: &str| {
        let headers = format!("Content-Type: application/json\r\nAuthorization: Bearer {token}\r\n");
        post(server, &headers, r#"{"settings":["inflight=9"]}"#).status
    };
    assert_eq!(attempt("0123456789abcdef-tokem"), 401);
    let began = Instant::now();
    assert_eq!(attempt("x"), 401);
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    let crowd: Vec<_> = std::thread::scope(|scope| {
        let attempts: Vec<_> = (0..20).map(|i| scope.spawn(move || attempt(&format!("wrong-{i}")))).collect();
        attempts.into_iter().map(|attempt| attempt.join().unwrap()).collect()
    });
    assert!(crowd.contains(&429) && crowd.iter().all(|status| [401, 429].contains(status)), "{crowd:?}");
    assert_eq!(get(server, "/healthz", "").status, 200);
    assert_eq!(room.status("gate")["inflight_cap"], 4);
    until("the right token is heard again", || attempt(TOKEN) == 200);
    // A status may be some milliseconds old.
    until("the cap has changed", || room.status("gate")["inflight_cap"] == 9);
    stop(&room, running, 0);
}

#[test]
fn a_guessable_or_unreadable_token_is_refused_before_the_run() {
    let room = Room::new(GATE);
    room.write("in", "1\n");
    for (args, why) in [
        (&["--page", "--page-token", "short"][..], "from 16"),
        (&["--page", "--page-token-file", "none"], "--page-token-file none"),
        (&["--page-token", TOKEN], "--page"),
        (&["--page=example.org:80"], "expected a port"),
    ] {
        let (_, err) = ended(&room.run(&[&["run", "flow.toml", "in"], args].concat()), 2);
        assert!(err.contains(why), "{args:?}: {err}");
    }
    assert!(!room.path("began").exists());
}

#[test]
fn the_states_of_60_stages_with_hostile_names_are_small_and_text() {
    let mut flow = String::from("name = 'f<script>alert(1)</script>'\ninflight = 100\n[source]\nlines = \"{input}\"\n");
    for i in 0..60 {
        let _ = write!(flow, "[[stage]]\nname = 's{i}<img src=x>\"&'\nop = \"exec\"\nexec = [\"sh\", \"-c\", \"");
        flow += if i == 0 { "echo '<b>no</b>' >&2; exit 1\"]\n" } else { "true\"]\n" };
    }
    let room = Room::new(&flow);
    room.write("in", "<script>alert(2)</script>\n".repeat(20));
    // The run reads standard input, which does not end, so the run does not end either.
    let flow = flow.replace("\"{input}\"", "\"-\"");
    room.write("flow.toml", flow);
    let mut command = room.command(&["run", "flow.toml", "--page"]);
    command.stdin(std::process::Stdio::piped());
    let mut running = crate::support::Running::start(command);
    let server = address(&mut running, "page");
    let mut input = running.child.stdin.take().unwrap();
    input.write_all("<script>alert(2)</script>\n".repeat(20).as_bytes()).unwrap();
    let mut events = Events::open(server);
    let facts = events.expect("flow");
    assert_eq!(facts["flow"], "f<script>alert(1)</script>");
    assert_eq!(facts["stages"].as_array().unwrap().len(), 60);
    assert_eq!(facts["stages"][59]["name"], "s59<img src=x>\"&");
    loop {
        let state = events.expect("state");
        assert!(state.to_string().len() < 40_000, "{}", state.to_string().len());
        if state["letters"].as_array().is_some_and(|letters| letters.len() == 12) {
            assert_eq!(state["letters"][0]["unit"], "<script>alert(2)</script>");
            break;
        }
    }
    drop(input);
    let (status, ..) = running.end();
    assert_eq!(status.code(), Some(1));
}

/// Sends a what-if question about settings. `headers` are further headers.
fn what_if(server: SocketAddr, headers: &str, body: &str) -> Answer {
    let length = body.len();
    let head = format!("POST /whatif HTTP/1.1\r\nHost: {server}\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
    exchange(server, head.as_bytes())
}

#[test]
fn the_page_asks_what_would_happen_without_a_token() {
    let (room, mut running) = busy(&["--page"]);
    let server = address(&mut running, "page");
    let json = "Content-Type: application/json\r\n";
    let ask = |settings: &str| what_if(server, json, &format!(r#"{{"client":"a","settings":[{settings}]}}"#));
    let mut answer = Value::Null;
    until("units have come in and left", || {
        let response = ask("\"resource.disk=3\"");
        assert_eq!(response.status, 200, "{}", response.body);
        answer = serde_json::from_str(&response.body).unwrap();
        answer["ok"] == true
    });
    let pace = |answer: &Value| answer["throughput"].as_f64().unwrap();
    let gain = pace(&answer["after"]) / pace(&answer["before"]);
    assert!((2.0..3.3).contains(&gain), "{answer}");
    assert!(answer["units"].as_u64() >= Some(20) && answer["before"]["limit"].as_str().unwrap().starts_with("disk"));
    let unknown: Value = serde_json::from_str(&ask("\"resource.dsk=3\"").body).unwrap();
    assert!(unknown["error"].as_str().unwrap().contains("resource.disk"), "{unknown}");

    assert_eq!(get(server, "/whatif", "").status, 405);
    assert_eq!(what_if(server, json, "{}").status, 400);
    assert_eq!(what_if(server, "", "{}").status, 415);
    let many = vec!["\"workers=1\""; 65].join(",");
    assert_eq!(ask(&many).status, 413);
    for stranger in ["Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        assert_eq!(what_if(server, &format!("{json}{stranger}"), r#"{"client":"a","settings":[]}"#).status, 403);
    }
    assert_eq!(room.status("busy")["resources"][0]["capacity"], 1, "nothing has changed");
    let_end(&room, running);
}

#[test]
fn the_page_of_a_run_behind_a_slow_host_says_that_more_of_that_host_helps() {
    let (room, mut running) = behind_a_slow_host(&["--page"]);
    let server = address(&mut running, "page");
    let ask = |settings: &str| {
        let body = format!(r#"{{"client":"a","settings":[{settings}]}}"#);
        serde_json::from_str::<Value>(&what_if(server, "Content-Type: application/json\r\n", &body).body).unwrap()
    };
    until("units have left", || ask("\"resource.host=2\"")["ok"] == true);
    let gain = |settings: &str| {
        let answer = ask(settings);
        let pace = |answer: &Value| answer["throughput"].as_f64().unwrap();
        assert!(answer["before"]["limit"].as_str().unwrap().starts_with("host: "), "{answer}");
        assert!(answer["waiting"].as_u64() >= Some(18) && answer["contradiction"].is_null(), "{answer}");
        pace(&answer["after"]) / pace(&answer["before"])
    };
    let (host, slots) = (gain("\"resource.host=2\""), gain("\"resource.slots=64\""));
    assert!(host > 1.3 && slots < 1.1, "{host} {slots}");
    let_end(&room, running);
}

#[test]
fn fifty_clients_that_ask_get_their_share_and_no_more() {
    let (room, mut running) = busy(&["--page"]);
    let server = address(&mut running, "page");
    let json = "Content-Type: application/json\r\n";
    let began = Instant::now();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..50)
            .map(|client| {
                scope.spawn(move || {
                    let body = format!(r#"{{"client":"{client}","settings":["resource.disk={}"]}}"#, client + 2);
                    what_if(server, json, &body).status
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(statuses.contains(&200), "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 503)), "{statuses:?}");
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
    assert_eq!(get(server, "/healthz", "").status, 200);
    let_end(&room, running);
}
