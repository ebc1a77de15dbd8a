//! Readiness: a worker's epoll instance, and the fibers that wait for descriptors.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
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
use crate::scheduler::core_ref::CoreRef;

/// The maximum number of events that one call gets from the kernel.
const EVENTS: usize = 256;

/// The mark (the `epoll_data`) of the alarm's event. It differs from all marks of descriptors, since descriptors are never
/// negative.
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
    /// Returns the events that end a wait. Errors end waits in both directions. The next system call on the descriptor then
    /// returns the error.
    const fn events(self) -> EventFlags {
        let own = match self {
            Interest::Read => EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::PRI),
            Interest::Write => EventFlags::OUT,
        };
        own.union(EventFlags::ERR).union(EventFlags::HUP)
    }
}

/// A registration for all events of both directions, each reported once.
const ALL_EDGES: EventFlags = Interest::Read.events().union(Interest::Write.events()).union(EventFlags::ET);

/// One call of `epoll_wait` by a poller, with a number that is unique in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn(u64);

impl Turn {
    /// The number of turn numbers that a poller reserves at once.
    const BLOCK: u64 = 1 << 20;

    /// No turn of any poller.
    pub(super) const NONE: Turn = Turn(0);

    /// Reserves a block of turn numbers, and returns its first turn.
    fn first() -> Turn {
        static BLOCKS: AtomicU64 = AtomicU64::new(1);
        Turn(BLOCKS.fetch_add(1, Relaxed) * Self::BLOCK)
    }

    fn next(self) -> Turn {
        let next = self.0 + 1;
        if next.is_multiple_of(Self::BLOCK) { Self::first() } else { Turn(next) }
    }
}

/// A [`Turn`] that several workers may read and write.
#[derive(Debug)]
pub(super) struct AtomicTurn(AtomicU64);

impl AtomicTurn {
    pub(super) fn new(turn: Turn) -> Self {
        AtomicTurn(AtomicU64::new(turn.0))
    }

    /// Relaxed, like `store`: the value matters only to the worker whose poller is in this turn, and that worker's own thread has
    /// stored it.
    pub(super) fn load(&self) -> Turn {
        Turn(self.0.load(Relaxed))
    }

    pub(super) fn store(&self, turn: Turn) {
        self.0.store(turn.0, Relaxed);
    }
}

/// The pollers with which a descriptor is registered. The kernel ends the registrations when the last descriptor of the open file
/// is closed. If a clone of a closed descriptor still exists, its events may spuriously wake the waiters of a later descriptor
/// with the same number.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The number of the first poller, or 0. Most descriptors are registered with one poller only.
    first: AtomicU64,
    /// The registration with the first poller. Relaxed: only that poller's thread uses it.
    registration: AtomicU32,
    /// The other pollers. Each comes with its alarm, which exists exactly as long as the poller.
    others: Mutex<Vec<(u64, Weak<OwnedFd>)>>,
}

impl Watch {
    /// Returns whether the descriptor is registered with this poller. Relaxed: only the poller's own thread stores its number
    /// here.
    fn is_noted(&self, poller: u64) -> bool {
        let first = self.first.load(Relaxed);
        first == poller || (first != 0 && self.others.lock().iter().any(|&(other, _)| other == poller))
    }

    /// Returns the registration with this poller; 0 if this poller is not the first.
    fn registration(&self, poller: u64) -> u32 {
        if self.first.load(Relaxed) == poller { self.registration.load(Relaxed) } else { 0 }
    }

    /// Records a poller and the registration with it. Removes pollers that no longer exist.
    fn note(&self, poller: &Poller, registration: u32) {
        if self.first.compare_exchange(0, poller.number, Relaxed, Relaxed).is_ok() {
            self.registration.store(registration, Relaxed);
        } else {
            let mut others = self.others.lock();
            others.retain(|(_, alarm)| alarm.strong_count() > 0);
            others.push((poller.number, Arc::downgrade(&poller.alarm)));
        }
    }
}

/// The fibers that wait for one direction of a descriptor. The first fiber is stored inline, because usually there is only one.
#[derive(Default)]
struct Line {
    first: Option<CoreRef>,
    others: Vec<CoreRef>,
}

impl Line {
    fn push(&mut self, fiber: &CoreRef) {
        match self.first {
            None => self.first = Some(CoreRef::clone(fiber)),
            Some(_) => self.others.push(CoreRef::clone(fiber)),
        }
    }

    fn has(&self, fiber: &CoreRef) -> bool {
        self.first.iter().chain(&self.others).any(|waiter| CoreRef::ptr_eq(waiter, fiber))
    }

    fn remove(&mut self, fiber: &CoreRef) {
        self.first.take_if(|waiter| CoreRef::ptr_eq(waiter, fiber));
        self.others.retain(|waiter| !CoreRef::ptr_eq(waiter, fiber));
    }

    fn drain(&mut self) -> impl Iterator<Item = CoreRef> {
        self.first.take().into_iter().chain(self.others.drain(..))
    }

    fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }
}

/// The fibers that wait for a descriptor.
#[derive(Default)]
struct Waiters {
    readers: Line,
    writers: Line,
    /// The current registration of this descriptor. Events of other registrations are ignored: they concern an earlier descriptor
    /// with the same number.
    registration: u32,
    /// Whether the registration was made by [`poll`](super::poll()), and ends with the last such wait.
    is_for_once: bool,
    /// The turn of the last event that woke readers, if the event reported bytes and nothing else.
    bytes_alone: Option<Turn>,
}

impl Waiters {
    fn of(&mut self, interest: Interest) -> &mut Line {
        match interest {
            Interest::Read => &mut self.readers,
            Interest::Write => &mut self.writers,
        }
    }

    /// Adds a fiber that waits for both directions, unless it has been added.
    fn push_once(&mut self, fiber: &CoreRef) {
        for waiters in [&mut self.readers, &mut self.writers] {
            if !waiters.has(fiber) {
                waiters.push(fiber);
            }
        }
    }

    fn are_none(&self) -> bool {
        self.readers.is_empty() && self.writers.is_empty()
    }
}

/// See the [module](self).
pub(crate) struct Poller {
    /// The poller's number, which is unique in the process and at least 1.
    number: u64,
    alarm: Arc<OwnedFd>,
    epoll: OwnedFd,
    waiters: FxHashMap<RawFd, Waiters>,
    events: Vec<epoll::Event>,
    turn: Turn,
    /// The number of the newest registration.
    registration: u32,
    /// The ring, which is created for the first operation that a fiber passes to io_uring.
    ring: Option<Ring>,
}

impl Poller {
    /// Returns a poller. The alarm ends its sleep.
    pub(crate) fn new(alarm: &EventFd) -> io::Result<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let alarm = alarm.make()?;
        epoll::add(&epoll, &*alarm, EventData::new_u64(ALARM), EventFlags::IN | EventFlags::ET)?;
        let number = NUMBERS.fetch_add(1, Relaxed);
        let (waiters, events) = (FxHashMap::default(), Vec::with_capacity(EVENTS));
        Ok(Poller { number, alarm, epoll, waiters, events, turn: Turn::first(), registration: 0, ring: None })
    }

    /// Returns the latest turn.
    pub(crate) fn turn(&self) -> Turn {
        self.turn
    }

    /// Returns whether a fiber waits for an event.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.waiters.is_empty() || self.ring.as_ref().is_some_and(Ring::is_in_use)
    }

    /// Adds `fiber` to the waiters, to be woken when the descriptor may be ready. The wake-up may be spurious.
    ///
    /// The fiber has just found that its call would block; see the [module above](super) for why no event is missed.
    pub(super) fn enter(
        &mut self,
        fd: BorrowedFd<'_>,
        watch: &Watch,
        interest: Interest,
        fiber: &CoreRef,
    ) -> io::Result<()> {
        let is_new = !watch.is_noted(self.number);
        if is_new {
            let mark = self.next_mark(fd);
            match epoll::add(&self.epoll, fd, mark, ALL_EDGES) {
                // A `poll` has registered the descriptor, or an earlier descriptor with the same number is still registered.
                Err(Errno::EXIST) => epoll::modify(&self.epoll, fd, mark, ALL_EDGES)?,
                added => added?,
            }
            watch.note(self, self.registration);
        }
        let waiters = self.waiters.entry(fd.as_raw_fd()).or_default();
        waiters.registration = watch.registration(self.number);
        waiters.is_for_once &= !is_new;
        waiters.of(interest).push(fiber);
        Ok(())
    }

    /// Returns the mark of a new registration.
    fn next_mark(&mut self, fd: BorrowedFd<'_>) -> EventData {
        self.registration = self.registration.wrapping_add(1).max(1);
        EventData::new_u64(u64::from(self.registration) << 32 | fd.as_raw_fd() as u64)
    }

    /// Adds `fiber` to the waiters. Any event of the descriptor wakes it, until it [leaves](Self::leave_once). After a spurious
    /// wake-up, the fiber must enter again.
    ///
    /// As for [`enter`](Self::enter), the fiber has just found that the descriptor is not ready.
    pub(super) fn enter_once(&mut self, fd: BorrowedFd<'_>, fiber: &CoreRef) -> io::Result<()> {
        let mark = self.next_mark(fd);
        let is_added = match epoll::add(&self.epoll, fd, mark, ALL_EDGES) {
            Ok(()) => true,
            // A source or another fiber has registered the descriptor. Every registration is for all events, so it serves this
            // fiber as well.
            Err(Errno::EXIST) => false,
            // A regular file cannot be registered, because it is always ready.
            Err(Errno::PERM) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // If there is a source, the entry's `registration` remains the source's. A source therefore draws no conclusion about
        // its bytes from the events of this registration.
        let waiters = self.waiters.entry(fd.as_raw_fd()).or_default();
        waiters.is_for_once |= is_added;
        waiters.push_once(fiber);
        Ok(())
    }

    /// Enters again after a spurious wake-up, with the same registration. A new registration would immediately report a
    /// direction that is ready but not of interest, and wake the fiber again.
    pub(super) fn enter_again(&mut self, fd: BorrowedFd<'_>, fiber: &CoreRef) -> io::Result<()> {
        match self.waiters.get_mut(&fd.as_raw_fd()) {
            Some(waiters) => {
                waiters.push_once(fiber);
                Ok(())
            }
            // The last of the other waiters has left and removed the registration.
            None => self.enter_once(fd, fiber),
        }
    }

    /// Removes the fiber's entries, if it has any.
    pub(super) fn leave_once(&mut self, fd: BorrowedFd<'_>, fiber: &CoreRef) {
        let Some(waiters) = self.waiters.get_mut(&fd.as_raw_fd()) else { return };
        waiters.readers.remove(fiber);
        waiters.writers.remove(fiber);
        self.remove_if_empty(fd);
    }

    /// If no fiber waits for the descriptor, removes its entry, and also its registration if `poll` made it.
    fn remove_if_empty(&mut self, fd: BorrowedFd<'_>) {
        if self.waiters.get(&fd.as_raw_fd()).is_some_and(Waiters::are_none) {
            let is_for_once = self.waiters.remove(&fd.as_raw_fd()).is_some_and(|waiters| waiters.is_for_once);
            if is_for_once {
                // The descriptor is open, so the registration still exists.
                let _ = epoll::delete(&self.epoll, fd);
            }
        }
    }

    /// Removes the fiber's entry. If a wait for a read was ended by an event that reported bytes and nothing else, returns that
    /// event's turn.
    pub(super) fn leave(&mut self, fd: BorrowedFd<'_>, interest: Interest, fiber: &CoreRef) -> Option<Turn> {
        let waiters = self.waiters.get_mut(&fd.as_raw_fd())?;
        waiters.of(interest).remove(fiber);
        let bytes_alone = waiters.bytes_alone.filter(|_| interest == Interest::Read);
        self.remove_if_empty(fd);
        bytes_alone
    }

    /// Returns the ring for completions, which the first call creates.
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

    /// Wakes the fibers whose descriptors are ready and those whose operations are complete. If there are none, first sleeps
    /// until there is one, the alarm sounds, or `timeout` has passed; `None` means no limit.
    pub(crate) fn poll(&mut self, timeout: Option<Duration>) {
        let woke = self.ring.as_mut().is_some_and(Ring::turn);
        let timeout = if woke { Some(Duration::ZERO) } else { timeout };
        // A timeout beyond the kernel's range counts as no limit.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        self.events.clear();
        self.turn = self.turn.next();
        let taken = epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref());
        // A valid call fails only if a signal interrupts it, and the worker's loop then polls again.
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
                mark => {
                    // The low half of the mark is the descriptor. Its entry stays here; the woken fibers remove it.
                    let Some(waiters) = self.waiters.get_mut(&(mark as RawFd)) else { continue };
                    if waiters.registration == (mark >> 32) as u32 {
                        let is_bytes_alone = flags & Interest::Read.events() == EventFlags::IN;
                        waiters.bytes_alone = is_bytes_alone.then_some(self.turn);
                    }
                    for interest in [Interest::Read, Interest::Write] {
                        if flags.intersects(interest.events()) {
                            waiters.of(interest).drain().for_each(|fiber| fiber.end_wait());
                        }
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
        watch.note(&first, 1);
        watch.note(&second, 1);
        for _ in 0..100 {
            let short_lived = poller();
            watch.note(&short_lived, 1);
            assert!(watch.is_noted(short_lived.number));
        }
        assert!(watch.is_noted(first.number) && watch.is_noted(second.number));
        assert!(watch.others.lock().len() <= 2, "{watch:?}");
    }
}
