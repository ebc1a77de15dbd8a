//! The clocks of a worker's thread: its processor time, and its waits for a processor.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::time::{ClockId, clock_gettime};

use crate::engine::run::witness::take_charged;

/// A run shorter than this counts entirely as processor time, because reading a thread's processor time costs a system
/// call.
const WORTH_A_CLOCK_NS: u64 = 20_000;

/// Reading the kernel's account of waits for a processor takes about a microsecond. So the account is read only after
/// a run that took at least this long and spent more than 1/`WAITED_ONE_IN` of the time without the processor.
const WORTH_AN_ACCOUNT_NS: u64 = 200_000;
const WAITED_ONE_IN: u64 = 32;

/// The longest time between two runs, without a sleep, that counts as the engine's own work. If the time is longer,
/// another thread is assumed to have used the processor.
const MAX_BETWEEN_NS: u64 = 50_000;

/// One sleep in this many is timed, by reading the kernel's account before and after it.
const TIMED_ONE_IN: u32 = 4;

/// A thread's clocks of processor time, and of waits for a processor.
pub(super) struct Clocks {
    /// The processor time at the last reading.
    cpu_ns: u64,
    /// Time since the last reading that counts as processor time: the runs that were too short to be read separately,
    /// and the engine's work between runs.
    unread_ns: u64,
    /// Whether the runs are those of fibers. The clocks of a thread say nothing about a fiber, so such runs count as
    /// waits, except for the processor time that is charged to them.
    of_fibers: bool,
    /// The kernel's account of this thread, if the kernel keeps one.
    account: Option<File>,
    /// The total wait for a processor at the last reading of the account.
    delayed_ns: u64,
    /// Whether the last run was long enough that it is worthwhile to read the clocks at the beginning of the next run.
    long: bool,
    /// The end of the last run.
    ended_ns: u64,
    /// The time between the last run and the current one, if that time was short.
    between_ns: Option<u64>,
    rest: Rest,
    /// The number of sleeps so far.
    rests: u32,
    /// The wait for a processor after the sleep that preceded the current run, if that sleep was timed.
    wake_delay_ns: Option<u64>,
}

/// Whether a worker has slept since its last run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// The worker has not slept.
    None,
    Untimed,
    /// The worker has slept, and the kernel's account was read before the sleep.
    Timed,
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
            rest: Rest::None,
            rests: 0,
            wake_delay_ns: None,
        };
        clocks.delayed_ns = clocks.delay_ns();
        clocks
    }

    /// Called before the thread goes to sleep until there is work.
    pub(super) fn rest(&mut self) {
        self.rest = if self.rests.is_multiple_of(TIMED_ONE_IN) && !self.of_fibers {
            self.delayed_ns = self.delay_ns();
            Rest::Timed
        } else {
            Rest::Untimed
        };
        self.rests = self.rests.wrapping_add(1);
    }

    /// Called when the thread begins a run at `now`. A wait for a processor between the last run
    /// and this one does not count towards this run.
    pub(super) fn begin(&mut self, now: u64) {
        self.between_ns = None;
        let between_ns = now.saturating_sub(self.ended_ns);
        match std::mem::replace(&mut self.rest, Rest::None) {
            _ if self.of_fibers => {}
            // All of the time between the runs was the engine's work, so the clocks need not be read.
            Rest::None if between_ns <= MAX_BETWEEN_NS => {
                self.unread_ns += between_ns;
                self.between_ns = Some(between_ns);
            }
            Rest::Timed => self.wake_delay_ns = Some(self.read()),
            Rest::None | Rest::Untimed if self.long => {
                self.read();
            }
            Rest::None | Rest::Untimed => {}
        }
    }

    /// Reads the clocks. Returns the wait for a processor since the last reading.
    fn read(&mut self) -> u64 {
        (self.cpu_ns, self.unread_ns) = (thread_cpu_ns(), 0);
        let total_ns = self.delay_ns();
        total_ns.saturating_sub(std::mem::replace(&mut self.delayed_ns, total_ns))
    }

    /// Takes the time of the engine's own work between the last run and the current one; `None` if the worker may have
    /// slept in between. For a run that directly follows another run, without a call to [`begin`](Self::begin), the
    /// time is 0.
    pub(super) fn take_between(&mut self) -> Option<u64> {
        let next = if self.of_fibers { None } else { Some(0) };
        std::mem::replace(&mut self.between_ns, next)
    }

    /// Takes the time between the wake-up for the current run and the moment when the worker got a processor; `None`
    /// if the worker was not woken, or its sleep was not timed.
    pub(super) fn take_wake_delay(&mut self) -> Option<u64> {
        self.wake_delay_ns.take()
    }

    /// The processor time of a run from `began_ns` to `ended_ns`, including the time charged to it, and its wait for a
    /// processor. `None` if all of its time was processor time, as far as is known.
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
            // The wait since the last reading may include waits of earlier runs, so it is limited to
            // this run's time without the processor.
            delayed_ns += total_ns.saturating_sub(std::mem::replace(&mut self.delayed_ns, total_ns)).min(rest_ns);
        }
        Some((own_ns + charged_ns, delayed_ns))
    }

    /// Discards the measurements, so that no time before the next run counts.
    pub(super) fn forget(&mut self) {
        let _ = take_charged();
        (self.long, self.ended_ns, self.rest, self.wake_delay_ns) = (true, 0, Rest::None, None);
    }

    /// The total time for which this thread has waited for a processor, according to the kernel's account.
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
    fn the_engine_s_work_between_runs_is_distinguished_from_sleep_and_from_runs() {
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
        assert_eq!((clocks.take_between(), clocks.take_wake_delay()), (None, None), "it was preempted");
        clocks.end(1_058_001, 1_059_000);
        clocks.rest();
        clocks.begin(1_060_000);
        assert_eq!(clocks.take_between(), None, "the worker has slept");
        assert!(clocks.take_wake_delay().is_some_and(|ns| ns < 1_000_000_000), "the first sleep is timed");
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
