//! A daemon that publishes when each processor last passed a full barrier of its own accord. Any process can map the page with
//! these times.
//!
//! | task | see |
//! | --- | --- |
//! | run the daemon | `millstream barrierd --help`, or the program `millstream-barrierd`; `systemd/` has a unit |
//! | use it | `millstream_fence::Fence::CHEAP`, or `millstream_fence::barrierd::Client` |
//! | read the page from C | `include/barrierd.h` |
//! | follow the proof | `docs/barrierd.md` |
//!
//! # How it works
//! A program of about seventy instructions, loaded into the kernel by bpf(2), runs when a processor is interrupted, switches to
//! another thread, or goes idle. The program writes the time into the processor's entry of a table, and passes a full barrier.
//! Clients map the table itself, so it is never copied. The daemon sleeps until a client sends a request. It then checks which
//! processors are idle, and sleeps again; the program wakes it when the last processor that a client waits for has passed.
//!
//! If a processor does not pass in time, the daemon has the kernel make a barrier (`membarrier`), or reads `/proc/stat`. Without
//! BPF, it has only these two mechanisms.
//!
//! Source of the idea: Paul Khuong's `barrierd`.

pub mod args;
mod barrier;
mod bpf;
mod budget;
mod clients;
mod clock;
mod descriptors;
mod event;
mod folder;
mod lockdown;
mod memory;
mod poll;
mod processors;
mod server;
mod socket;
mod start;
mod stat;
mod statement;
mod waiting;

use std::process::ExitCode;

use args::Args;

/// Runs the daemon in this process until the process is ended.
///
/// Changes the user of the whole process, and gives up all its privileges and most system calls, so call it from `main`. Returns
/// only if the daemon can't run; the reason has then been written to standard error.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    match start::start(args) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("barrierd: {error}");
            ExitCode::FAILURE
        }
    }
}
