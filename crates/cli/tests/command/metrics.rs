//! `--metrics` and `--metrics-file`, and the HTTP server for metrics.

#[path = "../../../flow/tests/support/openmetrics.rs"]
mod openmetrics;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::http::{address, connect, exchange, get};
use crate::steer::{GATE, gated, stop};
use crate::support::{Room, ended, signal, text, until};
use openmetrics::{Sample, open_metrics, prometheus};

fn value(samples: &[Sample], name: &str) -> f64 {
    let found: Vec<_> = samples.iter().filter(|sample| sample.name == name).collect();
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    found[0].value
}

#[test]
fn a_run_serves_its_metrics_and_says_whether_it_admits_units() {
    let room = Room::new(GATE);
    let mut running = gated(&room, &["--metrics", "0"]);
    let server = address(&mut running, "metrics");
    assert!(server.ip().is_loopback());
    until("four units are in flight", || room.status("gate")["in_flight"] == 4);

    let open = get(server, "/metrics", "");
    assert_eq!(open.status, 200);
    assert!(open.headers.contains("content-type: application/openmetrics-text; version=1.0.0"), "{}", open.headers);
    let samples = open_metrics(&open.body).unwrap();
    assert_eq!(value(&samples, "millstream_units_in_flight"), 4.0);
    assert_eq!(value(&samples, "millstream_build_info"), 1.0);
    let run = format!("gate-{}", running.child.id());
    assert!(samples.iter().all(|sample| sample.label("run") == Some(run.as_str())));

    let plain = get(server, "/metrics", "Accept: text/plain;version=0.0.4\r\n");
    assert!(plain.headers.contains("content-type: text/plain; version=0.0.4"), "{}", plain.headers);
    assert_eq!(prometheus(&plain.body).unwrap().len(), samples.len());

    let head = exchange(server, format!("HEAD /metrics HTTP/1.1\r\nHost: {server}\r\n\r\n").as_bytes());
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    for (path, status, body) in
        [("/healthz", 200, "ok\n"), ("/ready", 200, "ready\n"), ("/", 404, "there are /metrics, /healthz and /ready\n")]
    {
        let answer = get(server, path, "");
        assert_eq!((answer.status, answer.body.as_str()), (status, body), "{path}");
    }

    signal(&running.child, libc::SIGINT);
    until("the run is not ready", || get(server, "/ready", "").status == 503);
    assert!(get(server, "/ready", "").body.contains("admits no more units"));
    assert_eq!(get(server, "/healthz", "").status, 200);
    stop(&room, running, 3);
}

#[test]
fn a_request_under_a_foreign_name_is_refused() {
    let room = Room::new(GATE);
    let mut running = gated(&room, &["--metrics", "127.0.0.1:0"]);
    let server = address(&mut running, "metrics");
    let under = |host: &str| exchange(server, format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    for host in ["evil.example", "localhost.evil.example:80", "192.0.2.1", "127.0.0.1@evil.example", ""] {
        let answer = under(host);
        assert_eq!(answer.status, 421, "{host}: {answer:?}");
        assert!(answer.body.contains("localhost") && !answer.body.contains("millstream_"), "{}", answer.body);
    }
    for host in ["localhost", "127.0.0.1:1", "[::1]:80"] {
        assert_eq!(under(host).status, 200, "{host}");
    }
    stop(&room, running, 0);
}

#[test]
fn a_connection_carries_one_request_and_hides_no_second_one() {
    let room = Room::new(GATE);
    let mut running = gated(&room, &["--metrics", "0"]);
    let server = address(&mut running, "metrics");
    let second = format!("GET /metrics HTTP/1.1\r\nHost: {server}\r\n\r\n");
    for (head, status) in [
        (format!("GET /healthz HTTP/1.1\r\nHost: {server}\r\nConnection: keep-alive\r\n\r\n"), 200),
        (format!("GET /healthz HTTP/1.1\r\nHost: {server}\r\nContent-Length: {}\r\n\r\n", second.len()), 400),
        (format!("POST /healthz HTTP/1.1\r\nHost: {server}\r\nContent-Length: 3\r\nContent-Length: 0\r\n\r\n"), 400),
        (
            format!(
                "POST /healthz HTTP/1.1\r\nHost: {server}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
            400,
        ),
        (format!("GET /healthz HTTP/1.1\r\nHost: {server}\r\nHost: evil.example\r\n\r\n"), 400),
        (format!("GET http://evil.example/ HTTP/1.1\r\nHost: {server}\r\n\r\n"), 400),
        ("GET /healthz\r\n\r\n".to_owned(), 400),
    ] {
        let answer = exchange(server, format!("{head}{second}").as_bytes());
        assert_eq!(answer.status, status, "{head}: {answer:?}");
        assert!(answer.headers.contains("connection: close"), "{}", answer.headers);
        assert!(!answer.body.contains("HTTP/1.1") && !answer.body.contains("millstream_"), "{}", answer.body);
    }
    let long =
        exchange(server, format!("GET /healthz HTTP/1.1\r\nHost: {server}\r\nX: {}", "x".repeat(20_000)).as_bytes());
    assert_eq!(long.status, 431);
    stop(&room, running, 0);
}

#[test]
fn connections_that_send_nothing_are_bounded_and_delay_no_run() {
    let room = Room::new(GATE);
    let mut running = gated(&room, &["--metrics", "0"]);
    let server = address(&mut running, "metrics");
    let begin = |_| {
        let mut stream = connect(server);
        stream.write_all(b"GET /healthz HT").unwrap();
        stream
    };
    let mut slow: Vec<_> = (0..64).map(begin).collect();
    until("a further connection is refused", || {
        let mut further = connect(server);
        let _ = further.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {server}\r\n\r\n").as_bytes());
        let mut answer = String::new();
        let _ = further.read_to_string(&mut answer);
        answer.starts_with("HTTP/1.1 503 ")
    });
    let mut late = String::new();
    slow[0].read_to_string(&mut late).unwrap();
    assert!(late.starts_with("HTTP/1.1 408 "), "{late}");
    until("others are answered", || {
        let mut further = connect(server);
        let _ = further.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {server}\r\n\r\n").as_bytes());
        let mut answer = String::new();
        let _ = further.read_to_string(&mut answer);
        answer.starts_with("HTTP/1.1 200 ")
    });
    let _halves: Vec<_> = (0..20).map(begin).collect();
    stop(&room, running, 0);
}

#[test]
fn the_dashboard_and_its_page_name_metrics_that_exist() {
    let room = Room::new(GATE);
    let mut running = gated(&room, &["--metrics", "0"]);
    let server = address(&mut running, "metrics");
    until("units wait for the slot", || room.status("gate")["resources"][0]["waiters"] == 3);
    let mut served = open_metrics(&get(server, "/metrics", "").body).unwrap();
    stop(&room, running, 0);
    ended(&room.run(&["each", "-j1", "--metrics-file", "run.prom", "false", ":::", "0", "1", "2"]), 1);
    served.extend(prometheus(&room.read("run.prom")).unwrap());

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dashboard = fs::read_to_string(root.join("docs/grafana.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let mut named = 0;
    for target in dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap())
    {
        let expression = target["expr"].as_str().unwrap();
        for rest in expression.split("millstream_").skip(1) {
            let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap();
            let name = format!("millstream_{name}");
            assert!(served.iter().any(|sample| sample.name == name), "{name} in {expression}");
            named += 1;
        }
    }
    assert!(named >= 16, "{named}");

    let page = fs::read_to_string(root.join("docs/watch.md")).unwrap();
    for sample in &served {
        let name = sample.name.trim_end_matches("_sum").trim_end_matches("_count");
        // If a name begins like the previous name, the page shows only its end, as `…_ending`.
        let begins = name.match_indices('_').any(|(at, _)| page.contains(&format!("`…{}`", &name[at..])));
        assert!(begins || page.contains(&format!("`{name}`")), "{name} is not on the page");
    }
}

#[test]
fn an_address_that_cannot_be_served_stops_the_run_before_it_begins() {
    let room = Room::new(GATE);
    room.write("in", "1\n");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_, err) =
        ended(&room.run(&["run", "flow.toml", "in", "--metrics", &taken.local_addr().unwrap().to_string()]), 2);
    assert!(err.contains("--metrics 127.0.0.1:") && err.contains("or 0 for any free one"), "{err}");
    assert!(!room.path("began").exists());
}

#[test]
fn a_metrics_file_accounts_for_the_whole_run() {
    let room = Room::new("");
    fs::create_dir(room.path("out")).unwrap();
    let args = ["each", "--metrics-file", "out/run.prom", "sh", "-c", "exit $0", ":::", "0", "0", "1", "2"];
    let (_, err) = ended(&room.run(&args), 1);
    let samples = prometheus(&room.read("out/run.prom")).unwrap_or_else(|error| panic!("{error}\n{err}"));
    assert_eq!(value(&samples, "millstream_units_admitted_total"), 4.0);
    assert_eq!(value(&samples, "millstream_units_retired_total"), 2.0);
    assert_eq!(value(&samples, "millstream_dead_letters_total"), 2.0);
    let letters = samples.iter().find(|sample| sample.name == "millstream_dead_letters_total").unwrap();
    assert_eq!(letters.label("cause"), Some("error"));
    assert_eq!(fs::read_dir(room.path("out")).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_metrics_file_that_cannot_be_written_is_reported_before_the_run() {
    let room = Room::new("");
    let output = room.run(&["each", "--metrics-file", "none/run.prom", "touch", ":::", "made"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("--metrics-file: none/run.prom cannot be written"),
        "{}",
        text(&output.stderr)
    );
    assert!(!room.path("made").exists());
}

/// A collector on the loopback interface, and a channel with the head and body of each request.
fn collector(answers: bool) -> (std::net::SocketAddr, std::sync::mpsc::Receiver<(String, String)>) {
    use std::io::{BufRead, BufReader, Read, Write};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming().map_while(Result::ok) {
            if !answers {
                open.push(stream);
                continue;
            }
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|read| read > 0) {}
            let length = head.to_lowercase().split_once("content-length: ").map(|(_, rest)| rest.to_owned());
            let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            let _ = reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
            let _ = tell.send((head, String::from_utf8(body).unwrap()));
        }
    });
    (address, told)
}

#[test]
fn a_collector_gets_the_numbers_of_the_whole_run() {
    let room = Room::new("");
    let (address, told) = collector(true);
    let mut command = room.command(&["each", "-j1", "--otlp", "false", ":::", "0", "1", "2"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}/below"));
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret%20key").env("OTEL_SERVICE_NAME", "night");
    ended(&command.output().unwrap(), 1);
    let (head, body) = told.recv_timeout(crate::support::PATIENCE).unwrap();
    assert!(head.starts_with("POST /below/v1/metrics HTTP/1.1\r\n"), "{head}");
    let head = head.to_lowercase();
    assert!(head.contains("content-type: application/json\r\n") && head.contains("api-key: secret key\r\n"), "{head}");
    let body: Value = serde_json::from_str(&body).unwrap();
    let resource = &body["resourceMetrics"][0];
    assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "night");
    let metrics = resource["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let of = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(of("millstream_units_admitted")["sum"]["dataPoints"][0]["asInt"], "3");
    assert_eq!(of("millstream_dead_letters")["sum"]["dataPoints"][0]["asInt"], "3");
    assert_eq!(of("millstream_build")["gauge"]["dataPoints"][0]["asInt"], "1");
}

#[test]
fn a_collector_that_is_absent_or_silent_delays_no_run() {
    let room = Room::new("");
    let away = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (silent, _told) = collector(false);
    for (address, within) in [(away, 60), (silent, 120)] {
        let began = std::time::Instant::now();
        let url = format!("--otlp=http://{address}");
        let (_, err) = ended(&room.run(&["each", "-j1", &url, "--report=r.json", "true", ":::", "0"]), 0);
        assert!(began.elapsed() < std::time::Duration::from_secs(within), "{:?}", began.elapsed());
        let lost = format!("the last metrics are lost, since http://{address}/v1/metrics did not take them");
        assert_eq!(err.matches(&lost).count(), 1, "{err}");
        assert!(room.json("r.json")["metrics_lost"].as_str().is_some_and(|why| why.starts_with(&lost)));
    }
    let (_, err) = ended(&room.run(&["each", "--otlp=here:4318", "true", ":::", "0"]), 2);
    assert!(err.contains("not the address of a collector"), "{err}");
}
