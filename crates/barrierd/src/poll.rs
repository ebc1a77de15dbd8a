//! Waiting for several descriptors at once.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// An epoll(7) instance in which a number names each descriptor.
#[derive(Debug)]
pub(crate) struct Poll {
    descriptor: OwnedFd,
}

/// The maximum number of events that one wait returns.
const EVENTS: usize = 64;

impl Poll {
    pub(crate) fn new() -> io::Result<Poll> {
        // SAFETY: epoll_create1 takes an integer.
        match unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: epoll_create1 has just returned this descriptor, which has no other owner.
            descriptor => Ok(Poll { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } }),
        }
    }

    /// Adds a descriptor: [`wait`](Self::wait) returns its name whenever it is readable, until it is closed.
    pub(crate) fn add(&self, descriptor: BorrowedFd<'_>, name: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, libc::EPOLLIN, name)
    }

    /// Mutes a descriptor: from now on, [`wait`](Self::wait) returns its name only when the other side has closed.
    pub(crate) fn mute(&self, descriptor: BorrowedFd<'_>, name: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, 0, name)
    }

    /// Ends the muting: [`wait`](Self::wait) again returns the name whenever the descriptor is readable.
    pub(crate) fn unmute(&self, descriptor: BorrowedFd<'_>, name: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, libc::EPOLLIN, name)
    }

    fn control(&self, operation: i32, descriptor: BorrowedFd<'_>, events: i32, name: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: name };
        let (poll, descriptor) = (self.descriptor.as_raw_fd(), descriptor.as_raw_fd());
        // SAFETY: the event is a local variable, which outlives the call.
        let outcome = unsafe { libc::epoll_ctl(poll, operation, descriptor, &raw mut event) };
        if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Returns the names of the readable descriptors, or an empty list after the timeout.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // The timeout is rounded up to milliseconds, because otherwise the loop would spin during the last fraction of a
        // millisecond.
        let timeout = timeout.map_or(-1, |timeout| timeout.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32);
        // SAFETY: `events` has room for `EVENTS` events, the number passed.
        let count =
            unsafe { libc::epoll_wait(self.descriptor.as_raw_fd(), events.as_mut_ptr(), EVENTS as i32, timeout) };
        match usize::try_from(count) {
            Ok(count) => Ok(events[..count].iter().map(|event| event.u64).collect()),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(Vec::new()),
                error => Err(error),
            },
        }
    }
}
