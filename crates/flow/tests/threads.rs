//! A system that refuses threads for a while. The limit applies to the whole process, so this test is a separate
//! program.
#![cfg(target_os = "linux")]

#[path = "support/time.rs"]
mod time;
#[path = "../../ring/tests/support/watchdog.rs"]
mod watchdog;

use std::thread;

use millstream_flow::{Batch, Flow};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use time::ms;
use watchdog::in_time;

/// Keeps the process from mapping the stack of another thread.
fn forbid_threads() {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("a kernel with /proc");
    let pages: u64 =
        statm.split(' ').next().and_then(|pages| pages.parse().ok()).expect("`statm` begins with the size");
    let size = pages * rustix::param::page_size() as u64;
    // The limit leaves less than one stack, but enough for the test's own allocations.
    let limit = Rlimit { current: Some(size + (1 << 20)), ..getrlimit(Resource::As) };
    setrlimit(Resource::As, limit).expect("lowering a limit is always allowed");
}

fn allow_threads() {
    let limit = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: limit.maximum, ..limit }).expect("raising it to the maximum is allowed");
}

#[test]
fn units_wait_for_a_thread_while_the_system_has_none() {
    in_time(|| {
        let mut flow = Flow::builder::<u64>("threads");
        flow.workers(2);
        let (compute, wait, done) = (flow.inlet::<u64>("compute"), flow.inlet::<u64>("wait"), flow.retire());
        flow.stage(compute, |n: &mut u64, _| Ok(*n)).to(wait);
        flow.stage(wait, |n: &mut u64, _| Ok(*n)).blocking().batch(Batch::of(1)).to(done);
        let service = flow.build(compute).unwrap().start();
        let control = service.control();
        forbid_threads();
        assert!(thread::Builder::new().spawn(|| ()).is_err(), "the limit has no effect, so the test tests nothing");
        let tickets: Vec<_> = (0..10).map(|n| service.submit(n).unwrap()).collect();
        // The pause is longer than the time between two attempts to start a thread.
        thread::sleep(ms(250));
        let waiting = control.snapshot();
        assert_eq!((waiting.in_flight, waiting.workers_busy), (10, 0));
        allow_threads();
        for (n, ticket) in (0..).zip(tickets) {
            assert_eq!(ticket.wait().unwrap(), n);
        }
        assert_eq!(service.drain().retired, 10);
    });
}
