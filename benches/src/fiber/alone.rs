//! A competitor that runs one row in its own process.

use std::io::Read;
use std::net::TcpListener;
use std::thread;
use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::row::Row;
use super::{epoll, may_peer, ours, raw, threads, tokio_peer};
use crate::error::Error;

/// Runs a task, `PEER ROW COUNT WORKERS`, and prints its figure; or, as an echo server, its port.
///
/// # Errors
/// There is no such task.
pub fn be(task: &str) -> Result<(), Error> {
    let unknown = || Error::new(format!("no task `{task}`; expected a peer, a row, a count and the number of threads"));
    let [peer, row, count, workers] = task.split(' ').collect::<Vec<_>>()[..] else { return Err(unknown()) };
    let row = Row::of(row).ok_or_else(unknown)?;
    let (count, workers) = (count.parse().map_err(|_| unknown())?, workers.parse().map_err(|_| unknown())?);
    if row.is_echo() {
        return serve(peer, workers).ok_or_else(unknown);
    }
    let figure = match peer {
        "millstream" => ours::run(row, count, workers),
        "corosensei" | "generator" => raw::run(peer, row, count),
        "may" => may_peer::run(row, count, workers),
        "tokio" => tokio_peer::run(row, count, workers),
        "threads" => threads::run(row, count),
        _ => None,
    };
    println!("{}", figure.ok_or_else(unknown)?);
    Ok(())
}

/// Serves until standard input ends.
fn serve(peer: &str, workers: usize) -> Option<()> {
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised, connections fail and say so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let server: fn(TcpListener, usize) = match peer {
        "millstream" => ours::serve,
        "epoll" => |listener, _| epoll::serve(&listener),
        "may" => |listener, workers| may_peer::serve(&listener, workers),
        "tokio" => tokio_peer::serve,
        "threads" => |listener, _| threads::serve(&listener),
        _ => return None,
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address").port());
    thread::spawn(move || server(listener, workers));
    let _ = std::io::stdin().read(&mut [0]);
    Some(())
}

/// The time of one of `count` steps, in nanoseconds.
pub(super) fn per_step(count: u64, work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_nanos() as f64 / count as f64
}

/// Resident memory and page tables of this process, in bytes.
pub(super) fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = |key: &str| -> f64 {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0.0)
    };
    (kib("VmRSS:") + kib("VmPTE:")) * 1024.0
}
