//! How long a sender among many waits for a slot, and how evenly the slots are shared.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use millstream_ring::channel;

use super::work;
use crate::args::Args;
use crate::compare::{Comparison, Figures, Role};
use crate::error::Error;

const SENDERS: usize = 100;
const PLACES: usize = 16;

/// For each sender, the number of its sends and the time of the longest.
type Met = Vec<(u64, Duration)>;

/// Runs senders for some time, with a receiver that works on each event.
type Rush = fn(lasts: Duration, work: Duration) -> Met;

const COMPETITORS: [(&str, Role, Rush); 6] = [
    ("mpsc", Role::Ours, |lasts, work| {
        rush(channel::mpsc(PLACES), lasts, work, |s, n| s.send(n).is_ok(), |r| r.recv().ok())
    }),
    ("mpmc", Role::Ours, |lasts, work| {
        rush(channel::mpmc(PLACES), lasts, work, |s, n| s.send(n).is_ok(), |r| r.recv().ok())
    }),
    ("crossbeam-channel", Role::Peer, |lasts, work| {
        rush(crossbeam_channel::bounded(PLACES), lasts, work, |s, n| s.send(n).is_ok(), |r| r.recv().ok())
    }),
    ("kanal", Role::Peer, |lasts, work| {
        rush(kanal::bounded(PLACES), lasts, work, |s, n| s.send(n).is_ok(), |r| r.recv().ok())
    }),
    ("std sync_channel", Role::Peer, |lasts, work| {
        rush(std::sync::mpsc::sync_channel(PLACES), lasts, work, |s, n| s.send(n).is_ok(), |r| r.recv().ok())
    }),
    ("flume", Role::Peer, |lasts, work| {
        rush(flume::bounded(PLACES), lasts, work, |s, n| s.send(n).is_ok(), |r| r.recv().ok())
    }),
];

/// Measures the longest send, and the sends of the least served sender divided by those of the most served.
pub(super) fn run(args: &Args, _: u64) -> Result<(), Error> {
    let lasts = if args.quick { Duration::from_millis(50) } else { Duration::from_secs(3) };
    for work in [Duration::from_micros(50), Duration::from_micros(300)] {
        println!("{SENDERS} senders, {PLACES} places, a receiver that works on each event for {work:?}:\n");
        let figures = || COMPETITORS.map(|(name, role, _)| Figures { name: name.into(), role, rounds: Vec::new() });
        let [mut longest, mut shares] = [figures(), figures()];
        for _ in 0..args.rounds {
            for (place, (_, _, rush)) in COMPETITORS.iter().enumerate() {
                let met = rush(lasts, work);
                let wait = met.iter().map(|(_, longest)| *longest).max().unwrap_or_default();
                let least = met.iter().map(|(sends, _)| *sends).min().unwrap_or_default();
                let most = met.iter().map(|(sends, _)| *sends).max().unwrap_or_default();
                longest[place].rounds.push(wait.as_secs_f64() * 1e3);
                shares[place].rounds.push(most as f64 / least.max(1) as f64);
            }
        }
        for (unit, figures) in [("longest send, ms", longest), ("most over least served", shares)] {
            println!("{}\n", Comparison { unit, figures: figures.into() }.render());
        }
    }
    Ok(())
}

fn rush<S: Clone + Send, R: Send>(
    (sender, receiver): (S, R),
    lasts: Duration,
    work_each: Duration,
    send: fn(&S, u64) -> bool,
    recv: fn(&R) -> Option<u64>,
) -> Met {
    let ended = &AtomicBool::new(false);
    thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| {
                let sender = sender.clone();
                scope.spawn(move || {
                    let (mut sends, mut longest) = (0, Duration::ZERO);
                    while !ended.load(Ordering::Relaxed) {
                        let began = Instant::now();
                        if !send(&sender, sends) {
                            break;
                        }
                        longest = longest.max(began.elapsed());
                        sends += 1;
                    }
                    (sends, longest)
                })
            })
            .collect();
        drop(sender);
        scope.spawn(move || {
            while recv(&receiver).is_some() {
                work(work_each);
            }
        });
        thread::sleep(lasts);
        ended.store(true, Ordering::Relaxed);
        senders.into_iter().map(|sender| sender.join().expect("the sender does not panic")).collect()
    })
}
