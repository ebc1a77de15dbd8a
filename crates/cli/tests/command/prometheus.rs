//! The metrics, and the queries of the dashboard, in a real Prometheus. If Prometheus is not installed, the tests print
//! that.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::http::{address, get};
use crate::support::{Room, Running, ended, text, until};

/// A flow whose units wait, run, fail and are retried during the whole test.
const FLOW: &str = r#"
name = "watched"
inflight = 32
memory = "1MiB"
[resources]
slot = 1
[source]
lines = "{input}"
[[stage]]
name = "work"
op = "exec"
exec = ["sh", "-c", "sleep 0.02; case $0 in *7) exit 1;; esac", "{line}"]
needs = { slot = 1 }
workers = "1..4"
retry = { times = 1, backoff = "1ms" }
[[stage]]
name = "weigh"
op = "set"
payload = "{line}"
[[stage]]
name = "then"
op = "exec"
exec = ["true"]
workers = "1..2"
"#;

fn watched(room: &Room) -> (Running, SocketAddr) {
    room.write("in", (0..100_000).map(|i| format!("{i}\n")).collect::<String>());
    let mut running = room.start(&["run", "flow.toml", "in", "--metrics", "0", "--dead-letters", "dead.jsonl"]);
    let server = address(&mut running, "metrics");
    (running, server)
}

/// Whether these programs are installed.
fn are_here(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        !version.is_ok_and(|status| status.success())
    });
    if let Some(missing) = missing {
        println!("no {missing} here: the metrics were not shown to it");
    }
    missing.is_none()
}

/// A Prometheus that scrapes one run.
struct Prometheus {
    child: Child,
    url: String,
}

impl Prometheus {
    fn start(room: &Room, scrapes: SocketAddr) -> Self {
        let config = format!(
            "global:\n  scrape_interval: 250ms\n  scrape_timeout: 200ms\nscrape_configs:\n  - job_name: millstream\n    \
             static_configs:\n      - targets: ['{scrapes}']\n"
        );
        room.write("prometheus.yml", config);
        // The port is free now. It is unlikely that another program listens on it before Prometheus does.
        let own = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", room.path("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", room.path("series").display()))
            .arg(format!("--web.listen-address={own}"))
            .stdout(Stdio::null())
            .stderr(fs::File::create(room.path("prometheus.log")).unwrap());
        room.at_home(&mut command);
        Self { child: command.spawn().expect("it is here"), url: format!("http://{own}") }
    }

    /// The current result of a query, with one series per line.
    fn query(&self, expression: &str) -> Output {
        let mut command = Command::new("promtool");
        command.args(["query", "instant", &self.url, expression]).env("NO_PROXY", "127.0.0.1");
        command.output().expect("it is here")
    }

    /// Waits until a query has series, and returns them.
    fn series(&self, expression: &str) -> String {
        let mut found = String::new();
        until(&format!("{expression} has series"), || {
            let output = self.query(expression);
            let err = text(&output.stderr);
            assert!(!err.contains("parse error") && !err.contains("bad_data"), "{expression}: {err}");
            found = text(&output.stdout);
            output.status.success() && found.contains("=>")
        });
        found
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_query_of_the_dashboard_has_series_in_a_real_prometheus() {
    if !are_here(&["prometheus", "promtool"]) {
        return;
    }
    let room = Room::new(FLOW);
    let (running, server) = watched(&room);
    let prometheus = Prometheus::start(&room, server);
    let run = format!("watched-{}", running.child.id());
    let found = prometheus.series("millstream_units_admitted_total");
    assert!(found.contains(&format!("run=\"{run}\"")) && found.contains("flow=\"watched\""), "{found}");

    let dashboard = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(dashboard).unwrap()).unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let run_variable = variables.iter().find(|variable| variable["name"] == "run").unwrap();
    assert_eq!(run_variable["query"]["query"], "label_values(millstream_units_admitted_total, run)");
    let mut queries = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let expression = expression.replace("$run", &run).replace("$__rate_interval", "10s");
            assert!(!expression.contains('$'), "{expression}");
            let found = prometheus.series(&expression);
            let is_number = |line: &str| line.split(" => ").nth(1).is_none_or(|value| !value.starts_with("NaN"));
            assert!(found.lines().any(|line| line.contains("=>") && is_number(line)), "{expression}: {found}");
            queries += 1;
        }
    }
    assert!(queries >= 16, "{queries}");
    let up = prometheus.series("up{job=\"millstream\"}");
    assert!(up.contains("=> 1 "), "{up}");
}

#[test]
fn the_linter_of_prometheus_accepts_the_metrics() {
    if !are_here(&["promtool"]) {
        return;
    }
    let room = Room::new(FLOW);
    let (running, server) = watched(&room);
    until("units have failed", || {
        get(server, "/metrics", "").body.lines().any(|line| line.starts_with("millstream_dead_letters_total"))
    });
    room.write("metrics", get(server, "/metrics", "Accept: text/plain;version=0.0.4\r\n").body);
    drop(running);
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(fs::File::open(room.path("metrics")).unwrap());
    let (out, err) = ended(&command.output().unwrap(), 0);
    assert_eq!((out.trim(), err.trim()), ("", ""));
}
