//! The processor time of a check, which does not depend on the load of the machine.

use std::time::Duration;

/// The processor time that this thread has used.
pub(crate) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
