//! Waiting for events.

use std::time::Instant;

use super::WaitStrategy;
use super::bell::SharedBell;
use super::pace::{Looked, Temper};

/// Where consumers wait for what they follow.
#[derive(Debug)]
pub(crate) struct Arrivals {
    pub(crate) bell: SharedBell,
    /// Whether whoever listens to the bell waits for the same: then one waiter is woken for one event. In a
    /// [`WaitSet`](super::WaitSet) they wait for different rings, and all have to look.
    alike: bool,
    temper: Temper,
}

impl Arrivals {
    /// Waiters on a bell of their own, or on that of a set.
    pub(crate) fn new(strategy: WaitStrategy, set: Option<SharedBell>) -> Self {
        let alike = set.is_none();
        Arrivals { bell: set.unwrap_or_default(), alike, temper: Temper::new(strategy) }
    }

    /// `events` have come, each for one waiter. Calls `fenced` after the light fence, before anybody is woken. Returns whether anybody
    /// waited.
    #[inline(always)]
    pub(crate) fn came(&self, events: usize, fenced: impl FnOnce()) -> bool {
        let heard = self.bell.is_heard();
        fenced();
        if heard {
            self.bell.wake(if self.alike { events } else { usize::MAX });
        }
        heard
    }

    /// Something has changed that concerns all. Calls `fenced` as [`came`](Self::came).
    #[inline(always)]
    pub(crate) fn changed(&self, fenced: impl FnOnce()) {
        let heard = self.bell.is_heard();
        fenced();
        if heard {
            self.bell.wake(usize::MAX);
        }
    }

    /// Waits until `look` finds something; `None` when the deadline has passed and it still does not. Who sleeps calls `glance` instead, before
    /// and after: it need not find all, but soon. Calls `in_vain` when there is nothing after the first pauses, and again before it sleeps.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait<R>(
        &self,
        deadline: Option<Instant>,
        in_vain: impl Fn(),
        look: impl Fn() -> Option<R>,
        glance: impl Fn() -> Option<R>,
    ) -> Option<R> {
        let looked = self.temper.start().look(deadline, |pace| {
            let found = look();
            if found.is_none() && pace.yields_next() {
                in_vain();
            }
            found
        });
        match looked {
            Looked::Found(found) => Some(found),
            Looked::TimedOut => None,
            Looked::InVain => {
                in_vain();
                let began = self.temper.times_sleep().then(Instant::now);
                let found = self.bell.wait(deadline, glance);
                if let Some(began) = began {
                    self.temper.slept_since(began);
                }
                found
            }
        }
    }

    /// Looks where what has come ends, for a consumer that is through with all before `from` and may wait; first lets events gather,
    /// if they come in small portions.
    #[inline]
    pub(crate) fn look_again(&self, from: u64, capacity: u64, look: impl FnOnce() -> u64) -> u64 {
        self.temper.let_gather();
        let until = look();
        if until > from {
            self.gathered(until - from, capacity);
        }
        until
    }

    /// Tells how many positions of `capacity` had gathered when somebody looked.
    pub(crate) fn gathered(&self, positions: u64, capacity: u64) {
        self.temper.gathered(positions, capacity);
    }
}
