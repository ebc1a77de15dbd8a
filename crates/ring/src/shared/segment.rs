//! The mapped file: header and slots, and the locks that give roles.

use std::fs::{File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering;

use thiserror::Error;

use super::Plain;
use super::header::{Header, MAGIC};
use crate::primitive::UnsafeCell;

/// The byte whose lock is the role.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    Producer = 0,
    Consumer = 1,
}

const ATTACHING: libc::off_t = 2;

/// Why a process could not take its place at a shared ring.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// Another process, or another handle of this one, has the role.
    #[error("the role is taken: another {0} is attached to this ring")]
    Taken(&'static str),
    /// The file is a ring of another kind.
    #[error("the file holds a ring of {found}, expected was one of {expected}")]
    Mismatch {
        /// What it is.
        found: String,
        /// What was asked for.
        expected: String,
    },
    /// The file holds something, but not a ring of this version.
    #[error("the file is not a ring of layout version 1; use an empty file")]
    NotARing,
    /// The system refused.
    #[error("the file cannot be locked, sized or mapped")]
    Io(#[from] io::Error),
}

/// A mapping, and the lock that makes it ours for one role.
pub(super) struct Segment<T> {
    header: NonNull<Header>,
    bytes: usize,
    slots: u64,
    role: Role,
    /// Its description has the lock: the kernel drops it with the last descriptor, however the process ends.
    locked: File,
    _events: PhantomData<T>,
}

// SAFETY: the memory is shared by design; the role gives one handle the right to its part.
unsafe impl<T: Plain> Send for Segment<T> {}

impl<T: Plain> Segment<T> {
    pub(super) fn attach(file: &File, slots: usize, role: Role) -> Result<Self, AttachError> {
        assert!(slots.is_power_of_two(), "a ring's capacity is a power of two, not {slots}");
        const { assert!(align_of::<T>() <= 128 && size_of::<T>() > 0) };
        // A description of our own: locks belong to descriptions, and the caller's may be shared.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let locked = OpenOptions::new().read(true).write(true).open(path)?;
        if !lock(locked.as_raw_fd(), role as libc::off_t, libc::F_OFD_SETLK, libc::F_WRLCK)? {
            return Err(AttachError::Taken(match role {
                Role::Producer => "producer",
                Role::Consumer => "consumer",
            }));
        }
        lock(locked.as_raw_fd(), ATTACHING, libc::F_OFD_SETLKW, libc::F_WRLCK)?;
        let bytes = size_of::<Header>() + slots * size_of::<T>();
        let found = locked.metadata()?.len();
        if found == 0 {
            locked.set_len(bytes as u64)?;
        } else if found < size_of::<Header>() as u64 {
            return Err(AttachError::NotARing);
        }
        let segment =
            Segment { header: map(&locked, bytes)?, bytes, slots: slots as u64, role, locked, _events: PhantomData };
        segment.agree(found == 0, found)?;
        lock(segment.locked.as_raw_fd(), ATTACHING, libc::F_OFD_SETLK, libc::F_UNLCK)?;
        Ok(segment)
    }

    /// Writes the header of a new file, or checks that of an old one; with the lock for attaching.
    fn agree(&self, new: bool, found_bytes: u64) -> Result<(), AttachError> {
        let (bytes, align) = (size_of::<T>() as u32, align_of::<T>() as u32);
        let header = self.header();
        if new || header.kind.magic.load(Ordering::Acquire) == 0 {
            // All of a new file is zero; zero is also what an event count starts with.
            header.kind.event_bytes.store(bytes, Ordering::Relaxed);
            header.kind.event_align.store(align, Ordering::Relaxed);
            header.kind.slots.store(self.slots, Ordering::Relaxed);
            header.kind.magic.store(MAGIC, Ordering::Release);
        }
        if header.kind.magic.load(Ordering::Acquire) != MAGIC {
            return Err(AttachError::NotARing);
        }
        let describe = |slots, bytes, align| format!("{slots} slots of {bytes} bytes, aligned to {align}");
        let found = describe(
            header.kind.slots.load(Ordering::Relaxed),
            header.kind.event_bytes.load(Ordering::Relaxed),
            header.kind.event_align.load(Ordering::Relaxed),
        );
        let expected = describe(self.slots, bytes, align);
        if found != expected || found_bytes != 0 && found_bytes != self.bytes as u64 {
            return Err(AttachError::Mismatch { found, expected });
        }
        Ok(())
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: mapped for as long as `self` lives, aligned to a page, and made of atomics only.
        unsafe { self.header.as_ref() }
    }

    pub(super) fn slots(&self) -> u64 {
        self.slots
    }

    /// The slot of a position.
    pub(super) fn slot(&self, position: u64) -> &UnsafeCell<T> {
        let index = (position & (self.slots - 1)) as usize;
        // SAFETY: the slots follow the header, and there are `self.slots` of them, aligned as the header is at least. Whatever
        // they hold is a value, and a cell may change while it is referred to.
        unsafe { self.header.add(1).cast::<UnsafeCell<T>>().add(index).as_ref() }
    }
}

impl<T> Drop for Segment<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and nobody has a reference any more.
        unsafe { libc::munmap(self.header.as_ptr().cast(), self.bytes) };
        // Closing is not enough: a child that another thread is just starting has a copy of the descriptor until it
        // runs its program. An error leaves the lock to the kernel.
        for byte in [self.role as libc::off_t, ATTACHING] {
            let _ = lock(self.locked.as_raw_fd(), byte, libc::F_OFD_SETLK, libc::F_UNLCK);
        }
    }
}

fn map(file: &File, bytes: usize) -> io::Result<NonNull<Header>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new shared mapping of a file; the kernel chooses where.
    let address = unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(address.cast()).expect("the kernel does not map page 0 unasked"))
}

/// Locks or unlocks one byte; false if another description has it.
fn lock(file: RawFd, byte: libc::off_t, command: libc::c_int, kind: libc::c_int) -> io::Result<bool> {
    // SAFETY: all zero is a valid `flock`; the fields that matter follow.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    (range.l_type, range.l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    (range.l_start, range.l_len) = (byte, 1);
    loop {
        // SAFETY: the descriptor is open, and the kernel only reads the range.
        if unsafe { libc::fcntl(file, command, &range) } == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => return Ok(false),
            Some(libc::EINTR) => (),
            _ => return Err(error),
        }
    }
}
