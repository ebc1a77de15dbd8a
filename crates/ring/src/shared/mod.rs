//! A ring in memory that two processes share: one produces, the other consumes, and either may crash and restart.
//!
//! The memory is a file, preferably one that exists in memory only (`/dev/shm`, a memfd). It holds positions but no
//! pointers, so each process may map it at any address.
//!
//! ```
//! use millstream_ring::shared::{Consumer, Producer};
//!
//! let file = tempfile::tempfile()?; // shared by both processes: see below
//! let mut producer = Producer::<u64>::attach(&file, 1024)?;
//! let mut consumer = Consumer::<u64>::attach(&file, 1024)?;
//! producer.send(42);
//! assert_eq!(consumer.handle(|&value| value), 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! If the size of an event is known only at run time, as in a binding to another language, [`RawProducer`] and
//! [`RawConsumer`] take events as bytes. Their rings have the same layout, so one end may be raw and the other typed.
//!
//! # The file
//! The other process opens the file by its name, or gets its descriptor by inheritance or through a socket. In each
//! case, attaching opens the file again through `/proc/self/fd/N`, for reading and writing, because the locks belong to
//! an open file description. So `/proc` must be mounted, and the process needs write permission for the file even if
//! its descriptor is writable.
//!
//! An empty file becomes a ring. So does a file of the right length whose header is all zeros, because its creator was
//! killed. Any other file must already be a ring of the same kind; if it is not, attaching fails and leaves it
//! unchanged.
//!
//! # How it behaves
//! **Crashes.** A process holds its role by a lock on the file, which the kernel releases when the process ends,
//! however it ends. The next process to attach continues where its predecessor stopped. An event counts as consumed
//! when its handler has returned; the events of one [`Consumer::handle_many`] count when the handler has returned from
//! the last. If the consumer crashes before that, the next one sees the same events again, so delivery is at least
//! once. An event that a producer was writing when it crashed was never published. If the producer crashed after it had
//! published an event and before it woke the consumer, the consumer sees the event when the next producer attaches, or
//! within a second.
//!
//! **The end** of the stream has to be an event that the program defines, because a producer that is gone may restart
//! or be replaced. Reserve a value or a field for it. To learn whether the producer is alive, have the producer send an
//! event at intervals, and wait for it with [`handle_deadline`](Consumer::handle_deadline).
//!
//! **Waiting** blocks on an event count in the shared memory. If no process sleeps, no system call is made to wake one;
//! a sleeper also checks once a second on its own. All other operations are wait-free: wherever a process is stopped,
//! the other continues until it has no more events, or no more room.
//!
//! **Cost.** Publishing and consuming each take a locked addition, some 20 cycles, because light fences do not reach
//! other processes. A batch takes only one: see [`Producer::send_all`] and [`Consumer::handle_many`].
//!
//! # Layout, version 2
//! All numbers have the machine's byte order. Lines are 128 bytes; bytes that are not listed are zero.
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 8 | `MSTRING2`; written together with the next three fields, once the file has its length |
//! | 8 | 4 | bytes of an event |
//! | 12 | 4 | alignment of an event |
//! | 16 | 8 | slots, a power of two |
//! | 128 | 8 | published: positions before this hold events; written by the producer |
//! | 256 | 8 | consumed: positions before this are free again; written by the consumer |
//! | 384 | 8 | arrivals: the consumer sleeps on it, and the producer adds 1 to it after publishing |
//! | 512 | 8 | room: the producer sleeps on it, and the consumer adds 1 to it after consuming |
//! | 640 | slots × bytes of an event | position `p` is in slot `p mod slots` |
//!
//! Arrivals and room are each a [`SharedEventCount`](millstream_sync::eventcount::SharedEventCount): 4 bytes of `value
//! << 1 | flag`, where the flag says that a process sleeps, and 4 bytes of zero, which this kind of count does not use.
//! (Files of version 1, `MSTRING1`, are refused: that layout has separate words for sleepers.)
//!
//! Bytes 0, 1 and 2 also carry open-file-description locks: those of the producer, the consumer, and a process that is
//! attaching.
//!
//! # What is not handled
//! The processes trust each other: a process that breaks this protocol can make the other process read garbage from the
//! ring, but cannot make it access memory outside the ring. They must agree on the type of events; only its size and
//! alignment are checked. The file must not shrink, and its file system must have room for it. A slot gets memory when
//! it is first written to. If no memory is left then, the writing process gets a `SIGBUS`.

mod consumer;
#[cfg(not(loom))]
mod error;
mod header;
#[cfg(not(loom))]
mod kind;
mod producer;
#[cfg(not(loom))]
mod raw;
#[cfg(not(loom))]
mod role;
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
pub use raw::{RawConsumer, RawProducer};
#[cfg(not(loom))]
use segment::Segment;
#[cfg(loom)]
use twin::Segment;

/// A type that may be read from memory that another process wrote.
///
/// # Safety
/// Every bit pattern is a valid value, which means the same in every process: the type has no pointers or handles, and
/// no padding whose contents matter. Its alignment is at most 128.
pub unsafe trait Plain: Copy + Send + 'static {}

macro_rules! plain {
    ($($number:ty)*) => {$(
        // SAFETY: every bit pattern is a number, which means the same in every process.
        unsafe impl Plain for $number {}
    )*};
}

plain!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: an array has no padding between its elements, which are plain.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
