//! A notification between threads that epoll can wait for.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An eventfd(2).
#[derive(Debug)]
pub(crate) struct Event {
    descriptor: OwnedFd,
}

impl Event {
    pub(crate) fn new() -> io::Result<Event> {
        // SAFETY: eventfd takes two integers.
        match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: eventfd has just returned this descriptor, which has no other owner.
            descriptor => Ok(Event { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } }),
        }
    }

    pub(crate) fn ring(&self) {
        // SAFETY: the call reads eight bytes of a local array. It fails only if the counter is full, and then the
        // notification is pending already.
        unsafe { libc::write(self.descriptor.as_raw_fd(), 1_u64.to_ne_bytes().as_ptr().cast(), 8) };
    }

    pub(crate) fn clear(&self) {
        let mut count = [0_u8; 8];
        // SAFETY: `count` has room for eight bytes, the number passed.
        unsafe { libc::read(self.descriptor.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }
}
