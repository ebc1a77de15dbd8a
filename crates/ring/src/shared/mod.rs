//! A ring in memory that two processes share: one produces, one consumes, and either may crash and come back.
//!
//! The memory is a file, best one that lives in memory only (`/dev/shm`, a memfd). It holds positions, never
//! pointers, so the processes may map it anywhere.
//!
//! ```
//! use millstream_ring::shared::{Consumer, Producer};
//!
//! let file = tempfile::tempfile()?; // of both processes: see below
//! let mut producer = Producer::<u64>::attach(&file, 1024)?;
//! let mut consumer = Consumer::<u64>::attach(&file, 1024)?;
//! producer.send(42);
//! assert_eq!(consumer.handle(|&value| value), 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The file
//! The other process finds it by its name, or has its descriptor: inherited, or received through a socket. Either is opened anew, as
//! `/proc/self/fd/N`, to read and to write, for the locks belong to an opening. So `/proc` has to be there, and the process must have
//! the right to write to the file even if it has been handed a descriptor for that.
//!
//! An empty file becomes a ring. One that has the right length and nothing but zeros where the header goes becomes one, too: whoever made it was
//! killed. Any other is checked, and left as it is.
//!
//! # How it behaves
//! **Crashes.** A role is held by a lock on the file that the kernel drops when the process ends, however it ends. The
//! next one to attach goes on where its predecessor was. An event counts as consumed when [`Consumer::handle`] returns from the
//! handler, and the events of [`Consumer::handle_many`] when it returns from the last, so a consumer that crashes before sees them
//! again: at least once. An event that a producer was writing when it crashed was never published. One that it had published
//! without having woken the consumer is seen when the next producer attaches, or within a second.
//!
//! **The end** of the stream is an event of one's own, since a producer that is gone may come back, or another in its place: keep a value for it, or
//! a field. A consumer that wants to know whether the producer lives waits with [`handle_deadline`](Consumer::handle_deadline), and
//! asks by other means, or has a producer that is alive send an event now and then.
//!
//! **Waiting** blocks on an event count in the shared memory: nobody has to be woken when nobody sleeps, and who sleeps looks by itself once a
//! second. Progress is wait-free otherwise: whoever is stopped, anywhere, hinders the other only when that runs out of events or room.
//!
//! **Cost.** Publishing and consuming take a locked addition each, some 20 cycles, since light fences do not reach other
//! processes. Of a batch they take one: [`Producer::send_all`], [`Consumer::handle_many`].
//!
//! # Layout, version 2
//! All numbers have the machine's byte order. Lines are 128 bytes; what is not listed is zero.
//!
//! | offset | bytes | what |
//! | --- | --- | --- |
//! | 0 | 8 | `MSTRING2`; written when the file has its length, together with the next three |
//! | 8 | 4 | bytes of an event |
//! | 12 | 4 | alignment of an event |
//! | 16 | 8 | slots, a power of two |
//! | 128 | 8 | published: positions before this hold events; written by the producer |
//! | 256 | 8 | consumed: positions before this are free again; written by the consumer |
//! | 384 | 8 | arrivals: what the consumer sleeps on, and the producer adds 1 to after it published |
//! | 512 | 8 | room: what the producer sleeps on, and the consumer adds 1 to after it consumed |
//! | 640 | slots × bytes of an event | position `p` is in slot `p mod slots` |
//!
//! Arrivals and room are each a [`SharedEventCount`](millstream_sync::eventcount::SharedEventCount): 4 bytes that are `value << 1 | flag`, where
//! the flag says that somebody sleeps, and 4 bytes that are zero, for this kind of count has no use for them. (Version 1, `MSTRING1`, had words of
//! its own that said who sleeps. Who has such a file is refused.)
//!
//! Bytes 0, 1 and 2 are also locked (open-file-description locks): by the producer, the consumer, and whoever is attaching.
//!
//! # What is not handled
//! The processes trust each other: one that writes to the memory otherwise can make the other read garbage, though never
//! outside the ring. They have to agree on the type; only its size and alignment are checked. The file must not become shorter, and
//! its file system needs room for it: memory is given to a slot when it is first written to, and who finds none then gets a `SIGBUS`.

mod consumer;
#[cfg(not(loom))]
mod error;
mod header;
#[cfg(not(loom))]
mod kind;
#[cfg(not(loom))]
mod place;
mod producer;
#[cfg(not(loom))]
mod segment;
mod sleep;
#[cfg(loom)]
pub(crate) mod twin;

pub use consumer::Consumer;
#[cfg(not(loom))]
pub use error::AttachError;
pub use producer::Producer;
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
