//! Measures the cost of watching a flow. One number is the time of a scrape of the metrics, with 60 stages and 100,000
//! keys. The other is the time for which an explanation of one unit among a million occupies the flow's lock.
//!
//! `cargo run --release --example watching`

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use millstream_flow::metrics::{Exposition, Format};
use millstream_flow::{Control, Flow, Need, Service};

const STAGES: usize = 60;
const KEYS: u64 = 100_000;
const UNITS: u64 = 1_000_000;
const ROUNDS: usize = 101;

fn main() -> Result<(), Box<dyn Error>> {
    scrape()?;
    explanation()
}

/// A flow of stages in a row. Its units wait for keys that have no tokens.
fn parked(stages: usize, keys: u64, units: u64) -> Result<Service<u64, u64>, Box<dyn Error>> {
    let mut flow = Flow::builder("watched");
    let by_key = flow.keyed_tokens("key", 1);
    let inlets: Vec<_> = (0..stages).map(|i| flow.inlet::<u64>(&format!("stage {i}"))).collect();
    let done = flow.retire();
    for (i, inlet) in inlets.iter().enumerate() {
        let stage = flow.stage(*inlet, |unit: &mut u64, _| Ok(*unit));
        let need = Need::keyed(by_key, move |unit: &u64| (unit % keys).to_string());
        let stage = if i == 0 { stage.need(need) } else { stage };
        match inlets.get(i + 1) {
            Some(next) => stage.to(*next),
            None => stage.to(done),
        };
    }
    flow.max_keys(by_key, usize::try_from(keys)?).inflight(units);
    let service = flow.build(inlets[0])?.start();
    service.control().set_capacity("key", 0)?;
    service.send_all(0..units)?;
    while service.control().snapshot().resources[0].waiters < units {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(service)
}

fn scrape() -> Result<(), Box<dyn Error>> {
    let service = parked(STAGES, KEYS, KEYS)?;
    let control = service.control();
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let snapshot = control.snapshot();
        let taken = start.elapsed();
        let mut metrics = Exposition::new(String::new(), Format::OpenMetrics);
        snapshot.write_metrics(&mut metrics)?;
        bytes = metrics.end()?.len();
        times.push((start.elapsed(), taken));
    }
    times.sort();
    let ((median, snapshot), (slowest, _)) = (times[ROUNDS / 2], times[ROUNDS - 1]);
    println!(
        "scrape, {STAGES} stages, {KEYS} keys, {bytes} bytes: median {median:?}, of it the snapshot {snapshot:?}; \
         slowest {slowest:?}"
    );
    control.abandon();
    service.drain();
    Ok(())
}

fn explanation() -> Result<(), Box<dyn Error>> {
    let service = parked(1, 1, UNITS)?;
    let control = service.control();
    let alone = waits(&control, || thread::sleep(Duration::from_millis(200)));
    let mut walks = Vec::new();
    let explained = waits(&control, || {
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let found = control.explain_unit(UNITS - 1).is_ok();
            walks.push(start.elapsed());
            assert!(found, "the unit waits");
        }
    });
    walks.sort();
    println!(
        "explanation of the last of {UNITS} units: median {:?}, slowest {:?}",
        walks[ROUNDS / 2],
        walks[ROUNDS - 1]
    );
    for (what, waits) in [("alone", alone), ("beside explanations", explained)] {
        let at = |share: usize| waits[(waits.len() - 1) * share / 100];
        println!("snapshots {what}: median {:?}, 99 % within {:?}, slowest {:?}", at(50), at(99), at(100));
    }
    control.abandon();
    service.drain();
    Ok(())
}

/// The times of snapshots, taken one after the other while `meanwhile` runs. They show how long other calls occupy the
/// flow's lock.
fn waits(control: &Control, meanwhile: impl FnOnce()) -> Vec<Duration> {
    let over = AtomicBool::new(false);
    let mut times = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut times = Vec::new();
            // Relaxed: the flag publishes nothing.
            while !over.load(Ordering::Relaxed) {
                let start = Instant::now();
                let _ = control.snapshot();
                times.push(start.elapsed());
                thread::sleep(Duration::from_micros(50));
            }
            times
        });
        meanwhile();
        over.store(true, Ordering::Relaxed);
        asking.join().expect("asking does not panic")
    });
    times.sort();
    times
}
