//! The clocks of a worker's thread: its processor time, and its waits for a processor.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::time::{ClockId, clock_gettime};

use crate::engine::run::witness::take_charged;

/// A shorter run is taken for processor time; the clock of a thread's processor time costs a system call.
const WORTH_A_CLOCK_NS: u64 = 20_000;

/// The kernel's account of waits for a processor is read after a run of this length; that takes about a microsecond.
const WORTH_AN_ACCOUNT_NS: u64 = 200_000;

/// A thread's clocks of processor time, and of waits for a processor.
pub(super) struct Clocks {
    /// The processor time at the last look, and that of runs since then which were too short for one.
    cpu_ns: u64,
    unread_ns: u64,
    /// The kernel's account of this thread, if it keeps one, and the wait at the last look.
    account: Option<File>,
    delayed_ns: u64,
    /// The last run was long, so the next one is worth a look at its beginning.
    long: bool,
}

impl Clocks {
    pub(super) fn new() -> Self {
        let account = File::open("/proc/thread-self/schedstat").ok();
        let mut clocks = Clocks { cpu_ns: 0, unread_ns: 0, account, delayed_ns: 0, long: true };
        clocks.begin();
        clocks
    }

    /// The thread begins a run. Its wait for a processor since the last one is not the run's.
    pub(super) fn begin(&mut self) {
        if self.long {
            (self.cpu_ns, self.unread_ns) = (thread_cpu_ns(), 0);
            self.delayed_ns = self.delay_ns();
        }
    }

    /// The processor time of a run of `wall_ns`, with that charged to it, and its wait for a processor; `None` if all of
    /// its time was processor time, as far as is known.
    pub(super) fn end(&mut self, wall_ns: u64) -> Option<(u64, u64)> {
        let (charged_ns, charged_delay_ns) = take_charged();
        self.long = wall_ns >= WORTH_AN_ACCOUNT_NS;
        if wall_ns < WORTH_A_CLOCK_NS && charged_ns == 0 {
            self.unread_ns += wall_ns;
            return None;
        }
        let cpu_ns = thread_cpu_ns();
        let own_ns = cpu_ns.saturating_sub(self.cpu_ns).saturating_sub(self.unread_ns).min(wall_ns);
        (self.cpu_ns, self.unread_ns) = (cpu_ns, 0);
        let mut delayed_ns = charged_delay_ns;
        if self.long {
            let total_ns = self.delay_ns();
            delayed_ns += total_ns.saturating_sub(std::mem::replace(&mut self.delayed_ns, total_ns));
        }
        Some((own_ns + charged_ns, delayed_ns))
    }

    /// Forgets all time before the next run.
    pub(super) fn forget(&mut self) {
        let _ = take_charged();
        self.long = true;
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
        let mut clocks = Clocks::new();
        let began = std::time::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let (cpu_ns, _) = clocks.end(began.elapsed().as_nanos() as u64).unwrap();
        assert!(cpu_ns < 2_000_000, "{cpu_ns}");
        clocks.begin();
        let began = thread_cpu_ns();
        while thread_cpu_ns() < began + 3_000_000 {}
        let (cpu_ns, _) = clocks.end(1_000_000_000).unwrap();
        assert!((3_000_000..6_000_000).contains(&cpu_ns), "{cpu_ns}");
        assert_eq!(clocks.end(100), None, "too short for a clock");
    }

    #[test]
    fn charged_time_belongs_to_the_run_that_it_was_charged_in() {
        use std::time::Duration;
        let mut clocks = Clocks::new();
        crate::engine::run::witness::charge(Duration::from_millis(7), Duration::from_millis(2));
        let (cpu_ns, delayed_ns) = clocks.end(9_000).unwrap();
        assert!((7_000_000..7_020_000).contains(&cpu_ns) && delayed_ns == 2_000_000);
        assert_eq!(clocks.end(9_000), None);
    }
}
