//! Round trips: a value to another thread and its answer, one at a time.

use std::thread;

use millstream_ring::sequencer::Sequencer;
use millstream_ring::{Options, WaitStrategy, channel};

use super::{Pass, Wanted, table};
use crate::args::Args;
use crate::compare::Role;
use crate::error::Error;

/// Measures round trips; as in the other tables, the numbers are added up.
pub(super) fn run(args: &Args, events: u64) -> Result<(), Error> {
    let competitors: [(&str, Role, Pass); 9] = [
        ("spsc", Role::Ours, spsc),
        ("spsc, spinning", Role::Ours, spsc_spinning),
        ("mpmc", Role::Ours, mpmc),
        ("rtrb, spinning", Role::Peer, |_, events| rtrb(events, std::hint::spin_loop)),
        ("rtrb, yielding", Role::Peer, |_, events| rtrb(events, thread::yield_now)),
        ("crossbeam-channel", Role::Peer, crossbeam),
        ("kanal", Role::Peer, kanal),
        ("std sync_channel", Role::Peer, std_channel),
        ("flume", Role::Peer, flume),
    ];
    let wanted = [
        Wanted { ours: "spsc, spinning", peer: "rtrb, spinning", times: 1.0 },
        Wanted { ours: "mpmc", peer: "crossbeam-channel", times: 1.0 },
    ];
    table(1, events / 60, &competitors, &wanted, args.rounds)
}

/// Sends each number, waits for its answer, and adds up the answers.
fn played(events: u64, send: impl Fn(u64), recv: impl Fn() -> u64, answer: impl FnOnce() + Send) -> u64 {
    thread::scope(|scope| {
        scope.spawn(answer);
        (0..events).fold(0, |sum, n| {
            send(n);
            sum + recv()
        })
    })
}

type Ends<P, C> = (channel::Sender<u64, P, C>, channel::Receiver<u64, P, C>);

fn ours<P: Sequencer, C: Sequencer>([there, back]: [Ends<P, C>; 2], events: u64) -> u64
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

fn spsc(_: u64, events: u64) -> u64 {
    ours([(); 2].map(|()| channel::spsc(1)), events)
}

fn spsc_spinning(_: u64, events: u64) -> u64 {
    ours([(); 2].map(|()| channel::spsc(Options::new(1).wait_strategy(WaitStrategy::Spin))), events)
}

fn mpmc(_: u64, events: u64) -> u64 {
    ours([(); 2].map(|()| channel::mpmc(1)), events)
}

fn rtrb(events: u64, pause: fn()) -> u64 {
    fn until<T>(pause: fn(), mut attempt: impl FnMut() -> Option<T>) -> T {
        loop {
            match attempt() {
                Some(done) => return done,
                None => pause(),
            }
        }
    }
    let [(mut sender, mut asked), (mut answers, mut receiver)] = [(); 2].map(|()| rtrb::RingBuffer::<u64>::new(1));
    thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..events {
                let n = until(pause, || asked.pop().ok());
                until(pause, || answers.push(n).ok());
            }
        });
        (0..events).fold(0, |sum, n| {
            until(pause, || sender.push(n).ok());
            sum + until(pause, || receiver.pop().ok())
        })
    })
}

macro_rules! channels {
    ($name:ident, $make:path) => {
        fn $name(_: u64, events: u64) -> u64 {
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
        let spinning: Pass = |_, events| rtrb(events, thread::yield_now);
        for pass in [spsc, mpmc, spinning, crossbeam, kanal, std_channel, flume] {
            assert_eq!(pass(1, 100), 99 * 100 / 2);
        }
    }
}
