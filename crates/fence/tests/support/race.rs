//! Two threads write one word each and read the other's.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A word with a cache line of its own.
#[repr(align(128))]
struct Word(AtomicU32);

/// How often, of so many rounds, both threads missed what the other wrote.
pub(crate) fn both_missed(rounds: u32, hot: fn(), cold: fn()) -> usize {
    let [a, b] = [(); 2].map(|()| Word(AtomicU32::new(0)));
    // Each thread goes on when it has seen the other in its round, so they are never far apart.
    let side = |own: &Word, other: &Word, fence: fn()| -> Vec<bool> {
        let round = |round: u32| {
            own.0.store(round, Relaxed);
            fence();
            let missed = other.0.load(Relaxed) < round;
            let mut looks = 0_u32;
            while other.0.load(Relaxed) < round {
                looks += 1;
                if looks.is_multiple_of(1024) { std::thread::yield_now() } else { std::hint::spin_loop() }
            }
            missed
        };
        (1..=rounds).map(round).collect()
    };
    let (hot_missed, cold_missed) = std::thread::scope(|scope| {
        let hot = scope.spawn(|| side(&a, &b, hot));
        (side(&b, &a, cold), hot.join().unwrap())
    });
    hot_missed.into_iter().zip(cold_missed).filter(|&(hot, cold)| hot && cold).count()
}
