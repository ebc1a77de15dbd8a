//! A ring in memory that two processes share: one produces, one consumes, and either may crash and come back.
//!
//! The memory is a file, best one that lives in memory only (`/dev/shm`, a memfd). It holds positions, never
//! pointers, so the processes may map it anywhere.
//!
//! ```
//! use millstream_ring::shared::{Consumer, Producer};
//!
//! let file = tempfile::tempfile()?; // to be found by the other process: a file in /dev/shm, or an inherited descriptor
//! let mut producer = Producer::<u64>::attach(&file, 1024)?;
//! let mut consumer = Consumer::<u64>::attach(&file, 1024)?;
//! producer.send(42);
//! assert_eq!(consumer.handle(|&value| value), 42);
//! # Ok::<(), millstream_ring::shared::AttachError>(())
//! ```
//!
//! **Crashes.** A role is held by a lock on the file that the kernel drops when the process ends, however it ends. The
//! next one to attach goes on where its predecessor was. An event counts as consumed when [`Consumer::handle`] returns from the
//! handler, so a consumer that crashes in it sees that event again: at least once. An event that a producer was
//! writing when it crashed was never published.
//!
//! **Waiting** blocks on an event count in the shared memory: nobody uses CPU, nobody has to be woken when nobody sleeps.
//! Publishing pays a full fence, some 40 cycles, since light fences do not reach other processes: publish in batches.
//!
//! # Layout, version 1
//! All numbers have the machine's byte order. Lines are 128 bytes.
//!
//! | offset | bytes | what |
//! | --- | --- | --- |
//! | 0 | 8 | `MSTRING1`; written last when the file is made |
//! | 8 | 4 | bytes of an event |
//! | 12 | 4 | alignment of an event |
//! | 16 | 8 | slots, a power of two |
//! | 128 | 8 | published: positions before this hold events; written by the producer |
//! | 256 | 8 | consumed: positions before this are free again; written by the consumer |
//! | 384 | 8 | the consumer sleeps: a flag (4 bytes), an event count (4 bytes) |
//! | 512 | 8 | the producer sleeps: likewise |
//! | 640 | events × bytes | position `p` is in slot `p mod slots` |
//!
//! Bytes 0, 1 and 2 are also locked (open-file-description locks): by the producer, the consumer, and whoever is attaching.
//!
//! # What is not handled
//! The processes trust each other: one that writes to the memory otherwise can make the other read garbage, though never
//! outside the ring. They have to agree on the type; only its size and alignment are checked.

mod consumer;
mod header;
mod producer;
#[cfg(not(loom))]
mod segment;
mod sleep;
#[cfg(loom)]
pub(crate) mod twin;

pub use consumer::Consumer;
pub use producer::Producer;
#[cfg(not(loom))]
pub use segment::AttachError;
#[cfg(not(loom))]
use segment::Segment;
#[cfg(loom)]
use twin::Segment;

/// A type that may be read from memory another process wrote.
///
/// # Safety
/// Every pattern of bits is a valid value, it means the same in every process (no pointers, handles or padding that matters),
/// and its alignment is at most 128.
pub unsafe trait Plain: Copy + Send + 'static {}

macro_rules! plain {
    ($($number:ty)*) => {$(
        // SAFETY: every pattern of bits is a number.
        unsafe impl Plain for $number {}
    )*};
}

plain!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: an array of plain values has nothing between them.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
