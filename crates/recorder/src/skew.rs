//! A bound on the difference between the clocks of two processors, proved by messages.
//!
//! In each round, a reference processor reads its clock (`sent`) and sends a message. The other processor reads its own clock
//! (`there`) and replies. The reference then reads its clock again (`back`). The other clock was read after `sent` and before
//! `back`. If it is ahead of the reference clock by `o`, then `sent <= there - o <= back`, so
//!
//! > `there - back <= o <= there - sent`
//!
//! Each round proves such bounds, and the tightest bounds of all rounds are valid. A round that was preempted only proves loose
//! bounds. The proof makes no assumption about how long a message takes. If processor `i` is ahead of the reference by `[low_i,
//! high_i]`, and `j` by `[low_j, high_j]`, then `j` is ahead of `i` by at most `high_j - low_i`. The skew is the largest such
//! bound over all pairs, including the reference itself (`[0, 0]`). If the clocks agree, the skew is about the time that the
//! fastest message takes: less than 100 ns within a package.
//!
//! A message is fast only if both threads run at the same time, which on a busy machine happens only now and then. More rounds
//! are therefore made as long as the bounds are coarse. A thread that has waited for a long time sleeps instead of yielding,
//! because the scheduler gives a processor to a woken thread before long. If both threads yielded, each might get its processor
//! just when the other has lost its own.
//!
//! Making more rounds is sound. The proof of a round depends neither on when it is made nor on how long it takes, and all rounds
//! bound the same number, because the clocks run at one rate. All bounds are therefore valid together, whether they come from one
//! measurement or from several. If bounds contradict each other, an assumption is wrong, and they prove nothing.
//!
//! Source: Cristian, "Probabilistic clock synchronization" (1989). The bounds from both directions come from Lamport and
//! Melliar-Smith.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::cpus::{pin, reachable};
use crate::stamp::Source;

/// The number of rounds with each processor, apart from those in which the reference has slept. Fewer rounds are made if they
/// take too long.
const ROUNDS: u64 = 500;
/// The minimum number of rounds with each processor, however long they take.
const MIN_ROUNDS: u64 = 16;
/// The rounds with a processor take too long if their total time reaches this.
const LONG: Duration = Duration::from_millis(5);
/// The maximum total time if the rounds have proved only coarse bounds: on a busy machine all of them may have been preempted.
const MAX_TIME: Duration = Duration::from_millis(300);
/// Processors with coarse bounds are measured again until this time has passed since the start of the measurement.
const PATIENCE: Duration = Duration::from_secs(5);

/// The duration of a sleep. The kernel adds about 50 µs.
const NAP: Duration = Duration::from_micros(50);
/// The number of checks for a message before a thread sleeps. They take about 100 µs. If they took less time than a sleep, each
/// of two threads could sleep whenever the other is awake, without end.
const LOOKS: u32 = 1 << 12;

/// Returns the bound, a few microseconds, above which bounds are *coarse*: they come from a busy machine and are measured
/// again.
pub(crate) fn coarse(source: Source) -> u64 {
    16 * source.near()
}

/// Returns a bound on the difference between the clocks of any two processors that this process can run on, in units of `source`.
///
/// Blocks until each processor has run a thread of this process. This takes about 100 µs for each processor if they are idle.
/// It takes seconds if they are so busy that the two threads of a round rarely run at the same time.
pub(crate) fn measure(source: Source) -> u64 {
    let cpus = reachable();
    let Some((&reference, others)) = cpus.split_first() else { return 0 };
    let mut pairs: Vec<Pair> = others.iter().map(|&other| Pair { other, bounds: ANYTHING, is_done: false }).collect();
    let began = Instant::now();
    loop {
        for pair in pairs.iter_mut().filter(|pair| !pair.is_done) {
            pair.tighten(source, reference);
        }
        if pairs.iter().all(|pair| pair.is_done) || began.elapsed() > PATIENCE {
            break;
        }
    }
    let bounds: Vec<_> = std::iter::once((0, 0)).chain(pairs.iter().map(|pair| pair.bounds)).collect();
    largest_difference(&bounds)
}

/// The bounds of a processor's clock.
struct Pair {
    other: usize,
    /// Bounds on the amount by which the clock is ahead of that of the reference.
    bounds: (i64, i64),
    /// Whether no more rounds are needed: there were enough, or the bounds are tight.
    is_done: bool,
}

impl Pair {
    fn tighten(&mut self, source: Source, reference: usize) {
        let (was_hasty, bounds) = ahead(source, reference, self.other);
        self.bounds = both(self.bounds, bounds);
        if self.bounds.0 > self.bounds.1 {
            // The rounds contradict each other: a clock has jumped, or a thread did not run on the processor to which it was
            // pinned.
            self.bounds = ANYTHING;
        }
        self.is_done = !was_hasty || !are_coarse(source, self.bounds);
    }
}

/// Bounds that every difference satisfies.
const ANYTHING: (i64, i64) = (i64::MIN, i64::MAX);

/// Returns the intersection of two pairs of bounds.
fn both(one: (i64, i64), other: (i64, i64)) -> (i64, i64) {
    (one.0.max(other.0), one.1.min(other.1))
}

fn are_coarse(source: Source, (low, high): (i64, i64)) -> bool {
    high.saturating_sub(low) > coarse(source).cast_signed()
}

/// Returns the maximum amount by which one of these clocks may be ahead of another.
fn largest_difference(bounds: &[(i64, i64)]) -> u64 {
    let others = |i: usize| bounds.iter().enumerate().filter(move |&(j, _)| i != j).map(|(_, bound)| bound);
    let pairs =
        bounds.iter().enumerate().flat_map(|(i, &(low, _))| others(i).map(move |&(_, high)| high.saturating_sub(low)));
    pairs.max().unwrap_or(0).max(0).unsigned_abs()
}

/// Returns bounds on the amount by which the clock of `other` is ahead of that of `reference`. The flag says whether the time was
/// up before all rounds were made.
fn ahead(source: Source, reference: usize, other: usize) -> (bool, (i64, i64)) {
    let table = Table { ball: Ball(AtomicU64::new(0)), there: AtomicU64::new(0) };
    thread::scope(|scope| {
        scope.spawn(|| table.answer(source, other));
        scope.spawn(|| table.ask(source, reference)).join().expect("no round panics")
    })
}

/// A word in a cache line of its own, which only the messages use.
#[repr(align(128))]
struct Ball(AtomicU64);

/// An odd number means that the other processor must reply, an even number that the reference may send. `OVER` ends the rounds.
struct Table {
    ball: Ball,
    there: AtomicU64,
}

const OVER: u64 = u64::MAX;

impl Table {
    fn ask(&self, source: Source, reference: usize) -> (bool, (i64, i64)) {
        // The result is ignored, because `reachable` has just found that a thread can be pinned to this processor. If it failed,
        // the rounds would prove bounds for another processor.
        let _ = pin(reference);
        let mut bounds = ANYTHING;
        let began = Instant::now();
        let (mut rounds, mut rounds_awake) = (0, 0);
        while rounds_awake < ROUNDS {
            let long = if are_coarse(source, bounds) { MAX_TIME } else { LONG };
            if rounds >= MIN_ROUNDS && began.elapsed() > long {
                break;
            }
            let sent = source.before();
            // Release pairs with the acquire in `answer`: the other processor reads its clock after this. Its reply is a
            // release, too, and pairs with the acquire below. Therefore `there` is the reading of this round, and `back` is
            // read after it.
            self.ball.0.store(2 * rounds + 1, Ordering::Release);
            let slept = wait(|| self.ball.0.load(Ordering::Acquire) == 2 * rounds + 2);
            let back = source.after_loads();
            let there = self.there.load(Ordering::Relaxed);
            let ahead = |reading: u64| there.wrapping_sub(reading).cast_signed();
            bounds = both(bounds, (ahead(back), ahead(sent)));
            rounds += 1;
            rounds_awake += u64::from(!slept);
        }
        self.ball.0.store(OVER, Ordering::Release);
        (rounds_awake < ROUNDS, bounds)
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
            // The clock is read after the load of the message, and before the reply, because the stored value depends on the
            // reading.
            let there = source.after_loads();
            self.there.store(there, Ordering::Relaxed);
            self.ball.0.store(seen + 1, Ordering::Release);
        }
    }
}

/// Waits until the condition is true: first spins, then sleeps. Returns whether it has slept.
fn wait(mut until: impl FnMut() -> bool) -> bool {
    let mut looks = 0_u32;
    while !until() {
        looks += 1;
        if looks.is_multiple_of(LOOKS) {
            thread::sleep(NAP);
        }
        spin_loop();
    }
    looks >= LOOKS
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, Source, ahead, largest_difference, measure};

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
                let (_, (low, high)) = ahead(source, super::reachable()[0], cpu);
                assert!(low <= high, "{source:?}: {low}..{high}");
            }
        }
    }

    #[test]
    fn the_skew_is_no_more_than_an_undisturbed_message_takes() {
        // Attempts that the machine has disturbed are repeated.
        let began = Instant::now();
        let mut skew = measure(Source::Clock);
        while skew >= 20_000 && began.elapsed() < Duration::from_secs(60) {
            skew = skew.min(measure(Source::Clock));
        }
        println!("skew {skew} ns, of the counter {}", measure(Source::best()));
        assert!(skew < 20_000, "{skew} ns");
    }
}
