//! The daemon's shared memory, word by word.
//!
//! There are two regions, which every client maps read-only. The *page* is written by the daemon. It contains the daemon's
//! statements, and the futexes on which clients sleep. The *times* are written on each processor by a program inside the kernel
//! (BPF). They are the memory of a frozen BPF map, to which no process can write, and on which no thread can wait with a futex.
//! Without BPF, the times are a file in which the daemon only advances [`TimesHead::virtual_now`].
//!
//! Both regions start with a head. An entry for each possible processor follows, in the order of the kernel's numbers. In the
//! page, an entry for each of [`MAX_CLIENTS`] connections comes last. All words are in the machine's byte order. All times are in
//! nanoseconds of `CLOCK_MONOTONIC`. `barrierd.h`, in the daemon's crate, declares the same layout for C.
//!
//! # Virtual time
//! [`TimesHead::virtual_now`] is a counter that advances at least every [`ADVANCE_NS`] while processors enter the kernel. When a
//! processor *passes*, it reads the counter, passes a full barrier, and stores the value from the counter as the processor's own
//! virtual time. If a processor's virtual time is larger than the value that a client has read, the processor has passed a full
//! barrier after the client's reading. No clock is involved.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// The value of [`PageHead::magic`].
pub const MAGIC: u64 = u64::from_le_bytes(*b"barrierd");
/// The version of this layout; a client that finds another one must stop.
pub const VERSION: u32 = 2;
/// The interval, in nanoseconds, at which virtual time advances. When it is over, the next processor that passes advances virtual
/// time. The interval is shorter than the time that a thread needs to read the counter and wake another thread. It is long
/// enough for any number of processors to share the counter's cache line.
pub const ADVANCE_NS: u64 = 5_000;
/// The largest number of possible processors.
pub const MAX_CPUS: usize = 8192;
/// The largest number of connections at one time.
pub const MAX_CLIENTS: usize = 1000;
/// The maximum length of a refusal's text, in bytes.
pub const MAX_REASON_BYTES: usize = 240;

/// The times are a file. Nothing is written to it when a processor enters the kernel.
pub const SOURCE_NONE: u32 = 0;
/// The times are the memory of a BPF map. At every event that the daemon has chosen, the program writes to it.
pub const SOURCE_BPF: u32 = 1;

/// The page's head: 128 bytes.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct PageHead {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// The number of possible processors, which is the number of entries in each table of processors.
    pub cpus: u32,
    /// The kernel's boot id. A page of another boot is meaningless.
    pub boot_id: [u8; 16],
    /// [`SOURCE_NONE`] or [`SOURCE_BPF`].
    pub source: u32,
    /// The daemon's process id.
    pub daemon: u32,
    /// A futex that changes whenever the daemon has fulfilled a request.
    pub turn: AtomicU32,
    /// A futex that changes whenever the daemon has found a larger minimum of the processors' times.
    pub least_turn: AtomicU32,
    /// The minimum of all processors' times at the daemon's last check. The daemon checks only while a client waits; to get the
    /// minimum at another moment, a client computes it from the tables.
    pub least_time: AtomicU64,
    /// The minimum of all processors' virtual times at the daemon's last check.
    pub least_virtual: AtomicU64,
    /// Every processor has passed a full barrier after this time, because the daemon had the kernel make one.
    pub all_time: AtomicU64,
    /// The same in virtual time.
    pub all_virtual: AtomicU64,
}

/// The daemon's statements about a processor: 64 bytes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct PageCpu {
    /// At this time or later, the daemon found that the processor was idle, was offline, ran the daemon, or had counted a tick.
    pub time: AtomicU64,
    /// The same in virtual time.
    pub virtual_time: AtomicU64,
}

/// The daemon's statement about a connection: 4 bytes.
#[derive(Debug)]
#[repr(C)]
pub struct PageClient {
    /// This word is not zero while the daemon leaves this connection's requests in the socket, because the client's user has used
    /// up its part of the daemon's processor time. This is a hint: a waiting client then checks the times itself.
    pub rests: AtomicU32,
}

/// The times' head: 64 bytes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TimesHead {
    /// Virtual time, which advances by read-modify-write instructions.
    pub virtual_now: AtomicU64,
    /// The time of the clock when a processor last advanced virtual time. This is only a hint that determines when virtual time
    /// advances next.
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
    /// 1 while the processor is idle. The program clears it when the processor leaves idleness, before other code runs there.
    /// Only the daemon may rely on this word: the program is certain to run only as long as the daemon exists.
    pub idle: AtomicU64,
}

/// Returns the page's length in bytes for this number of possible processors.
#[must_use]
pub const fn page_bytes(cpus: usize) -> usize {
    size_of::<PageHead>() + cpus * size_of::<PageCpu>() + MAX_CLIENTS * size_of::<PageClient>()
}

/// Returns the length of the times in bytes for this number of possible processors.
#[must_use]
pub const fn times_bytes(cpus: usize) -> usize {
    size_of::<TimesHead>() + cpus * size_of::<TimesCpu>()
}

/// The greeting: the daemon's message to a client that has connected. The descriptors of the page and of the times come with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Hello {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// The number of possible processors. It is 0 in a refusal, which comes without descriptors and is followed by the reason as
    /// text.
    pub cpus: u32,
    /// The connection's number: its index in the page's table of connections.
    pub client: u32,
}
