//! The race: two threads each write one word and then read the other's word.

use std::sync::atomic::{
    self, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::{Duration, Instant};

/// A word in a cache line of its own.
#[repr(align(128))]
struct Word(AtomicU32);

/// A race ends after this time for each 10,000 requested rounds, but not before [`MIN_ROUNDS`].
const ENOUGH: Duration = Duration::from_secs(10);
const MIN_ROUNDS: u32 = 1000;

/// Runs the race, and returns the number of rounds in which both threads missed the other's write.
pub(crate) fn both_missed(rounds: u32, hot: fn(), cold: fn()) -> usize {
    let [a, b, last] = [0, 0, rounds].map(|word| Word(AtomicU32::new(word)));
    let (begun, enough) = (Instant::now(), ENOUGH * rounds.div_ceil(10_000));
    // Each thread begins a round only after the other thread has begun the previous round, so they are never far apart.
    let side = |own: &Word, other: &Word, fence: fn(), ends: &dyn Fn() -> bool| -> Vec<bool> {
        let mut all_missed = Vec::new();
        for round in 1.. {
            if round >= MIN_ROUNDS && round.is_multiple_of(256) && ends() {
                last.0.store(round, Relaxed);
                atomic::fence(Release); // a thread that sees this round also sees `last`
            }
            own.0.store(round, Relaxed);
            fence();
            all_missed.push(other.0.load(Relaxed) < round);
            let mut looks = 0_u32;
            while other.0.load(Relaxed) < round {
                looks += 1;
                if looks.is_multiple_of(1024) { std::thread::yield_now() } else { std::hint::spin_loop() }
            }
            atomic::fence(Acquire);
            if round == last.0.load(Relaxed) {
                break;
            }
        }
        all_missed
    };
    let (hot_missed, cold_missed) = std::thread::scope(|scope| {
        let hot = scope.spawn(|| side(&a, &b, hot, &|| false));
        (side(&b, &a, cold, &|| begun.elapsed() > enough), hot.join().unwrap())
    });
    hot_missed.into_iter().zip(cold_missed).filter(|&(hot, cold)| hot && cold).count()
}
