//! Runs random fibers while the kernel preempts their threads at any instruction, even in the middle of a switch. Every frame of
//! every fiber checks its canary. `MILLSTREAM_STRESS=N` makes the tests N times as long.

#[path = "support/modes.rs"]
mod modes;

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use millstream_fiber::sync::{Event, Mutex, Receiver, Sender, channel};
use millstream_fiber::{
    JoinError, Options, Runtime, blocking, current, fiber_local, park_timeout, scope, sleep, spawn, yield_now,
};
use millstream_recorder::Preemption;
use millstream_verify_random::{Random, stress};
use modes::MODES;

fiber_local! {
    static FRAMES: Cell<u64> = Cell::new(0);
}

/// The values that the fibers of a run share.
struct World {
    sum: Mutex<u64>,
    event: Event,
    values: (Sender<u64>, Receiver<u64>),
    waits: AtomicU64,
}

/// Makes one wait of a random kind.
fn wait(world: &World, random: &mut Random) {
    world.waits.fetch_add(1, Relaxed);
    match random.below(12) {
        0..=3 => yield_now(),
        4 => {
            let mut sum = world.sum.lock();
            let before = *sum;
            yield_now();
            *sum = before + 1;
            drop(sum);
            *world.sum.lock() -= 1;
        }
        5 => {
            world.values.0.send(7).unwrap();
            assert_eq!(world.values.1.recv().unwrap(), 7);
        }
        6 => {
            let other = current();
            let child = spawn(move || other.unpark());
            park_timeout(Duration::from_secs(60));
            child.join().unwrap();
        }
        7 => sleep(Duration::from_micros(random.below(200))),
        8 => assert!(!world.event.wait_timeout(Duration::from_micros(20))),
        9 => {
            let mut parts = [0u64; 3];
            scope(|scope| {
                for part in &mut parts {
                    scope.spawn(|| {
                        yield_now();
                        *part = 5;
                    });
                }
            });
            assert_eq!(parts, [5; 3]);
        }
        10 => {
            let hanging = spawn(|| sleep(Duration::MAX));
            if random.below(2) == 0 {
                yield_now();
            }
            hanging.cancel();
            assert!(matches!(hanging.join(), Err(JoinError::Cancelled)));
        }
        _ if random.below(8) == 0 => assert_eq!(blocking(|| 3), 3),
        _ => yield_now(),
    }
}

/// Calls itself to the given depth, and waits in each frame on the way down and on the way up.
fn descend(world: &World, random: &mut Random, depth: u64) -> f64 {
    let canary = random.next();
    let frame = black_box([canary; 12]);
    let float = canary as f64;
    FRAMES.with(|frames| frames.set(frames.get() + 1));
    wait(world, random);
    let below = if depth == 0 { 0.0 } else { descend(world, random, depth - 1) };
    wait(world, random);
    FRAMES.with(|frames| frames.set(frames.get() - 1));
    assert!(black_box(frame).iter().all(|&word| word == canary), "a frame was overwritten");
    assert!(float == canary as f64);
    below + 1.0
}

/// Computes with as many variables as there are registers, over several frames. Calls `pause` in each step.
#[inline(never)]
fn mix(seed: u64, depth: u64, steps: u64, pause: &impl Fn()) -> (u64, f64) {
    let mut words: [u64; 12] = std::array::from_fn(|index| seed.rotate_left(index as u32 * 5));
    let mut reals: [f64; 6] = std::array::from_fn(|index| (seed >> 12) as f64 + index as f64);
    for step in 0..steps {
        pause();
        for index in 0..12 {
            words[index] = words[index].rotate_left(7).wrapping_add(words[(index + 1) % 12] ^ step);
        }
        for index in 0..6 {
            reals[index] = reals[index].mul_add(0.75, reals[(index + 1) % 6] * 0.25);
        }
    }
    let below = if depth == 0 { (0, 0.0) } else { mix(seed ^ depth, depth - 1, steps, pause) };
    (words.into_iter().fold(below.0, |sum, word| sum.rotate_left(1) ^ word), reals.iter().sum::<f64>() + below.1)
}

#[test]
fn registers_and_frames_stay_whole_over_many_switches_under_preemption() {
    const FIBERS: u64 = 20;
    const FRAMES: u64 = 5;
    const STEPS: u64 = 1000;
    let mut random = Random::seeded();
    for threads in MODES {
        let runtime = Runtime::start(Options::new(threads).on_report(|_| {})).unwrap();
        let preemption = Preemption::start().unwrap();
        let rounds = 2 * stress();
        runtime.scope(|scope| {
            for _ in 0..FIBERS {
                let mut random = random.fork();
                scope.spawn(move || {
                    for _ in 0..rounds {
                        let seed = random.next();
                        let mixed = mix(seed, FRAMES - 1, STEPS, &yield_now);
                        assert!(mixed == mix(seed, FRAMES - 1, STEPS, &|| ()), "a register or a frame was overwritten");
                    }
                });
            }
        });
        println!("{threads:?}: {} switches, {} stops", FIBERS * FRAMES * STEPS * rounds, preemption.stops());
    }
}

#[test]
fn stacks_locals_and_locks_stay_whole_under_preemption() {
    let mut random = Random::seeded();
    for threads in MODES {
        let runtime = Runtime::start(Options::new(threads).on_report(|_| {})).unwrap();
        let world = World { sum: Mutex::new(0), event: Event::new(), values: channel(4096), waits: AtomicU64::new(0) };
        let preemption = Preemption::start().unwrap();
        for _ in 0..stress() {
            runtime.scope(|scope| {
                for _ in 0..40 {
                    let (mut random, world) = (random.fork(), &world);
                    scope.spawn(move || {
                        for _ in 0..3 {
                            let depth = random.below(30);
                            assert!(descend(world, &mut random, depth) == (depth + 1) as f64);
                        }
                        assert_eq!(FRAMES.with(Cell::get), 0);
                    });
                }
            });
        }
        println!("{threads:?}: {} waits, {} stops", world.waits.load(Relaxed), preemption.stops());
        drop(preemption);
        assert_eq!(*world.sum.lock(), 0);
        runtime.finish();
    }
}
