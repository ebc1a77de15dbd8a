//! Words of a BPF map that only the daemon has.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

/// So many 64-bit words, mapped.
#[derive(Debug)]
pub(crate) struct Words {
    first: NonNull<AtomicU64>,
    count: usize,
}

impl Words {
    pub(crate) fn map(map: BorrowedFd<'_>, count: usize) -> io::Result<Words> {
        let bytes = count * size_of::<u64>();
        // SAFETY: a new mapping at a place of the kernel's choice.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, map.as_raw_fd(), 0)
        };
        match NonNull::new(start.cast::<AtomicU64>()) {
            Some(first) if start != libc::MAP_FAILED => Ok(Words { first, count }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// # Panics
    /// If there is no such word.
    pub(crate) fn get(&self, place: usize) -> &AtomicU64 {
        assert!(place < self.count);
        // SAFETY: inside the mapping, whose words are atomics to everybody.
        unsafe { self.first.add(place).as_ref() }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives it.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.count * size_of::<u64>()) };
    }
}
