//! Round trips: a value to another thread and its answer, one at a time.

use std::cell::RefCell;
use std::thread;
use std::time::Instant;

use millstream_ring::sequencer::Sequencer;
use millstream_ring::{Options, WaitStrategy, channel};

use super::percentile;
use crate::args::Args;
use crate::compare::{Comparison, Figures, Role};
use crate::error::Error;

/// Sends `questions` values, and returns the time until each answer in nanoseconds.
type Game = fn(questions: u64) -> Vec<f64>;

const COMPETITORS: [(&str, Role, Game); 9] = [
    ("spsc", Role::Ours, spsc),
    ("spsc, spinning", Role::Ours, spsc_spinning),
    ("mpmc", Role::Ours, mpmc),
    ("rtrb, spinning", Role::Peer, |questions| rtrb(questions, std::hint::spin_loop)),
    ("rtrb, yielding", Role::Peer, |questions| rtrb(questions, thread::yield_now)),
    ("crossbeam-channel", Role::Peer, crossbeam),
    ("kanal", Role::Peer, kanal),
    ("std sync_channel", Role::Peer, std_channel),
    ("flume", Role::Peer, flume),
];

/// Measures the median and the 99th percentile of round trips.
pub(super) fn run(args: &Args, events: u64) -> Result<(), Error> {
    let figures = || COMPETITORS.map(|(name, role, _)| Figures { name: name.into(), role, rounds: Vec::new() });
    let (mut medians, mut tails) = (figures(), figures());
    for round in 0..=args.rounds {
        for (place, (_, _, game)) in COMPETITORS.iter().enumerate() {
            let mut took = game(events / 60);
            took.sort_by(f64::total_cmp);
            // The first round warms up.
            if round > 0 {
                medians[place].rounds.push(percentile(&took, 50));
                tails[place].rounds.push(percentile(&took, 99));
            }
        }
    }
    for (unit, figures) in [("p50, ns per round trip", medians), ("p99, ns per round trip", tails)] {
        println!("{}\n", Comparison { unit, figures: figures.into() }.render());
    }
    Ok(())
}

/// Sends each number, waits for its answer, and measures the time between.
fn played(questions: u64, send: impl Fn(u64), recv: impl Fn() -> u64, answer: impl FnOnce() + Send) -> Vec<f64> {
    thread::scope(|scope| {
        scope.spawn(answer);
        let mut before = Instant::now();
        let asked = |n| {
            send(n);
            assert_eq!(recv(), n, "the answer to another question");
            let now = Instant::now();
            (now - std::mem::replace(&mut before, now)).as_nanos() as f64
        };
        (0..questions).map(asked).collect()
    })
}

type Ends<P, C> = (channel::Sender<u64, P, C>, channel::Receiver<u64, P, C>);

fn ours<P: Sequencer, C: Sequencer>([there, back]: [Ends<P, C>; 2], events: u64) -> Vec<f64>
where
    channel::Sender<u64, P, C>: Send,
    channel::Receiver<u64, P, C>: Send,
{
    let ((sender, asked), (answers, receiver)) = (there, back);
    let answer = move || {
        (0..events).for_each(|_| answers.send(asked.recv().expect("a question comes")).expect("the asker listens"));
    };
    played(
        events,
        move |n| sender.send(n).expect("the peer listens"),
        move || receiver.recv().expect("an answer comes"),
        answer,
    )
}

fn spsc(events: u64) -> Vec<f64> {
    ours([(); 2].map(|()| channel::spsc(1)), events)
}

fn spsc_spinning(events: u64) -> Vec<f64> {
    ours([(); 2].map(|()| channel::spsc(Options::new(1).wait_strategy(WaitStrategy::Spin))), events)
}

fn mpmc(events: u64) -> Vec<f64> {
    ours([(); 2].map(|()| channel::mpmc(1)), events)
}

fn rtrb(events: u64, pause: fn()) -> Vec<f64> {
    fn until<T>(pause: fn(), mut attempt: impl FnMut() -> Option<T>) -> T {
        loop {
            match attempt() {
                Some(done) => return done,
                None => pause(),
            }
        }
    }
    let [(sender, mut asked), (mut answers, receiver)] = [(); 2].map(|()| rtrb::RingBuffer::<u64>::new(1));
    let (sender, receiver) = (RefCell::new(sender), RefCell::new(receiver));
    let answer = move || {
        for _ in 0..events {
            let n = until(pause, || asked.pop().ok());
            until(pause, || answers.push(n).ok());
        }
    };
    played(
        events,
        |n| until(pause, || sender.borrow_mut().push(n).ok()),
        || until(pause, || receiver.borrow_mut().pop().ok()),
        answer,
    )
}

macro_rules! channels {
    ($name:ident, $make:path) => {
        fn $name(events: u64) -> Vec<f64> {
            let [(sender, asked), (answers, receiver)] = [(); 2].map(|()| $make(1));
            let answer = move || {
                (0..events)
                    .for_each(|_| answers.send(asked.recv().expect("a question comes")).expect("the asker listens"));
            };
            played(
                events,
                |n| sender.send(n).expect("the peer listens"),
                || receiver.recv().expect("an answer comes"),
                answer,
            )
        }
    };
}

channels!(crossbeam, crossbeam_channel::bounded);
channels!(kanal, kanal::bounded);
channels!(std_channel, std::sync::mpsc::sync_channel);
channels!(flume, flume::bounded);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_gets_its_answer() {
        for (name, _, game) in COMPETITORS {
            if !name.ends_with("spinning") {
                assert_eq!(game(100).len(), 100, "{name}");
            }
        }
    }
}
