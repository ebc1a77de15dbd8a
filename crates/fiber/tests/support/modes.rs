//! The threading models under which every test runs.

use millstream_fiber::{Options, Runtime, Threads};

pub(crate) const MODES: [Threads; 3] = [Threads::OneEach, Threads::One, Threads::Workers(3)];

/// Runs `test` in a runtime of each threading model, and checks that no fiber is left.
#[allow(dead_code, reason = "not every test program uses it")]
pub(crate) fn under_each(test: impl Fn(&Runtime)) {
    for threads in MODES {
        println!("{threads:?}");
        let runtime = Runtime::start(Options::new(threads)).unwrap();
        test(&runtime);
        while runtime.live_fibers() > 0 {
            std::thread::yield_now();
        }
    }
}
