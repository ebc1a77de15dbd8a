//! Sleeping and waking across processes.
//!
//! The waker stores its position, *then* adds 1 to a count. The sleeper takes a snapshot of the count, *then* checks
//! the position. If the count is still the same, it sets a flag in the count's word and sleeps. All changes to the word
//! are totally ordered. If the addition comes before the flag is set, the sleeper's snapshot includes the addition, so
//! the sleeper's check saw the position. If the addition comes after the flag, the waker sees the flag, and wakes the
//! sleeper. No other word says that a process sleeps, so neither side needs a fence.
//!
//! **A waker that is killed** during these steps leaves one of three states:
//!
//! - The position is stored, but the count is unchanged. The sleeper stays asleep.
//! - The count is changed, but the flag is still set, and the waker has not called the kernel.
//! - The flag is cleared, too, but the waker has not called the kernel. Later wakers find no flag.
//!
//! A process that takes over the role first adds to the count, which resolves the first two states. To cover the third
//! state, and the case that no process takes over, the sleeper also checks once a second on its own. A *sleeper* that
//! is killed leaves its flag set, which costs one needless system call.
//!
//! The count may wrap around: after 2^31 additions it has its old value. While one side sleeps, the other can add at
//! most once per slot, so a wrap-around needs a ring of 2^31 slots. Even then, the check that the sleeper makes once a
//! second succeeds.

use std::time::{Duration, Instant};

use millstream_sync::eventcount::{SharedEventCount, SpinPolicy};

/// The longest sleep without a check. In a model it is unlimited, so that the model finds lost wake-ups.
const MAX_SLEEP: Option<Duration> = if cfg!(loom) { None } else { Some(Duration::from_secs(1)) };

/// In a model, repeated checks reveal nothing.
const POLICY: SpinPolicy = if cfg!(loom) { SpinPolicy::NONE } else { SpinPolicy::DEFAULT };

/// The word on which one side sleeps, and through which the other side wakes it.
#[repr(transparent)]
pub(super) struct Sleeper(SharedEventCount);

impl Sleeper {
    /// Wakes the other side, if it sleeps.
    pub(super) fn wake(&self) {
        // Release pairs with the acquire of the sleeper's snapshot: a sleeper that sees this addition also sees the
        // position that was stored before it.
        self.0.increment();
    }

    /// Sleeps until `check` returns a value; `None` if the deadline passes first.
    pub(super) fn sleep<R>(&self, deadline: Option<Instant>, mut check: impl FnMut() -> Option<R>) -> Option<R> {
        loop {
            let limit = MAX_SLEEP.map(|longest| Instant::now() + longest);
            let until = [deadline, limit].into_iter().flatten().min();
            let found = self.0.wait_for_with(&mut check, until, POLICY);
            if found.is_some() || until == deadline {
                return found;
            }
        }
    }
}

#[cfg(loom)]
impl Sleeper {
    pub(super) fn new() -> Self {
        Sleeper(SharedEventCount::new())
    }

    /// Imitates a process that is killed during a wake-up: changes the count, but wakes no thread.
    pub(super) fn wake_and_be_killed(&self) {
        self.0.add_waking(1, 0);
    }
}
