//! Measures the cost of watching a run. First, the processor time of a page with one client, while a flow runs at full
//! speed. Second, the processor time of a scrape of the metrics of 60 stages and 100,000 keys.
//!
//! ```sh
//! cargo build --release -p millstream-cli
//! cargo run --release -p millstream-cli --example watched
//! ```
//!
//! Run this on a quiet machine. The cost of the page is the processor time of its own threads and of the main thread,
//! which computes its states. In addition, the workers record units for the sliders of the page, which lowers their
//! rate.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The interval over which processor time is measured, and the number of intervals.
const SPAN: Duration = Duration::from_secs(5);
const ROUNDS: usize = 3;
const STAGES: usize = 60;
const KEYS: usize = 100_000;
const SCRAPES: usize = 51;

fn main() -> Result<(), Box<dyn Error>> {
    let room = tempfile::tempdir()?;
    for _ in 0..ROUNDS {
        let (bare, _) = fast(room.path(), false)?;
        let (watched, cost) = fast(room.path(), true)?;
        println!(
            "page: {bare:.0} units/s without, {watched:.0} units/s with one client, which takes {:.2} % of a core",
            100.0 * cost
        );
    }
    scrapes(room.path())
}

/// A run. It is killed when this is dropped.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Run {
    /// Starts a run that reads its units from standard input. Returns the address at which the run serves `what`.
    fn start(
        room: &Path,
        flow: &str,
        args: &[&str],
        what: Option<&str>,
    ) -> Result<(Self, Option<SocketAddr>), Box<dyn Error>> {
        fs::write(room.join("flow.toml"), flow)?;
        let own = std::env::current_exe()?;
        let command: PathBuf = own.ancestors().nth(2).ok_or("no folder")?.join("millstream");
        let mut command = Command::new(command);
        command.args(["run", "flow.toml"]).args(args).current_dir(room).env("XDG_RUNTIME_DIR", room);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{error}: `cargo build --release -p millstream-cli` makes the command"))?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("piped")?);
        let run = Run(child);
        let mut address = None;
        while let Some(what) = what.filter(|_| address.is_none()) {
            let mut line = String::new();
            if lines.read_line(&mut line)? == 0 {
                return Err("the run has ended".into());
            }
            address =
                line.split_once(&format!("{what} at http://")).and_then(|(_, url)| url.split('/').next()?.parse().ok());
        }
        // The run's later messages are read and ignored.
        thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Ok((run, address))
    }

    /// The processor time, in seconds, of the threads that serve a page: the main thread and the threads of
    /// connections.
    fn served_s(&self) -> Result<f64, Box<dyn Error>> {
        let process = self.0.id();
        let mut ns = 0.0;
        for task in fs::read_dir(format!("/proc/{process}/task"))? {
            let task = task?;
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            if task.file_name().to_string_lossy() == process.to_string() || name.starts_with("http") {
                let times = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
                ns += times.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0);
            }
        }
        Ok(ns / 1e9)
    }

    /// The number of units that were retired.
    fn retired(&self, room: &Path) -> Result<f64, Box<dyn Error>> {
        let own = std::env::current_exe()?;
        let command = own.ancestors().nth(2).ok_or("no folder")?.join("millstream");
        let mut status = Command::new(command);
        status.args(["status", &self.0.id().to_string(), "--json"]).current_dir(room).env("XDG_RUNTIME_DIR", room);
        let status: Value = serde_json::from_slice(&status.output()?.stdout)?;
        status["retired"].as_f64().ok_or_else(|| "no number".into())
    }
}

/// The rate of a flow with one small stage, and the share of a core that the flow's page uses.
fn fast(room: &Path, with_page: bool) -> Result<(f64, f64), Box<dyn Error>> {
    let flow = "name = \"fast\"\ninflight = 65536\n[source]\nlines = \"-\"\n[[stage]]\nname = \"one\"\nop = \"set\"\nfields = { a = \"b\" }\n";
    let (args, what) = if with_page { (&["--page"][..], Some("page")) } else { (&[][..], None) };
    let (mut run, address) = Run::start(room, flow, args, what)?;
    let mut input = run.0.stdin.take().ok_or("piped")?;
    let feeds = thread::spawn(move || {
        let lines = "line\n".repeat(13_000);
        while input.write_all(lines.as_bytes()).is_ok() {}
    });
    if let Some(address) = address {
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
        thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
    }
    thread::sleep(Duration::from_secs(1));
    let (began, before, served) = (Instant::now(), run.retired(room)?, run.served_s()?);
    thread::sleep(SPAN);
    let (after, served) = (run.retired(room)?, run.served_s()? - served);
    let seconds = began.elapsed().as_secs_f64();
    drop(run);
    let _ = feeds.join();
    Ok(((after - before) / seconds, served / seconds))
}

/// Scrapes a flow with many stages, whose units wait for keys without tokens.
fn scrapes(room: &Path) -> Result<(), Box<dyn Error>> {
    let mut flow = format!(
        "name = \"keys\"\ninflight = {KEYS}\n[resources]\n\"key:*\" = {{ capacity = 1, max_keys = {KEYS} }}\n[source]\nlines = \"-\"\n"
    );
    for stage in 0..STAGES {
        flow += &format!("[[stage]]\nname = \"stage {stage}\"\nop = \"set\"\nfields = {{ a = \"b\" }}\n");
        if stage == 0 {
            flow += "needs = { \"key:{line}\" = 1 }\n";
        }
    }
    let (mut run, address) = Run::start(room, &flow, &["--metrics", "0", "--set", "resource.key=0"], Some("metrics"))?;
    let address = address.ok_or("no address")?;
    let mut input = run.0.stdin.take().ok_or("piped")?;
    input.write_all((0..KEYS).map(|key| format!("{key}\n")).collect::<String>().as_bytes())?;
    let scrape = || -> Result<(Duration, String), Box<dyn Error>> {
        let began = Instant::now();
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok((began.elapsed(), text))
    };
    let waits = format!("}} {KEYS}");
    while !scrape()?.1.lines().any(|line| line.starts_with("millstream_stage_waiting_for{") && line.ends_with(&waits)) {
        thread::sleep(Duration::from_millis(100));
    }
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..SCRAPES {
        let (time, text) = scrape()?;
        bytes = text.len();
        times.push(time);
    }
    times.sort();
    println!(
        "scrape over HTTP, {STAGES} stages, {KEYS} keys, {bytes} bytes: median {:?}, slowest {:?}",
        times[SCRAPES / 2],
        times[SCRAPES - 1]
    );
    Ok(())
}
