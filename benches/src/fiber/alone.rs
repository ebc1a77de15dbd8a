//! A competitor that runs one row in its own process.

use std::io::Read;
use std::net::TcpListener;
use std::thread;
use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::row::Row;
use super::{epoll, fetch, may_peer, ours, raw, read, threads, tokio_peer, units};
use crate::error::Error;

/// Runs a task, `PEER ROW COUNT WORKERS`, and prints its figure. If the task is an echo server, prints its port and
/// serves.
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
    let figures = match (peer, row) {
        ("slow", Row::Fetch) => {
            fetch::serve();
            return Ok(());
        }
        ("threads", Row::Fetch) => {
            // For this row, the last number is the server's port.
            fetch::on_threads(count, u16::try_from(workers).map_err(|_| unknown())?);
            return Ok(());
        }
        (peer, Row::ReadHot | Row::ReadCold) => Some(read::run(peer, row, count)?.to_vec()),
        ("millstream", Row::Parked) => Some(ours::parked(count)),
        ("tokio", Row::Parked) => Some(tokio_peer::parked(count)),
        ("millstream", Row::Units) => Some(vec![units::run(count)?]),
        ("tokio", Row::Units) => Some(vec![tokio_peer::units(count)]),
        ("millstream", _) => ours::run(row, count, workers).map(|figure| vec![figure]),
        ("shallow", Row::Deep) => ours::run(Row::Hop, count, workers).map(|figure| vec![figure]),
        ("corosensei" | "generator", _) => raw::run(peer, row, count).map(|figure| vec![figure]),
        ("may", _) => may_peer::run(row, count, workers).map(|figure| vec![figure]),
        ("tokio", _) => tokio_peer::run(row, count, workers).map(|figure| vec![figure]),
        ("threads", _) => threads::run(row, count).map(|figure| vec![figure]),
        _ => None,
    };
    let figures: Vec<_> = figures.ok_or_else(unknown)?.iter().map(f64::to_string).collect();
    println!("{}", figures.join(" "));
    Ok(())
}

/// Serves until standard input ends.
fn serve(peer: &str, workers: usize) -> Option<()> {
    raise_descriptors();
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

/// Raises the limit on open descriptors.
pub(super) fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // If the limit cannot be raised, connections fail with a message.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// The time per step of work that has `count` steps, in nanoseconds.
pub(super) fn per_step(count: u64, work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_nanos() as f64 / count as f64
}

/// The memory and the spawn time of each of `count` waiting fibers or tasks, and the mappings of the process. `spawn`
/// returns when all of them wait.
pub(super) fn waiting<T>(count: u64, spawn: impl FnOnce() -> T) -> Vec<f64> {
    let (before, mut all) = (memory(), None);
    let time = per_step(count, || all = Some(spawn()));
    let mappings = std::fs::read_to_string("/proc/self/maps").unwrap_or_default().lines().count();
    let figures = vec![(memory() - before) / count as f64, time, mappings as f64];
    // The process ends, so a million fibers are not unwound.
    std::mem::forget(all);
    figures
}

/// Resident memory and page tables of this process, in bytes.
pub(super) fn memory() -> f64 {
    memory_of(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// Like [`memory`], from the text of the kernel's `status` file of a process.
pub(super) fn memory_of(status: &str) -> f64 {
    let kib = |key: &str| -> f64 {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0.0)
    };
    (kib("VmRSS:") + kib("VmPTE:")) * 1024.0
}
