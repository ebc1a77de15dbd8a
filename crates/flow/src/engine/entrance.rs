//! The entrance: submitters that wait until there is room, first come, first served.
//!
//! Nobody passes a submitter that waits: a newcomer goes to the end, and one that does not wait is told that
//! the flow is full. So a large unit gets in although smaller ones keep coming, and one that is larger than
//! the whole budget closes admission until the flow is empty.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use millstream_sync::eventcount::EventCount;

#[derive(Default)]
pub(crate) struct Entrance {
    line: VecDeque<Waiting>,
    next: u64,
}

struct Waiting {
    place: u64,
    /// How many units will have left the gate before it is its turn.
    behind: u64,
    bytes: u64,
    /// A source, which need not be woken for a single unit (see `State::wants_more`).
    is_source: bool,
    wake: Wake,
    woken: bool,
}

pub(crate) enum Wake {
    Thread(Arc<EventCount>),
    Task(Waker),
}

impl Wake {
    pub(crate) fn wake(&self) {
        match self {
            Wake::Thread(bell) => bell.increment(),
            Wake::Task(waker) => waker.wake_by_ref(),
        }
    }

    fn share(&self) -> Wake {
        match self {
            Wake::Thread(bell) => Wake::Thread(bell.clone()),
            Wake::Task(waker) => Wake::Task(waker.clone()),
        }
    }
}

impl Entrance {
    pub(crate) fn len(&self) -> usize {
        self.line.len()
    }

    /// Whether whoever has `place` (`None`: a newcomer) is the next to enter.
    pub(crate) fn is_next(&self, place: Option<u64>) -> bool {
        self.line.front().is_none_or(|head| Some(head.place) == place)
    }

    /// How many units will have left the gate when the head of the line goes in.
    pub(crate) fn head_is_behind(&self) -> Option<u64> {
        self.line.front().map(|head| head.behind)
    }

    /// Waits at the end of the line, or on, with a new way to be woken; a newcomer behind the units that are before the gate now.
    /// Returns what was replaced, to be dropped outside of the mutex.
    pub(crate) fn wait(
        &mut self,
        place: &mut Option<u64>,
        behind: u64,
        bytes: u64,
        is_source: bool,
        wake: Wake,
    ) -> Option<Wake> {
        if let Some(waiting) = self.line.iter_mut().find(|waiting| Some(waiting.place) == *place) {
            waiting.woken = false;
            return Some(std::mem::replace(&mut waiting.wake, wake));
        }
        *place = Some(self.next);
        self.line.push_back(Waiting { place: self.next, behind, bytes, is_source, wake, woken: false });
        self.next += 1;
        None
    }

    /// Leaves the line. Returns what is to be dropped outside of the mutex.
    pub(crate) fn leave(&mut self, place: Option<u64>) -> Option<Wake> {
        let at = self.line.iter().position(|waiting| Some(waiting.place) == place)?;
        self.line.remove(at).map(|waiting| waiting.wake)
    }

    /// The way to wake the head, if it has not been woken, so many units have `left` the gate, and `may_enter(bytes, is_source)`.
    pub(crate) fn wake_head(&mut self, left: u64, may_enter: impl FnOnce(u64, bool) -> bool) -> Option<Wake> {
        let is_next = |head: &Waiting| !head.woken && head.behind <= left;
        let head = self.line.front_mut().filter(|head| is_next(head) && may_enter(head.bytes, head.is_source))?;
        head.woken = true;
        Some(head.wake.share())
    }

    /// The ways to wake everybody.
    pub(crate) fn wake_all(&mut self) -> Vec<Wake> {
        let sleeping = self.line.iter_mut().filter(|waiting| !waiting.woken);
        sleeping
            .map(|waiting| {
                waiting.woken = true;
                waiting.wake.share()
            })
            .collect()
    }
}
