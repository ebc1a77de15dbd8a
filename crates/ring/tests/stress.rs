//! Rings under random preemption: no event is lost or repeated, each producer's events stay in order, and every wake-up
//! arrives. `MILLSTREAM_STRESS=n` makes the runs n times longer.
#![cfg(not(loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millstream_ring::channel::{self, Receiver, Sender};
use millstream_ring::graph::{Builder, Polled};
use millstream_ring::sequencer::Sequencer;
use millstream_ring::{Options, WaitStrategy};
use millstream_verify_random::{Random, stress};

const PRODUCERS: u64 = 3;

/// The value of an event: its producer, and its number among that producer's events.
fn value(producer: u64, number: u64) -> u64 {
    producer << 48 | number
}

fn number_of(value: u64) -> u64 {
    value & ((1 << 48) - 1)
}

/// Now and then yields the core, sleeps, or moves to another core.
fn disturb(random: &mut Random) {
    match random.below(4000) {
        0..16 => std::thread::yield_now(),
        16 => std::thread::sleep(Duration::from_micros(random.below(200))),
        17 => move_to_core(random.below(2) as usize),
        _ => (),
    }
}

/// Binds this thread to the core with this number, if there is one.
fn move_to_core(core: usize) {
    // SAFETY: an empty set is valid, and the kernel only reads it. If the core does not exist, the call fails without
    // effect.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Checks that each producer's numbers arrive in order, and counts them.
#[derive(Default)]
struct Ledger {
    next: [u64; PRODUCERS as usize],
}

impl Ledger {
    fn take(&mut self, value: u64) {
        let (producer, number) = (value >> 48, number_of(value));
        let next = &mut self.next[producer as usize];
        assert_eq!(number, *next, "producer {producer}");
        *next += 1;
    }
}

/// The length of a run, as the number of events from each producer. On a busy machine a producer sends only as many as
/// it can in a few seconds, but at least a hundredth of them. A run that `MILLSTREAM_STRESS` lengthens is not cut
/// short.
#[derive(Clone, Copy)]
struct Length {
    numbers: u64,
    least: u64,
    until: Option<Instant>,
}

impl Length {
    fn new(numbers: u64, seconds: u64) -> Self {
        let until = (stress() == 1).then(|| Instant::now() + Duration::from_secs(seconds));
        Length { numbers: numbers * stress(), least: numbers / 100, until }
    }

    /// Whether a producer that has sent `number` numbers sends another.
    fn has_more(&self, number: u64) -> bool {
        // The clock is read only before every 16th number.
        let looks = number >= self.least && number.is_multiple_of(16);
        number < self.numbers && !(looks && self.until.is_some_and(|until| Instant::now() >= until))
    }
}

/// Sends the numbers of a run, and returns how many it sent.
fn send<P: Sequencer, C: Sequencer>(
    sender: &Sender<u64, P, C>,
    producer: u64,
    length: Length,
    random: &mut Random,
) -> u64 {
    let numbers = length.numbers;
    let (mut number, mut batch) = (0, Vec::new());
    while length.has_more(number) {
        disturb(random);
        if random.below(8) == 0 {
            let more = (1 + random.below(40)).min(numbers - number);
            batch.extend((number..number + more).map(|number| value(producer, number)));
            sender.send_many(&mut batch).unwrap();
            number += more;
        } else {
            sender.send(value(producer, number)).unwrap();
            number += 1;
        }
    }
    number
}

fn receive<P: Sequencer, C: Sequencer>(receiver: &Receiver<u64, P, C>, random: &mut Random, mut take: impl FnMut(u64)) {
    let mut batch = Vec::new();
    loop {
        disturb(random);
        if random.below(8) == 0 {
            match receiver.recv_many(&mut batch, 1 + random.below(100) as usize) {
                Ok(_) => batch.drain(..).for_each(&mut take),
                Err(_) => return,
            }
        } else {
            match receiver.recv() {
                Ok(value) => take(value),
                Err(_) => return,
            }
        }
    }
}

#[test]
fn mpsc_keeps_every_producer_s_order() {
    let mut random = Random::seeded();
    for (strategy, capacity, numbers) in [
        (WaitStrategy::Adaptive, 1, 20_000),
        (WaitStrategy::Adaptive, 64, 1_000_000),
        (WaitStrategy::Adaptive, 1024, 2_000_000),
        (WaitStrategy::Block, 2, 20_000),
        (WaitStrategy::Block, 64, 300_000),
        (WaitStrategy::Yield, 16, 300_000),
    ] {
        let length = Length::new(numbers, 2);
        let (sender, receiver) = channel::mpsc(Options::new(capacity).wait_strategy(strategy));
        let mut ledger = Ledger::default();
        let sent: Vec<u64> = std::thread::scope(|scope| {
            let producers: Vec<_> = (0..PRODUCERS)
                .map(|producer| {
                    let (sender, mut random) = (sender.clone(), random.fork());
                    scope.spawn(move || send(&sender, producer, length, &mut random))
                })
                .collect();
            drop(sender);
            let mut random = random.fork();
            let ledger = &mut ledger;
            scope.spawn(move || receive(&receiver, &mut random, |value| ledger.take(value)));
            producers.into_iter().map(|producer| producer.join().unwrap()).collect()
        });
        assert_eq!(ledger.next[..], sent, "{strategy:?}, {capacity} slots");
    }
}

#[test]
fn mpmc_delivers_every_value_once() {
    let mut random = Random::seeded();
    for (strategy, capacity) in [(WaitStrategy::Adaptive, 2), (WaitStrategy::Adaptive, 256), (WaitStrategy::Block, 8)] {
        let length = Length::new(50_000, 3);
        let (sender, receiver) = channel::mpmc(Options::new(capacity).wait_strategy(strategy));
        let (sent, mut received): (Vec<u64>, Vec<u64>) = std::thread::scope(|scope| {
            let producers: Vec<_> = (0..PRODUCERS)
                .map(|producer| {
                    let (sender, mut random) = (sender.clone(), random.fork());
                    scope.spawn(move || send(&sender, producer, length, &mut random))
                })
                .collect();
            drop(sender);
            let consumers: Vec<_> = (0..3)
                .map(|_| {
                    let (receiver, mut random) = (receiver.clone(), random.fork());
                    scope.spawn(move || {
                        let (mut own, mut ledger) = (Vec::new(), [0; PRODUCERS as usize]);
                        receive(&receiver, &mut random, |value| {
                            let next = &mut ledger[(value >> 48) as usize];
                            assert!(number_of(value) >= *next, "a consumer saw a producer's values out of order");
                            *next = number_of(value) + 1;
                            own.push(value);
                        });
                        own
                    })
                })
                .collect();
            drop(receiver);
            let received = consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect();
            (producers.into_iter().map(|producer| producer.join().unwrap()).collect(), received)
        });
        received.sort_unstable();
        let of = |(producer, numbers)| (0..numbers).map(move |number| value(producer, number));
        let expected = (0..PRODUCERS).zip(sent).flat_map(of);
        assert!(received.iter().copied().eq(expected), "{strategy:?}, {capacity} slots");
    }
}

#[test]
fn a_graph_keeps_its_order() {
    let mut random = Random::seeded();
    for strategy in [WaitStrategy::Adaptive, WaitStrategy::Block] {
        let numbers = 100_000 * stress();
        let mut ring = Builder::multi(Options::new(128).wait_strategy(strategy), || (0u64, 0u64));
        let mut own = random.fork();
        let first = ring.handle_mut(&[], move |event, _| {
            disturb(&mut own);
            event.1 = !event.0;
        });
        let (done, results) = std::sync::mpsc::channel();
        let (mut ledger, mut own) = (Ledger::default(), random.fork());
        ring.handle(&[first], move |event, _| {
            disturb(&mut own);
            assert_eq!(event.1, !event.0, "the second consumer did not see the first one's change");
            ledger.take(event.0);
            if ledger.next == [numbers; PRODUCERS as usize] {
                done.send(()).unwrap();
            }
        });
        let (producer, running) = ring.start();
        std::thread::scope(|scope| {
            for thread in 0..PRODUCERS {
                let (mut producer, mut random) = (producer.clone(), random.fork());
                scope.spawn(move || {
                    for number in 0..numbers {
                        disturb(&mut random);
                        if random.below(50) == 0 {
                            drop(producer.claim(1 + random.below(3)));
                        }
                        producer.publish(|event| event.0 = value(thread, number));
                    }
                });
            }
            drop(producer);
        });
        running.join().unwrap();
        assert_eq!(results.try_recv(), Ok(()), "{strategy:?}");
    }
}

/// Checks the events of a consumer that joined late: none is torn, and each producer's numbers have no gap.
#[derive(Default)]
struct LateLedger {
    next: [Option<u64>; PRODUCERS as usize],
}

impl LateLedger {
    fn take(&mut self, event: &(u64, u64)) {
        assert_eq!(event.1, !event.0, "a producer wrote to an event while a consumer had it");
        let next = &mut self.next[(event.0 >> 48) as usize];
        let number = number_of(event.0);
        assert_eq!(number, next.unwrap_or(number));
        *next = Some(number + 1);
    }
}

#[test]
fn consumers_join_and_leave_while_producers_run_at_full_speed() {
    let mut random = Random::seeded();
    for strategy in [WaitStrategy::Adaptive, WaitStrategy::Block] {
        let numbers = 50_000 * stress();
        let a_consumer_came = Arc::new(AtomicBool::new(false));
        let mut ring = Builder::multi(Options::new(64).wait_strategy(strategy), || (0u64, !0u64));
        let first = ring.handle(&[], |event, _| assert_eq!(event.1, !event.0));
        let (producer, mut running) = ring.start();
        let (seen, ledgers) = std::sync::mpsc::channel();
        let threads: Vec<_> = (0..PRODUCERS)
            .map(|thread| {
                let (mut producer, mut random) = (producer.clone(), random.fork());
                let a_consumer_came = Arc::clone(&a_consumer_came);
                std::thread::spawn(move || {
                    for number in 0..numbers {
                        disturb(&mut random);
                        // Each producer delays its last number until a consumer has joined.
                        while number + 1 == numbers && !a_consumer_came.load(Ordering::Relaxed) {
                            std::thread::yield_now();
                        }
                        let value = value(thread, number);
                        producer.publish(|event| *event = (value, !value));
                    }
                })
            })
            .collect();
        drop(producer);
        for round in 0..12 {
            // The poller follows the producers, or the first consumer.
            let follows = if random.below(2) == 0 { vec![] } else { vec![first] };
            if round % 2 == 0 {
                let (mut ledger, seen) = (LateLedger::default(), seen.clone());
                running.add(&follows, move |event, _| {
                    ledger.take(event);
                    if ledger.next[(event.0 >> 48) as usize] == Some(numbers) {
                        seen.send(event.0 >> 48).unwrap();
                    }
                });
                a_consumer_came.store(true, Ordering::Relaxed);
            } else {
                let (_, mut poller) = running.add_poller(&follows);
                let mut ledger = LateLedger::default();
                for _ in 0..random.below(200) {
                    if poller.poll(random.below(20), |event, _| ledger.take(event)) == Polled::Ended {
                        break;
                    }
                }
            }
            std::thread::sleep(Duration::from_micros(random.below(2000)));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        running.join().unwrap();
        drop(seen);
        // Each of the 6 handlers reports each producer's last number at most once, and not at all if the handler joined
        // after that number.
        let ends = ledgers.iter().fold([0; PRODUCERS as usize], |mut ends, producer| {
            ends[producer as usize] += 1;
            ends
        });
        assert!(ends.iter().all(|&ends| ends <= 6), "{strategy:?}: {ends:?}");
        assert!(
            ends.iter().all(|&ends| ends > 0),
            "{strategy:?}: {ends:?}: the first late consumer did not see the last number of each producer"
        );
    }
}

#[test]
fn rare_events_wake_sleepers() {
    // Each event finds the other side asleep or falling asleep.
    let mut random = Random::seeded();
    let (ping, pings) = channel::mpsc(Options::new(1).wait_strategy(WaitStrategy::Block));
    let (pong, pongs) = channel::mpsc(Options::new(1).wait_strategy(WaitStrategy::Block));
    let stop = AtomicBool::new(false);
    let length = Length::new(20_000, 10);
    std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            while let Ok(n) = pings.recv() {
                pong.send(n).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        for n in (0..).take_while(|&n| length.has_more(n)) {
            if random.below(16) == 0 {
                (0..random.below(300)).for_each(|_| std::hint::spin_loop());
            }
            ping.send(n).unwrap();
            assert_eq!(pongs.recv(), Ok(n));
        }
        drop(ping);
    });
    assert!(stop.load(Ordering::Relaxed));
}
