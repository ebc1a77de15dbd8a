//! Limits on a check: memory, time, and how much of them is left.
//!
//! The time in [`Options`] is that of a clock on the wall: whoever waits for an answer waits so long. What a check
//! gives to one of its tasks is processor time of its thread, which does all of it. So how small a counter-example
//! becomes depends on how much there is to do, and not on who else uses the processors.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use crate::verdict::Limit;

/// What a check may use, and how much it is to tell.
///
/// ```
/// use std::time::Duration;
/// use millstream_history::Options;
///
/// let options = Options { time: Some(Duration::from_secs(10)), ..Options::default() };
/// assert_eq!(options.memory_bytes, 1 << 30);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// The most memory in bytes that a check may use beside the history itself; 1 GiB unless you say otherwise.
    pub memory_bytes: u64,
    /// The longest a check may take; as long as it needs unless you say otherwise.
    pub time: Option<Duration>,
    /// Whether to shrink a failing history and find its longest linearizable prefix; yes unless you say otherwise.
    ///
    /// Shrinking ends after some seconds of processor time: on a busy machine it gets as far as on an idle one, only
    /// later.
    pub explain: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { memory_bytes: 1 << 30, time: None, explain: true }
    }
}

/// A limit was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted(pub(crate) Limit);

/// What is left of the limits.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    bytes: u64,
    deadline: Option<Instant>,
    /// How much processor time this thread will have had when that is used up.
    thread_deadline: Option<Duration>,
    ticks: u32,
    /// Not to be sent to another thread, which has had another time.
    of_this_thread: PhantomData<*const ()>,
}

impl Budget {
    /// The clock is looked at once in so many ticks.
    const TICKS: u32 = 4096;

    pub(crate) fn new(options: &Options) -> Self {
        let deadline = options.time.and_then(|time| Instant::now().checked_add(time));
        Budget { bytes: options.memory_bytes, deadline, thread_deadline: None, ticks: 0, of_this_thread: PhantomData }
    }

    /// The same limits for a task that gives all its memory back when it ends.
    pub(crate) fn lend(&self) -> Budget {
        self.clone()
    }

    /// The same, and no more than so much processor time of this thread.
    pub(crate) fn lend_for(&self, time: Duration) -> Budget {
        let until = thread_time() + time;
        let until = self.thread_deadline.map_or(until, |deadline| deadline.min(until));
        Budget { thread_deadline: Some(until), ..self.clone() }
    }

    /// Takes memory.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.bytes = self.bytes.checked_sub(bytes as u64).ok_or(Exhausted(Limit::Memory))?;
        Ok(())
    }

    /// Gives memory back.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// A moment passed; cheap enough for an inner loop.
    #[inline]
    pub(crate) fn tick(&mut self) -> Result<(), Exhausted> {
        self.ticks += 1;
        if self.ticks < Self::TICKS { Ok(()) } else { self.look_at_the_clock() }
    }

    /// Whether there is time left: a look at the clock, for steps that are long.
    #[cold]
    pub(crate) fn look_at_the_clock(&mut self) -> Result<(), Exhausted> {
        self.ticks = 0;
        let is_over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || self.thread_deadline.is_some_and(|deadline| thread_time() >= deadline);
        if is_over { Err(Exhausted(Limit::Time)) } else { Ok(()) }
    }
}

/// How much processor time this thread has had.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes a time to the structure. It does not fail: every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_taken_and_given_back() {
        let mut budget = Budget::new(&Options { memory_bytes: 10, ..Options::default() });
        budget.charge(8).unwrap();
        assert_eq!(budget.charge(3), Err(Exhausted(Limit::Memory)));
        budget.release(1);
        assert_eq!(budget.charge(3), Ok(()));
    }

    #[test]
    fn time_runs_out() {
        let mut budget = Budget::new(&Options { time: Some(Duration::ZERO), ..Options::default() });
        assert_eq!((0..2 * Budget::TICKS).find_map(|_| budget.tick().err()), Some(Exhausted(Limit::Time)));
    }

    #[test]
    fn time_that_is_lent_passes_only_while_the_thread_runs() {
        let mut budget = Budget::new(&Options::default()).lend_for(Duration::from_millis(20));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(budget.look_at_the_clock(), Ok(()), "it has slept");
        assert_eq!((0_u64..1 << 40).find_map(|_| budget.tick().err()), Some(Exhausted(Limit::Time)));
    }

    #[test]
    fn what_is_lent_is_no_more_than_what_is_left() {
        let used_up = Budget::new(&Options::default()).lend_for(Duration::ZERO);
        assert_eq!(used_up.lend_for(Duration::from_secs(60)).look_at_the_clock(), Err(Exhausted(Limit::Time)));
        let over = Budget::new(&Options { time: Some(Duration::ZERO), ..Options::default() });
        assert_eq!(over.lend_for(Duration::from_secs(60)).look_at_the_clock(), Err(Exhausted(Limit::Time)));
    }
}
