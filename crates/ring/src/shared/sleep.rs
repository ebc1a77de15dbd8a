//! Sleeping and waking across processes.
//!
//! The sleeper says that it sleeps, *then* looks; the waker stores its position, *then* looks whether somebody sleeps. A full fence
//! between the two on both sides: either the waker sees the sleeper, or the sleeper sees the position. The event count does
//! the rest. A sleeper that crashed leaves its flag; all it costs is one system call.

use std::time::Instant;

use millstream_sync::eventcount::{Patience, Waited};

use super::header::Sleeper;
use crate::primitive::atomic::{Ordering, fence};

/// In a model nothing is gained by looking more often.
const PATIENCE: Patience = if cfg!(loom) { Patience::NONE } else { Patience::DEFAULT };

impl Sleeper {
    /// Wakes the other side, if it sleeps.
    pub(super) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) != 0 {
            // Relaxed: who goes to sleep after this says so again.
            self.asleep.store(0, Ordering::Relaxed);
            self.count.increment();
        }
    }

    /// Sleeps until `look` finds something; `None` if the deadline passes first.
    pub(super) fn sleep<R>(&self, deadline: Option<Instant>, mut look: impl FnMut() -> Option<R>) -> Option<R> {
        loop {
            let key = self.count.snapshot();
            self.asleep.store(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if let Some(found) = look() {
                return Some(found);
            }
            if self.count.wait_patiently(key, deadline, &PATIENCE) == Waited::TimedOut {
                return look();
            }
        }
    }
}
