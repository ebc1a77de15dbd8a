//! Measures the crate on this machine: switch, yield, spawn and join, hops around a ring, and parked fibers.
//!
//! ```text
//! cargo run --profile dist -p millstream-fiber --example measure [SECONDS-PER-FIGURE]
//! ```
//!
//! Each line shows the median of seven runs and the fastest run. Close other programs first. Two of the rings differ only in the
//! depth of their stacks, which is 100 frames more in the second: their ratio shows whether the cost of a switch depends on the
//! depth.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use millstream_fiber::sync::channel;
use millstream_fiber::{Fiber, Options, Runtime, Threads, park, spawn, yield_now};

const RUNS: usize = 7;
const RING: usize = 403;
const PARKED: usize = 100_000;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.2);
    let budget = Duration::from_secs_f64(seconds);
    let one = || start(Threads::One);
    figure("yield, one fiber alone", budget, |count| in_fiber(&one(), move || yields(count)));
    figure("yield, two fibers in turn", budget, |count| {
        in_fiber(&one(), move || {
            let other = spawn(move || yields(count / 2));
            let time = yields(count / 2);
            other.join().expect("it only yields");
            time
        })
    });
    figure("spawn and join, stack reused", budget, |count| {
        in_fiber(&one(), move || timed(|| (0..count).for_each(|n| assert!(spawn(move || n).join().is_ok()))))
    });
    for (name, depth) in [("shallow", 0), ("100 frames deep", 100)] {
        let title = format!("hop, ring of {RING} parked fibers, {name}");
        figure(&title, budget, |count| ring(&one(), count, depth));
    }
    for workers in [1, 2] {
        let title = format!("hop, ring of {RING} channels, {workers} worker(s)");
        figure(&title, budget, |count| channel_ring(&start(Threads::Workers(workers)), count));
    }
    parked();
}

fn start(threads: Threads) -> Runtime {
    Runtime::start(Options::new(threads).on_report(|_| {})).expect("the system has a thread")
}

fn in_fiber(runtime: &Runtime, body: impl FnOnce() -> Duration + Send + 'static) -> Duration {
    runtime.spawn(body).join().expect("the measured body does not fail")
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn yields(count: u64) -> Duration {
    timed(|| (0..count).for_each(|_| yield_now()))
}

/// Prints the time of one step of `run`, which performs the given number of steps.
fn figure(title: &str, budget: Duration, run: impl Fn(u64) -> Duration) {
    let mut count = 1000;
    let mut time = run(count);
    while time < budget / 10 && count < 1 << 30 {
        count *= 4;
        time = run(count);
    }
    let mut per_step: Vec<f64> = (0..RUNS).map(|_| run(count).as_nanos() as f64 / count as f64).collect();
    per_step.sort_by(f64::total_cmp);
    println!("{title:<52} {:>9.1} ns   fastest {:>9.1} ns", per_step[RUNS / 2], per_step[0]);
}

/// Calls itself `depth` times, and then runs `body`.
fn below(depth: u32, body: &mut dyn FnMut()) {
    let frame = black_box([depth; 8]);
    if depth == 0 {
        body();
    } else {
        below(depth - 1, body);
    }
    black_box(frame);
}

/// Passes a token around a ring: each fiber wakes the next one and parks.
fn ring(runtime: &Runtime, hops: u64, depth: u32) -> Duration {
    let rounds = hops / RING as u64 + 1;
    in_fiber(runtime, move || {
        let mut next: Fiber = millstream_fiber::current();
        let mut ring = Vec::new();
        let started = Arc::new(AtomicUsize::new(0));
        for _ in 0..RING {
            let (successor, started) = (next, Arc::clone(&started));
            let member = spawn(move || {
                below(depth, &mut || {
                    started.fetch_add(1, Relaxed);
                    for _ in 0..rounds {
                        park();
                        successor.unpark();
                    }
                });
            });
            next = member.fiber().clone();
            ring.push(member);
        }
        // Wait until every fiber has descended to its depth.
        while started.load(Relaxed) < RING {
            yield_now();
        }
        let time = timed(|| {
            for _ in 0..rounds {
                next.unpark();
                park();
            }
        });
        ring.into_iter().for_each(|member| member.join().expect("it only passes on"));
        time.mul_f64(hops as f64 / (rounds * RING as u64) as f64)
    })
}

/// Passes a token around a ring of channels.
fn channel_ring(runtime: &Runtime, hops: u64) -> Duration {
    let rounds = hops / RING as u64 + 1;
    let (first, mut inbox) = channel(1);
    for _ in 0..RING {
        let (outbox, next) = channel(1);
        let receiver = std::mem::replace(&mut inbox, next);
        let _ = runtime
            .spawn(move || receiver.iter().for_each(|token: u64| outbox.send(token).expect("the ring is whole")));
    }
    let time = in_fiber(runtime, move || {
        // The first round of the token starts the fibers.
        first.send(0).expect("the ring is whole");
        assert_eq!(inbox.recv(), Ok(0));
        timed(|| {
            for round in 0..rounds {
                first.send(round).expect("the ring is whole");
                assert_eq!(inbox.recv(), Ok(round));
            }
        })
    });
    time.mul_f64(hops as f64 / (rounds * RING as u64) as f64)
}

/// Measures the time and memory of many parked fibers.
fn parked() {
    let runtime = start(Threads::One);
    let (resident, mappings) = (memory("VmRSS:") + memory("VmPTE:"), mappings());
    let mut fibers = Vec::with_capacity(PARKED);
    let begin = timed(|| {
        fibers.extend((0..PARKED).map(|_| runtime.spawn(park)));
        // All fibers have started when the last one, which starts after the others, has ended.
        let last = fibers.pop().expect("there are many");
        last.fiber().unpark();
        last.join().expect("it only parks");
    });
    let bytes = (memory("VmRSS:") + memory("VmPTE:") - resident) * 1024 / PARKED as u64;
    let more = self::mappings() - mappings;
    println!("{PARKED} fibers spawned and parked in {begin:?}: {bytes} bytes each with page tables, {more} mappings");
    let end = timed(|| {
        fibers.iter().for_each(|fiber| fiber.fiber().unpark());
        fibers.into_iter().for_each(|fiber| fiber.join().expect("it only parks"));
    });
    println!("{PARKED} fibers woken and joined in {end:?}");
}

/// Reads a figure from `/proc/self/status`, in KiB.
fn memory(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").map_or(0, |maps| maps.lines().count())
}
