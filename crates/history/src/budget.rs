//! Limits on a check, and the memory and time that remain within them.
//!
//! [`Options::time`] is wall-clock time, because it limits how long the caller waits. A task within a check gets
//! processor time or steps, so that the size of a counter-example does not depend on the load of the machine.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::verdict::Limit;

/// The limits of a check, and whether it explains a failure.
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
    /// The maximum memory of a check in bytes, without the history itself. Default: 1 GiB.
    pub memory_bytes: u64,
    /// The maximum wall-clock time of a check, explanation included. Default: no limit.
    pub time: Option<Duration>,
    /// Whether a failing history is explained: the earliest failure is located, and its counter-example shrunk.
    /// Default: yes.
    ///
    /// The verdict is known before the explanation begins. An explanation that reaches a limit ends with its result so
    /// far: the counter-example may be larger than necessary, or lack its [`prefix`](crate::Counterexample::prefix).
    pub explain: bool,
    /// The maximum processor time of an explanation. Default: one second, or twice the time that the verdict took,
    /// whichever is longer.
    pub explain_time: Option<Duration>,
    /// The maximum memory in bytes of an explanation, within [`memory_bytes`](Self::memory_bytes). Default: 256 MiB.
    pub explain_memory_bytes: u64,
    /// A flag that another thread sets to end the check early, as if its [time](Self::time) were used up. Default:
    /// none.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory_bytes: 1 << 30,
            time: None,
            explain: true,
            explain_time: None,
            explain_memory_bytes: 256 << 20,
            stop: None,
        }
    }
}

/// The default of [`Options::explain_time`] after a quick verdict.
const EXPLAIN_TIME: Duration = Duration::from_secs(1);

/// The bytes of a hash table for each byte of its entries when the table has just grown: it is then a third full.
pub(crate) const HASH_FACTOR: usize = 3;

/// The limit that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted(pub(crate) Limit);

/// The remaining memory and time.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    bytes: u64,
    deadline: Option<Instant>,
    stop: Option<Arc<AtomicBool>>,
    /// The processor time of this thread at which the budget is used up.
    thread_deadline: Option<Duration>,
    ticks: u32,
    /// The number of times that the clock may still be read; unlimited except in a turn (see
    /// [`lend_turn`](Self::lend_turn)).
    looks: u64,
    /// Keeps the budget on this thread, because processor time is counted per thread.
    of_this_thread: PhantomData<*const ()>,
}

impl Budget {
    /// The number of ticks between two readings of the clock.
    const TICKS: u32 = 4096;

    pub(crate) fn new(options: &Options) -> Self {
        let deadline = options.time.and_then(|time| Instant::now().checked_add(time));
        Budget {
            bytes: options.memory_bytes,
            deadline,
            stop: options.stop.clone(),
            thread_deadline: None,
            ticks: 0,
            looks: u64::MAX,
            of_this_thread: PhantomData,
        }
    }

    /// The same limits, for a task that frees all its memory when it ends: the memory that the task charges is not
    /// subtracted from this budget.
    pub(crate) fn lend(&self) -> Budget {
        self.clone()
    }

    /// The same limits, with at most `time` of this thread's processor time.
    pub(crate) fn lend_for(&self, time: Duration) -> Budget {
        let until = thread_time().saturating_add(time);
        let until = self.thread_deadline.map_or(until, |deadline| deadline.min(until));
        Budget { thread_deadline: Some(until), ..self.clone() }
    }

    /// The same limits, with at most `ticks` ticks, rounded up to the next reading of the clock.
    ///
    /// When the ticks are used up, the result is [`Limit::Time`], as it is when the time is used up. To distinguish the
    /// two cases, the caller reads the clock of this budget, which still has time if only the ticks are used up.
    pub(crate) fn lend_turn(&self, ticks: u64) -> Budget {
        Budget { looks: ticks.div_ceil(u64::from(Self::TICKS)).saturating_sub(1), ticks: 0, ..self.clone() }
    }

    /// The same limits, with the remaining processor time divided by `parts`.
    pub(crate) fn lend_share(&self, parts: u32) -> Budget {
        match self.thread_deadline {
            Some(deadline) => self.lend_for(deadline.saturating_sub(thread_time()) / parts),
            None => self.lend(),
        }
    }

    /// The budget of an explanation, for a check that began when its thread had used `began` of processor time.
    pub(crate) fn for_explaining(&self, options: &Options, began: Duration) -> Budget {
        let decided_in = thread_time().saturating_sub(began);
        let time = options.explain_time.unwrap_or_else(|| EXPLAIN_TIME.max(2 * decided_in));
        Budget { bytes: self.bytes.min(options.explain_memory_bytes), ..self.lend_for(time) }
    }

    /// Subtracts memory from the budget.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.bytes = self.bytes.checked_sub(bytes as u64).ok_or(Exhausted(Limit::Memory))?;
        Ok(())
    }

    /// Returns memory to the budget.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Counts a step. Cheap enough for an inner loop.
    #[inline]
    pub(crate) fn tick(&mut self) -> Result<(), Exhausted> {
        self.ticks += 1;
        if self.ticks < Self::TICKS { Ok(()) } else { self.look_at_the_clock() }
    }

    /// Fails if no time remains. Reads the clock, so it is called only between long steps.
    #[cold]
    pub(crate) fn look_at_the_clock(&mut self) -> Result<(), Exhausted> {
        self.ticks = 0;
        let Some(looks) = self.looks.checked_sub(1) else { return Err(Exhausted(Limit::Time)) };
        self.looks = looks;
        // Relaxed: the flag publishes no data.
        let is_over = self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || self.thread_deadline.is_some_and(|deadline| thread_time() >= deadline);
        if is_over { Err(Exhausted(Limit::Time)) } else { Ok(()) }
    }
}

/// The processor time that this thread has used.
pub(crate) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
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
    fn a_flag_of_another_thread_ends_the_check_and_all_its_loans() {
        let stop = Arc::new(AtomicBool::new(false));
        let mut budget = Budget::new(&Options { stop: Some(Arc::clone(&stop)), ..Options::default() });
        let mut loan = budget.lend_for(Duration::from_secs(60));
        assert_eq!(budget.look_at_the_clock(), Ok(()));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(budget.look_at_the_clock(), Err(Exhausted(Limit::Time)));
        assert_eq!(loan.look_at_the_clock(), Err(Exhausted(Limit::Time)));
    }

    #[test]
    fn lent_time_passes_only_while_the_thread_runs() {
        let mut budget = Budget::new(&Options::default()).lend_for(Duration::from_millis(20));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(budget.look_at_the_clock(), Ok(()), "sleep takes no processor time");
        assert_eq!((0_u64..1 << 40).find_map(|_| budget.tick().err()), Some(Exhausted(Limit::Time)));
    }

    #[test]
    fn a_turn_ends_after_its_ticks_and_leaves_the_lender_time() {
        let mut budget = Budget::new(&Options::default());
        let mut turn = budget.lend_turn(3 * u64::from(Budget::TICKS));
        let end = (1_u32..).find_map(|tick| turn.tick().err().map(|exhausted| (tick, exhausted)));
        assert_eq!(end, Some((3 * Budget::TICKS, Exhausted(Limit::Time))));
        assert_eq!(budget.look_at_the_clock(), Ok(()));
    }

    #[test]
    fn an_explanation_has_limits_of_its_own() {
        let options = Options { explain_time: Some(Duration::ZERO), explain_memory_bytes: 10, ..Options::default() };
        let mut budget = Budget::new(&options).for_explaining(&options, thread_time());
        assert_eq!(budget.charge(11), Err(Exhausted(Limit::Memory)));
        assert_eq!(budget.look_at_the_clock(), Err(Exhausted(Limit::Time)));
        let options = Options { memory_bytes: 5, ..Options::default() };
        let mut budget = Budget::new(&options).for_explaining(&options, thread_time());
        assert_eq!(budget.charge(6), Err(Exhausted(Limit::Memory)), "no more than the whole check");
        assert_eq!(budget.lend_share(2).look_at_the_clock(), Ok(()));
    }

    #[test]
    fn a_loan_never_exceeds_the_remainder() {
        let used_up = Budget::new(&Options::default()).lend_for(Duration::ZERO);
        assert_eq!(used_up.lend_for(Duration::from_secs(60)).look_at_the_clock(), Err(Exhausted(Limit::Time)));
        let over = Budget::new(&Options { time: Some(Duration::ZERO), ..Options::default() });
        assert_eq!(over.lend_for(Duration::from_secs(60)).look_at_the_clock(), Err(Exhausted(Limit::Time)));
    }
}
