//! Runs tests of descriptors under every threading model and every model of waiting.

use millstream_fiber::{IoModel, Options, Runtime, Threads};

pub(crate) const IO_MODELS: [IoModel; 4] =
    [IoModel::Blocking, IoModel::NonBlocking, IoModel::Readiness, IoModel::Completion];

/// Runs `test` in a runtime for each combination of models, and checks that no fiber is left.
#[allow(dead_code, reason = "not every test program uses it")]
pub(crate) fn under_each_io(test: impl Fn(&Runtime)) {
    for threads in [Threads::OneEach, Threads::One, Threads::Workers(3)] {
        for io in IO_MODELS {
            println!("{threads:?}, {io:?}");
            let runtime = Runtime::start(Options::new(threads).io(io)).unwrap();
            test(&runtime);
            while runtime.live_fibers() > 0 {
                std::thread::yield_now();
            }
        }
    }
}
