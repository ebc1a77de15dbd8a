//! Four stages that do nothing: the cost of queues and scheduling alone.
//!
//! `n` numbers go through four no-op stages; the figure is the total time divided by `n`. In the first table, every
//! competitor's source runs on the calling thread. In the second, many threads send. In the third, the flow is recorded
//! for a replay: all of its units, or a sample if there are more than a million.
//!
//! The competitors do not all provide the same features for that time. With a thread per stage, and with the flow,
//! every stage has its own limits, queue and number of threads, and the waiting units of each stage are visible.
//! Workers that call the four functions in a row have a single queue. Programs are written in this way as long as no
//! stage needs a resource, so the difference between these workers and the flow is the price of stages.

pub mod ours;
pub mod peers;

use std::ops::Range;
use std::time::Instant;

use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;

/// How many numbers go through the stages.
const UNITS: u64 = 2_000_000;
const QUICK_UNITS: u64 = 20_000;

/// Sends `n` numbers through four stages and returns how many came out.
type Pass = fn(n: u64) -> Result<u64, Error>;

const COMPETITORS: [(&str, Role, Pass); 7] = [
    ("millstream, batch 64", Role::Ours, ours::flow),
    ("crossbeam, a thread per stage", Role::Peer, peers::crossbeam_threads),
    ("crossbeam, a thread per stage, 64 a message", Role::Peer, peers::crossbeam_batches),
    ("crossbeam, workers call all four", Role::Peer, peers::crossbeam_workers),
    ("crossbeam, workers call all four, 64 a message", Role::Peer, peers::crossbeam_worker_batches),
    ("tokio mpsc, a task per stage", Role::Peer, peers::tokio_mpsc),
    ("rayon task, no queues", Role::Reference, peers::rayon_tasks),
];

/// How many numbers go through a recorded flow. The trace of the smaller run has all units, and that of the larger run
/// a sample.
const RECORDED_UNITS: [u64; 2] = [900_000, 10_000_000];

const RECORDED: [(&str, Role, Pass); 2] =
    [("millstream, recorded", Role::Ours, ours::recorded), ("millstream", Role::Reference, ours::flow)];

/// Numbers of sending threads.
const SENDERS: [u64; 5] = [1, 3, 16, 64, 256];

/// Sends `n` numbers from `senders` threads.
type SentPass = fn(n: u64, senders: u64) -> Result<u64, Error>;

const SENT: [(&str, Role, SentPass); 3] = [
    ("millstream", Role::Ours, ours::sent),
    ("crossbeam, a thread per stage", Role::Peer, peers::crossbeam_sent),
    ("crossbeam, workers call all four", Role::Peer, peers::crossbeam_workers_sent),
];

/// Splits `n` numbers into one range per sender.
fn shares(n: u64, senders: u64) -> impl Iterator<Item = Range<u64>> {
    (0..senders).map(move |i| n * i / senders..n * (i + 1) / senders)
}

/// The code of a stage: it does nothing, but the compiler cannot see that.
#[inline(always)]
pub fn nothing(number: u64) -> u64 {
    std::hint::black_box(number)
}

/// Runs all competitors in turn and prints nanoseconds per unit.
///
/// # Errors
/// Fails when a competitor lost numbers.
pub fn run(args: &Args) -> Result<(), Error> {
    let n = if args.quick { QUICK_UNITS } else { UNITS };
    println!("## noop: four stages that do nothing, {n} units\n");
    let competitors = COMPETITORS.map(|(name, role, pass)| per_unit(name.to_owned(), role, n, pass));
    let comparison = alternate("ns per unit", 1, args.rounds, competitors.into())?;
    println!("{}\n", comparison.render());
    println!("## noop: the same stages, many threads send\n");
    for senders in SENDERS {
        let of = |name: &str| format!("{name}, {senders} sending");
        let competitors = SENT.map(|(name, role, pass)| per_unit(of(name), role, n, move |n| pass(n, senders)));
        let comparison = alternate("ns per unit", 1, args.rounds, competitors.into())?;
        println!("{}\n", comparison.render());
    }
    println!("## noop: the same stages, recorded for a replay\n");
    for n in RECORDED_UNITS.map(|units| if args.quick { units / 100 } else { units }) {
        let of = |name: &str| format!("{name}, {n} units");
        let competitors = RECORDED.map(|(name, role, pass)| per_unit(of(name), role, n, pass));
        let comparison = alternate("ns per unit", 1, args.rounds, competitors.into())?;
        println!("{}\n", comparison.render());
    }
    Ok(())
}

fn per_unit<'a>(name: String, role: Role, n: u64, pass: impl Fn(u64) -> Result<u64, Error> + 'a) -> Competitor<'a> {
    Competitor::new(name, role, move || {
        let began = Instant::now();
        let out = pass(n)?;
        let nanoseconds = began.elapsed().as_nanos() as f64;
        if out == n {
            Ok(nanoseconds / n as f64)
        } else {
            Err(Error::new(format!("{n} units went in, {out} came out")))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_competitor_delivers_every_unit() {
        for n in [0, 1, 63, 64, 65, 5000] {
            for (name, _, pass) in COMPETITORS {
                assert_eq!(pass(n).unwrap(), n, "{name}");
            }
            assert_eq!(ours::recorded(n).unwrap(), n);
            for (name, _, pass) in SENT {
                assert_eq!(pass(n, 7).unwrap(), n, "{name}, sent");
            }
        }
    }
}
