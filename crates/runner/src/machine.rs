//! The load and free memory of the whole machine, including other users' programs: no program starts while the load is
//! too high or the free memory too small.
//!
//! The kernel's numbers are read at most once in [`LOOK`], and do not yet include programs that have just started. So
//! each reading allows a limited number of starts: under a limit on runnable threads, as many as the limit leaves room
//! for; under a limit on memory, one.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use millstream_command::screen::text;
use millstream_flow::{Cx, Failure};

use crate::file::model::MachineSpec;

/// The minimum time between two readings of the machine's numbers. A unit that waits checks the numbers again after
/// this time.
const LOOK: Duration = Duration::from_millis(50);
/// The pause of a unit that has waited too long for the machine, and so returns to its queue.
const PAUSE: Duration = Duration::from_secs(1);

/// The pause of a unit that returns to its queue because the run ends. It is longer than the end of the run takes.
const LONG: Duration = Duration::from_secs(3600);

/// See the [module](self).
#[derive(Debug)]
pub struct Machine {
    spec: MachineSpec,
    looked: Mutex<Option<Looked>>,
    /// Set when the run ends, so that all waits end. Both flags are accessed with `Relaxed`, since they publish no
    /// other data.
    ends: AtomicBool,
    /// Whether a unit was sent back to its queue after `ends` was set.
    sent_back: AtomicBool,
}

/// The last reading.
#[derive(Debug)]
struct Looked {
    at: Instant,
    /// The number of starts that the last reading still allows.
    starts: u64,
    /// The reason why the last reading allowed no start; `None` if it allowed a start.
    short: Option<String>,
}

impl Machine {
    /// The machine, with the bounds that the flow file sets.
    pub fn new(spec: MachineSpec) -> Self {
        Self { spec, looked: Mutex::new(None), ends: AtomicBool::new(false), sent_back: AtomicBool::new(false) }
    }

    /// Waits until a program may start, for at most half of the stage's time limit.
    ///
    /// # Errors
    /// The unit has waited too long and goes back to its queue, or the flow was abandoned.
    pub fn await_start(&self, cx: &Cx<'_>) -> Result<(), Failure> {
        if self.spec == MachineSpec::default() {
            return Ok(());
        }
        let begun = Instant::now();
        let patience = cx.deadline().map(|deadline| deadline.saturating_duration_since(begun) / 2);
        while !self.may_start() {
            cx.check()?;
            if self.ends.load(Ordering::Relaxed) {
                self.sent_back.store(true, Ordering::Relaxed);
                return Err(Failure::requeue("the run ends, and the machine is busy").not_before(LONG));
            }
            if patience.is_some_and(|patience| begun.elapsed() >= patience) {
                return Err(Failure::requeue("the machine is busy").not_before(PAUSE));
            }
            millstream_fiber::sleep(LOOK);
        }
        Ok(())
    }

    /// Ends all waiting because the run ends: units that wait for the machine go back to their queue.
    pub fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    /// Whether units were sent back with a pause that outlasts the run.
    pub fn has_sent_back(&self) -> bool {
        self.sent_back.load(Ordering::Relaxed)
    }

    /// The reason why the last reading allowed no program to start; `None` if it allowed a start, or if there was no
    /// reading.
    pub fn short(&self) -> Option<String> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.short.clone()
    }

    fn may_start(&self) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = looked.take().filter(|looked| looked.at.elapsed() < LOOK).unwrap_or_else(|| self.look());
        let may = now.starts > 0;
        now.starts = now.starts.saturating_sub(1);
        *looked = Some(now);
        may
    }

    fn look(&self) -> Looked {
        let mut looked = Looked { at: Instant::now(), starts: u64::MAX, short: None };
        // If the kernel does not provide a number, the limit on that number delays no program.
        if let (Some(limit), Some(running)) = (self.spec.load, runnable()) {
            looked.starts = limit.saturating_sub(running);
            if looked.starts == 0 {
                looked.short = Some(format!("{} runnable, and `load` is {limit}", text::counted(running, "thread")));
            }
        }
        if let (Some(least), Some(available)) = (self.spec.memory_free, available()) {
            looked.starts = looked.starts.min(u64::from(available >= least));
            if available < least {
                let (least, available) = (text::bytes(least), text::bytes(available));
                looked.short = Some(format!("{available} of memory are available, and `memory_free` is {least}"));
            }
        }
        looked
    }
}

/// The number of runnable threads, without the calling thread; `None` if the kernel does not provide it.
fn runnable() -> Option<u64> {
    runnable_in(&fs::read_to_string("/proc/loadavg").ok()?)
}

fn runnable_in(loadavg: &str) -> Option<u64> {
    let (running, _) = loadavg.split_whitespace().nth(3)?.split_once('/')?;
    running.parse::<u64>().ok().map(|running| running.saturating_sub(1))
}

/// The number of bytes that programs can allocate without swapping; `None` if the kernel does not provide it.
fn available() -> Option<u64> {
    available_in(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_numbers_are_read() {
        assert_eq!(runnable_in("0.20 0.18 0.12 3/80 11206\n"), Some(2));
        assert_eq!(runnable_in("nonsense"), None);
        assert_eq!(available_in("MemTotal: 8 kB\nMemAvailable:   7012 kB\n"), Some(7012 << 10));
        assert_eq!(available_in("MemTotal: 8 kB\n"), None);
        assert!(runnable().is_some() && available().is_some());
    }

    #[test]
    fn a_limit_that_cannot_be_met_allows_no_start_and_gives_the_reason() {
        let machine = Machine::new(MachineSpec { load: None, memory_free: Some(u64::MAX) });
        assert!(!machine.may_start());
        assert!(machine.short().unwrap().contains("`memory_free` is"), "{:?}", machine.short());
        let machine = Machine::new(MachineSpec { load: Some(0), memory_free: None });
        assert!(!machine.may_start());
    }

    #[test]
    fn if_memory_is_limited_a_reading_allows_one_start() {
        let machine = Machine::new(MachineSpec { load: Some(1 << 20), memory_free: Some(1) });
        assert!(machine.may_start());
        let second = machine.may_start();
        // If the test was suspended in between, another reading may have allowed the start.
        assert!(!second || machine.looked.lock().unwrap().as_ref().unwrap().at.elapsed() < LOOK);
        assert_eq!(machine.short(), None);
    }
}
