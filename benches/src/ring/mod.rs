//! Rings compared with their peers: throughput, latency, and the CPU time of waiting.
//!
//! Each ring is compared with peers of its kind. A channel of one sender and one receiver is compared with rings that
//! permit only one of each, and a channel of many senders and many receivers with rings that permit many of each. If a
//! peer leaves the wait strategy to its user, it follows its author's advice for this machine: it spins if each thread
//! has a core, and yields otherwise. The tables show both ways of waiting.
//!
//! A million events or more pass for each figure. The time includes the start and the end of the threads. Consumers add
//! up the values, so every payload is read.

mod cpu;
mod event;
mod fairness;
mod graphs;
mod java;
mod latency;
mod line;
mod ours;
mod pace;
mod peers;
mod pingpong;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use disruptor::BusySpin;
use event::Event;
use peers::Yielding;

use crate::args::Args;
use crate::compare::{Comparison, Competitor, Role, alternate, median};
use crate::error::Error;

const CAPACITY: usize = 1024;

/// The number of events per figure.
const EVENTS: u64 = 6_000_000;
const QUICK_EVENTS: u64 = 12_000;
/// With several producers, this many times as many events pass: the scheduler takes some milliseconds to distribute
/// threads over the cores, and starting and ending 256 threads takes ten.
const MORE_EVENTS: u64 = 4;
const MANY_EVENTS: u64 = 8;
/// The events of the first, short pass, from which the length of the timed pass is estimated.
const PROBE_EVENTS: u64 = 100_000;
/// The longest pass. Some competitors collapse with many producers, and would take minutes for a figure.
const MAX_PASS: Duration = Duration::from_secs(4);

/// The events that pass through a ring. Each producer sends the numbers from 0 up.
#[derive(Debug, Clone, Copy)]
struct Load {
    producers: u64,
    consumers: u64,
    per_producer: u64,
}

impl Load {
    /// Divides the events equally among the producers.
    fn new(producers: u64, consumers: u64, events: u64) -> Self {
        Load { producers, consumers, per_producer: events / producers }
    }

    fn one_to_one(events: u64) -> Self {
        Load::new(1, 1, events)
    }

    fn to_one(producers: u64, events: u64) -> Self {
        Load::new(producers, 1, events)
    }

    fn events(self) -> u64 {
        self.producers * self.per_producer
    }
}

/// Passes a load and returns the sum of the received numbers.
type Pass = fn(load: Load) -> u64;

/// A target: our throughput is at least `times` that of the peer.
struct Wanted {
    ours: &'static str,
    peer: &'static str,
    times: f64,
}

/// Measures everything about rings.
///
/// # Errors
/// Fails when a competitor lost or duplicated an event.
pub fn run(args: &Args) -> Result<(), Error> {
    let events = if args.quick { QUICK_EVENTS } else { EVENTS };
    println!("## ring: u64 events and {CAPACITY} slots, unless a title says otherwise\n");
    for (title, part) in PARTS {
        if title.to_lowercase().contains(&args.part) {
            println!("### {title}\n");
            part(args, events)?;
        }
    }
    Ok(())
}

/// A part of the report.
type Part = fn(&Args, u64) -> Result<(), Error>;

const PARTS: [(&str, Part); 29] = [
    ("SPSC: 1 producer, 1 consumer", spsc),
    ("SPSC in batches", batches),
    ("MPMC: 1 producer, 1 consumer", |args, events| mpmc::<u64, CAPACITY>(args, Load::one_to_one(2 * events))),
    ("MPMC: 3 producers, 1 consumer", |args, events| {
        mpmc::<u64, CAPACITY>(args, Load::to_one(3, MORE_EVENTS * events))
    }),
    ("MPMC: 16 producers, 1 consumer", |args, events| {
        mpmc::<u64, CAPACITY>(args, Load::to_one(16, MORE_EVENTS * events))
    }),
    ("MPMC: 256 producers, 1 consumer", |args, events| {
        mpmc::<u64, CAPACITY>(args, Load::to_one(256, MANY_EVENTS * events))
    }),
    ("MPMC: 1 producer, 3 consumers", |args, events| {
        mpmc::<u64, CAPACITY>(args, Load::new(1, 3, MORE_EVENTS * events))
    }),
    ("MPMC: 4 producers, 4 consumers", |args, events| {
        mpmc::<u64, CAPACITY>(args, Load::new(4, 4, MORE_EVENTS * events))
    }),
    ("MPSC: 3 producers, 1 consumer", mpsc_from_three),
    ("Many producers, 1 consumer", many_to_one),
    ("Capacity 1", |args, events| narrow::<1>(args, events / 20)),
    ("Capacity 4", |args, events| narrow::<4>(args, events / 8)),
    ("Capacity 16", |args, events| narrow::<16>(args, events / 4)),
    ("Capacity 64", |args, events| narrow::<64>(args, events)),
    ("Capacity 65,536", |args, events| narrow::<65_536>(args, events)),
    ("Events of 64 bytes", |args, events| sized::<8>(args, events)),
    ("Events of 256 bytes", |args, events| sized::<32>(args, events / 2)),
    ("Events of 1024 bytes", |args, events| sized::<128>(args, events / 8)),
    ("Round trip, capacity 1", pingpong::run),
    ("Different speeds", pace::run),
    ("Fairness", fairness::run),
    ("On one core", |args, events| on_cores(&[0], args, events)),
    ("Beside two busy threads", beside_busy_threads),
    ("Graph: multicast, 1 producer to 3 consumers", graphs::multicasts),
    ("Graph: pipeline of 3 consumers", graphs::pipelines),
    ("Graph: diamond, 2 consumers, then 1", graphs::diamonds),
    ("Java: the LMAX Disruptor", java::run),
    ("Wake-up of a blocked consumer", latency::run),
    ("CPU time of waiting", cpu::run),
];

fn spsc(args: &Args, events: u64) -> Result<(), Error> {
    let competitors: [(&str, Role, Pass); 7] = [
        ("spsc, spinning", Role::Ours, ours::spsc_spinning::<u64, CAPACITY>),
        ("spsc", Role::Ours, ours::spsc::<u64, CAPACITY>),
        ("rtrb, spinning", Role::Peer, peers::rtrb_spinning::<u64, CAPACITY>),
        ("rtrb, yielding", Role::Peer, peers::rtrb_yielding::<u64, CAPACITY>),
        ("disruptor, spinning", Role::Peer, peers::disruptor_single::<BusySpin>),
        ("disruptor, yielding", Role::Peer, peers::disruptor_single::<Yielding>),
        ("crossbeam-channel", Role::Peer, peers::crossbeam::<u64, CAPACITY>),
    ];
    let wanted = [
        Wanted { ours: "spsc, spinning", peer: "rtrb, spinning", times: 1.0 },
        Wanted { ours: "spsc", peer: "rtrb, yielding", times: 1.0 },
        Wanted { ours: "spsc", peer: "crossbeam-channel", times: 3.0 },
    ];
    table(Load::one_to_one(2 * events), &competitors, &wanted, args.rounds)
}

fn batches(args: &Args, events: u64) -> Result<(), Error> {
    const SPINNING: &str = "disruptor, batches of 64, spinning";
    const YIELDING: &str = "disruptor, batches of 64, its consumer yielding";
    let competitors: [(&str, Role, Pass); 6] = [
        ("spsc, vectors of 64, spinning", Role::Ours, ours::spsc_batches_spinning),
        ("graph, batches of 64, spinning", Role::Ours, ours::graph_batches_spinning),
        ("spsc, vectors of 64", Role::Ours, ours::spsc_batches),
        ("graph, batches of 64", Role::Ours, ours::graph_batches),
        (SPINNING, Role::Peer, peers::disruptor_batches::<BusySpin>),
        (YIELDING, Role::Peer, peers::disruptor_batches::<Yielding>),
    ];
    let wanted = [(0, SPINNING), (1, SPINNING), (2, YIELDING), (3, YIELDING)];
    let wanted = wanted.map(|(place, peer)| Wanted { ours: competitors[place].0, peer, times: 1.0 });
    table(Load::one_to_one(5 * events), &competitors, &wanted, args.rounds)
}

/// Our `mpmc` channel, compared with other channels of many senders and many receivers.
fn mpmc<E: Event, const CAPACITY: usize>(args: &Args, load: Load) -> Result<(), Error> {
    let competitors: [(&str, Role, Pass); 5] = [
        ("mpmc", Role::Ours, ours::mpmc::<E, CAPACITY>),
        ("ArrayQueue, yielding", Role::Peer, peers::array_queue::<E, CAPACITY>),
        ("crossbeam-channel", Role::Peer, peers::crossbeam::<E, CAPACITY>),
        ("kanal", Role::Peer, peers::kanal::<E, CAPACITY>),
        ("flume", Role::Peer, peers::flume::<E, CAPACITY>),
    ];
    let wanted = ["ArrayQueue, yielding", "crossbeam-channel", "kanal"];
    let wanted = wanted.map(|peer| Wanted { ours: "mpmc", peer, times: 1.0 });
    table(load, &competitors, &wanted, args.rounds)
}

fn mpsc_from_three(args: &Args, events: u64) -> Result<(), Error> {
    let competitors: [(&str, Role, Pass); 4] = [
        ("mpsc", Role::Ours, ours::mpsc::<u64, CAPACITY>),
        ("std sync_channel", Role::Peer, peers::std_channel::<u64, CAPACITY>),
        ("disruptor, yielding", Role::Peer, peers::disruptor_multi::<Yielding>),
        ("disruptor, spinning", Role::Peer, peers::disruptor_multi::<BusySpin>),
    ];
    let wanted = [
        Wanted { ours: "mpsc", peer: "std sync_channel", times: 1.0 },
        Wanted { ours: "mpsc", peer: "disruptor, yielding", times: 1.0 },
    ];
    table(Load::to_one(3, MORE_EVENTS * events), &competitors, &wanted, args.rounds)?;
    in_a_row(if args.quick { 2 } else { 20 }, MORE_EVENTS * events)
}

/// Measures rings of other capacities. In small rings, the two sides wait for each other all the time.
fn narrow<const CAPACITY: usize>(args: &Args, events: u64) -> Result<(), Error> {
    one_to_one::<u64, CAPACITY>(args, events)?;
    mpmc::<u64, CAPACITY>(args, Load::to_one(3, events))?;
    mpmc::<u64, CAPACITY>(args, Load::new(4, 4, events))
}

/// Measures events that fill a cache line or more.
fn sized<const WORDS: usize>(args: &Args, events: u64) -> Result<(), Error> {
    one_to_one::<[u64; WORDS], CAPACITY>(args, events)?;
    mpmc::<[u64; WORDS], CAPACITY>(args, Load::to_one(3, events))
}

/// Runs on these cores alone.
fn on_cores(cores: &[usize], args: &Args, events: u64) -> Result<(), Error> {
    let allowed = rustix::thread::sched_getaffinity(None).map_err(|error| Error::new(error.to_string()))?;
    let mut few = rustix::thread::CpuSet::new();
    cores.iter().for_each(|&core| few.set(core));
    let set = |cores| rustix::thread::sched_setaffinity(None, cores).map_err(|error| Error::new(error.to_string()));
    set(&few)?;
    let measured = shared(args, events, events / 4);
    set(&allowed)?;
    measured
}

/// Runs while other threads want the cores.
fn beside_busy_threads(args: &Args, events: u64) -> Result<(), Error> {
    let ended = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // In each time slice of the busy threads (some milliseconds), a peer that yields may pass only as many events
        // as the ring has slots.
        let measured = shared(args, events / 8, events / 256);
        ended.store(true, Ordering::Relaxed);
        measured
    })
}

/// Measures rings whose threads share cores with other threads. Only `few` events pass through small rings.
fn shared(args: &Args, events: u64, few: u64) -> Result<(), Error> {
    let competitors: [(&str, Role, Pass); 4] = [
        ("spsc", Role::Ours, ours::spsc::<u64, CAPACITY>),
        ("rtrb, yielding", Role::Peer, peers::rtrb_yielding::<u64, CAPACITY>),
        ("crossbeam-channel", Role::Peer, peers::crossbeam::<u64, CAPACITY>),
        ("disruptor, yielding", Role::Peer, peers::disruptor_single::<Yielding>),
    ];
    table(Load::one_to_one(events), &competitors, &[], args.rounds)?;
    mpmc::<u64, CAPACITY>(args, Load::to_one(3, events))?;
    mpmc::<u64, 16>(args, Load::new(4, 4, few))
}

/// Keeps the core busy for this time.
fn work(time: Duration) {
    if time > Duration::ZERO {
        let began = Instant::now();
        while began.elapsed() < time {}
    }
}

/// The figure at a percentile.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

fn one_to_one<E: Event, const CAPACITY: usize>(args: &Args, events: u64) -> Result<(), Error> {
    let competitors: [(&str, Role, Pass); 4] = [
        ("spsc, spinning", Role::Ours, ours::spsc_spinning::<E, CAPACITY>),
        ("spsc", Role::Ours, ours::spsc::<E, CAPACITY>),
        ("rtrb, spinning", Role::Peer, peers::rtrb_spinning::<E, CAPACITY>),
        ("rtrb, yielding", Role::Peer, peers::rtrb_yielding::<E, CAPACITY>),
    ];
    let wanted = [
        Wanted { ours: "spsc, spinning", peer: "rtrb, spinning", times: 1.0 },
        Wanted { ours: "spsc", peer: "rtrb, yielding", times: 1.0 },
    ];
    table(Load::one_to_one(events), &competitors, &wanted, args.rounds)
}

/// Prints the slowest run and the median: first over all runs, and then over the runs for which the distance between
/// the cores was about as usual, both before and after.
fn in_a_row(count: usize, events: u64) -> Result<(), Error> {
    let mut trips = vec![line::round_trip()];
    let mut speeds = Vec::new();
    for _ in 0..count {
        speeds.push(1e3 / timed_whole(Load::to_one(3, events), ours::mpsc::<u64, CAPACITY>)?);
        trips.push(line::round_trip());
    }
    let verdict = |speeds: &[f64]| {
        let (worst, median) = (speeds.iter().copied().fold(f64::INFINITY, f64::min), median(speeds));
        format!("worst {worst:.1}, median {median:.1} M events/s: {:.2}", worst / median)
    };
    println!("{count} runs of mpsc in a row: {} (target: at least 0.70)", verdict(&speeds));
    if let Some(trips) = trips.into_iter().collect::<Option<Vec<f64>>>() {
        let least = trips.iter().copied().fold(f64::INFINITY, f64::min);
        let most = trips.iter().copied().fold(0.0, f64::max);
        let usual = median(&trips);
        let is_usual = |trips: &[f64]| trips.iter().all(|trip| (usual / 2.0..usual * 2.0).contains(trip));
        let alike: Vec<f64> =
            speeds.iter().zip(trips.windows(2)).filter(|(_, t)| is_usual(t)).map(|(s, _)| *s).collect();
        println!("a cache line's round trip to the other core took {least:.0} to {most:.0} ns before and after them");
        if !alike.is_empty() {
            println!(
                "the {} runs with half to twice the median round trip, {usual:.0} ns: {}",
                alike.len(),
                verdict(&alike)
            );
        }
    }
    println!();
    Ok(())
}

fn many_to_one(args: &Args, events: u64) -> Result<(), Error> {
    let counts = [3, 16, 64, 256];
    let mut rounds: Vec<Vec<(f64, f64, f64)>> = vec![Vec::new(); counts.len()];
    let measured = |producers, sent| -> Result<(f64, f64), Error> {
        let before = cpu::process_time();
        let wall = timed_whole(Load::to_one(producers, sent), ours::mpsc::<u64, CAPACITY>)?;
        Ok((wall, (cpu::process_time() - before).as_nanos() as f64 / (MANY_EVENTS * events) as f64))
    };
    for _ in 0..args.rounds {
        for (&producers, figures) in counts.iter().zip(&mut rounds) {
            let (wall, cpu) = measured(producers, MANY_EVENTS * events)?;
            // The same threads, each of which sends only one event: the cost of the threads alone.
            let (_, threads) = measured(producers, producers)?;
            figures.push((wall, cpu, threads));
        }
    }
    let rows = counts.iter().zip(&rounds).map(|(producers, figures)| {
        let speed: Vec<f64> = figures.iter().map(|(wall, ..)| 1e3 / wall).collect();
        let ratios: Vec<f64> = figures.iter().zip(&rounds[0]).map(|(own, three)| three.0 / own.0).collect();
        let cpu: Vec<f64> = figures.iter().map(|(_, cpu, _)| *cpu).collect();
        let threads: Vec<f64> = figures.iter().map(|(.., threads)| *threads).collect();
        let low = speed.iter().copied().fold(f64::INFINITY, f64::min);
        let high = speed.iter().copied().fold(0.0, f64::max);
        [
            format!("{producers} producers"),
            format!("{:.1}", median(&speed)),
            format!("{low:.1}"),
            format!("{high:.1}"),
            format!("{:.2}", median(&ratios)),
            format!("{:.1}", median(&cpu)),
            format!("{:.2}", median(&threads)),
        ]
    });
    let header = [
        "",
        "median, M events/s",
        "min",
        "max",
        "to 3 producers",
        "CPU, ns per event",
        "of which to start and end threads",
    ];
    println!(
        "{}\n\ntarget: at least 0.70 of the figure for 3 producers, no growth of the CPU time per event\n",
        crate::table::render(header, rows)
    );
    Ok(())
}

/// Runs the competitors in turn and prints the table, with the target ratios.
fn table(load: Load, competitors: &[(&str, Role, Pass)], wanted: &[Wanted], rounds: u32) -> Result<(), Error> {
    let competitors =
        competitors.iter().map(|&(name, role, pass)| Competitor::new(name, role, move || timed(load, pass))).collect();
    let comparison = alternate("ns per event", 1, rounds, competitors)?;
    println!("{}\n", comparison.render());
    for wanted in wanted {
        println!("{}", wanted.verdict(&comparison));
    }
    println!();
    Ok(())
}

/// Nanoseconds per event of one pass. A competitor that would take longer than [`MAX_PASS`] passes fewer events.
fn timed(load: Load, pass: Pass) -> Result<f64, Error> {
    let few = Load { per_producer: load.per_producer.min((PROBE_EVENTS / load.producers).max(1)), ..load };
    let probed = timed_whole(few, pass)?;
    let most = (MAX_PASS.as_nanos() as f64 / probed) as u64 / load.producers;
    timed_whole(Load { per_producer: load.per_producer.min(most.max(few.per_producer)), ..load }, pass)
}

fn timed_whole(load: Load, pass: Pass) -> Result<f64, Error> {
    let began = Instant::now();
    let sum = pass(load);
    let nanoseconds = began.elapsed().as_nanos() as f64;
    let expected = load.events() * load.per_producer.saturating_sub(1) / 2;
    if sum == expected {
        Ok(nanoseconds / load.events() as f64)
    } else {
        Err(Error::new(format!("the numbers sent add up to {expected}, those received to {sum}")))
    }
}

impl Wanted {
    /// The ratio of throughputs over all rounds, with its target.
    fn verdict(&self, comparison: &Comparison) -> String {
        let rounds =
            |name| &comparison.figures.iter().find(|figures| figures.name == name).expect("a competitor").rounds;
        let ratios: Vec<f64> = rounds(self.peer).iter().zip(rounds(self.ours)).map(|(peer, own)| peer / own).collect();
        let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ratios.iter().copied().fold(0.0, f64::max);
        let Wanted { ours, peer, times } = self;
        format!(
            "throughput of {ours} / {peer}: {:.2}, {low:.2} to {high:.2} (target: at least {times:.2})",
            median(&ratios)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_competitor_delivers_every_event() {
        let passes: [(&str, Pass, u64); 28] = [
            ("spsc spinning", ours::spsc_spinning::<u64, 1024>, 1),
            ("spsc", ours::spsc::<u64, 1024>, 1),
            ("spsc, narrow", ours::spsc::<u64, 4>, 1),
            ("spsc, large", ours::spsc::<[u64; 32], 1024>, 1),
            ("spsc batches", ours::spsc_batches, 1),
            ("graph batches", ours::graph_batches, 1),
            ("spsc batches spinning", ours::spsc_batches_spinning, 1),
            ("graph batches spinning", ours::graph_batches_spinning, 1),
            ("mpsc", ours::mpsc::<u64, 1024>, 3),
            ("mpmc", ours::mpmc::<u64, 1024>, 3),
            ("mpmc, narrow", ours::mpmc::<u64, 4>, 3),
            ("rtrb spinning", peers::rtrb_spinning::<u64, 1024>, 1),
            ("rtrb yielding", peers::rtrb_yielding::<[u64; 8], 1024>, 1),
            ("disruptor single", peers::disruptor_single::<BusySpin>, 1),
            ("disruptor single yielding", peers::disruptor_single::<Yielding>, 1),
            ("disruptor batches", peers::disruptor_batches::<Yielding>, 1),
            ("disruptor multi", peers::disruptor_multi::<BusySpin>, 3),
            ("disruptor multi yielding", peers::disruptor_multi::<Yielding>, 3),
            ("array queue", peers::array_queue::<u64, 16>, 3),
            ("crossbeam", peers::crossbeam::<u64, 1024>, 3),
            ("kanal", peers::kanal::<u64, 1024>, 3),
            ("std", peers::std_channel::<u64, 1024>, 3),
            ("flume", peers::flume::<u64, 1024>, 3),
            ("mpsc, many", ours::mpsc::<u64, 1024>, 64),
            ("mpmc, several consumers", ours::mpmc::<u64, 16>, 4),
            ("array queue, several consumers", peers::array_queue::<u64, 16>, 4),
            ("crossbeam, several consumers", peers::crossbeam::<u64, 16>, 4),
            ("kanal, several consumers", peers::kanal::<u64, 16>, 4),
        ];
        for (name, pass, producers) in passes {
            for per_producer in [1, 64, 1000] {
                let consumers = if name.ends_with("several consumers") { 4 } else { 1 };
                let sum = pass(Load { producers, consumers, per_producer });
                assert_eq!(sum, producers * (per_producer * (per_producer - 1) / 2), "{name}");
            }
        }
    }

    #[test]
    fn the_verdict_compares_throughput_round_by_round() {
        let figures = |name: &str, rounds: &[f64]| crate::compare::Figures {
            name: name.into(),
            role: Role::Peer,
            rounds: rounds.into(),
        };
        let comparison =
            Comparison { unit: "ns", figures: vec![figures("a", &[1.0, 2.0, 1.0]), figures("b", &[2.0, 4.0, 3.0])] };
        let text = Wanted { ours: "a", peer: "b", times: 1.5 }.verdict(&comparison);
        assert_eq!(text, "throughput of a / b: 2.00, 2.00 to 3.00 (target: at least 1.50)");
    }
}
