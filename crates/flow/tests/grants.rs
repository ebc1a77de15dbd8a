//! What queues grant: never too much, all at once, past whoever waits for something else, and to everybody
//! in the end.

mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use millstream_flow::{Batch, Flow, Need, Rate};
use support::{Gate, in_time, ms};

/// Counts how many are inside at once.
#[derive(Default)]
struct Inside {
    now: AtomicU64,
    most: AtomicU64,
}

impl Inside {
    fn enter(&self) -> Leave<'_> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        Leave(self)
    }

    fn most(&self) -> u64 {
        self.most.load(Ordering::SeqCst)
    }
}

struct Leave<'a>(&'a Inside);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn a_key_never_has_more_than_its_cap_and_a_stalled_one_holds_up_no_other() {
    // Twenty hosts of 30 units, 2 at once; those of host 0 stall until all others are done.
    const HOSTS: u64 = 20;
    const ALL: u64 = 30 * HOSTS;
    const OTHERS: u64 = ALL - 30;
    in_time(|| {
        let inside: Arc<Vec<Inside>> = Arc::new((0..HOSTS).map(|_| Inside::default()).collect());
        let (others_are_done, others) = (Gate::default(), AtomicU64::new(0));
        let mut flow = Flow::builder::<()>("hosts");
        flow.inflight(10_000);
        let host = flow.keyed_tokens("host", 2);
        let (get, done) = (flow.inlet::<u64>("get"), flow.retire());
        let hosts = inside.clone();
        flow.stage(get, move |unit: &mut u64, _| {
            let host = *unit % HOSTS;
            let _inside = hosts[host as usize].enter();
            if host == 0 {
                others_are_done.pass();
            }
            std::thread::sleep(ms(2));
            if host != 0 && others.fetch_add(1, Ordering::SeqCst) + 1 == OTHERS {
                others_are_done.open();
            }
            Ok(())
        })
        .need(Need::keyed(host, |unit: &u64| (unit % HOSTS).to_string()))
        .blocking()
        .batch(Batch::of(1))
        .to(done);
        let report = flow.build(get).unwrap().run(0..ALL);
        assert_eq!(report.retired, ALL);
        assert!(inside.iter().all(|host| host.most() <= 2), "more than two at one host");
        assert_eq!(report.resources[0].peak_in_use, 2);
    });
}

#[test]
fn needs_are_granted_all_at_once_or_not_at_all() {
    // Dining philosophers: each needs two neighbouring forks; forks are tokens of one each.
    let mut flow = Flow::builder::<()>("dinner");
    let forks: Vec<_> = (0..5).map(|n| flow.tokens(format!("fork {n}"), 1)).collect();
    let held: Arc<Vec<Inside>> = Arc::new((0..5).map(|_| Inside::default()).collect());
    let (eat, done) = (flow.inlet::<u64>("eat"), flow.retire());
    let theirs = held.clone();
    let mut stage = flow
        .stage(eat, move |unit: &mut u64, _| {
            let (left, right) = (*unit as usize % 5, (*unit as usize + 1) % 5);
            let (_left, _right) = (theirs[left].enter(), theirs[right].enter());
            std::hint::spin_loop();
            Ok(())
        })
        .blocking()
        .workers(0..=5);
    for (n, &fork) in forks.iter().enumerate() {
        stage =
            stage
                .need(Need::tokens(fork, 1).amount_with(move |unit: &u64| {
                    u64::from(*unit as usize % 5 == n || (*unit as usize + 1) % 5 == n)
                }));
    }
    stage.to(done);
    let report = flow.build(eat).unwrap().run(0..20_000);
    assert_eq!(report.retired, 20_000);
    assert!(held.iter().all(|fork| fork.most() == 1));
}

#[test]
fn a_unit_with_many_needs_is_not_overtaken_for_ever() {
    // Units of `a` alone and of `b` alone keep both busy at alternating times; one unit needs both. Others are
    // supplied without end until it has run.
    let served = Arc::new(AtomicBool::new(false));
    let overtaken = Arc::new(AtomicUsize::new(0));
    let mut flow = Flow::builder::<()>("both");
    flow.inflight(64).workers(2);
    let (a, b) = (flow.tokens("a", 1), flow.tokens("b", 1));
    let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
    let (mark, count) = (served.clone(), overtaken.clone());
    flow.stage(work, move |unit: &mut u64, _| {
        if *unit == 2 {
            mark.store(true, Ordering::SeqCst);
        } else if !mark.load(Ordering::SeqCst) {
            count.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    })
    .need(Need::tokens(a, 1).amount_with(|unit: &u64| u64::from(unit.is_multiple_of(2))))
    .need(Need::tokens(b, 1).amount_with(|unit: &u64| u64::from(unit % 2 == 1 || *unit == 2)))
    .batch(Batch::of(1))
    .to(done);
    let stop = served.clone();
    let deadline = Instant::now() + Duration::from_secs(30);
    let report = flow
        .build(work)
        .unwrap()
        .run((0..).take_while(move |_| !stop.load(Ordering::SeqCst) && Instant::now() < deadline));
    assert!(served.load(Ordering::SeqCst), "the unit that needs both never ran");
    // Nine turns in lines of at most 64 units each, of two resources: the documented bound, with the units
    // ahead of it, and those that ran while it did.
    let bound = (8 + 2 + 1) * 64 * 2;
    let overtaken = overtaken.load(Ordering::SeqCst);
    assert!(overtaken <= bound, "{overtaken} units of {} overtook it; the bound is {bound}", report.admitted);
}

#[test]
fn a_rate_is_kept_and_its_burst_is_used() {
    /// Makes 120 calls. Returns how long they took, and the shortest time in which 60 of them ran.
    fn run() -> (Duration, Duration) {
        let times = Arc::new(Mutex::new(Vec::new()));
        let mut flow = Flow::builder::<()>("rate");
        let api = flow.rate("api", Rate::per_second(500.0).burst(20));
        let (call, done) = (flow.inlet::<u64>("call"), flow.retire());
        let log = times.clone();
        flow.stage(call, move |_: &mut u64, _| {
            log.lock().unwrap().push(Instant::now());
            Ok(())
        })
        .need(Need::tokens(api, 1))
        .to(done);
        let started = Instant::now();
        flow.build(call).unwrap().run(0..120);
        let took = started.elapsed();
        let mut times = times.lock().unwrap().clone();
        times.sort();
        (took, times.windows(60).map(|window| window[59] - window[0]).min().expect("120 times"))
    }
    // A thread that loses its core makes calls late, and those that follow come closer: the best of five attempts
    // counts.
    let (mut least, mut apart) = (Duration::MAX, Duration::ZERO);
    for _ in 0..5 {
        let (took, sixty) = run();
        // 20 at once, the other 100 at 2 ms each.
        assert!(took >= ms(195), "120 calls took {took:?}: faster than the rate");
        (least, apart) = (least.min(took), apart.max(sixty));
        // 60 grants take at least 40 periods; 10 ms of leeway for units that were granted and ran later.
        if least < ms(1500) && apart + ms(10) >= ms(78) {
            return;
        }
    }
    panic!("120 calls took {least:?} at least, which is to be 0.2 s; 60 took {apart:?} at most, which is to be 78 ms");
}

#[test]
fn rates_by_key_do_not_share_tokens_and_idle_keys_are_forgotten() {
    let mut flow = Flow::builder::<()>("rates");
    flow.inflight(1000);
    let api = flow.keyed_rate("api", Rate::per_second(200.0).burst(2));
    flow.max_keys(api, 8);
    let (call, done) = (flow.inlet::<u64>("call"), flow.retire());
    flow.stage(call, |_: &mut u64, _| Ok(())).need(Need::keyed(api, |unit: &u64| format!("{}", unit / 4))).to(done);
    let flow = flow.build(call).unwrap();
    let control = flow.control();
    let started = Instant::now();
    // 50 keys, of which at most 8 exist at once: the others wait until the tokens of an idle one are back.
    let report = flow.run(0..200);
    assert_eq!(report.retired, 200);
    assert!(started.elapsed() < Duration::from_secs(60));
    assert!(control.snapshot().resources[0].keys <= 8);
}

#[test]
fn keys_are_bounded_and_forgotten() {
    let mut flow = Flow::builder::<()>("keys");
    flow.inflight(500);
    let host = flow.keyed_tokens("host", 1);
    flow.max_keys(host, 3);
    let (get, done) = (flow.inlet::<u64>("get"), flow.retire());
    flow.stage(get, |_: &mut u64, _| Ok(())).need(Need::keyed(host, |unit: &u64| format!("h{}", unit % 100))).to(done);
    let flow = flow.build(get).unwrap();
    let control = flow.control();
    let report = flow.run(0..5000);
    assert_eq!(report.retired, 5000);
    assert_eq!(control.snapshot().resources[0].keys, 0);
}

#[test]
fn a_batch_takes_its_permit_once_and_no_more_batches_run_than_permits() {
    let (inside, units) = (Arc::new(Inside::default()), Arc::new(AtomicU64::new(0)));
    let mut flow = Flow::builder::<()>("batches");
    flow.inflight(10_000).workers(4);
    let disk = flow.tokens("disk", 2);
    let (put, done) = (flow.inlet::<u64>("put"), flow.retire());
    let (theirs, count) = (inside.clone(), units.clone());
    flow.stage(put, move |_: &mut u64, _| {
        let _inside = theirs.enter();
        count.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_micros(50));
        Ok(())
    })
    .need(Need::tokens(disk, 1).per_batch())
    .batch(Batch::of(16).wait(ms(5)))
    .workers(0..=4)
    .to(done);
    let report = flow.build(put).unwrap().run(0..3000);
    assert_eq!((report.retired, units.load(Ordering::Relaxed)), (3000, 3000));
    assert!(inside.most() <= 2, "{} batches at once on 2 permits", inside.most());
}

#[test]
fn pool_objects_are_exclusive_and_replaced_after_a_panic() {
    let made = Arc::new(AtomicUsize::new(0));
    let mut flow = Flow::builder::<()>("pool");
    flow.workers(4);
    let counter = made.clone();
    let pool = flow.pool_with("connection", 2, move || {
        counter.fetch_add(1, Ordering::SeqCst);
        HashMap::<u64, u64>::new()
    });
    let (query, done) = (flow.inlet::<u64>("query"), flow.retire());
    let theirs = pool.clone();
    flow.stage(query, move |unit: &mut u64, cx| {
        let mut connection = cx.object(&theirs);
        *connection.entry(*unit).or_default() += 1;
        assert!(*unit != 77, "connection broken");
        Ok(())
    })
    .need(Need::object(&pool))
    .to(done);
    let report = flow.build(query).unwrap().run(0..1000);
    assert_eq!((report.retired, report.dead_lettered), (999, 1));
    assert!(report.dead_letters[0].message.contains("connection broken"));
    let made = made.load(Ordering::SeqCst);
    assert!((2..=3).contains(&made) || made == 1, "{made} connections were made");
    assert_eq!(report.resources[0].kind, "pool");
}

#[test]
fn a_need_held_until_a_later_stage_spans_both() {
    let inside = Arc::new(Inside::default());
    let mut flow = Flow::builder::<()>("span");
    let slot = flow.tokens("slot", 3);
    let (ask, answer, done) = (flow.inlet::<u64>("ask"), flow.inlet::<u64>("answer"), flow.retire());
    let (begin, end) = (inside.clone(), inside.clone());
    flow.update(ask, move |_, _| {
        std::mem::forget(begin.enter());
        Ok(())
    })
    .need(Need::tokens(slot, 1).until(answer))
    .to(answer);
    flow.stage(answer, move |_: &mut u64, _| {
        drop(Leave(&end));
        Ok(())
    })
    .to(done);
    let report = flow.build(ask).unwrap().run(0..5000);
    assert_eq!(report.retired, 5000);
    assert!(inside.most() <= 3, "{} units held 3 slots", inside.most());
}

#[test]
fn a_bounded_queue_holds_back_the_stage_before_it() {
    let inside = Arc::new(Inside::default());
    let mut flow = Flow::builder::<()>("bounded");
    flow.inflight(1000).workers(3);
    let (fast, slow, done) = (flow.inlet::<u64>("fast"), flow.inlet::<u64>("slow"), flow.retire());
    let (begin, end) = (inside.clone(), inside.clone());
    flow.update(fast, move |_, _| {
        std::mem::forget(begin.enter());
        Ok(())
    })
    .to(slow);
    flow.stage(slow, move |_: &mut u64, _| {
        std::thread::sleep(Duration::from_micros(100));
        drop(Leave(&end));
        Ok(())
    })
    .queue(7)
    .workers(0..=1)
    .to(done);
    let flow = flow.build(fast).unwrap();
    assert_eq!(flow.plan().stages[1].queue_bound, 7);
    let report = flow.run(0..500);
    assert_eq!(report.retired, 500);
    assert!(inside.most() <= 7, "{} units behind a bound of 7", inside.most());
}

#[test]
fn bytes_in_flight_stay_in_the_budget_and_an_oversize_unit_runs_alone() {
    let mut flow = Flow::builder::<()>("bytes");
    flow.memory(10_000).inflight(1000);
    let (hold, done) = (flow.inlet::<u64>("hold"), flow.retire());
    let inside = Arc::new(Inside::default());
    let alone = Arc::new(AtomicU64::new(0));
    let (theirs, big) = (inside.clone(), alone.clone());
    flow.stage(hold, move |bytes: &mut u64, _| {
        let _inside = theirs.enter();
        std::thread::sleep(Duration::from_micros(20));
        if *bytes > 10_000 {
            big.fetch_max(theirs.now.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        Ok(())
    })
    .bytes(|bytes| *bytes)
    .blocking()
    .to(done);
    let sizes = (0..2000u64).map(|n| if n % 500 == 250 { 50_000 } else { 1 + n * 7 % 3000 });
    let report = flow.build(hold).unwrap().run(sizes);
    assert_eq!((report.retired, report.oversize), (2000, 4));
    assert_eq!(report.peak_bytes_in_flight, 50_000);
    assert_eq!(alone.load(Ordering::SeqCst), 1, "an oversize unit had company");
}

#[test]
fn growth_beyond_the_budget_requeues_idempotent_units_and_all_finish() {
    let mut flow = Flow::builder::<()>("growth");
    flow.memory(100_000).inflight(64);
    let (fetch, done) = (flow.inlet::<Vec<u8>>("fetch"), flow.retire());
    flow.stage(fetch, |body: &mut Vec<u8>, cx| {
        for size in (0..30_000).step_by(5_000) {
            cx.reserve(size + 5_000)?;
            std::thread::sleep(Duration::from_micros(50));
        }
        body.clear();
        Ok(())
    })
    .idempotent()
    .blocking()
    .to(done);
    let report = flow.build(fetch).unwrap().run((0..300).map(|_| Vec::new()));
    assert_eq!((report.retired, report.dead_lettered), (300, 0));
    assert!(report.peak_bytes_in_flight <= 100_000, "{} bytes in flight", report.peak_bytes_in_flight);
    assert!(report.stages[0].requeued > 0, "the budget was never short: the test tests nothing");
}
