//! A bell between threads that epoll can hear.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An eventfd(2).
#[derive(Debug)]
pub(crate) struct Event {
    descriptor: OwnedFd,
}

impl Event {
    pub(crate) fn new() -> io::Result<Event> {
        // SAFETY: eventfd takes two integers; the descriptor it returns is new and ours.
        match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: as above.
            descriptor => Ok(Event { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } }),
        }
    }

    pub(crate) fn ring(&self) {
        // SAFETY: eight bytes that live through the call. A full counter has rung anyway.
        unsafe { libc::write(self.descriptor.as_raw_fd(), 1_u64.to_ne_bytes().as_ptr().cast(), 8) };
    }

    pub(crate) fn clear(&self) {
        let mut count = [0_u8; 8];
        // SAFETY: room for eight bytes.
        unsafe { libc::read(self.descriptor.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }
}
