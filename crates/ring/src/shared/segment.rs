//! The mapped file, with header and slots, and the role under which this process uses them.

use std::alloc::Layout;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

use super::header::Header;
use super::kind::Kind;
use super::role::{Role, RoleLock};
use super::{AttachError, Plain};
use crate::primitive::UnsafeCell;
use crate::slots::check_capacity;

/// The largest alignment of an event: that of the header, which the slots follow.
pub(super) const MAX_ALIGN: usize = align_of::<Header>();

/// The largest size of an event that the header can express.
pub(super) const MAX_EVENT_BYTES: usize = u32::MAX as usize;

/// A mapping, and the lock by which this process holds its role.
pub(super) struct Segment<T> {
    header: NonNull<Header>,
    bytes: usize,
    slots: u64,
    _role: RoleLock,
    _events: PhantomData<T>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and the role gives this handle exclusive use of its
// side.
unsafe impl<T: Plain> Send for Segment<T> {}

impl<T: Plain> Segment<T> {
    pub(super) fn attach(file: &File, slots: usize, role: Role) -> Result<Self, AttachError> {
        const { assert!(align_of::<T>() <= MAX_ALIGN && size_of::<T>() > 0 && size_of::<T>() <= MAX_EVENT_BYTES) };
        Self::of(file, slots, Layout::new::<T>(), role)
    }

    /// Attaches to a ring whose events have the layout `event`. It must be the layout of `T`, unless no code accesses a
    /// slot as a `T`.
    pub(super) fn of(file: &File, slots: usize, event: Layout, role: Role) -> Result<Self, AttachError> {
        check_capacity(slots);
        let (kind, bytes) = Kind::new(slots, event)?;
        let role = RoleLock::take(file, role)?;
        let header = role.alone(|file| {
            let was_empty = kind.agree(file, bytes as u64)?;
            let mapped = map(file, bytes);
            if mapped.is_err() && was_empty {
                // No other process has attached, so the file can still become a ring of another size.
                let _ = file.set_len(0);
            }
            mapped.map_err(AttachError::system(format!("map {bytes} bytes of the file")))
        })?;
        Ok(Segment { header, bytes, slots: slots as u64, _role: role, _events: PhantomData })
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the header stays mapped as long as `self` lives, is page-aligned, and consists only of atomics and a
        // cell.
        unsafe { self.header.as_ref() }
    }

    pub(super) fn slots(&self) -> u64 {
        self.slots
    }

    /// The first byte of the first slot.
    pub(super) fn start(&self) -> NonNull<u8> {
        // SAFETY: the header is followed by the slots, within one mapping.
        unsafe { self.header.add(1) }.cast()
    }

    /// The slot of `position`.
    pub(super) fn slot(&self, position: u64) -> &UnsafeCell<T> {
        let index = (position & (self.slots - 1)) as usize;
        // SAFETY: the mapping has `self.slots` slots, which are aligned for `T`. Every bit pattern in them is a value,
        // and a cell may change while there are references to it.
        unsafe { self.start().cast::<UnsafeCell<T>>().add(index).as_ref() }
    }
}

impl<T> Drop for Segment<T> {
    fn drop(&mut self) {
        // SAFETY: `map` made the mapping with this length, and `drop` has the last reference. The role is released
        // afterwards.
        unsafe { libc::munmap(self.header.as_ptr().cast(), self.bytes) };
    }
}

fn map(file: &File, bytes: usize) -> io::Result<NonNull<Header>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the mapping is new, at an address of the kernel's choice.
    let address = unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(address.cast()).expect("the kernel maps nothing at address zero by itself"))
}
