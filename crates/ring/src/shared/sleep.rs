//! Sleeping and waking across processes.
//!
//! The waker stores its position, *then* adds to a count. The sleeper takes a snapshot of the count, *then* looks for the position, then
//! sets a flag in the word of the count, if the count is still the same, and sleeps. All changes of the word have one
//! order. If the addition comes before the flag, the sleeper knew of it: it saw the addition in its snapshot, and so the position in its
//! look. If it comes after, it finds the flag, and wakes. That is the whole argument: nothing else says that somebody
//! sleeps, and neither side needs a fence.
//!
//! **Wakers that are killed** on the way leave one of three states:
//!
//! - The position is stored, the count is not changed. The sleeper sleeps on.
//! - The count is changed, and the flag stands. The kernel does not know that the sleeper is to be woken.
//! - The flag is taken back, too, and the kernel has not been told yet. So it is for the next one to come, who finds no flag.
//!
//! Whoever takes the place adds to the count first of all, which ends the first two. For the third, and if nobody takes the place, the
//! sleeper looks by itself once a second. A *sleeper* that is killed leaves its flag; all it costs is one system call.
//!
//! The count may turn: 2^31 additions make it what it was. A sleeper is not there to make room or events for so many, unless the ring has
//! as many slots, and then it notices a second later.

use std::time::{Duration, Instant};

use millstream_sync::eventcount::{Patience, SharedEventCount};

/// Nobody sleeps longer without a look. In a model without end, for there a lost wake-up is to be found.
const LONGEST_SLEEP: Option<Duration> = if cfg!(loom) { None } else { Some(Duration::from_secs(1)) };

/// In a model nothing is gained by looking more often.
const PATIENCE: Patience = if cfg!(loom) { Patience::NONE } else { Patience::DEFAULT };

/// What one side sleeps on, and the other wakes it by.
#[repr(transparent)]
pub(super) struct Sleeper(SharedEventCount);

impl Sleeper {
    /// Wakes the other side, if it sleeps.
    pub(super) fn wake(&self) {
        // Release pairs with the acquire of the sleeper's snapshot: who sees this addition sees the position stored before.
        self.0.increment();
    }

    /// Sleeps until `look` finds something; `None` if the deadline passes first.
    pub(super) fn sleep<R>(&self, deadline: Option<Instant>, mut look: impl FnMut() -> Option<R>) -> Option<R> {
        loop {
            let limit = LONGEST_SLEEP.map(|longest| Instant::now() + longest);
            let until = [deadline, limit].into_iter().flatten().min();
            let found = self.0.wait_for_patiently(&mut look, until, &PATIENCE);
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

    /// What is left of a wake by who is killed in it: the count is changed, nobody is woken.
    pub(super) fn wake_and_be_killed(&self) {
        self.0.add_waking(1, 0);
    }
}
