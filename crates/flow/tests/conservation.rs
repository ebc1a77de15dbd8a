//! Flows whose stages fail, panic and run late at random, while caps and workers change: no unit is lost, no run hangs,
//! and every dead letter is complete.
//!
//! `MILLSTREAM_STRESS=n` runs n times as many seeds, of 100 000 units each; `MILLSTREAM_SEED=n` begins at that seed.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use millstream_flow::{
    AfterFailure, Batch, Cause, Control, DeadLetter, Failure, Flow, Need, Outcome, Rate, Report, Retry, select,
};
use millstream_verify_random::{Random, seed, stress};

/// The fate of a unit, determined by its number, the stage and the attempt. It is the same in every run of a seed.
fn fate(seed: u64, unit: u64, stage: u64, attempt: u64) -> u64 {
    Random::new(seed ^ unit.rotate_left(24) ^ (stage << 8) ^ attempt).below(1000)
}

/// One run in 97 sends its unit back to the queue, half of the time after a pause. The detour does not change the unit's
/// fate.
fn detour() -> Result<(), Failure> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    match RUNS.fetch_add(1, Ordering::Relaxed) % 194 {
        0 => Err(Failure::requeue("at once")),
        97 => Err(Failure::requeue("in a moment").not_before(Duration::from_micros(100))),
        _ => Ok(()),
    }
}

fn misbehave(seed: u64, unit: u64, stage: u64, attempt: u32) -> Result<(), Failure> {
    detour()?;
    match fate(seed, unit, stage, attempt.into()) {
        0..20 => Err(Failure::msg("unlucky")),
        20..25 => Err(Failure::permanent("hopeless")),
        25..30 => panic!("stage {stage} panics on unit {unit}"),
        30..31 => {
            std::thread::sleep(Duration::from_micros(300));
            Ok(())
        }
        _ => Ok(()),
    }
}

struct Outcomes {
    report: Report,
    retired: Vec<u64>,
    letters: Vec<DeadLetter>,
}

/// Five stages with every kind of need and policy, a loop, a branch, and changes of settings from another thread.
fn storm(seed: u64, units: u64) -> Outcomes {
    let mut random = Random::new(seed);
    let retired = Arc::new(Mutex::new(Vec::new()));
    let letters = Arc::new(Mutex::new(Vec::new()));

    let mut flow = Flow::builder::<u64>(format!("storm {seed}"));
    flow.inflight(1 + random.below(2000))
        .memory(10_000 + random.below(1_000_000))
        .workers(1 + random.below(4) as usize);
    let (taken, lost) = (retired.clone(), letters.clone());
    flow.on_retire(move |unit| taken.lock().unwrap().push(unit));
    flow.on_dead_letter(move |letter| lost.lock().unwrap().push(letter));

    let tokens = flow.tokens("tokens", 1 + random.below(50));
    let keyed = flow.keyed_tokens("keyed", 1 + random.below(3));
    flow.max_keys(keyed, 1 + random.below(20) as usize);
    let rate = flow.rate("rate", Rate::per_second(5e6).burst(1 + random.below(1000)));
    let permit = flow.tokens("permit", 1 + random.below(3));
    let held = flow.tokens("held", 1 + random.below(100));

    let first = flow.inlet::<u64>("first");
    let keys = flow.inlet::<u64>("keys");
    let again = flow.inlet::<u64>("again");
    let batch = flow.inlet::<u64>("batch");
    let last = flow.inlet::<u64>("last");
    let done = flow.retire();

    let backoff = Duration::from_micros(50)..Duration::from_millis(1);
    let retry = |times: u64| Retry::times(times as u32).backoff(backoff.clone());
    flow.update(first, move |unit, cx| misbehave(seed, *unit, 0, cx.attempt()))
        .bytes(|unit| 1 + unit % 5000)
        .need(Need::tokens(tokens, 1).until(again))
        .retry(retry(random.below(3)))
        .to(keys);
    flow.update(keys, move |unit, cx| misbehave(seed, *unit, 1, cx.attempt()))
        .need(Need::keyed(keyed, |unit: &u64| format!("key {}", unit % 37)))
        .need(Need::tokens(rate, 1))
        .retry(retry(random.below(3)))
        .after_failure(AfterFailure::Skip)
        .idempotent()
        .to(again);
    // A loop: one unit in eight returns once.
    let seen = Arc::new(Mutex::new(HashSet::new()));
    flow.update(again, move |unit, cx| {
        if unit.is_multiple_of(50) {
            cx.delay(Duration::from_micros(100));
        }
        cx.reserve(1 + *unit % 7000)?;
        misbehave(seed, *unit, 2, cx.attempt())
    })
    .idempotent()
    .retry(retry(2))
    .to(select(
        move |unit: &u64| usize::from(unit.is_multiple_of(8) && seen.lock().unwrap().insert(*unit)),
        [batch.into(), again.into()],
    ));
    flow.update(batch, move |unit, cx| misbehave(seed, *unit, 3, cx.attempt()))
        .need(Need::tokens(permit, 1).per_batch())
        .need(Need::keyed(keyed, |unit: &u64| format!("key {}", unit % 5)))
        .need(Need::tokens(held, 1).until(last))
        .batch(Batch::of(1 + random.below(32) as usize).wait(Duration::from_micros(random.below(500))))
        .to(last);
    let last_stage = flow
        .update(last, move |unit, cx| misbehave(seed, *unit, 4, cx.attempt()))
        .timeout(Duration::from_secs(60))
        .workers(random.below(2) as usize..=1 + random.below(3) as usize)
        .queue(1 + random.below(500));
    if random.below(2) == 0 {
        last_stage.blocking().to(done);
    } else {
        last_stage.to(done);
    }

    let flow = flow.build(first).expect("the storm is a valid flow");
    let control = flow.control();
    let over = Arc::new(AtomicBool::new(false));
    let steering = steer(control, random.clone(), over.clone());
    let report = flow.run(0..units);
    over.store(true, Ordering::Relaxed);
    steering.join().unwrap();
    let retired = std::mem::take(&mut *retired.lock().unwrap());
    let letters = std::mem::take(&mut *letters.lock().unwrap());
    Outcomes { report, retired, letters }
}

/// Raises and lowers every setting until the flow is over.
fn steer(control: Control, mut random: Random, over: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            match random.below(8) {
                0 => control.set_inflight(1 + random.below(3000)).unwrap(),
                1 => control.set_memory(2000 + random.below(1_000_000)).unwrap(),
                2 => control.set_capacity("tokens", random.below(20)).unwrap(),
                3 => control.set_capacity("keyed", random.below(3)).unwrap(),
                4 => control.set_capacity("permit", random.below(3)).unwrap(),
                5 => control.set_workers("last", 0..=1 + random.below(4) as usize).unwrap(),
                6 => control.set_rate("rate", Rate::per_second(1e6 + random.below(1_000_000) as f64)).unwrap(),
                _ => drop(control.snapshot()),
            }
            std::thread::sleep(Duration::from_micros(random.below(500)));
        }
    })
}

fn check(seed: u64, units: u64) {
    let limit = watch_for_hang(seed);
    let Outcomes { report, mut retired, letters } = storm(seed, units);
    limit.store(true, Ordering::Relaxed);

    assert_eq!(report.outcome, Outcome::Complete, "seed {seed}");
    assert_eq!(report.admitted, units, "seed {seed}");
    assert_eq!(report.left, 0, "seed {seed}");
    assert_eq!(report.admitted, report.retired + report.dead_lettered, "seed {seed}");
    assert_eq!(report.retired, retired.len() as u64 + report.skipped, "seed {seed}");
    assert_eq!(report.dead_lettered, letters.len() as u64, "seed {seed}");

    // No unit ends twice, and none both retires and fails.
    retired.sort_unstable();
    assert!(retired.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: a unit retired twice");
    for letter in &letters {
        let input = *letter.input::<u64>().unwrap_or_else(|| panic!("seed {seed}: no input in {letter}"));
        assert!(retired.binary_search(&input).is_err(), "seed {seed}: {letter} of a retired unit");
        assert!(
            letter.attempts >= 1 && !letter.message.is_empty() && !letter.stage.is_empty(),
            "seed {seed}: {letter}"
        );
        assert!(matches!(letter.cause, Cause::Error | Cause::Panic), "seed {seed}: {letter}");
    }
    for resource in &report.resources {
        assert!(resource.peak_in_use > 0, "seed {seed}: {} was never used", resource.name);
    }
}

/// Ends the process and prints the seed if a run takes unreasonably long.
fn watch_for_hang(seed: u64) -> Arc<AtomicBool> {
    let done = Arc::new(AtomicBool::new(false));
    let theirs = done.clone();
    std::thread::spawn(move || {
        let started = Instant::now();
        while !theirs.load(Ordering::Relaxed) {
            if started.elapsed() > Duration::from_secs(600) {
                eprintln!("seed {seed} hangs; run it again with MILLSTREAM_SEED={seed}");
                std::process::abort();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    done
}

#[test]
fn nothing_is_lost_in_a_storm() {
    // The panics are part of the test; their messages would hide everything else.
    std::panic::set_hook(Box::new(|info| {
        let text = info.payload().downcast_ref::<String>().map_or("", String::as_str);
        if !text.starts_with("stage ") {
            eprintln!("{info}");
        }
    }));
    let units = if stress() == 1 { 5_000 } else { 100_000 };
    let first = seed();
    for seed in first..first + 12 * stress() {
        println!("seed {seed}");
        check(seed, units);
    }
}

#[test]
fn an_abandoned_flow_counts_the_units_left() {
    for round in 0..20u64 {
        let mut flow = Flow::builder::<u64>("abandon");
        let net = flow.tokens("net", 2);
        let (wait, done) = (flow.inlet::<u64>("wait"), flow.retire());
        let started = Arc::new(AtomicU64::new(0));
        let count = started.clone();
        flow.update(wait, move |_, cx| {
            count.fetch_add(1, Ordering::Relaxed);
            while !cx.cancelled() {
                std::thread::sleep(Duration::from_micros(50));
            }
            cx.check()
        })
        .need(Need::tokens(net, 1))
        .to(done);
        let service = flow.build(wait).unwrap().start();
        let tickets: Vec<_> = (0..50).map(|n| service.submit(n).unwrap()).collect();
        while started.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_micros(round * 20));
        service.control().abandon();
        let report = service.drain();
        assert_eq!((report.outcome, report.admitted, report.left), (Outcome::Abandoned, 50, 50));
        for ticket in tickets {
            assert!(matches!(ticket.wait(), Err(millstream_flow::Unfinished::Abandoned)));
        }
    }
}
