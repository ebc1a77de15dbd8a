//! The mapped file: header and slots, and the place that gives the right to them.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

use super::header::Header;
use super::kind::Kind;
use super::place::{Place, Role};
use super::{AttachError, Plain};
use crate::primitive::UnsafeCell;
use crate::slots::check_capacity;

/// A mapping, and the lock that makes it ours for one role.
pub(super) struct Segment<T> {
    header: NonNull<Header>,
    bytes: usize,
    slots: u64,
    _place: Place,
    _events: PhantomData<T>,
}

// SAFETY: the memory is shared by design; the role gives one handle the right to its part.
unsafe impl<T: Plain> Send for Segment<T> {}

impl<T: Plain> Segment<T> {
    pub(super) fn attach(file: &File, slots: usize, role: Role) -> Result<Self, AttachError> {
        check_capacity(slots);
        const { assert!(align_of::<T>() <= 128 && size_of::<T>() > 0 && size_of::<T>() <= u32::MAX as usize) };
        let (kind, bytes) = Kind::of::<T>(slots)?;
        let place = Place::take(file, role)?;
        let header = place.alone(|file| {
            kind.agree(file, bytes as u64)?;
            map(file, bytes).map_err(AttachError::system(format!("map {bytes} bytes of the file")))
        })?;
        Ok(Segment { header, bytes, slots: slots as u64, _place: place, _events: PhantomData })
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: mapped for as long as `self` lives, aligned to a page, and made of atomics and a cell only.
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
        // SAFETY: mapped by `map` with this length, and nobody has a reference any more. The place is given up after it.
        unsafe { libc::munmap(self.header.as_ptr().cast(), self.bytes) };
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
