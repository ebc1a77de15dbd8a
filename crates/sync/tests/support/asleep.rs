//! Waiting until a thread sleeps.

use std::fs;
use std::time::{Duration, Instant};

/// This thread's id in the kernel.
pub(crate) fn thread_number() -> i32 {
    // SAFETY: `gettid` has no preconditions.
    unsafe { libc::gettid() }
}

/// Waits until a thread of a process sleeps in the kernel.
pub(crate) fn until_asleep(process: i32, thread: i32) {
    let began = Instant::now();
    loop {
        let status = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).unwrap();
        // The state letter follows the name, which is in parentheses.
        if status.rsplit(") ").next().unwrap().starts_with('S') {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "thread {thread} did not fall asleep: {status}");
        std::thread::yield_now();
    }
}
