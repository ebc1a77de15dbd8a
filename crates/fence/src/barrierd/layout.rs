//! The daemon's shared memory, word by word.
//!
//! There are two regions, which every client maps read-only. The *page* is the daemon's own: its statements, and the
//! words on which clients sleep. The *times* are written on each processor only by a program inside the kernel (BPF):
//! they are the memory of a frozen BPF map, to which no process can write, and on which no thread can wait with a
//! futex. Without BPF they are a file in which only the daemon advances [`TimesHead::virtual_now`].
//!
//! Both start with a head, followed by an entry for each possible processor, in the order of the kernel's numbers; in
//! the page, an entry for each of [`MAX_CLIENTS`] connections comes last. All words are in the machine's byte order,
//! all times are in nanoseconds of `CLOCK_MONOTONIC`. `barrierd.h`, in the daemon's crate, says the same to C.
//!
//! # Virtual time
//! [`TimesHead::virtual_now`] is a counter that advances at least every [`ADVANCE_NS`] while processors enter the
//! kernel. A processor that *passes* reads it, passes a full barrier, and writes the value it has read as its own
//! virtual time. So a processor whose virtual time is larger than a value that a client has read passed a full barrier
//! after that reading. No clock is involved.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// The value of [`PageHead::magic`].
pub const MAGIC: u64 = u64::from_le_bytes(*b"barrierd");
/// The version of this layout; a client that finds another one must stop.
pub const VERSION: u32 = 2;
/// Virtual time advances with the first processor that passes this many nanoseconds after the last advance. The
/// interval is shorter than a thread takes to read the counter and wake another thread, and long enough for a machine
/// of any size to share the counter's cache line.
pub const ADVANCE_NS: u64 = 5_000;
/// The largest number of possible processors.
pub const MAX_CPUS: usize = 8192;
/// The largest number of connections at one time.
pub const MAX_CLIENTS: usize = 1000;
/// The longest text of a refusal, in bytes.
pub const MAX_REASON_BYTES: usize = 240;

/// The times are a file, to which nothing is written when a processor enters the kernel.
pub const SOURCE_NONE: u32 = 0;
/// The times are memory of a BPF map, to which every event chosen by the daemon writes.
pub const SOURCE_BPF: u32 = 1;

/// The page's head: 128 bytes.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct PageHead {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// Number of entries in each of the two tables: the possible processors.
    pub cpus: u32,
    /// The kernel's boot id; a page of another boot is meaningless.
    pub boot_id: [u8; 16],
    /// [`SOURCE_NONE`] or [`SOURCE_BPF`].
    pub source: u32,
    /// The daemon's process id.
    pub daemon: u32,
    /// A futex that changes whenever the daemon has fulfilled a request.
    pub turn: AtomicU32,
    /// A futex that changes whenever the daemon has looked and found a larger minimum.
    pub least_turn: AtomicU32,
    /// The minimum of all processors' times when the daemon last looked. It looks when a client waits; a client that
    /// needs the minimum at any other moment computes it from the tables.
    pub least_time: AtomicU64,
    /// The minimum of all processors' virtual times, likewise.
    pub least_virtual: AtomicU64,
    /// Every processor passed a full barrier after this time: the daemon had the kernel issue one.
    pub all_time: AtomicU64,
    /// The same in virtual time.
    pub all_virtual: AtomicU64,
}

/// The daemon's statements about a processor: 64 bytes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct PageCpu {
    /// At this time or later the processor was idle, offline, running the daemon, or seen to have ticked.
    pub time: AtomicU64,
    /// The same in virtual time.
    pub virtual_time: AtomicU64,
}

/// The daemon's statement about a connection: 4 bytes.
#[derive(Debug)]
#[repr(C)]
pub struct PageClient {
    /// Not zero while the daemon leaves this connection's requests in the socket, because the client's user has used up
    /// its part of the daemon's processor time. A hint: a waiting client then looks for itself.
    pub rests: AtomicU32,
}

/// The times' head: 64 bytes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TimesHead {
    /// Virtual time, which advances by read-modify-write instructions.
    pub virtual_now: AtomicU64,
    /// The clock's time when a processor last advanced virtual time: only a hint for the next advance.
    pub advanced_at: AtomicU64,
}

/// The program's statements about the processor on which it runs: 64 bytes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TimesCpu {
    /// The processor passed a full barrier after it read this from the clock.
    pub time: AtomicU64,
    /// The processor passed a full barrier after it read this from [`TimesHead::virtual_now`].
    pub virtual_time: AtomicU64,
    /// 1 from the moment when the processor goes idle until it leaves idleness, before other code runs on it. Only the
    /// daemon may act on it: only while the daemon lives is the program certain to run when the processor leaves.
    pub idle: AtomicU64,
}

/// The page's length in bytes for this number of possible processors.
#[must_use]
pub const fn page_bytes(cpus: usize) -> usize {
    size_of::<PageHead>() + cpus * size_of::<PageCpu>() + MAX_CLIENTS * size_of::<PageClient>()
}

/// The length of the times in bytes for this number of possible processors.
#[must_use]
pub const fn times_bytes(cpus: usize) -> usize {
    size_of::<TimesHead>() + cpus * size_of::<TimesCpu>()
}

/// The daemon's message to a client that has connected, together with the descriptors of the page and of the times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Hello {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// The number of possible processors. Zero in a refusal, which brings no descriptors and is followed by the reason
    /// as text.
    pub cpus: u32,
    /// The connection's number: its index in the page's table of connections.
    pub client: u32,
}
