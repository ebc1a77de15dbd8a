//! Compares runs with their replays: runs each ready flow on generated inputs, records the run, and prints the measured
//! numbers next to those of the replay.
//!
//! ```sh
//! cargo build --release -p millstream-cli
//! cargo run --release -p millstream-cli --example self_replay
//! ```
//!
//! Run it on a quiet machine. Each row has the medians of several runs. Pages are fetched from servers on the loopback
//! interface, and all files are in a temporary folder. The arguments are names of flows to run.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// The number of runs for each row. The first run of a flow warms the caches and does not count.
const RUNS: usize = 5;

/// A flow, its input, and the folder of its results.
type Row = (&'static str, &'static str, &'static str);

const ROWS: [Row; 7] = [
    ("archive", "tree", "archived"),
    ("verify", "archived", ""),
    ("unarchive", "archived", "restored"),
    ("commands", "texts", "compressed"),
    ("series", "tables", "smooth"),
    ("lines", "log.jsonl", "services"),
    ("fetch", "urls", "pages"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let room = tempfile::tempdir()?;
    let room = room.path();
    inputs(room)?;
    println!(
        "{:<12}{:>10}{:>12}{:>12}{:>9}{:>10}   worst",
        "flow", "units", "measured", "replayed", "miss", "p50 miss"
    );
    for (flow, input, out) in ROWS {
        // `archive` always runs, because `verify` and `unarchive` read its archive.
        if !chosen.is_empty() && !chosen.iter().any(|name| name == flow) && flow != "archive" {
            continue;
        }
        let mut found = Vec::new();
        for nth in 0..=RUNS {
            let one = one(room, flow, input, out)?;
            if nth > 0 {
                found.push(one);
            }
        }
        show(flow, &found);
    }
    Ok(())
}

/// One run and its replay.
struct Pair {
    units: u64,
    measured_s: f64,
    replayed_s: f64,
    /// The median latency of units.
    measured_p50_s: f64,
    replayed_p50_s: f64,
}

fn miss(measured: f64, replayed: f64) -> f64 {
    100.0 * (replayed / measured - 1.0)
}

fn show(flow: &str, pairs: &[Pair]) {
    let median = |of: &dyn Fn(&Pair) -> f64| {
        let mut all: Vec<f64> = pairs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let misses = pairs.iter().map(|pair| miss(pair.measured_s, pair.replayed_s));
    let worst = misses.fold(0.0, |worst: f64, miss| if miss.abs() > worst.abs() { miss } else { worst });
    println!(
        "{flow:<12}{:>10}{:>10.3} s{:>10.3} s{:>+7.1} %{:>+8.1} %{worst:>+6.1} %",
        pairs[0].units,
        median(&|pair| pair.measured_s),
        median(&|pair| pair.replayed_s),
        median(&|pair| miss(pair.measured_s, pair.replayed_s)),
        median(&|pair| miss(pair.measured_p50_s, pair.replayed_p50_s)),
    );
}

fn one(room: &Path, flow: &str, input: &str, out: &str) -> Result<Pair, Box<dyn Error>> {
    if !out.is_empty() {
        let _ = fs::remove_dir_all(room.join(out));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../flows").join(format!("{flow}.toml"));
    let mut run = millstream(room)?;
    run.arg("run").arg(file).arg(input).args([
        "--quiet",
        "--no-report",
        "--trace",
        "run.trace",
        "--report",
        "run.json",
    ]);
    if !out.is_empty() {
        run.args(["-p", &format!("out={out}")]);
    }
    let run = run.output()?;
    if !run.status.success() {
        return Err(format!("{flow}: {}", String::from_utf8_lossy(&run.stderr)).into());
    }
    let replay =
        millstream(room)?.args(["whatif", "run.trace", "--anyway", "--json", "--sweep", "workers=2..2"]).output()?;
    let answer: Value = serde_json::from_slice(&replay.stdout)?;
    let report: Value = serde_json::from_slice(&fs::read(room.join("run.json"))?)?;
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    Ok(Pair {
        units: report["admitted"].as_u64().unwrap_or(0),
        measured_s: number(&answer["itself"]["measured_s"]),
        replayed_s: number(&answer["itself"]["replayed_s"]),
        measured_p50_s: number(&report["latency_ns"]["p50"]) / 1e9,
        replayed_p50_s: number(&answer["as_it_was"]["p50_s"]),
    })
}

/// The command `millstream`. Its file is in the parent of this program's folder.
fn millstream(room: &Path) -> Result<Command, Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let command: PathBuf = own.ancestors().nth(2).ok_or("no folder")?.join("millstream");
    if !command.exists() {
        return Err(
            format!("{} is not there: `cargo build --release -p millstream-cli` makes it", command.display()).into()
        );
    }
    let mut command = Command::new(command);
    command.current_dir(room).env("XDG_RUNTIME_DIR", room).stdin(Stdio::null());
    Ok(command)
}

/// A pseudorandom number derived from another number.
fn mixed(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 31)
}

/// Words for a file of about this many bytes.
fn words(seed: u64, bytes: u64) -> String {
    let mut text = String::new();
    for n in 0.. {
        if text.len() as u64 >= bytes {
            break;
        }
        let _ = write!(text, "{:x} ", mixed(seed << 20 | n) % 50_000);
    }
    text
}

fn inputs(room: &Path) -> Result<(), Box<dyn Error>> {
    for folder in ["tree", "texts", "tables"] {
        fs::create_dir(room.join(folder))?;
    }
    for n in 0..2000 {
        let folder = room.join("tree").join(format!("{:02}", n % 50));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("{n}.txt")), words(n, 2_000 + mixed(n) % 60_000))?;
    }
    for n in 0..150 {
        fs::write(room.join("texts").join(format!("{n}.txt")), words(n, 50_000 + mixed(n) % 200_000))?;
    }
    for n in 0..60 {
        let rows: String = (0..4000).map(|row| format!("{row},{}\n", mixed(n << 20 | row) % 1000)).collect();
        fs::write(room.join("tables").join(format!("{n}.csv")), format!("at,value\n{rows}"))?;
    }
    let levels = ["info", "info", "info", "error", "warn"];
    let line = |n: u64| {
        let (service, level, ms) = (mixed(n) % 5, levels[(mixed(n) / 7 % 5) as usize], mixed(n) / 11 % 800);
        format!("{{\"service\":\"s{service}\",\"level\":\"{level}\",\"ms\":{ms},\"message\":\"{}\"}}\n", words(n, 40))
    };
    fs::write(room.join("log.jsonl"), (0..100_000).map(line).collect::<String>())?;
    let servers = (1..=6).map(|host| server([127, 0, 0, host])).collect::<Result<Vec<_>, _>>()?;
    let url = |n: usize| format!("http://{}/{n}\n", servers[(mixed(n as u64) % 6) as usize]);
    Ok(fs::write(room.join("urls"), (0..600).map(url).collect::<String>())?)
}

/// A server that answers each request after some milliseconds.
fn server(host: [u8; 4]) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind(SocketAddr::from((host, 0)))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || drop(answer(stream)));
        }
    });
    Ok(address)
}

fn answer(stream: TcpStream) -> Result<(), Box<dyn Error>> {
    let mut lines = BufReader::new(stream);
    loop {
        let (mut path, mut line) = (String::new(), String::new());
        while line != "\r\n" {
            line.clear();
            if lines.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(rest) = line.strip_prefix("GET ") {
                path = rest.split(' ').next().unwrap_or_default().to_owned();
            }
        }
        let page: u64 = path.trim_start_matches('/').parse()?;
        thread::sleep(Duration::from_micros(5_000 + mixed(page) % 20_000));
        let body = words(page, 3_000);
        write!(lines.get_mut(), "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    }
}
