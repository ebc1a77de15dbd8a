//! Measures the errors of predictions: runs flows, replays them with other settings, and runs them again with these
//! settings.
//!
//! ```sh
//! cargo run --release -p millstream-flow --features trace --example predict [FLOW]…
//! ```
//!
//! At the end, it compares the replay with mean value analysis, the bottleneck law and the rule of three.
//!
//! Each row is a flow, a change, and the medians of several pairs of runs. The trace of the run before the change gives
//! the prediction, and the run with the change is measured. Use a quiet machine.

use std::hint::black_box;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use millstream_flow::{Batch, Failure, Flow, Gather, Need, Rate, Report, Trace, WhatIf};

/// The number of pairs of each row.
const PAIRS: usize = 3;

/// A setting of a flow that a row changes.
#[derive(Clone, Copy, PartialEq)]
enum Setting {
    Disk(u64),
    Host(u64),
    Rate(f64),
    Workers(usize),
    Inflight(u64),
}

impl Setting {
    fn apply(self, what_if: WhatIf) -> WhatIf {
        match self {
            Setting::Disk(tokens) => what_if.capacity("disk", tokens),
            Setting::Host(tokens) => what_if.capacity("host", tokens),
            Setting::Rate(per_second) => what_if.rate("rate", per_second),
            Setting::Workers(threads) => what_if.workers(threads),
            Setting::Inflight(units) => what_if.inflight(units),
        }
    }

    fn name(self) -> String {
        match self {
            Setting::Disk(tokens) => format!("disk={tokens}"),
            Setting::Host(tokens) => format!("host={tokens}"),
            Setting::Rate(per_second) => format!("rate={per_second}/s"),
            Setting::Workers(threads) => format!("workers={threads}"),
            Setting::Inflight(units) => format!("inflight={units}"),
        }
    }
}

/// A number between 0 and 1 that is computed from a unit's number.
fn fate(unit: u64, salt: u64) -> f64 {
    let mut z = unit.wrapping_add(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Sleeps for a time with a heavy tail.
fn nap(unit: u64, mean_ms: f64) -> Result<(), Failure> {
    let tail = (1.0 - fate(unit, 1)).powf(-0.45) * 0.55;
    std::thread::sleep(Duration::from_secs_f64(mean_ms * tail.min(8.0) / 1e3));
    Ok(())
}

/// Computes for about this many milliseconds on an otherwise idle core.
fn compute(unit: u64, mean_ms: f64, loops_per_ms: f64) -> Result<(), Failure> {
    let loops = (mean_ms * (0.5 + fate(unit, 2)) * loops_per_ms) as u64;
    let mut x = unit | 1;
    for _ in 0..loops {
        x = black_box(x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    }
    Ok(())
}

/// The number of loops of [`compute`] that take a millisecond.
fn loops_per_ms() -> f64 {
    let began = Instant::now();
    compute(1, 1.0, 20_000_000.0).expect("a computation does not fail");
    20_000_000.0 * (0.5 + fate(1, 2)) / began.elapsed().as_secs_f64() / 1e3
}

type Build = fn(&[Setting], f64) -> Flow<u64, u64>;

/// A flow: its name, whether it computes more than it waits, its units, and the changes of its rows.
type Rows<'a> = (&'a str, bool, Build, u64, &'a [&'a [Setting]]);

fn value<T: Copy>(settings: &[Setting], of: impl Fn(Setting) -> Option<T>, otherwise: T) -> T {
    settings.iter().filter_map(|&setting| of(setting)).next_back().unwrap_or(otherwise)
}

fn begin(settings: &[Setting], name: &str) -> millstream_flow::FlowBuilder<u64> {
    let mut flow = Flow::builder(name);
    flow.workers(value(settings, |s| if let Setting::Workers(n) = s { Some(n) } else { None }, 2));
    flow.inflight(value(settings, |s| if let Setting::Inflight(n) = s { Some(n) } else { None }, 64));
    flow
}

fn disk(settings: &[Setting], otherwise: u64) -> u64 {
    value(settings, |s| if let Setting::Disk(n) = s { Some(n) } else { None }, otherwise)
}

/// Two stages that wait: one for a scarce disk, one for a network.
fn waiting(settings: &[Setting], _: f64) -> Flow<u64, u64> {
    let mut flow = begin(settings, "waiting");
    let (disk, net) = (flow.tokens("disk", disk(settings, 2)), flow.tokens("net", 6));
    let (load, send, done) = (flow.inlet("load"), flow.inlet("send"), flow.retire());
    flow.update(load, |n: &mut u64, _| nap(*n, 4.0)).need(Need::tokens(disk, 1)).blocking().to(send);
    flow.update(send, |n: &mut u64, _| nap(*n + 7, 6.0)).need(Need::tokens(net, 1)).blocking().to(done);
    flow.build(load).unwrap()
}

/// Requests to several hosts; a third of the units ask one of them.
fn hosts(settings: &[Setting], _: f64) -> Flow<u64, u64> {
    let mut flow = begin(settings, "hosts");
    let tokens = value(settings, |s| if let Setting::Host(n) = s { Some(n) } else { None }, 2);
    let host = flow.keyed_tokens("host", tokens);
    let (get, done) = (flow.inlet("get"), flow.retire());
    flow.update(get, |n: &mut u64, _| nap(*n, 5.0))
        .need(Need::keyed(host, |n: &u64| if n.is_multiple_of(3) { "busy".into() } else { format!("h{}", n % 20) }))
        .blocking()
        .workers(0..=24)
        .to(done);
    flow.build(get).unwrap()
}

/// A stage with a rate, and a stage after it that waits.
fn rate(settings: &[Setting], _: f64) -> Flow<u64, u64> {
    let mut flow = begin(settings, "rate");
    let per_second = value(settings, |s| if let Setting::Rate(n) = s { Some(n) } else { None }, 300.0);
    let (rate, disk) =
        (flow.rate("rate", Rate::per_second(per_second).burst(4)), flow.tokens("disk", disk(settings, 4)));
    let (ask, store, done) = (flow.inlet("ask"), flow.inlet("store"), flow.retire());
    flow.update(ask, |n: &mut u64, _| nap(*n, 3.0)).need(Need::tokens(rate, 1)).blocking().workers(0..=8).to(store);
    flow.update(store, |n: &mut u64, _| nap(*n + 3, 5.0)).need(Need::tokens(disk, 1)).blocking().to(done);
    flow.build(ask).unwrap()
}

/// Two stages of computation on shared workers.
fn computing(settings: &[Setting], loops: f64) -> Flow<u64, u64> {
    let mut flow = begin(settings, "computing");
    let disk = flow.tokens("disk", disk(settings, 1));
    let (parse, pack, done) = (flow.inlet("parse"), flow.inlet("pack"), flow.retire());
    flow.update(parse, move |n: &mut u64, _| compute(*n, 0.6, loops)).to(pack);
    flow.update(pack, move |n: &mut u64, _| compute(*n + 5, 2.0, loops)).need(Need::tokens(disk, 1)).to(done);
    flow.build(parse).unwrap()
}

/// Stages that wait and compute, with a split and a gather between them.
fn mixed(settings: &[Setting], loops: f64) -> Flow<u64, u64> {
    let mut flow = begin(settings, "mixed");
    let disk = flow.tokens("disk", disk(settings, 2));
    let (load, open, work) = (flow.inlet("load"), flow.inlet("open"), flow.inlet("work"));
    let (join, store, done) = (flow.inlet("join"), flow.inlet("store"), flow.retire());
    flow.update(load, |n: &mut u64, _| nap(*n, 4.0)).need(Need::tokens(disk, 1)).blocking().to(open);
    flow.split(open, |n: &mut u64, _| {
        let n = *n;
        Ok((0..8).map(move |child| Ok(n * 8 + child)))
    })
    .to(work);
    flow.update(work, move |n: &mut u64, _| compute(*n, 0.15, loops)).batch(Batch::of(4)).to(join);
    let last = |last: &mut u64, n: &mut u64, _: &mut millstream_flow::Cx<'_>| {
        *last = *n;
        Ok(())
    };
    flow.gather(join, Gather::fold(|| 0, last).by_parent()).to(store);
    flow.update(store, |n: &mut u64, _| nap(*n, 2.0)).need(Need::tokens(disk, 1)).blocking().to(done);
    flow.build(load).unwrap()
}

/// The bytes that a recording writes.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn traced(flow: Flow<u64, u64>, units: u64) -> (Report, Trace) {
    let kept = Kept::default();
    let recording = flow.record(kept.clone(), "predict".into()).unwrap();
    let report = flow.run(0..units);
    recording.finish(&report).unwrap();
    let trace = Trace::read(&**kept.0.lock().unwrap()).unwrap();
    (report, trace)
}

/// The errors of wall time, median latency and 99 % latency, and whether the bottleneck is named correctly.
fn errors(predicted: &Report, measured: &Report) -> ([f64; 3], bool) {
    let off = |predicted: f64, measured: f64| predicted / measured - 1.0;
    let errors = [
        off(predicted.wall_s, measured.wall_s),
        off(predicted.latency_ns.p50 as f64, measured.latency_ns.p50 as f64),
        off(predicted.latency_ns.p99 as f64, measured.latency_ns.p99 as f64),
    ];
    let first_word = |report: &Report| report.bottleneck.split([':', ' ']).next().unwrap_or_default().to_owned();
    (errors, first_word(predicted) == first_word(measured))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median and the 90 % quantile of the absolute errors, in percent.
fn summary(errors: &[f64]) -> String {
    let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs() * 100.0).collect();
    sizes.sort_by(f64::total_cmp);
    let at = |share: f64| sizes[((sizes.len() - 1) as f64 * share).round() as usize];
    format!("{:.1} / {:.1}", at(0.5), at(0.9))
}

/// Predicts the time of a flow by three rules that need no trace: mean value analysis, the bottleneck law, and the rule
/// of three (proportional scaling) for the changed resource. The units pass stations one after the other, with a cap on
/// units in flight. A station has a mean service time and a number of servers.
fn by_rules(stations: &[(f64, f64)], inflight: u64, units: f64, before: (f64, f64)) -> [f64; 3] {
    // A station with n servers is approximated by one server that is n times as fast, and a delay (Seidmann's
    // approximation).
    let delay: f64 = stations.iter().map(|(service, servers)| service * (servers - 1.0) / servers).sum();
    let fast: Vec<f64> = stations.iter().map(|(service, servers)| service / servers).collect();
    let mut queues = vec![0.0; fast.len()];
    let mut throughput = 0.0;
    for n in 1..=inflight {
        let times: Vec<f64> = fast.iter().zip(&queues).map(|(service, queue)| service * (1.0 + queue)).collect();
        throughput = n as f64 / (delay + times.iter().sum::<f64>());
        queues = times.iter().map(|time| throughput * time).collect();
    }
    let slowest = fast.iter().copied().fold(0.0, f64::max);
    let (wall, ratio) = before;
    [units / throughput, units * slowest, wall / ratio]
}

/// Prints the errors of the replay, and of rules that need no trace, for the flow of two stages that wait.
fn beside_rules(loops: f64) {
    println!(
        "\n{:<14} {:>9}   {:>8} {:>8} {:>10} {:>13}",
        "waiting", "measured", "replay", "MVA", "bottleneck", "rule of three"
    );
    let (mut sizes, units) = ([const { Vec::new() }; 4], 400);
    for (disks, inflight) in [(1, 64), (2, 64), (4, 64), (8, 64), (4, 4), (8, 8)] {
        let (before, trace) = traced(waiting(&[], loops), units);
        let what_if = WhatIf::default().capacity("disk", disks).inflight(inflight);
        let replayed = trace.replay(&what_if).unwrap().report.wall_s;
        let measured = waiting(&[Setting::Disk(disks), Setting::Inflight(inflight)], loops).run(0..units).wall_s;
        let service = |stage| trace.service_time(stage).unwrap().as_secs_f64();
        let stations = [(service("load"), disks as f64), (service("send"), 6.0)];
        let rules = by_rules(&stations, inflight, units as f64, (before.wall_s, disks as f64 / 2.0));
        let off = [replayed, rules[0], rules[1], rules[2]].map(|predicted| (predicted / measured - 1.0) * 100.0);
        for (sizes, off) in sizes.iter_mut().zip(off) {
            sizes.push(off / 100.0);
        }
        let [replay, mva, law, three] = off.map(|off| format!("{off:+.1} %"));
        let name = format!("disk={disks} of {inflight}");
        println!("{name:<14} {measured:>7.3} s   {replay:>8} {mva:>8} {law:>10} {three:>13}");
    }
    let [replay, mva, law, three] = sizes.map(|sizes| summary(&sizes));
    println!(
        "median / 90 % of the errors in percent: replay {replay}, MVA {mva}, bottleneck {law}, rule of three {three}"
    );
}

fn main() {
    let loops = loops_per_ms();
    use Setting::{Disk, Host, Inflight, Rate, Workers};
    let flows: [Rows<'_>; 5] = [
        (
            "waiting",
            false,
            waiting,
            400,
            &[&[], &[Disk(4)], &[Disk(8)], &[Disk(1)], &[Inflight(4)], &[Disk(8), Inflight(8)]],
        ),
        ("hosts", false, hosts, 500, &[&[], &[Host(4)], &[Host(1)], &[Inflight(8)]]),
        ("rate", false, rate, 400, &[&[], &[Rate(600.0)], &[Rate(2000.0)], &[Rate(600.0), Disk(2)]]),
        ("computing", true, computing, 500, &[&[], &[Disk(2)], &[Disk(4)], &[Workers(1)], &[Workers(4), Disk(4)]]),
        ("mixed", true, mixed, 200, &[&[], &[Disk(4)], &[Disk(8)], &[Workers(1)], &[Inflight(8)]]),
    ];
    println!(
        "{:<10} {:<22} {:>9} {:>9}   {:>7} {:>7} {:>7}  bottleneck",
        "flow", "change", "predicted", "measured", "wall", "p50", "p99"
    );
    let (mut by_kind, mut named, mut pairs) = ([[const { Vec::new() }; 3], [const { Vec::new() }; 3]], 0, 0);
    let (mut visits, mut spent) = (0, Duration::ZERO);
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    for (name, computes, build, units, changes) in flows {
        if !chosen.is_empty() && !chosen.iter().any(|chosen| chosen == name) {
            continue;
        }
        for change in changes {
            let (mut of_row, mut walls) = ([const { Vec::new() }; 3], (Vec::new(), Vec::new()));
            let mut right = 0;
            for _ in 0..PAIRS {
                let (before, trace) = traced(build(&[], loops), units);
                let what_if = change.iter().fold(WhatIf::default(), |what_if, setting| setting.apply(what_if));
                let began = Instant::now();
                let predicted = trace.replay(&what_if).unwrap().report;
                spent += began.elapsed();
                visits += trace.visits();
                let measured = if change.is_empty() { before } else { build(change, loops).run(0..units) };
                let (errors, names) = errors(&predicted, &measured);
                right += usize::from(names);
                for (nth, error) in errors.into_iter().enumerate() {
                    of_row[nth].push(error);
                    by_kind[usize::from(computes)][nth].push(error);
                }
                walls.0.push(predicted.wall_s);
                walls.1.push(measured.wall_s);
            }
            named += right;
            pairs += PAIRS;
            let change: Vec<String> = change.iter().map(|setting| setting.name()).collect();
            let change = if change.is_empty() { "itself".to_owned() } else { change.join(" ") };
            let [wall, p50, p99] = of_row.map(|errors| format!("{:+.1} %", median(errors) * 100.0));
            let (predicted, measured) = (median(walls.0), median(walls.1));
            println!(
                "{name:<10} {change:<22} {predicted:>7.3} s {measured:>7.3} s   {wall:>7} {p50:>7} {p99:>7}  {right}/{PAIRS}"
            );
        }
    }
    for (kind, errors) in ["waiting", "computing"].into_iter().zip(&by_kind).filter(|(_, errors)| !errors[0].is_empty())
    {
        let [wall, p50, p99] = errors.each_ref().map(|errors| summary(errors));
        println!("{kind}: median / 90 % of the errors in percent: wall {wall}, p50 {p50}, p99 {p99}");
    }
    println!(
        "bottleneck named rightly in {named} of {pairs}; {:.2} M unit-stages replayed a second",
        visits as f64 / spent.as_secs_f64() / 1e6
    );
    if chosen.is_empty() {
        beside_rules(loops);
    }
}
