//! The time that a check takes, regardless of the processors' other work.

use std::time::Duration;

/// The processor time that this thread has used.
pub(crate) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
