//! The two regions, mapped into memory.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering;

use super::layout::{MAX_CLIENTS, PageClient, PageCpu, PageHead, TimesCpu, TimesHead, page_bytes, times_bytes};

/// Both regions, mapped into this process's memory until the view is dropped.
///
/// Reading is wait-free: a load. A write to a region that is mapped read-only faults.
#[derive(Debug)]
pub struct View {
    page: Region,
    times: Region,
    cpus: usize,
}

/// The access rights to a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The access of a client.
    Read,
    /// The access of the daemon to its own region.
    Write,
}

impl View {
    /// Maps the page and the times for `cpus` possible processors.
    ///
    /// # Errors
    /// Returns the error of mmap(2).
    ///
    /// # Safety
    /// As long as the view exists, the files of the descriptors must be at least [`page_bytes`] and [`times_bytes`] long. A
    /// daemon with the same layout guarantees this.
    pub unsafe fn map(
        page: (BorrowedFd<'_>, Access),
        times: (BorrowedFd<'_>, Access),
        cpus: usize,
    ) -> io::Result<View> {
        Ok(View {
            page: Region::map(page.0, page_bytes(cpus), page.1)?,
            times: Region::map(times.0, times_bytes(cpus), times.1)?,
            cpus,
        })
    }

    /// Returns the number of possible processors.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// Returns the page's head.
    #[must_use]
    pub fn page(&self) -> &PageHead {
        // SAFETY: the region is mapped, page-aligned and as long as the layout. Its words are atomics, or constant from the
        // moment when the daemon has passed the page to a client.
        unsafe { self.page.start.cast().as_ref() }
    }

    /// Returns the daemon's statements about a processor.
    ///
    /// # Panics
    /// Panics if there is no such processor.
    #[must_use]
    pub fn page_cpu(&self, cpu: usize) -> &PageCpu {
        assert!(cpu < self.cpus, "processor {cpu} of {}", self.cpus);
        // SAFETY: the region is mapped as long as the layout, and the assertion keeps the entry inside the table.
        unsafe { self.page.start.byte_add(size_of::<PageHead>()).cast::<PageCpu>().add(cpu).as_ref() }
    }

    /// Returns the daemon's statement about a connection.
    ///
    /// # Panics
    /// Panics if there is no such connection.
    #[must_use]
    pub fn page_client(&self, client: usize) -> &PageClient {
        assert!(client < MAX_CLIENTS, "connection {client} of {MAX_CLIENTS}");
        let table = size_of::<PageHead>() + self.cpus * size_of::<PageCpu>();
        // SAFETY: the region is mapped as long as the layout, and the assertion keeps the entry inside the table.
        unsafe { self.page.start.byte_add(table).cast::<PageClient>().add(client).as_ref() }
    }

    /// Returns the head of the times.
    #[must_use]
    pub fn times(&self) -> &TimesHead {
        // SAFETY: the region is mapped, page-aligned and as long as the layout; all its words are atomics.
        unsafe { self.times.start.cast().as_ref() }
    }

    /// Returns the program's statements about a processor.
    ///
    /// # Panics
    /// Panics if there is no such processor.
    #[must_use]
    pub fn times_cpu(&self, cpu: usize) -> &TimesCpu {
        assert!(cpu < self.cpus, "processor {cpu} of {}", self.cpus);
        // SAFETY: the region is mapped as long as the layout, and the assertion keeps the entry inside the table.
        unsafe { self.times.start.byte_add(size_of::<TimesHead>()).cast::<TimesCpu>().add(cpu).as_ref() }
    }

    /// Returns the latest virtual time after which this processor is known to have passed a full barrier.
    ///
    /// Acquire: everything written on that processor before the barrier is visible to the caller.
    #[must_use]
    pub fn virtual_time(&self, cpu: usize) -> u64 {
        let (program, daemon) = (&self.times_cpu(cpu).virtual_time, &self.page_cpu(cpu).virtual_time);
        let all = &self.page().all_virtual;
        program.load(Ordering::Acquire).max(daemon.load(Ordering::Acquire)).max(all.load(Ordering::Acquire))
    }

    /// Returns the latest time of `CLOCK_MONOTONIC` after which this processor is known to have passed a full barrier.
    #[must_use]
    pub fn time(&self, cpu: usize) -> u64 {
        let (program, daemon) = (&self.times_cpu(cpu).time, &self.page_cpu(cpu).time);
        let all = &self.page().all_time;
        program.load(Ordering::Acquire).max(daemon.load(Ordering::Acquire)).max(all.load(Ordering::Acquire))
    }
}

/// One mapped region.
#[derive(Debug)]
struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and every word of it that changes is an atomic.
unsafe impl Send for Region {}
// SAFETY: every word of the mapping that changes is an atomic.
unsafe impl Sync for Region {}

impl Region {
    fn map(file: BorrowedFd<'_>, bytes: usize, access: Access) -> io::Result<Region> {
        let rights = match access {
            Access::Read => libc::PROT_READ,
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: the mapping is new, at an address of the kernel's choice, and replaces no other.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Region { start, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference into it outlives the view.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
