//! Runs of channels, of a graph's consumers and of a ring in shared memory are recorded, and checked for
//! linearizability. Twins, each with a classic mistake, must fail the same check. `MILLSTREAM_STRESS=n` makes the runs
//! n times longer, and `MILLSTREAM_PICTURES=folder` draws the counter-examples into the folder.
#![cfg(not(loom))]

#[path = "linearizable/drive.rs"]
mod drive;
#[path = "linearizable/graphs.rs"]
mod graphs;
#[cfg(target_os = "linux")]
#[path = "linearizable/shared.rs"]
mod shared;
#[path = "linearizable/twins.rs"]
mod twins;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drive::{Conditions, End, Refused, broadcast, caught, hand_over, holds, holds_once_decided};
use millstream_history::{History, Kind, Model, Op};
use millstream_recorder::Recorder;
use millstream_ring::channel::{self, Receiver, Sender};
use millstream_ring::graph::{Builder, Polled, Poller};
use millstream_ring::sequencer::Sequencer;
use millstream_verify_random::{Random, stress};

fn senders<P: Sequencer + 'static, C: Sequencer + 'static>(
    sender: Sender<u64, P, C>,
    clones: impl IntoIterator<Item = Sender<u64, P, C>>,
) -> Vec<End<'static>>
where
    Sender<u64, P, C>: Send,
{
    let ends = std::iter::once(sender).chain(clones);
    ends.map(|sender| End::Sender(Box::new(move |value| sender.try_send(value).is_ok()))).collect()
}

fn receivers<P: Sequencer + 'static, C: Sequencer + 'static>(
    receiver: Receiver<u64, P, C>,
    clones: impl IntoIterator<Item = Receiver<u64, P, C>>,
) -> Vec<End<'static>>
where
    Receiver<u64, P, C>: Send,
{
    let ends = std::iter::once(receiver).chain(clones);
    ends.map(|receiver| End::Receiver(Box::new(move || receiver.try_recv().ok()))).collect()
}

/// This also checks "empty" and "full": each must be true at some moment of the call.
#[test]
fn a_channel_of_one_sender_and_one_receiver_is_a_bounded_queue() {
    let mut random = Random::seeded();
    for capacity in [1, 4, 64] {
        // The runs are short, because on a busy machine the clocks of its cores differ so much that the search has many
        // orders to try.
        for _ in 0..60 * stress() {
            holds_once_decided(&Model::new(Kind::Queue).with_capacity(capacity as u64), || {
                let (sender, receiver) = channel::spsc(capacity);
                let ends = [senders(sender, []), receivers(receiver, [])].concat_ends();
                hand_over(ends, 100, Refused::Answers, &mut random)
            });
        }
        let (sender, receiver) = channel::spsc(capacity);
        let ends = [senders(sender, []), receivers(receiver, [])].concat_ends();
        // Without the capacity, the check handles longer histories.
        holds(&hand_over(ends, 50_000 * stress(), Refused::FullFails, &mut random), &Kind::Queue.into());
    }
}

#[test]
fn channels_with_many_senders_or_receivers_are_queues() {
    let mut random = Random::seeded();
    for capacity in [1, 4, 64] {
        for others in [0, 1, 3, 7] {
            let numbers = 60_000 / (others as u64 + 1) * stress();
            let (sender, receiver) = channel::mpsc(capacity);
            let clones: Vec<_> = (0..others).map(|_| sender.clone()).collect();
            let ends = [senders(sender, clones), receivers(receiver, [])].concat_ends();
            holds(&hand_over(ends, numbers, Refused::Fails, &mut random), &Kind::Queue.into());

            let (sender, receiver) = channel::spmc(capacity);
            let clones: Vec<_> = (0..others).map(|_| receiver.clone()).collect();
            let ends = [senders(sender, []), receivers(receiver, clones)].concat_ends();
            holds(&hand_over(ends, numbers, Refused::Fails, &mut random), &Kind::Queue.into());

            let (sender, receiver) = channel::mpmc(capacity);
            let (more_senders, more_receivers): (Vec<_>, Vec<_>) =
                (0..others).map(|_| (sender.clone(), receiver.clone())).unzip();
            let ends = [senders(sender, more_senders), receivers(receiver, more_receivers)].concat_ends();
            holds(&hand_over(ends, numbers / 2, Refused::Fails, &mut random), &Kind::Queue.into());
        }
    }
}

/// If a sender is stopped in the middle of `send`, the receiver gets the values in front of that slot at once, and the
/// later values when the sender continues. So "empty" from a channel with several senders is not what a queue would
/// return, and the test above does not record it.
#[test]
fn a_stopped_sender_hides_what_others_sent_after_it() {
    must_be_caught("stopped-sender", "a ring whose first sender is stopped in the middle", Kind::Queue, || {
        let _quiet = Conditions::quiet();
        let (mut stopped, receiver) = channel::mpsc(4);
        let other = stopped.clone();
        let recorder = Recorder::new();
        let (mut first, mut second, mut third) = (recorder.log(), recorder.log(), recorder.log());
        first.begin(Op::ENQUEUE, 1);
        let permit = stopped.reserve().unwrap();
        second.record(Op::ENQUEUE, 2, || other.send(2).unwrap());
        // The pause exceeds the skew between the clocks of two cores. Otherwise the history would not tell which call
        // came first.
        std::thread::sleep(Duration::from_millis(1));
        third.record(Op::DEQUEUE, (), || receiver.try_recv().ok());
        permit.send(1);
        first.end(());
        drop((first, second, third));
        recorder.finish()
    });
}

fn polled(mut poller: Poller<Cell64, impl Sequencer + 'static>) -> End<'static> {
    End::Receiver(Box::new(move || {
        let mut seen = None;
        match poller.poll(1, |event, _| seen = Some(event.get())) {
            Polled::Events(_) => seen,
            Polled::Idle | Polled::Ended => None,
        }
    }))
}

/// An event of a graph.
#[derive(Default)]
struct Cell64(AtomicU64);

impl Cell64 {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&mut self, value: u64) {
        *self.0.get_mut() = value;
    }
}

#[test]
fn every_consumer_of_a_graph_sees_every_event_in_order() {
    let mut random = Random::seeded();
    for consumers in [1, 2, 3] {
        for capacity in [1, 4, 16] {
            for _ in 0..5 * stress() {
                holds_once_decided(&Model::new(Kind::Ring).with_capacity(capacity as u64), || {
                    let mut ring = Builder::single(capacity, Cell64::default);
                    let mut ends: Vec<End<'_>> = (0..consumers).map(|_| polled(ring.poller(&[]).1)).collect();
                    let (mut producer, running) = ring.start();
                    let publish = move |value| producer.try_publish(|event| event.set(value)).is_ok();
                    ends.push(End::Sender(Box::new(publish)));
                    let history = broadcast(ends, 200, &mut random);
                    drop(running);
                    history
                });
            }
        }
    }
}

/// Collects ends of several kinds in one list.
trait ConcatEnds<'a> {
    fn concat_ends(self) -> Vec<End<'a>>;
}

impl<'a, const N: usize> ConcatEnds<'a> for [Vec<End<'a>>; N] {
    fn concat_ends(self) -> Vec<End<'a>> {
        self.into_iter().flatten().collect()
    }
}

/// The history of the first run in which the twin is caught; there must be one.
fn first_caught(title: &str, model: &Model, mut run: impl FnMut() -> History) -> History {
    let fails = |history: &History| drive::verdict(history, model, false).holds() == Some(false);
    let history = (0..MAX_RUNS).map(|_| run()).find(fails);
    history.unwrap_or_else(|| panic!("{title} was not caught in {MAX_RUNS} runs"))
}

/// Asserts that the twin is caught with a small counter-example.
fn must_be_caught(name: &str, title: &str, model: impl Into<Model>, run: impl FnMut() -> History) {
    let model = model.into();
    let history = first_caught(title, &model, run);
    caught(name, title, &history, &model);
}

/// The number of runs in which the twin must be caught.
const MAX_RUNS: u32 = 200;

#[test]
fn a_ring_whose_slots_do_not_know_the_lap_is_caught() {
    let mut random = Random::seeded();
    must_be_caught("ring-without-laps", "a ring whose slots do not know the lap", Kind::Queue, || {
        let ring = twins::NoLaps::<2>::new();
        let mut ends: Vec<End<'_>> = (0..4).map(|_| End::Sender(Box::new(|value| ring.send(value)))).collect();
        ends.push(End::Receiver(Box::new(|| ring.try_recv())));
        hand_over(ends, 3000, Refused::Fails, &mut random)
    });
}

#[test]
fn a_ring_that_publishes_before_it_writes_is_caught() {
    let mut random = Random::seeded();
    must_be_caught("published-too-early", "a ring that publishes before it writes", Kind::Queue, || {
        let ring = twins::TooEarly::<64>::new();
        let ends =
            vec![End::Sender(Box::new(|value| ring.try_send(value))), End::Receiver(Box::new(|| ring.try_recv()))];
        hand_over(ends, 30_000, Refused::Fails, &mut random)
    });
}

#[test]
fn a_ring_that_trusts_its_stale_cursor_is_caught() {
    let mut random = Random::seeded();
    must_be_caught("stale-cursor", "a ring that says empty without looking again", Kind::Queue, || {
        let ring = twins::Stale::<64>::new();
        let ends =
            vec![End::Sender(Box::new(|value| ring.try_send(value))), End::Receiver(Box::new(|| ring.try_recv()))];
        hand_over(ends, 3000, Refused::FullFails, &mut random)
    });
}

#[test]
fn a_ring_whose_receivers_claim_in_two_steps_is_caught() {
    let mut random = Random::seeded();
    must_be_caught("received-twice", "a ring whose receivers claim in two steps", Kind::Queue, || {
        let ring = twins::TwoReceivers::<64>::new();
        let mut ends: Vec<End<'_>> = (0..2).map(|_| End::Receiver(Box::new(|| ring.try_recv()))).collect();
        ends.push(End::Sender(Box::new(|value| ring.try_send(value))));
        hand_over(ends, 3000, Refused::Fails, &mut random)
    });
}

const FORGETFUL: &str = "a broadcast that forgets its second consumer";

#[test]
fn a_broadcast_that_waits_for_only_one_consumer_is_caught() {
    let mut random = Random::seeded();
    first_caught(FORGETFUL, &Model::new(Kind::Ring).with_capacity(4), || {
        let ring = twins::Forgetful::<4>::new();
        let ends = vec![
            End::Sender(Box::new(|value| ring.try_publish(value))),
            End::Receiver(Box::new(|| ring.try_consume(0))),
            End::Receiver(Box::new(|| ring.try_consume(1))),
        ];
        broadcast(ends, 40, &mut random)
    });
}

/// The same twin, step by step: the second consumer sleeps while the first makes room.
#[test]
fn a_forgotten_consumer_misses_an_event() {
    must_be_caught("forgotten-consumer", FORGETFUL, Model::new(Kind::Ring).with_capacity(2), || {
        let _quiet = Conditions::quiet();
        let ring = twins::Forgetful::<2>::new();
        let recorder = Recorder::new();
        let (mut producer, mut quick, mut slow) = (recorder.log(), recorder.log(), recorder.log());
        // The pause exceeds the skew between the clocks of two cores.
        let pause = || std::thread::sleep(Duration::from_micros(10));
        for event in 1..=3 {
            producer.record(Op::PUBLISH, event, || assert!(ring.try_publish(event)));
            pause();
            quick.record(Op::CONSUME, (), || ring.try_consume(0));
            pause();
        }
        slow.record(Op::CONSUME, (), || ring.try_consume(1));
        drop((producer, quick, slow));
        recorder.finish()
    });
}
