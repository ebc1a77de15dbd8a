//! Measures a fetch from peers that answer slowly, on fibers and on threads: the number of threads of the process,
//! its peak memory, and its time compared with the pause of the peers.
//!
//! ```text
//! cargo run --release -p millstream-flow --features fibers --example slow_peers [PEERS [PAUSE_MS [RUNS]]]
//! ```
//!
//! The peers are connections to another process, which pauses before each answer. Each fetch is a separate process as
//! well, and fetches on fibers and on threads alternate. A stage has at most 4096 threads, so with more peers than
//! that, the fetch on threads needs several rounds.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, error, fs};

use millstream_fiber::net::{TcpListener, TcpStream};
use millstream_fiber::{Options, Runtime, Threads, sleep, spawn};
use millstream_flow::{Flow, MAX_WORKERS};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

type Result<T> = std::result::Result<T, Box<dyn error::Error>>;

/// The length of a question and of an answer.
const MESSAGE: usize = 64;

fn main() -> Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", pause_ms] => serve(Duration::from_millis(pause_ms.parse()?)),
        ["fetch", kind, address, peers] => fetch(kind, address.parse()?, peers.parse()?),
        _ => {
            let number = |place: usize, default: usize| words.get(place).map_or(Ok(default), |word| word.parse());
            compare(number(0, 10_000)?, number(1, 2000)?, number(2, 3)?)
        }
    }
}

/// Answers every question after a pause, each on a fiber. Ends when its standard input ends.
fn serve(pause: Duration) -> Result<()> {
    let runtime = Runtime::start(Options::new(Threads::One))?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    runtime.spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            spawn(move || {
                let mut message = [0; MESSAGE];
                if stream.read_exact(&mut message).is_ok() {
                    sleep(pause);
                    // The client may have closed the connection.
                    let _ = stream.write_all(&message);
                }
            });
        }
    });
    std::io::stdin().read_to_end(&mut Vec::new())?;
    std::process::exit(0);
}

/// Fetches from all peers at once, and prints the time in ms, the peak number of threads, and the peak memory in KiB.
fn fetch(kind: &str, address: SocketAddr, peers: usize) -> Result<()> {
    let mut flow = Flow::builder::<usize>("slow-peers");
    flow.inflight(peers as u64).workers(1).fiber_threads(1);
    let (get, done) = (flow.inlet("get"), flow.retire());
    let most = Arc::new(AtomicUsize::new(0));
    let inside = Arc::new(AtomicUsize::new(0));
    let (noted, count) = (most.clone(), inside.clone());
    // The same code runs on fibers and on threads: outside of fibers, the socket blocks the thread.
    let stage = flow.stage(get, move |_: &mut usize, _| {
        let mut stream = TcpStream::connect_to(&address)?;
        let mut message = [7; MESSAGE];
        stream.write_all(&message)?;
        if count.fetch_add(1, Ordering::Relaxed) % 100 == 0 {
            noted.fetch_max(fs::read_dir("/proc/self/task")?.count(), Ordering::Relaxed);
        }
        stream.read_exact(&mut message)?;
        Ok(message.len())
    });
    match kind {
        "fibers" => stage.fibers(peers).to(done),
        _ => stage.blocking().workers(0..=peers.min(MAX_WORKERS)).to(done),
    }
    let began = Instant::now();
    let report = flow.build(get)?.run(0..peers);
    let wall = began.elapsed();
    if report.retired != peers as u64 {
        return Err(format!("{} of {peers} failed: {:?}", report.dead_lettered, report.dead_letters.first()).into());
    }
    println!("{} {} {}", wall.as_millis(), most.load(Ordering::Relaxed), most_memory_kib()?);
    Ok(())
}

fn most_memory_kib() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// The numbers of each kind of fetch, and their medians.
fn compare(peers: usize, pause_ms: usize, runs: usize) -> Result<()> {
    let this = env::current_exe()?;
    let mut server = Command::new(&this)
        .args(["serve", &pause_ms.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut address = String::new();
    let said = server.stdout.take().ok_or("the server's output is piped")?;
    BufReader::new(said).read_line(&mut address)?;
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        for (kind, found) in ["fibers", "threads"].iter().zip(&mut found) {
            let output = Command::new(&this).args(["fetch", kind, address.trim(), &peers.to_string()]).output()?;
            if !output.status.success() {
                return Err(format!("{kind}: {}", String::from_utf8_lossy(&output.stderr)).into());
            }
            let numbers = String::from_utf8(output.stdout)?;
            let numbers: std::result::Result<Vec<u64>, _> = numbers.split_whitespace().map(str::parse).collect();
            found.push(numbers?);
        }
    }
    println!("{peers} peers, each answers after {pause_ms} ms; medians of {runs} runs");
    println!("{:8} {:>8} {:>12} {:>9} {:>16}", "", "threads", "memory, MiB", "wall, ms", "over the peers'");
    for (kind, found) in ["fibers", "threads"].iter().zip(&found) {
        let median = |place: usize| {
            let mut all: Vec<u64> = found.iter().map(|numbers| numbers[place]).collect();
            all.sort_unstable();
            all[all.len() / 2]
        };
        let (wall, threads, kib) = (median(0), median(1), median(2));
        let over = wall as f64 / pause_ms as f64;
        println!("{kind:8} {threads:>8} {:>12.1} {wall:>9} {over:>15.2}×", kib as f64 / 1024.0);
    }
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}
