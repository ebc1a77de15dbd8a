//! Waiting for several descriptors at once.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// An epoll(7) instance whose descriptors have a name each.
#[derive(Debug)]
pub(crate) struct Poll {
    descriptor: OwnedFd,
}

/// How many events one wait brings.
const EVENTS: usize = 64;

impl Poll {
    pub(crate) fn new() -> io::Result<Poll> {
        // SAFETY: epoll_create1 takes an integer; the descriptor it returns is new and ours.
        match unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: as above.
            descriptor => Ok(Poll { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } }),
        }
    }

    /// From now on tells when there is something to read. Ends when the descriptor is closed.
    pub(crate) fn add(&self, descriptor: BorrowedFd<'_>, name: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, libc::EPOLLIN, name)
    }

    /// From now on tells only when the other side has closed.
    pub(crate) fn mute(&self, descriptor: BorrowedFd<'_>, name: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, 0, name)
    }

    /// From now on tells again when there is something to read.
    pub(crate) fn unmute(&self, descriptor: BorrowedFd<'_>, name: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, libc::EPOLLIN, name)
    }

    fn control(&self, operation: i32, descriptor: BorrowedFd<'_>, events: i32, name: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: name };
        let (poll, descriptor) = (self.descriptor.as_raw_fd(), descriptor.as_raw_fd());
        // SAFETY: the event lives through the call.
        let outcome = unsafe { libc::epoll_ctl(poll, operation, descriptor, &raw mut event) };
        if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The names of descriptors with something to read; empty when the time is over.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // Rounded up, or the last fraction would be waited for busily.
        let timeout = timeout.map_or(-1, |timeout| timeout.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32);
        // SAFETY: room for as many events as the call is told.
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
