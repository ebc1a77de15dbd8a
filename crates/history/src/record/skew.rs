//! How far the clocks of two processors may differ, proved by messages.
//!
//! The reference processor reads its clock (`sent`), sends a message; the other answers with its own reading (`there`); the
//! first reads again (`back`). The other clock was read after `sent` and before `back`; if it is ahead of the reference
//! by `o`, then `sent <= there - o <= back`, so
//!
//! > `there - back <= o <= there - sent`
//!
//! Each round proves this; the rounds together prove the tightest of their bounds, and a round that was preempted merely proves
//! little. Nothing is assumed about how long a message takes. Of two processors that are ahead by `[low_i, high_i]` and by
//! `[low_j, high_j]`, the second is ahead of the first by at most `high_j - low_i`; the skew is the largest such bound, the
//! reference itself (`[0, 0]`) included. What is left when clocks agree is the time of the fastest message: less than 100 ns
//! within a package.
//!
//! Source: Cristian, "Probabilistic clock synchronization" (1989); the bound from both directions is Lamport & Melliar-Smith's.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::cpus::{pin, reachable};
use super::stamp::Source;

/// Messages to each processor, unless they take too long.
const ROUNDS: u64 = 500;
/// Messages to each processor, however long they take.
const ROUNDS_LEAST: u64 = 16;
/// When rounds take too long, in all.
const LONG: Duration = Duration::from_millis(5);
/// The same while they prove next to nothing: on a busy machine all may have been preempted.
const LONGEST: Duration = Duration::from_millis(300);

/// Some microseconds: clocks that may differ by more have been looked at on a busy machine, and are looked at again.
pub(super) fn coarse(source: Source) -> u64 {
    16 * source.near()
}

/// The largest difference between the clocks of any two processors that this process can run on, in units of `source`.
///
/// Blocks until every one of them has run a thread of ours; some 100 µs a processor when they are idle.
pub(super) fn measure(source: Source) -> u64 {
    let cpus = reachable();
    let Some((&reference, others)) = cpus.split_first() else { return 0 };
    let bounds: Vec<_> =
        std::iter::once((0, 0)).chain(others.iter().map(|&cpu| ahead(source, reference, cpu))).collect();
    largest_difference(&bounds)
}

/// How far one of these clocks may be ahead of another of them.
fn largest_difference(bounds: &[(i64, i64)]) -> u64 {
    let others = |i: usize| bounds.iter().enumerate().filter(move |&(j, _)| i != j).map(|(_, bound)| bound);
    let pairs =
        bounds.iter().enumerate().flat_map(|(i, &(low, _))| others(i).map(move |&(_, high)| high.saturating_sub(low)));
    pairs.max().unwrap_or(0).max(0).unsigned_abs()
}

/// Bounds on how far the clock of `other` is ahead of that of `reference`.
fn ahead(source: Source, reference: usize, other: usize) -> (i64, i64) {
    let table = Table { ball: Ball(AtomicU64::new(0)), there: AtomicU64::new(0) };
    thread::scope(|scope| {
        scope.spawn(|| table.answer(source, other));
        scope.spawn(|| table.ask(source, reference)).join().expect("no round panics")
    })
}

/// A line of its own, so that nothing but the messages moves it.
#[repr(align(128))]
struct Ball(AtomicU64);

/// Odd: the other's turn; even: the reference's; `OVER`: no more rounds.
struct Table {
    ball: Ball,
    there: AtomicU64,
}

const OVER: u64 = u64::MAX;

impl Table {
    fn ask(&self, source: Source, reference: usize) -> (i64, i64) {
        // A refusal leaves the thread wherever it runs: then the rounds prove something about that processor, and the
        // only loss is this one's bound, which `reachable` has ruled out a moment ago.
        let _ = pin(reference);
        let (mut low, mut high) = (i64::MIN, i64::MAX);
        let began = Instant::now();
        for round in 0..ROUNDS {
            let is_coarse = high.saturating_sub(low) > coarse(source).cast_signed();
            if round >= ROUNDS_LEAST && began.elapsed() > if is_coarse { LONGEST } else { LONG } {
                break;
            }
            let sent = source.before();
            // Release, and the acquire in `answer`: the other's reading is made after this. Its answer is a release
            // again, so that `there` is the reading of this round and `back` is read after it was made.
            self.ball.0.store(2 * round + 1, Ordering::Release);
            wait(|| self.ball.0.load(Ordering::Acquire) == 2 * round + 2);
            let back = source.after_loads();
            let there = self.there.load(Ordering::Relaxed);
            low = low.max(there.wrapping_sub(back).cast_signed());
            high = high.min(there.wrapping_sub(sent).cast_signed());
        }
        self.ball.0.store(OVER, Ordering::Release);
        (low, high)
    }

    fn answer(&self, source: Source, other: usize) {
        let _ = pin(other);
        let mut seen = 0;
        loop {
            wait(|| {
                seen = self.ball.0.load(Ordering::Acquire);
                seen % 2 == 1
            });
            if seen == OVER {
                return;
            }
            // After the message's load; before the answer, whose store carries the reading's value.
            let there = source.after_loads();
            self.there.store(there, Ordering::Relaxed);
            self.ball.0.store(seen + 1, Ordering::Release);
        }
    }
}

/// Spins, and lets others run when it takes long.
fn wait(mut until: impl FnMut() -> bool) {
    let mut turns = 0_u32;
    while !until() {
        turns += 1;
        if turns.is_multiple_of(1 << 14) {
            thread::yield_now();
        }
        spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, ahead, largest_difference, measure};

    #[test]
    fn the_largest_difference_is_between_two() {
        assert_eq!(largest_difference(&[(0, 0)]), 0);
        assert_eq!(largest_difference(&[(0, 0), (-70, 80)]), 80);
        assert_eq!(largest_difference(&[(0, 0), (-90, 80)]), 90);
        assert_eq!(largest_difference(&[(0, 0), (900, 1000)]), 1000);
        assert_eq!(largest_difference(&[(0, 0), (900, 1000), (-1000, -900)]), 2000);
    }

    #[test]
    fn bounds_are_in_order_and_hold_for_equal_clocks() {
        for source in [Source::best(), Source::Clock] {
            for &cpu in super::reachable().iter().skip(1) {
                let (low, high) = ahead(source, super::reachable()[0], cpu);
                assert!(low <= high, "{source:?}: {low}..{high}");
            }
        }
    }

    #[test]
    fn the_skew_is_no_more_than_an_undisturbed_message_takes() {
        // Several attempts: a loaded machine disturbs.
        let skew = (0..10).map(|_| measure(Source::Clock)).min().unwrap();
        println!("skew {skew} ns, of the counter {}", measure(Source::best()));
        assert!(skew < 20_000, "{skew} ns");
    }
}
