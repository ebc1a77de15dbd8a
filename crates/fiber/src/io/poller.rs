//! Readiness: a worker's epoll instance, and the fibers that wait for descriptors.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::alarm::EventFd;
use super::ring::Ring;
use crate::scheduler::core::Core;

/// Events taken from the kernel at once.
const EVENTS: usize = 256;

/// The mark of the alarm's event. Descriptors are never negative.
const ALARM: u64 = u64::MAX;

/// The mark of the ring's event.
const RING: u64 = u64::MAX - 1;

/// The direction of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
}

impl Interest {
    /// The events that end a wait. Errors end both kinds: the call then finds out which it is.
    fn events(self) -> EventFlags {
        let own = match self {
            Interest::Read => EventFlags::IN | EventFlags::RDHUP,
            Interest::Write => EventFlags::OUT,
        };
        own | EventFlags::ERR | EventFlags::HUP
    }
}

/// The pollers that a descriptor is registered with. Closing the last owner of the open file takes it out of them; while a
/// clone lives, its events may wake the waiters of a later descriptor of the same number, for no reason.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The first one's number, or 0: mostly there is no other.
    first: AtomicU64,
    /// With the alarm of each, which lives as long as the poller.
    others: Mutex<Vec<(u64, Weak<OwnedFd>)>>,
}

impl Watch {
    /// Whether this poller has the descriptor. Relaxed: only the poller's own thread notes its number.
    fn is_noted(&self, poller: u64) -> bool {
        let first = self.first.load(Relaxed);
        first == poller || (first != 0 && self.others.lock().iter().any(|&(other, _)| other == poller))
    }

    /// Notes a poller, and forgets those that are gone.
    fn note(&self, poller: &Poller) {
        if self.first.compare_exchange(0, poller.number, Relaxed, Relaxed).is_err() {
            let mut others = self.others.lock();
            others.retain(|(_, alarm)| alarm.strong_count() > 0);
            others.push((poller.number, Arc::downgrade(&poller.alarm)));
        }
    }
}

/// The fibers that wait for a descriptor.
#[derive(Default)]
struct Waiters {
    readers: Vec<Arc<Core>>,
    writers: Vec<Arc<Core>>,
}

impl Waiters {
    fn of(&mut self, interest: Interest) -> &mut Vec<Arc<Core>> {
        match interest {
            Interest::Read => &mut self.readers,
            Interest::Write => &mut self.writers,
        }
    }
}

/// See the [module](self).
pub(crate) struct Poller {
    /// Unique in the process, from 1 on.
    number: u64,
    alarm: Arc<OwnedFd>,
    epoll: OwnedFd,
    waiters: FxHashMap<RawFd, Waiters>,
    events: Vec<epoll::Event>,
    /// Made when a fiber first wants a completion.
    ring: Option<Ring>,
}

impl Poller {
    /// A poller whose sleep `alarm` ends.
    pub(crate) fn new(alarm: &EventFd) -> io::Result<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let alarm = alarm.make()?;
        epoll::add(&epoll, &*alarm, EventData::new_u64(ALARM), EventFlags::IN | EventFlags::ET)?;
        let number = NUMBERS.fetch_add(1, Relaxed);
        let (waiters, events) = (FxHashMap::default(), Vec::with_capacity(EVENTS));
        Ok(Poller { number, alarm, epoll, waiters, events, ring: None })
    }

    /// Whether a fiber waits for an event.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.waiters.is_empty() || self.ring.as_ref().is_some_and(Ring::is_in_use)
    }

    /// Has `fiber` woken when the descriptor may be ready. It may be woken for no reason.
    ///
    /// The fiber has just found that its call would block; see the [module above](super) for why no event is missed.
    pub(super) fn enter(
        &mut self,
        fd: BorrowedFd<'_>,
        watch: &Watch,
        interest: Interest,
        fiber: &Arc<Core>,
    ) -> io::Result<()> {
        if !watch.is_noted(self.number) {
            let flags = Interest::Read.events() | Interest::Write.events() | EventFlags::ET;
            match epoll::add(&self.epoll, fd, EventData::new_u64(fd.as_raw_fd() as u64), flags) {
                // An owner of the descriptor before this one has registered it, in the same way.
                Ok(()) | Err(Errno::EXIST) => watch.note(self),
                Err(error) => return Err(error.into()),
            }
        }
        self.waiters.entry(fd.as_raw_fd()).or_default().of(interest).push(Arc::clone(fiber));
        Ok(())
    }

    /// Ends the fiber's entry, unless an event has done so.
    pub(super) fn leave(&mut self, fd: BorrowedFd<'_>, interest: Interest, fiber: &Arc<Core>) {
        let Some(waiters) = self.waiters.get_mut(&fd.as_raw_fd()) else { return };
        waiters.of(interest).retain(|waiter| !Arc::ptr_eq(waiter, fiber));
        if waiters.readers.is_empty() && waiters.writers.is_empty() {
            self.waiters.remove(&fd.as_raw_fd());
        }
    }

    /// The ring for completions.
    pub(super) fn ring(&mut self) -> io::Result<&mut Ring> {
        match &mut self.ring {
            Some(ring) => Ok(ring),
            none => {
                let ring = Ring::new()?;
                epoll::add(&self.epoll, ring.fd(), EventData::new_u64(RING), EventFlags::IN | EventFlags::ET)?;
                Ok(none.insert(ring))
            }
        }
    }

    /// Wakes the fibers whose descriptors are ready and whose operations are complete; with none, sleeps until there is one,
    /// the alarm sounds, or `timeout` is over. `None` is without end.
    pub(crate) fn poll(&mut self, timeout: Option<Duration>) {
        let woke = self.ring.as_mut().is_some_and(Ring::turn);
        let timeout = if woke { Some(Duration::ZERO) } else { timeout };
        // A timeout that the kernel cannot count is as good as none.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        self.events.clear();
        let taken = epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref());
        // Interrupted by a signal is the only error of a valid call, and the worker's loop comes back.
        if taken.is_err() {
            return;
        }
        for event in self.events.drain(..) {
            let (data, flags) = (event.data.u64(), event.flags);
            match data {
                ALARM => {}
                RING => {
                    if let Some(ring) = &mut self.ring {
                        ring.turn();
                    }
                }
                fd => {
                    let Some(waiters) = self.waiters.get_mut(&(fd as RawFd)) else { continue };
                    for interest in [Interest::Read, Interest::Write] {
                        if flags.intersects(interest.events()) {
                            waiters.of(interest).drain(..).for_each(|fiber| fiber.end_wait());
                        }
                    }
                    if waiters.readers.is_empty() && waiters.writers.is_empty() {
                        self.waiters.remove(&(fd as RawFd));
                    }
                }
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_watch_forgets_pollers_that_are_gone() {
        let watch = Watch::default();
        let poller = || Poller::new(&EventFd::default()).unwrap();
        let (first, second) = (poller(), poller());
        watch.note(&first);
        watch.note(&second);
        for _ in 0..100 {
            let short_lived = poller();
            watch.note(&short_lived);
            assert!(watch.is_noted(short_lived.number));
        }
        assert!(watch.is_noted(first.number) && watch.is_noted(second.number));
        assert!(watch.others.lock().len() <= 2, "{watch:?}");
    }
}
