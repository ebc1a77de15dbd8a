//! A daemon that makes known, to any process that maps a page, when each processor last passed a full barrier of its own
//! accord.
//!
//! | I want | look at |
//! | --- | --- |
//! | to run it | `millstream barrierd --help`, or the program `millstream-barrierd`; `systemd/` has a unit |
//! | to use it | `millstream_fence::Fence::CHEAP`, or `millstream_fence::barrierd::Client` |
//! | to read the page from C | `include/barrierd.h` |
//! | to know why it is right | `docs/barrierd.md` |
//!
//! # How it works
//! A program of some fifty instructions, loaded into the kernel by bpf(2), runs when a processor is interrupted, turns to
//! another thread, or goes idle. It writes the time into the processor's entry of a table that clients map, and
//! passes a full barrier. Nobody copies anything. The daemon sleeps; it is woken when somebody asks, to look which
//! processors are idle, and by the program when the last one that somebody waits for has passed.
//!
//! Where processors keep it waiting it has the kernel make a barrier (`membarrier`), or looks at `/proc/stat`. That is all it
//! has where BPF is not to be had.
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
mod lockdown;
mod memory;
mod place;
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

/// Runs the daemon in this process until it is ended.
///
/// Becomes another user, gives up all privileges and most system calls, for the whole process: call it from `main`.
/// Returns only if the daemon can't run; then it has said why on standard error.
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
