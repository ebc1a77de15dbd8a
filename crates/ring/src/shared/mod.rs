//! A ring in memory that two processes share: one produces, one consumes, and either may crash and come back.
//!
//! The memory is a file, preferably one that lives in memory only (`/dev/shm`, a memfd). It holds positions, never
//! pointers, so the processes may map it anywhere.
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
//! Where the size of an event is known only at run time, as in a binding to another language, [`RawProducer`] and
//! [`RawConsumer`] take events as bytes. Their rings are the same: one end may be raw and the other not.
//!
//! # The file
//! The other process finds the file by its name, or has its descriptor: inherited, or received through a socket. Either
//! one is opened again, as `/proc/self/fd/N`, to read and to write, since the locks belong to an open file description.
//! So `/proc` must be mounted, and the process must have the right to write to the file even if it has been handed a
//! writable descriptor.
//!
//! An empty file becomes a ring. So does a file of the right length with only zeros in place of the header: its maker
//! was killed. Any other file is checked, and left unchanged.
//!
//! # How it behaves
//! **Crashes.** A role is held by a lock on the file that the kernel drops when the process ends, however it ends. The
//! next process to attach goes on where its predecessor was. An event counts as consumed when [`Consumer::handle`]
//! returns from the handler, and the events of [`Consumer::handle_many`] when it returns from the last, so a consumer
//! that crashes before that sees them again: delivery is at least once. An event that a producer was writing when it
//! crashed was never published. An event that it had published without waking the consumer is seen when the next
//! producer attaches, or within a second.
//!
//! **The end** of the stream is an event of the user's own, since a producer that is gone may come back, or another in
//! its place: reserve a value for it, or a field. To learn whether the producer is alive, a consumer waits with
//! [`handle_deadline`](Consumer::handle_deadline), and asks by other means, or has a live producer send an event now
//! and then.
//!
//! **Waiting** blocks on an event count in the shared memory: without a sleeper there is no wake-up, and a sleeper
//! checks by itself once a second. Progress is wait-free otherwise: a process that is stopped anywhere hinders the
//! other only when the other runs out of events or room.
//!
//! **Cost.** Publishing and consuming take a locked addition each, some 20 cycles, since light fences do not reach
//! other processes. A batch takes one: [`Producer::send_all`], [`Consumer::handle_many`].
//!
//! # Layout, version 2
//! All numbers have the machine's byte order. Lines are 128 bytes; bytes that are not listed are zero.
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 8 | `MSTRING2`; written once the file has its length, together with the next three |
//! | 8 | 4 | bytes of an event |
//! | 12 | 4 | alignment of an event |
//! | 16 | 8 | slots, a power of two |
//! | 128 | 8 | published: positions before this hold events; written by the producer |
//! | 256 | 8 | consumed: positions before this are free again; written by the consumer |
//! | 384 | 8 | arrivals: the consumer sleeps on it, and the producer adds 1 to it after publishing |
//! | 512 | 8 | room: the producer sleeps on it, and the consumer adds 1 to it after consuming |
//! | 640 | slots × bytes of an event | position `p` is in slot `p mod slots` |
//!
//! Arrivals and room are each a [`SharedEventCount`](millstream_sync::eventcount::SharedEventCount): 4 bytes that are
//! `value << 1 | flag`, where the flag says that a process sleeps, and 4 bytes that are zero, since this kind of count
//! does not use them. (Version 1, `MSTRING1`, had separate words for sleepers; such a file is refused.)
//!
//! Bytes 0, 1 and 2 are also locked (open-file-description locks): by the producer, the consumer, and the attaching
//! process.
//!
//! # What is not handled
//! The processes trust each other: a process that writes to the memory in any other way can make the other read
//! garbage, though never outside the ring. They must agree on the type; only its size and alignment are checked. The
//! file must not shrink, and its file system needs room for it: memory is given to a slot when it is first written to,
//! and a process that finds none then gets a `SIGBUS`.

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
/// Every pattern of bits is a valid value, it means the same in every process (no pointers, handles or padding that
/// matters), and its alignment is at most 128.
pub unsafe trait Plain: Copy + Send + 'static {}

macro_rules! plain {
    ($($number:ty)*) => {$(
        // SAFETY: every pattern of bits is a number, which means the same in every process.
        unsafe impl Plain for $number {}
    )*};
}

plain!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: an array has no padding between its elements, which are plain.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
