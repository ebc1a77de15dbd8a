//! Live traces: windows of flows that keep running.

use std::time::{Duration, Instant};

use millstream_flow::{Batch, Cx, Flow, Gather, LiveTrace, Need, Trace, WhatIf};

/// A window with at least this many units.
fn window_of(live: &LiveTrace, units: usize) -> Trace {
    let began = Instant::now();
    loop {
        let trace = Trace::read(&*live.window(live.most_bytes())).unwrap();
        if trace.units() >= units {
            return trace;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{} units", trace.units());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_running_flow_gives_a_window_before_and_after_a_change() {
    let mut flow = Flow::builder("naps");
    let bed = flow.tokens("bed", 1);
    let (nap, done) = (flow.inlet("nap"), flow.retire());
    flow.update(nap, |_: &mut u64, _| {
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    })
    .need(Need::tokens(bed, 1))
    .blocking()
    .to(done);
    flow.inflight(16);
    let flow = flow.build(nap).unwrap();
    let live = flow.live_trace("a test".into());
    let control = flow.control();
    let service = flow.start_from(0.., |_| ());
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(
        Trace::read(&*live.window(live.most_bytes())).unwrap().units(),
        0,
        "nothing is recorded before it is asked for"
    );
    assert!(live.begin() && !live.begin());

    let wall = |trace: &Trace, beds| trace.replay(&WhatIf::default().capacity("bed", beds)).unwrap().steady_wall;
    // A replay has no record of other programs that used the processors. So it is enough if one of several windows is
    // undisturbed.
    let mut windows = 0;
    let (trace, measured) = loop {
        let trace = window_of(&live, 80);
        assert!(trace.is_live());
        let measured = trace.measured();
        assert_eq!((measured.retired, measured.dead_lettered), (trace.units() as u64, 0));
        let ratio = wall(&trace, 1).as_secs_f64() / measured.wall.as_secs_f64();
        windows += 1;
        if (0.5..1.1).contains(&ratio) {
            break (trace, measured);
        }
        assert!(windows < 20 && ratio < 1.1, "window {windows}: {ratio}: {measured:?}");
        live.restart();
    };
    let gain = wall(&trace, 2).as_secs_f64() / wall(&trace, 1).as_secs_f64();
    assert!((0.4..0.7).contains(&gain), "{gain}");
    assert!(measured.latency_p50 >= Duration::from_millis(8), "16 units in flight: {measured:?}");

    control.set_capacity("bed", 4).unwrap();
    live.restart();
    let changed = window_of(&live, 80);
    assert_eq!(changed.resources()[0].capacity, 4, "the window has the current settings");
    assert!(!changed.measured().was_steered);
    assert!(changed.measured().wall < measured.wall * 4 / 5 * changed.units() as u32 / trace.units() as u32);
    control.stop();
    service.drain();
}

#[test]
fn windows_have_whole_families_at_any_moment() {
    let mut flow = Flow::builder("families");
    let (open, work, sum, done) = (flow.inlet("open"), flow.inlet("work"), flow.inlet("sum"), flow.retire());
    flow.split(open, |n: &mut u64, _| Ok((0..1 + *n % 7).map(Ok))).to(work);
    flow.update(work, |_: &mut u64, _| Ok(())).batch(Batch::of(3)).to(sum);
    let add = |sum: &mut u64, n: &mut u64, _: &mut Cx<'_>| {
        *sum += *n;
        Ok(())
    };
    flow.gather(sum, Gather::fold(|| 0u64, add).by_parent()).to(done);
    flow.workers(3);
    let flow = flow.build(open).unwrap();
    let live = flow.live_trace("a test".into());
    let control = flow.control();
    let service = flow.start_from(0.., |_| ());
    live.begin();
    let mut seen = 0;
    for round in 0..10 {
        std::thread::sleep(Duration::from_millis(3));
        // A small window lacks the events before its beginning.
        let trace = Trace::read(&*live.window(if round % 2 == 0 { 160 << 10 } else { 48 << 10 })).unwrap();
        let (measured, units) = (trace.measured(), trace.units() as u64);
        seen += units;
        // If a family lacked a run, a unit would end as a failure. If a family had one run too many, a unit would be
        // left behind.
        let replayed = trace.replay(&WhatIf::default()).unwrap().report;
        assert_eq!((replayed.admitted, replayed.dead_lettered, replayed.left), (units, 0, 0), "round {round}");
        assert_eq!(replayed.retired, measured.retired, "round {round}");
        if round == 7 {
            live.restart();
        }
    }
    assert!(seen > 100, "{seen}");
    control.stop();
    service.drain();
}

#[test]
fn a_flow_is_recorded_and_traced_live_at_the_same_time() {
    let mut flow = Flow::builder("both");
    let (work, done) = (flow.inlet("work"), flow.retire());
    flow.update(work, |n: &mut u64, _| {
        std::thread::sleep(Duration::from_micros(100 + *n % 3));
        Ok(())
    })
    .to(done);
    let flow = flow.build(work).unwrap();
    let live = flow.live_trace("live".into());
    let path = std::env::temp_dir().join(format!("millstream-both-{}.trace", std::process::id()));
    let recording = flow.record(std::fs::File::create(&path).unwrap(), "file".into()).unwrap();
    assert!(flow.record(Vec::new(), "again".into()).is_err());
    live.begin();
    let control = flow.control();
    let service = flow.start_from(0..600, |_| ());
    window_of(&live, 50);
    while control.snapshot().admitted < 600 {
        std::thread::sleep(Duration::from_millis(1));
    }
    recording.finish(&service.drain()).unwrap();
    let file = Trace::read(std::io::BufReader::new(std::fs::File::open(&path).unwrap())).unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!((file.units(), file.is_live(), file.note()), (600, false, &"file".into()));
    let window = Trace::read(&*live.window(live.most_bytes())).unwrap();
    assert_eq!((window.units(), window.note()), (600, &"live".into()), "all units have left");
}

#[test]
fn units_that_wait_for_a_slow_host_are_in_the_window() {
    let mut flow = Flow::builder("hosts");
    let host = flow.keyed_tokens("host", 1);
    let slots = flow.tokens("slots", 64);
    let (plan, fetch, done) = (flow.inlet("plan"), flow.inlet("fetch"), flow.retire());
    flow.update(plan, |_: &mut u64, _| Ok(())).to(fetch);
    // One unit in eleven goes to the slow host, and the line for that host fills the flow.
    let host_of = |unit: &u64| if unit.is_multiple_of(11) { "slow".to_owned() } else { format!("fast {}", unit % 11) };
    flow.update(fetch, |unit: &mut u64, _| {
        std::thread::sleep(Duration::from_millis(if unit.is_multiple_of(11) { 20 } else { 1 }));
        Ok(())
    })
    .need(Need::keyed(host, host_of))
    .need(Need::tokens(slots, 1))
    .blocking()
    .to(done);
    flow.inflight(40);
    let flow = flow.build(plan).unwrap();
    let live = flow.live_trace("a test".into());
    let control = flow.control();
    let service = flow.start_from(0.., |_| ());
    let is_full = |control: &millstream_flow::Control| control.snapshot().resources[0].waiters >= 37;
    while !is_full(&control) {
        std::thread::sleep(Duration::from_millis(5));
    }
    live.begin();
    let trace = loop {
        let trace = Trace::read(&*live.window(live.most_bytes())).unwrap();
        if trace.departed() >= 300 {
            break trace;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    for bytes in [0, 1, 19, 40] {
        assert!(!live.window(bytes).is_empty(), "a window without room for the waiting units still ends");
    }
    let as_it_is = trace.replay(&WhatIf::default()).unwrap();
    let ratio = as_it_is.steady_wall.as_secs_f64() / trace.measured().wall.as_secs_f64();
    assert!((0.8..1.1).contains(&ratio), "{ratio}: {:?}", trace.measured());
    assert!(as_it_is.report.bottleneck.starts_with("host: "), "{}", as_it_is.report.bottleneck);
    assert_eq!(as_it_is.report.retired, trace.measured().retired);
    let gain = |what_if: WhatIf| {
        as_it_is.steady_wall.as_secs_f64() / trace.replay(&what_if).unwrap().steady_wall.as_secs_f64()
    };
    let (hosts, slots) = (gain(WhatIf::default().capacity("host", 2)), gain(WhatIf::default().capacity("slots", 128)));
    assert!(hosts > 1.5 && slots < 1.1, "{hosts} {slots}");
    control.abandon();
    service.drain();
}
