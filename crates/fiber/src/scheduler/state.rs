//! The state of a fiber, recorded for dumps with relaxed stores.

use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The reason why a fiber waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// `park`.
    Park,
    /// `sleep`.
    Sleep,
    /// The end of another fiber.
    Join,
    /// The end of the fibers of a scope.
    Scope,
    /// A mutex.
    Mutex,
    /// An event.
    Event,
    /// Room in a channel.
    Send,
    /// A value from a channel.
    Receive,
    /// A blocking call on another thread.
    Blocking,
    /// A descriptor to become readable.
    Readable,
    /// A descriptor to become writable.
    Writable,
    /// One of several descriptors to become ready.
    Poll,
    /// The completion of an operation on a file.
    File,
    /// The end of a process.
    Process,
}

impl Reason {
    const ALL: [Reason; 14] = [
        Reason::Park,
        Reason::Sleep,
        Reason::Join,
        Reason::Scope,
        Reason::Mutex,
        Reason::Event,
        Reason::Send,
        Reason::Receive,
        Reason::Blocking,
        Reason::Readable,
        Reason::Writable,
        Reason::Poll,
        Reason::File,
        Reason::Process,
    ];
}

/// The phase of a fiber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    Unstarted,
    Started,
    Ended,
}

/// A wait: its reason, its location in the source, and its beginning in milliseconds of the runtime's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) reason: Reason,
    pub(crate) at: &'static Location<'static>,
    pub(crate) since_ms: u64,
}

/// The record. All accesses are relaxed: threads keep running while a dump is taken, so its parts may be from different
/// moments.
#[derive(Debug, Default)]
pub(crate) struct StateRecord {
    phase: AtomicU8,
    reason: AtomicU8,
    since_ms: AtomicU64,
    at: AtomicPtr<Location<'static>>,
    /// The lowest address of the guard, the lowest of the stack, and the address above the stack.
    stack: [AtomicUsize; 3],
}

impl StateRecord {
    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    pub(crate) fn phase(&self) -> Phase {
        [Phase::Unstarted, Phase::Started, Phase::Ended][usize::from(self.phase.load(Relaxed))]
    }

    pub(crate) fn set_stack(&self, addresses: [usize; 3]) {
        self.stack.iter().zip(addresses).for_each(|(place, address)| place.store(address, Relaxed));
    }

    /// Returns the lowest address of the guard, the lowest of the stack, and the address above the stack, once the
    /// fiber has started. Async-signal-safe.
    pub(crate) fn stack(&self) -> Option<[usize; 3]> {
        let addresses = self.stack.each_ref().map(|place| place.load(Relaxed));
        (!addresses.contains(&0)).then_some(addresses)
    }

    pub(crate) fn set_waiting(&self, waiting: Waiting) {
        self.reason.store(waiting.reason as u8, Relaxed);
        self.since_ms.store(waiting.since_ms, Relaxed);
        self.at.store(ptr::from_ref(waiting.at).cast_mut(), Relaxed);
    }

    /// Returns the last wait.
    pub(crate) fn waiting(&self) -> Option<Waiting> {
        let at = self.at.load(Relaxed);
        // SAFETY: the pointer is null or was made from a reference to a location of the program, which lives forever
        // and is never written.
        let at: &'static Location<'static> = unsafe { at.cast_const().as_ref() }?;
        let reason = Reason::ALL[usize::from(self.reason.load(Relaxed))];
        Some(Waiting { reason, at, since_ms: self.since_ms.load(Relaxed) })
    }
}
