//! Events as bytes, for bindings to other languages. Their size and alignment are chosen at run time.
//!
//! The raw ends wrap the typed ends and share their protocol. Only copying events into and out of the slots is
//! different.

use std::alloc::Layout;
use std::fmt;
use std::fs::File;
use std::ptr::NonNull;
use std::slice;
use std::time::Instant;

use super::role::Role;
use super::segment::{MAX_ALIGN, MAX_EVENT_BYTES, Segment};
use super::{AttachError, Consumer, Plain, Producer};

/// A placeholder for an event whose bytes only this module touches.
#[derive(Clone, Copy)]
struct Untyped;

// SAFETY: the type has no bits.
unsafe impl Plain for Untyped {}

fn attach(file: &File, slots: usize, event: Layout, role: Role) -> Result<Segment<Untyped>, AttachError> {
    let (bytes, align) = (event.size(), event.align());
    assert!(
        (1..=MAX_EVENT_BYTES).contains(&bytes) && align <= MAX_ALIGN && bytes.is_multiple_of(align),
        "an event has 1 to {MAX_EVENT_BYTES} bytes, a multiple of its alignment, which is at most {MAX_ALIGN}; found \
         {bytes} bytes aligned to {align}"
    );
    Segment::of(file, slots, event, role)
}

/// The number of slots from the slot of `position` to the last one, and the first byte of the slot of `position`.
fn run(segment: &Segment<Untyped>, event: Layout, position: u64) -> (u64, NonNull<u8>) {
    let slots = segment.slots();
    let index = position & (slots - 1);
    // SAFETY: the mapping has `slots` slots of `event.size()` bytes, and `index` is less than `slots`.
    (slots - index, unsafe { segment.start().add(index as usize * event.size()) })
}

/// The producing end of a shared ring of events of any size; [`Producer`] is the typed form.
///
/// ```
/// use std::alloc::Layout;
/// use millstream_ring::shared::{Consumer, RawProducer};
///
/// # let file = tempfile::tempfile()?;
/// let mut producer = RawProducer::attach(&file, 1024, Layout::new::<u32>())?;
/// let mut consumer = Consumer::<u32>::attach(&file, 1024)?;
/// assert_eq!(producer.try_send(&42_u32.to_ne_bytes()), 1);
/// assert_eq!(consumer.handle(|&value| value), 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RawProducer {
    typed: Producer<Untyped>,
    event: Layout,
}

impl RawProducer {
    /// Attaches as the producer of the ring in `file`, as [`Producer::attach`] does.
    ///
    /// # Errors
    /// Fails as [`Producer::attach`] does.
    ///
    /// # Panics
    /// If `slots` is not a power of two, or if `event` has a size of 0, a size of 4 GiB or more, an alignment above
    /// 128, or a size that is not a multiple of its alignment.
    pub fn attach(file: &File, slots: usize, event: Layout) -> Result<Self, AttachError> {
        Ok(Self { typed: Producer::of(attach(file, slots, event, Role::Producer)?), event })
    }

    /// Sends as many of the events as there is room for; returns their number. The bytes of each event in `events` follow
    /// those of the one before. Never waits. Cost: one wake-up for each run of adjacent free slots.
    ///
    /// # Panics
    /// If the bytes are not a whole number of events.
    pub fn try_send(&mut self, events: &[u8]) -> usize {
        let bytes = self.event.size();
        assert!(
            events.len().is_multiple_of(bytes),
            "{} bytes are not a whole number of events of {bytes} bytes",
            events.len()
        );
        let mut sent = 0;
        while sent < events.len() && self.typed.free() > 0 {
            sent += self.publish(&events[sent..]);
        }
        sent / bytes
    }

    /// Sends the events in order, waiting for room until `deadline`; `None` means no deadline. Returns the number of
    /// events sent.
    ///
    /// # Panics
    /// If the bytes are not a whole number of events.
    pub fn send(&mut self, events: &[u8], deadline: Option<Instant>) -> usize {
        let bytes = self.event.size();
        let mut sent = self.try_send(events);
        while sent * bytes < events.len() && self.typed.wait(deadline) {
            sent += self.try_send(&events[sent * bytes..]);
        }
        sent
    }

    /// The position of the next event, which is the number of events sent since the ring was created.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.typed.position()
    }

    /// Sends the events that fit into the free slots before the ring wraps around; returns their size in bytes. There
    /// must be an event and a free slot.
    fn publish(&mut self, events: &[u8]) -> usize {
        let first = self.typed.position();
        let (slots, start) = run(&self.typed.segment, self.event, first);
        let most = slots.min(self.typed.free()).min((events.len() / self.event.size()) as u64);
        let bytes = most as usize * self.event.size();
        // SAFETY: the slots are adjacent within the mapping and free, and this is the only producer.
        unsafe { start.as_ptr().copy_from_nonoverlapping(events.as_ptr(), bytes) };
        self.typed.release(first + most);
        self.typed.segment.header().arrivals.0.wake();
        bytes
    }
}

impl fmt::Debug for RawProducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawProducer").field("event", &self.event).field("position", &self.position()).finish()
    }
}

/// The consuming end of a shared ring of events of any size; [`Consumer`] is the typed form.
///
/// ```
/// use std::alloc::Layout;
/// use millstream_ring::shared::{Producer, RawConsumer};
///
/// # let file = tempfile::tempfile()?;
/// let mut producer = Producer::<u32>::attach(&file, 1024)?;
/// let mut consumer = RawConsumer::attach(&file, 1024, Layout::new::<u32>())?;
/// producer.send_all(&[1, 2]);
/// assert_eq!(consumer.events(), [1_u32, 2].map(u32::to_ne_bytes).concat());
/// consumer.consume(2);
/// assert!(consumer.events().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RawConsumer {
    typed: Consumer<Untyped>,
    event: Layout,
}

impl RawConsumer {
    /// Attaches as the consumer of the ring in `file`, as [`Consumer::attach`] does.
    ///
    /// # Errors
    /// Fails as [`Consumer::attach`] does.
    ///
    /// # Panics
    /// Panics as [`RawProducer::attach`] does.
    pub fn attach(file: &File, slots: usize, event: Layout) -> Result<Self, AttachError> {
        Ok(Self { typed: Consumer::of(attach(file, slots, event, Role::Consumer)?), event })
    }

    /// Waits for at least one event until `deadline`; `None` means no deadline. Returns whether there is an event.
    pub fn wait(&mut self, deadline: Option<Instant>) -> bool {
        self.typed.ready() > 0 || self.typed.wait(deadline)
    }

    /// The number of available events. Never waits.
    pub fn ready(&mut self) -> u64 {
        self.typed.ready()
    }

    /// The available events, one after the other, up to the ring's last slot. They stay until they are
    /// [consumed](Self::consume). Never waits.
    pub fn events(&mut self) -> &[u8] {
        let next = self.typed.position();
        let ready = self.typed.ready();
        let (slots, start) = run(&self.typed.segment, self.event, next);
        let bytes = ready.min(slots) as usize * self.event.size();
        // SAFETY: the slots are adjacent within the mapping. They hold events that the producer does not touch until
        // this consumer consumes them, which takes `&mut self`.
        unsafe { slice::from_raw_parts(start.as_ptr(), bytes) }
    }

    /// Consumes the next `events` events: their slots become free for the producer. A consumer that crashes before that
    /// sees the events again.
    ///
    /// # Panics
    /// If fewer events are available.
    pub fn consume(&mut self, events: usize) {
        let ready = self.typed.ready();
        assert!(events as u64 <= ready, "{events} events were to be consumed, but only {ready} are available");
        if events > 0 {
            let next = self.typed.position();
            self.typed.consume(next + events as u64);
        }
    }

    /// The position of the next event, which is the number of events consumed since the ring was created.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.typed.position()
    }
}

impl fmt::Debug for RawConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawConsumer").field("event", &self.event).field("position", &self.position()).finish()
    }
}
