//! The clocks of a worker's thread: its processor time, and its waits for a processor.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::time::{ClockId, clock_gettime};

use crate::engine::run::witness::take_charged;

/// A shorter run is taken for processor time; the clock of a thread's processor time costs a system call.
const WORTH_A_CLOCK_NS: u64 = 20_000;

/// The kernel's account of waits for a processor is read after a run of this length of which more than one part in
/// `WAITED_ONE_IN` was no processor time; that takes about a microsecond.
const WORTH_AN_ACCOUNT_NS: u64 = 200_000;
const WAITED_ONE_IN: u64 = 32;

/// The longest time between two runs that is the engine's own work. In a longer one the worker has slept, or another
/// thread has had its processor.
const MAX_BETWEEN_NS: u64 = 50_000;

/// A thread's clocks of processor time, and of waits for a processor.
pub(super) struct Clocks {
    /// The processor time at the last look, and that of runs since then which were too short for one.
    cpu_ns: u64,
    unread_ns: u64,
    /// The runs are of fibers, of which the clocks of a thread tell nothing: they count as waits, apart from what is charged.
    of_fibers: bool,
    /// The kernel's account of this thread, if it keeps one, and the wait at the last look.
    account: Option<File>,
    delayed_ns: u64,
    /// The last run was long, so the next one is worth a look at its beginning.
    long: bool,
    /// The end of the last run, and the time from there to the beginning of the current one if it was short.
    ended_ns: u64,
    between_ns: Option<u64>,
    /// The wait for a processor before the current run, if the worker may have slept.
    wake_delay_ns: Option<u64>,
}

impl Clocks {
    /// The clocks of the calling thread, or of fibers.
    pub(super) fn new(of_fibers: bool) -> Self {
        let account = if of_fibers { None } else { File::open("/proc/thread-self/schedstat").ok() };
        let (cpu_ns, unread_ns, delayed_ns) = (thread_cpu_ns(), 0, 0);
        let mut clocks = Clocks {
            cpu_ns,
            unread_ns,
            of_fibers,
            account,
            delayed_ns,
            long: true,
            ended_ns: 0,
            between_ns: None,
            wake_delay_ns: None,
        };
        clocks.delayed_ns = clocks.delay_ns();
        clocks
    }

    /// The thread begins a run at `now`. Its wait for a processor since the last one is not the run's.
    pub(super) fn begin(&mut self, now: u64) {
        let between_ns = if self.of_fibers { u64::MAX } else { now.saturating_sub(self.ended_ns) };
        self.between_ns = (between_ns <= MAX_BETWEEN_NS).then_some(between_ns);
        match self.between_ns {
            // All of it was the engine's work, so the clocks need no look.
            Some(between_ns) => self.unread_ns += between_ns,
            None if self.long && !self.of_fibers => {
                (self.cpu_ns, self.unread_ns) = (thread_cpu_ns(), 0);
                let total_ns = self.delay_ns();
                let delay_ns = total_ns.saturating_sub(std::mem::replace(&mut self.delayed_ns, total_ns));
                self.wake_delay_ns = (self.ended_ns > 0).then_some(delay_ns);
            }
            None => {}
        }
    }

    /// Takes the time that the engine has worked between the last run and the current one; `None` if the worker may have
    /// slept meanwhile. A run that follows on another without a [`begin`](Self::begin) took none.
    pub(super) fn take_between(&mut self) -> Option<u64> {
        let next = if self.of_fibers { None } else { Some(0) };
        std::mem::replace(&mut self.between_ns, next)
    }

    /// Takes the time for which the worker, woken for the current run, waited for a processor; `None` if it was not woken, or
    /// did not look.
    pub(super) fn take_wake_delay(&mut self) -> Option<u64> {
        self.wake_delay_ns.take()
    }

    /// The processor time of a run from `began_ns` to `ended_ns`, with that charged to it, and its wait for a processor;
    /// `None` if all of its time was processor time, as far as is known.
    pub(super) fn end(&mut self, began_ns: u64, ended_ns: u64) -> Option<(u64, u64)> {
        let wall_ns = ended_ns.saturating_sub(began_ns);
        self.ended_ns = ended_ns;
        let (charged_ns, charged_delay_ns) = take_charged();
        self.long = wall_ns >= WORTH_AN_ACCOUNT_NS;
        if wall_ns < WORTH_A_CLOCK_NS && charged_ns == 0 {
            self.unread_ns += wall_ns;
            return None;
        }
        if self.of_fibers {
            return Some((charged_ns, charged_delay_ns));
        }
        let cpu_ns = thread_cpu_ns();
        let own_ns = cpu_ns.saturating_sub(self.cpu_ns).saturating_sub(self.unread_ns).min(wall_ns);
        (self.cpu_ns, self.unread_ns) = (cpu_ns, 0);
        let mut delayed_ns = charged_delay_ns;
        let rest_ns = wall_ns - own_ns;
        if self.long && rest_ns > wall_ns / WAITED_ONE_IN {
            let total_ns = self.delay_ns();
            // The last look may have been before earlier runs.
            delayed_ns += total_ns.saturating_sub(std::mem::replace(&mut self.delayed_ns, total_ns)).min(rest_ns);
        }
        Some((own_ns + charged_ns, delayed_ns))
    }

    /// Forgets all time before the next run.
    pub(super) fn forget(&mut self) {
        let _ = take_charged();
        (self.long, self.ended_ns, self.wake_delay_ns) = (true, 0, None);
    }

    /// The time that this thread has waited for a processor so far, by the kernel's account.
    fn delay_ns(&self) -> u64 {
        let mut text = [0; 64];
        let read = self.account.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let second = std::str::from_utf8(&text[..read]).ok().and_then(|text| text.split_whitespace().nth(1));
        second.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_takes_no_processor_time_and_a_busy_loop_does() {
        let mut clocks = Clocks::new(false);
        let began = std::time::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let (cpu_ns, _) = clocks.end(0, began.elapsed().as_nanos() as u64).unwrap();
        assert!(cpu_ns < 2_000_000, "{cpu_ns}");
        clocks.begin(1_000_000_000);
        let began = thread_cpu_ns();
        while thread_cpu_ns() < began + 3_000_000 {}
        let (cpu_ns, _) = clocks.end(1_000_000_000, 2_000_000_000).unwrap();
        assert!((3_000_000..6_000_000).contains(&cpu_ns), "{cpu_ns}");
        assert_eq!(clocks.end(2_000_000_000, 2_000_000_100), None, "too short for a clock");
    }

    #[test]
    fn the_engine_s_work_between_runs_is_told_apart_from_sleep_and_from_runs() {
        let mut clocks = Clocks::new(false);
        clocks.begin(1_000_000);
        assert_eq!(clocks.take_between(), None, "there was no run before");
        clocks.end(1_000_000, 1_005_000);
        assert_eq!(clocks.take_between(), Some(0), "the run went on into another one");
        clocks.begin(1_007_000);
        assert_eq!(clocks.take_between(), Some(2_000));
        assert_eq!(clocks.unread_ns, 5_000 + 2_000);
        clocks.end(1_007_000, 1_008_000);
        clocks.begin(1_008_001 + MAX_BETWEEN_NS);
        assert_eq!(clocks.take_between(), None, "the worker may have slept");
        clocks.forget();
        clocks.begin(1_100_000);
        assert_eq!(clocks.take_between(), None);
    }

    #[test]
    fn charged_time_belongs_to_the_run_that_it_was_charged_in() {
        use std::time::Duration;
        let mut clocks = Clocks::new(false);
        crate::engine::run::witness::charge(Duration::from_millis(7), Duration::from_millis(2));
        let (cpu_ns, delayed_ns) = clocks.end(0, 9_000).unwrap();
        assert!((7_000_000..7_020_000).contains(&cpu_ns) && delayed_ns == 2_000_000);
        assert_eq!(clocks.end(9_000, 18_000), None);
    }
}
