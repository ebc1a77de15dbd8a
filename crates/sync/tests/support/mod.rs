//! What several of the tests here need.
#![allow(dead_code, reason = "each test program uses its part")]

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// The environment variable that picks the fences.
pub(crate) const FENCE: &str = "MILLSTREAM_FENCE";

/// How many times the usual length the stress tests run.
pub(crate) fn stress() -> u64 {
    std::env::var("MILLSTREAM_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Runs this test program again in a process of its own whose fences are full ones on both sides.
pub(crate) fn again_with_symmetric_fences(this_test: &str) {
    if std::env::var(FENCE).is_ok() {
        return; // We are that process.
    }
    let this_program = std::env::current_exe().unwrap();
    let output = Command::new(this_program).args(["--skip", this_test]).env(FENCE, "symmetric").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("test result: ok") && !text.contains(" 0 passed"), "{text}");
}

/// The number by which the kernel knows this thread.
pub(crate) fn thread_number() -> i32 {
    // SAFETY: gettid has no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// Waits until a thread of a process sleeps in the kernel.
pub(crate) fn until_asleep(process: i32, thread: i32) {
    let began = Instant::now();
    loop {
        let status = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).unwrap();
        // The state follows the name, which is in parentheses.
        if status.rsplit(") ").next().unwrap().starts_with('S') {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "thread {thread} does not fall asleep: {status}");
        std::thread::yield_now();
    }
}

/// A xorshift generator: small, seeded, the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.max(1))
    }

    /// A seed from the environment variable `MILLSTREAM_SEED` or the clock, printed so that a failure can be
    /// repeated.
    pub(crate) fn seed() -> u64 {
        let asked = std::env::var("MILLSTREAM_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = asked.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
        println!("MILLSTREAM_SEED={seed}");
        seed
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
