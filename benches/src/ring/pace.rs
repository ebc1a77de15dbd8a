//! Consumers that are slower or faster than their producer, and events that come in bursts.

use std::cell::RefCell;
use std::thread;
use std::time::{Duration, Instant};

use millstream_ring::channel;

use super::cpu::process_time;
use super::work;
use crate::args::Args;
use crate::compare::{Comparison, Figures, Role};
use crate::error::Error;

const PLACES: usize = 256;

/// The work of the sides between events.
#[derive(Clone, Copy)]
struct Pace {
    events: u64,
    /// The number of events of a burst.
    burst: u64,
    /// The producer's work before a burst.
    before: Duration,
    /// The consumer's work on an event.
    on_each: Duration,
}

type Race = fn(pace: Pace) -> u64;

const COMPETITORS: [(&str, Role, Race); 6] = [
    ("spsc", Role::Ours, |pace| race(pace, channel::spsc(PLACES), |s, n| s.send(n).is_ok(), |r| r.recv().ok())),
    ("mpmc", Role::Ours, |pace| race(pace, channel::mpmc(PLACES), |s, n| s.send(n).is_ok(), |r| r.recv().ok())),
    ("rtrb, yielding", Role::Peer, rtrb),
    ("crossbeam-channel", Role::Peer, |pace| {
        race(pace, crossbeam_channel::bounded(PLACES), |s, n| s.send(n).is_ok(), |r| r.recv().ok())
    }),
    ("kanal", Role::Peer, |pace| race(pace, kanal::bounded(PLACES), |s, n| s.send(n).is_ok(), |r| r.recv().ok())),
    ("flume", Role::Peer, |pace| race(pace, flume::bounded(PLACES), |s, n| s.send(n).is_ok(), |r| r.recv().ok())),
];

/// Measures the wall time and the CPU time of an event.
pub(super) fn run(args: &Args, events: u64) -> Result<(), Error> {
    let ns = Duration::from_nanos;
    let paces = [
        ("a consumer ten times slower", 1, ns(0), ns(1000), 40),
        ("a consumer ten times faster", 1, ns(1000), ns(0), 40),
        ("bursts of 100, 100 µs apart", 100, ns(100_000), ns(0), 40),
        ("bursts of 100, 1 ms apart", 100, ns(1_000_000), ns(100), 200),
    ];
    for (title, burst, before, on_each, fewer) in paces {
        println!("{title}:\n");
        let pace = Pace { events: (events / fewer).max(1), burst, before, on_each };
        let figures = || COMPETITORS.map(|(name, role, _)| Figures { name: name.into(), role, rounds: Vec::new() });
        let [mut wall, mut cpu] = [figures(), figures()];
        for _ in 0..args.rounds {
            for (place, (name, _, race)) in COMPETITORS.iter().enumerate() {
                let (began, cpu_before) = (Instant::now(), process_time());
                if race(pace) != pace.events * (pace.events - 1) / 2 {
                    return Err(Error::new(format!("{name}: an event was lost or came twice")));
                }
                let per_event = |time: Duration| time.as_nanos() as f64 / pace.events as f64;
                wall[place].rounds.push(per_event(began.elapsed()));
                cpu[place].rounds.push(per_event(process_time() - cpu_before));
            }
        }
        for (unit, figures) in [("ns per event", wall), ("ns of CPU time per event", cpu)] {
            println!("{}\n", Comparison { unit, figures: figures.into() }.render());
        }
    }
    Ok(())
}

fn race<S: Send, R: Send>(
    pace: Pace,
    (sender, receiver): (S, R),
    send: fn(&S, u64) -> bool,
    recv: fn(&R) -> Option<u64>,
) -> u64 {
    thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..pace.events {
                if n % pace.burst == 0 {
                    work(pace.before);
                }
                assert!(send(&sender, n), "the receiver outlives the sends");
            }
        });
        let consumer = scope.spawn(move || {
            let mut sum = 0;
            while let Some(n) = recv(&receiver) {
                work(pace.on_each);
                sum += n;
            }
            sum
        });
        consumer.join().expect("the consumer does not panic")
    })
}

fn rtrb(pace: Pace) -> u64 {
    let (sender, receiver) = rtrb::RingBuffer::new(PLACES);
    let send = |sender: &RefCell<rtrb::Producer<u64>>, n| {
        while sender.borrow_mut().push(n).is_err() {
            thread::yield_now();
        }
        true
    };
    let recv = |receiver: &RefCell<rtrb::Consumer<u64>>| {
        loop {
            let popped = receiver.borrow_mut().pop();
            match popped {
                Ok(n) => return Some(n),
                // Events may have come before the producer left. So after it has left, the ring is checked once more.
                Err(_) if receiver.borrow().is_abandoned() => return receiver.borrow_mut().pop().ok(),
                Err(_) => thread::yield_now(),
            }
        }
    };
    race(pace, (RefCell::new(sender), RefCell::new(receiver)), send, recv)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_arrives_at_any_pace() {
        let pace = Pace { events: 500, burst: 7, before: Duration::from_micros(3), on_each: Duration::from_nanos(100) };
        for (name, _, race) in COMPETITORS {
            assert_eq!(race(pace), 499 * 500 / 2, "{name}");
        }
    }
}
