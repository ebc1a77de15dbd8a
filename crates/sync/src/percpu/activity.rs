//! The activity of another thread, as far as the scheduler knows.

use std::{fs, mem};

/// Whether a thread is on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// The thread is running at this moment.
    Running,
    /// The thread could run but has no processor: it was preempted, or was just woken.
    Preempted,
    /// The thread waits for an event: a lock, a file, a timer.
    Asleep,
    /// No thread of this process has this id.
    Ended,
}

/// The current activity of the thread of this process with the kernel's thread id `thread` (gettid(2)).
///
/// A running thread uses processor time, which the kernel reports to the nanosecond: if the thread's clock advances
/// between two readings, the thread is running. If not, its state in /proc tells whether it could run. The result may
/// be out of date when the caller reads it: treat it as advice. For a running thread the cost is two system calls,
/// below a microsecond; for other threads, a small file in /proc is read, too.
///
/// ```
/// use millstream_sync::percpu::{Activity, activity};
///
/// # // SAFETY: `gettid` has no preconditions.
/// let me = unsafe { libc::gettid() };
/// assert_eq!(activity(me), Activity::Running);
/// ```
#[must_use]
pub fn activity(thread: i32) -> Activity {
    if thread <= 0 {
        // To the kernel, zero means the caller.
        return Activity::Ended;
    }
    let Some(before) = time_used_ns(thread) else { return Activity::Ended };
    match time_used_ns(thread) {
        None => Activity::Ended,
        Some(after) if after > before => Activity::Running,
        Some(_) => match state(thread) {
            Some('R') => Activity::Preempted,
            Some('Z' | 'X') | None => Activity::Ended,
            Some(_) => Activity::Asleep,
        },
    }
}

/// The processor time that a thread of this process has used.
fn time_used_ns(thread: i32) -> Option<u64> {
    /// `CPUCLOCK_SCHED` of one thread: the scheduler's own accounting.
    const SCHEDULER: libc::clockid_t = 2 | 4;
    let clock: libc::clockid_t = (!thread) << 3 | SCHEDULER;
    // SAFETY: zeros are a valid timespec, and `clock_gettime` writes to that one alone.
    unsafe {
        let mut time: libc::timespec = mem::zeroed();
        (libc::clock_gettime(clock, &raw mut time) == 0)
            .then(|| time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
    }
}

/// The state letter, which is `R` both for a thread that runs and for a thread that could run. It follows the name,
/// which is in parentheses and may contain any character.
fn state(thread: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
