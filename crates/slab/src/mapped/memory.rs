//! The mapping of a slab into memory.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, mmap_anonymous, msync, munmap};

use crate::mapped::error::Error;
use crate::mapped::geometry::{HUGE_PAGE, PAGE};

/// The memory behind a mapping.
#[derive(Debug)]
pub(crate) enum Source {
    /// A file: every process that maps it sees all writes.
    File(File),
    /// New memory, shared with the children of a `fork`.
    Inherited,
    /// New memory of this process. Pages that are never written take no memory.
    Own,
}

/// Memory shared with every process that maps the same file.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    source: Source,
}

// SAFETY: the mapping belongs to the process, not to a thread; its contents are reached through atomics, or by the
// single holder of an object.
unsafe impl Send for Memory {}
// SAFETY: `&Memory` gives access to the contents only through raw pointers; their users obey the rule given for `Send`.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `bytes` bytes.
    ///
    /// The start is a multiple of 2 MiB where `huge_pages` asks for it, so that a huge page of the file can also be a
    /// huge page of the mapping.
    pub(crate) fn map(source: Source, bytes: u64, huge_pages: bool) -> Result<Self, Error> {
        let failed = |source| Error::system(format!("map {bytes} bytes"), source);
        let bytes = usize::try_from(bytes).map_err(|_| failed(rustix::io::Errno::NOMEM))?;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let slack = if huge_pages { HUGE_PAGE as usize } else { 0 };
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no other. The mapping reserves address
        // space in which the start can be aligned.
        let room = unsafe {
            mmap_anonymous(ptr::null_mut(), bytes + slack, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)
        };
        let room = room.map_err(failed)?;
        let skipped = if huge_pages { room.addr().next_multiple_of(HUGE_PAGE as usize) - room.addr() } else { 0 };
        let start = room.wrapping_byte_add(skipped);
        let (mapping, own) = (MapFlags::FIXED | MapFlags::SHARED, MapFlags::FIXED | MapFlags::PRIVATE);
        // SAFETY: this replaces a part of the reservation above, which holds no data.
        let mapped = unsafe {
            match &source {
                Source::File(file) => mmap(start, bytes, rights, mapping, file.as_fd(), 0),
                Source::Inherited => mmap_anonymous(start, bytes, rights, mapping | MapFlags::NORESERVE),
                Source::Own => mmap_anonymous(start, bytes, rights, own | MapFlags::NORESERVE),
            }
        };
        if let Err(error) = mapped {
            // SAFETY: this unmaps the reservation above, to which no pointer exists.
            let _ = unsafe { munmap(room, bytes + slack) };
            return Err(failed(error));
        }
        if slack > 0 {
            // SAFETY: these are the two ends of the reservation, to which no pointer exists. If the kernel refuses,
            // they only waste address space.
            unsafe {
                let _ = munmap(room, skipped);
                let _ = munmap(start.wrapping_byte_add(bytes), slack - skipped);
            }
        }
        let start = NonNull::new(start.cast()).expect("a mapping is never at address 0");
        Ok(Memory { start, bytes, source })
    }

    pub(crate) fn file(&self) -> Option<&File> {
        match &self.source {
            Source::File(file) => Some(file),
            Source::Inherited | Source::Own => None,
        }
    }

    /// Whether this is a copy, which no other process sees.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self.source, Source::Own)
    }

    /// The bytes of a copy, which no other process and no other thread has seen yet.
    pub(crate) fn bytes_mut(&mut self, range: Range<u64>) -> &mut [u8] {
        assert!(self.is_copy() && range.start <= range.end && range.end <= self.bytes as u64);
        // SAFETY: the assertion keeps the range within the mapping, which is private to this process and exclusively
        // borrowed.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.start.add(range.start as usize).as_ptr(),
                (range.end - range.start) as usize,
            )
        }
    }

    /// The address of a byte of the mapping.
    pub(crate) fn at(&self, offset: u64) -> NonNull<u8> {
        assert!(offset < self.bytes as u64, "offsets follow from a geometry whose file is mapped whole");
        // SAFETY: the assertion keeps the offset within the mapping.
        unsafe { self.start.add(offset as usize) }
    }

    /// Asks the kernel for huge pages; returns whether it took the advice.
    pub(crate) fn advise_huge_pages(&self, offset: u64) -> bool {
        // SAFETY: the range ends with the mapping, and the advice changes only the pages that back it, not their
        // contents.
        unsafe { madvise(self.at(offset).as_ptr().cast(), self.bytes - offset as usize, Advice::LinuxHugepage).is_ok() }
    }

    /// Makes the kernel write a range to the device, and waits for it.
    pub(crate) fn sync(&self, offset: u64, bytes: u64) -> Result<(), Error> {
        let from = offset / PAGE * PAGE;
        let until = (offset + bytes).next_multiple_of(PAGE).min(self.bytes as u64);
        // SAFETY: these are whole pages of the mapping, and the call only writes them out.
        let outcome = unsafe { msync(self.at(from).as_ptr().cast(), (until - from) as usize, MsyncFlags::SYNC) };
        outcome.map_err(|source| Error::system("write the slab to its device", source))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this unmaps this value's own mapping, and no borrow of it outlives it. There is no remedy for a
        // failure.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
