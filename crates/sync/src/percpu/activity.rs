//! What another thread is doing, as far as the scheduler knows.

use std::{fs, mem};

/// Whether a thread is on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It runs at this moment.
    Running,
    /// It could run, and has no processor: it was preempted, or was just woken.
    Preempted,
    /// It waits for something: a lock, a file, a timer.
    Asleep,
    /// There is no such thread in this process.
    Ended,
}

/// What the thread of this process that the kernel knows by this number (gettid(2)) does now.
///
/// A thread that runs uses processor time, and the kernel tells how much to the nanosecond: if the thread's clock moves between two
/// looks, it runs. If not, its state in /proc says whether it could. The answer may be out of date when it is read: treat
/// it as advice. Two system calls, below a microsecond, for a thread that runs; a small file in /proc otherwise.
///
/// ```
/// use millstream_sync::percpu::{Activity, activity};
///
/// # // SAFETY: no arguments.
/// let me = unsafe { libc::gettid() };
/// assert_eq!(activity(me), Activity::Running);
/// ```
#[must_use]
pub fn activity(thread: i32) -> Activity {
    if thread <= 0 {
        // To the kernel zero is the caller.
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
    /// `CPUCLOCK_SCHED`, of one thread: the scheduler's own account.
    const SCHEDULER: libc::clockid_t = 2 | 4;
    let clock: libc::clockid_t = (!thread) << 3 | SCHEDULER;
    // SAFETY: room for a time.
    unsafe {
        let mut time: libc::timespec = mem::zeroed();
        (libc::clock_gettime(clock, &raw mut time) == 0)
            .then(|| time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
    }
}

/// The letter that follows the name, which is in parentheses and may hold anything.
fn state(thread: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
