//! The bell with which the program wakes the daemon. It is a BPF ring buffer; the contents of its records do not matter.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use super::call::{self, BpfError};

/// The size of the buffer, which has room for 4096 records. The program writes a record each time it rings the bell. If the
/// buffer is full, further records are lost. This is harmless, because one record is enough to wake the daemon.
const BYTES: usize = 64 << 10;

/// The daemon's end of the bell.
#[derive(Debug)]
pub(crate) struct Ring {
    map: OwnedFd,
    /// The position up to which the daemon has read. The kernel reads this word.
    consumed: NonNull<AtomicU64>,
    /// The position up to which the kernel has written. It is in another page.
    produced: NonNull<AtomicU64>,
}

impl Ring {
    pub(super) fn new() -> Result<Ring, BpfError> {
        let map = call::ring_buffer(BYTES)?;
        let page = page_bytes();
        let word = |rights, offset| {
            // SAFETY: a new mapping of one page at an address that the kernel chooses overlaps no other.
            let start = unsafe {
                libc::mmap(ptr::null_mut(), page, rights, libc::MAP_SHARED, map.as_raw_fd(), offset as libc::off_t)
            };
            let error = || BpfError::new("a ring buffer's pages", io::Error::last_os_error());
            if start == libc::MAP_FAILED { Err(error()) } else { NonNull::new(start.cast()).ok_or_else(error) }
        };
        let consumed = word(libc::PROT_READ | libc::PROT_WRITE, 0)?;
        let produced = word(libc::PROT_READ, page)?;
        Ok(Ring { map, consumed, produced })
    }

    /// Discards all records that the program has written so far.
    pub(crate) fn clear(&self) {
        // SAFETY: both words are mapped as long as the ring exists. Acquire pairs with the kernel's release of the position:
        // everything that the program wrote before the record is visible.
        unsafe { self.consumed.as_ref().store(self.produced.as_ref().load(Ordering::Acquire), Ordering::Release) };
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for word in [self.consumed, self.produced] {
            // SAFETY: this unmaps a page that `new` mapped, and no reference to it outlives `self`.
            unsafe { libc::munmap(word.as_ptr().cast(), page_bytes()) };
        }
    }
}

fn page_bytes() -> usize {
    // SAFETY: sysconf has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("pages have a size")
}
