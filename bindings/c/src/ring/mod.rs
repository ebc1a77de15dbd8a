//! Rings in memory that two processes share: one sends and the other receives. Either may crash and start again.

pub mod consumer;
pub mod producer;

use std::alloc::Layout;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};

use crate::extensible::{self, Extensible};
use crate::status::Failure;

/// The shape of a ring, on which both processes must agree:
/// `millstream_ring_setup setup = {.struct_bytes = sizeof setup, .slots = 1024, .event_bytes = sizeof(struct event)};`
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_ring_setup {
    /// sizeof(millstream_ring_setup): it shows the library with which members the program was compiled.
    pub struct_bytes: u64,
    /// The maximum number of events in the ring, a power of two.
    pub slots: u64,
    /// The size of an event in bytes, at most 4294967295. Events contain no pointers, so that they mean the same in
    /// both processes.
    pub event_bytes: u64,
    /// The alignment of an event (C11's _Alignof): a power of two of at most 128 that divides the size. 0 means the
    /// largest of 1, 2, 4 and 8 that divides the size.
    pub event_align: u64,
}

// SAFETY: `Pod` rules out padding, and the first member is the size.
unsafe impl Extensible for millstream_ring_setup {
    const NAME: &'static str = "millstream_ring_setup";
    const FIRST_BYTES: u64 = 32;
}

impl millstream_ring_setup {
    /// Reads and checks a setup: the number of slots, and the layout of an event.
    ///
    /// # Safety
    /// `setup` is NULL, or points to as many bytes as its first member says.
    unsafe fn read(setup: *const Self) -> Result<(usize, Layout), Failure> {
        // SAFETY: the caller guarantees that `setup` is NULL or as large as its first member says.
        let given = unsafe { extensible::read("setup", setup) }?;
        let range = |what, expected, found| Failure::Range { what, expected, found };
        if !given.slots.is_power_of_two() {
            return Err(range("slots, a member of millstream_ring_setup,", "a power of two", given.slots));
        }
        if !(1..=u64::from(u32::MAX)).contains(&given.event_bytes) {
            let what = "event_bytes, a member of millstream_ring_setup,";
            return Err(range(what, "from 1 to 4294967295", given.event_bytes));
        }
        let align = match given.event_align {
            0 => 1 << given.event_bytes.trailing_zeros().min(3),
            align => align,
        };
        if !align.is_power_of_two() || align > 128 || !given.event_bytes.is_multiple_of(align) {
            let what = "event_align, a member of millstream_ring_setup,";
            return Err(range(what, "a power of two of at most 128 that divides event_bytes", align));
        }
        let event = Layout::from_size_align(given.event_bytes as usize, align as usize);
        Ok((given.slots as usize, event.expect("the size is small, and the alignment a power of two")))
    }
}

/// Attaches to the ring in the caller's open file, which remains open.
fn attach<R>(fd: i32, attach: impl FnOnce(&File) -> Result<R, Failure>) -> Result<R, Failure> {
    if fd < 0 {
        return Err(Failure::Code { what: "descriptor", found: fd });
    }
    // SAFETY: the descriptor is not negative, and the file is not closed here: the caller keeps it. Every use of a
    // descriptor that is not open fails.
    attach(&ManuallyDrop::new(unsafe { File::from_raw_fd(fd) }))
}

/// The end of a wait of some nanoseconds; `None` if the wait has no limit.
fn deadline(timeout_ns: i64) -> Option<Instant> {
    let timeout = Duration::from_nanos(timeout_ns.try_into().ok()?);
    Instant::now().checked_add(timeout)
}
