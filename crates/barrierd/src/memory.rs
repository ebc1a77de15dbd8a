//! The words of a BPF map that only the daemon can access.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

/// A mapped array of 64-bit words.
#[derive(Debug)]
pub(crate) struct Words {
    first: NonNull<AtomicU64>,
    count: usize,
}

impl Words {
    pub(crate) fn map(map: BorrowedFd<'_>, count: usize) -> io::Result<Words> {
        let bytes = count * size_of::<u64>();
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no other.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, map.as_raw_fd(), 0)
        };
        match NonNull::new(start.cast::<AtomicU64>()) {
            Some(first) if start != libc::MAP_FAILED => Ok(Words { first, count }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// # Panics
    /// Panics if the index is out of range.
    pub(crate) fn get(&self, place: usize) -> &AtomicU64 {
        assert!(place < self.count);
        // SAFETY: the assertion keeps the word inside the mapping, and both the daemon and the program access it
        // atomically.
        unsafe { self.first.add(place).as_ref() }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: this unmaps the mapping that `map` made, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.count * size_of::<u64>()) };
    }
}
