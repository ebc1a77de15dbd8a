//! Recorded runs of threads that are disturbed.

use std::thread;
use std::time::Duration;

use millstream_history::History;
use millstream_recorder::{Log, Preemption, Recorder};
use millstream_verify_random::Random;

/// Yields, sleeps, spins or does nothing, at random.
pub(crate) fn disturb(random: &mut Random) {
    match random.below(256) {
        0..8 => thread::yield_now(),
        8..10 => thread::sleep(Duration::from_micros(random.below(50))),
        10..64 => (0..random.below(100)).for_each(|_| std::hint::spin_loop()),
        _ => (),
    }
}

/// Records the operations of all threads; each has a log, and is stopped in the middle of its work now and then.
pub(crate) fn record(threads: u64, random: &mut Random, work: impl Fn(&mut Log, &mut Random) + Sync) -> History {
    let recorder = Recorder::new().room(1 << 12);
    let preemption = Preemption::start().unwrap();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (mut log, mut random) = (recorder.log(), Random::new(random.below(u64::MAX)));
            let work = &work;
            scope.spawn(move || work(&mut log, &mut random));
        }
    });
    drop(preemption); // it would disturb the measurements at the end
    recorder.finish()
}

/// Waits for longer than the clocks of two cores may differ.
pub(crate) fn a_while() {
    thread::sleep(Duration::from_micros(10));
}
