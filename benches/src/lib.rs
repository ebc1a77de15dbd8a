//! Benchmarks of Millstream and its peers.
//!
//! Every workload runs all competitors in turn, round after round (A B C D A B C D …), in one process, so that a
//! slowdown of the machine affects all of them. It prints the median with the smallest and the largest round, and the
//! ratio of ours to the fastest peer, computed for each round. Peak memory can only be measured for a whole process, so
//! each competitor also runs alone in a child process for that figure.
//!
//! | workload | question | peers |
//! | --- | --- | --- |
//! | [`archive`] | a real job: walk, read, BLAKE3, zstd, store | rayon, a thread per stage, tokio, a loop |
//! | [`noop`] | what does a unit cost that passes four empty stages? | crossbeam-channel, tokio |
//! | [`queued`] | does a unit cost more when many others wait? | the engine with a short queue |
//! | [`eventcount`] | what do increments and wake-ups cost? | a plain store, a locked addition, a bare futex |
//! | [`ring`] | what are the throughput, latency and CPU time of rings and channels? | rtrb, disruptor, ArrayQueue, crossbeam-channel, kanal, std, flume, and the LMAX Disruptor where Java is installed |
//! | [`reclaim`] | what do readers and writers pay for memory reclamation, and a stack and a queue built on it? | crossbeam-epoch, haphazard, seize, arc-swap, liburcu |
//! | [`history`] | how long does deciding a history take, and how much memory? | porcupine |
//! | [`slab`] | what do allocation and freeing cost in a shared slab, and what is their tail latency? | mimalloc, jemalloc, glibc, lists with wide compare-and-swap |
//! | [`fence`] | how long do heavy fences take, and what does the daemon cost? | membarrier, mprotect |
//! | [`counter`] | what do statistics cost, and how many additions do racy counters lose? | `fetch_add`, a scan without statistics |
//! | [`lock`] | how many critical sections a second, and how long does entering one take? | std, parking_lot |
//! | [`fiber`] | what do switches, spawns, waits and connections of fibers cost? | may, tokio, Go, corosensei, threads, a loop over epoll |
//! | [`stream`] | what do chains, forks and joins, and text programs cost per value? | a loop, crossbeam-channel, awk, mlr, jq |
//! | [`exec`] | what does one process per unit cost? | `xargs -P2` |
//!
//! `cargo xtask bench --help` lists the options.

pub mod archive;
pub mod args;
pub mod child;
pub mod compare;
pub mod counter;
pub mod error;
pub mod eventcount;
pub mod exec;
pub mod fence;
pub mod fiber;
pub mod history;
pub mod lock;
pub mod machine;
pub mod noop;
pub mod picture;
pub mod queued;
pub mod random;
pub mod reclaim;
pub mod ring;
pub mod slab;
pub mod stream;
pub mod table;
pub mod times;
pub mod tree;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Workload};
use error::Error;

/// The program: parses the command line, runs the workloads, prints the report.
pub fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(folder) = &args.daemon {
        return fence::daemon::be(folder);
    }
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("millstream-benches: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the workloads that `args` selects and prints the report on standard output.
///
/// # Errors
/// Fails when a workload cannot be set up, or when a competitor does not do all of the work.
pub fn run(args: &Args) -> Result<(), Error> {
    if let Some(name) = &args.one {
        return archive::run_one(args, name);
    }
    if let Some(slab) = &args.frees {
        return slab::remote::frees(slab);
    }
    if let Some(task) = &args.alone {
        return fiber::be(task);
    }
    println!("{}\n", machine::describe());
    if cfg!(debug_assertions) {
        println!("This is a debug build: it shows that everything runs, but its times mean nothing.\n");
    }
    let wants = |workload| args.workload == workload || args.workload == Workload::All;
    if wants(Workload::Archive) {
        archive::run(args)?;
    }
    if wants(Workload::Noop) {
        noop::run(args)?;
    }
    if wants(Workload::Queued) {
        queued::run(args)?;
    }
    if wants(Workload::Eventcount) {
        eventcount::run(args)?;
    }
    if wants(Workload::Ring) {
        ring::run(args)?;
    }
    if wants(Workload::Reclaim) {
        reclaim::run(args)?;
    }
    if wants(Workload::History) {
        history::run(args)?;
    }
    if wants(Workload::Slab) {
        slab::run(args)?;
    }
    if wants(Workload::Fence) {
        fence::run(args)?;
    }
    if wants(Workload::Counter) {
        counter::run(args)?;
    }
    if wants(Workload::Lock) {
        lock::run(args)?;
    }
    if wants(Workload::Fiber) {
        fiber::run(args)?;
    }
    if wants(Workload::Stream) {
        stream::run(args)?;
    }
    if wants(Workload::Exec) {
        exec::run(args)?;
    }
    Ok(())
}
