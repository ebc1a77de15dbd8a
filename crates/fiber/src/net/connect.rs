//! Connecting without blocking the thread.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, getpeername, socket_with, sockopt};

use crate::io::{Interest, Source, on_other_thread};
use crate::park::{deadline_after, sleep};
use crate::scheduler::state::Reason;

/// The time between two attempts while a Unix listener's queue is full. The kernel does not report when the queue has room again.
const QUEUE_FULL: Duration = Duration::from_millis(1);

/// Returns a connected, non-blocking stream socket.
///
/// # Errors
/// Returns the error from the connection attempt, or [`TimedOut`](io::ErrorKind::TimedOut).
#[track_caller]
pub(super) fn stream(
    family: AddressFamily,
    address: &impl SocketAddrArg,
    timeout: Option<Duration>,
) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = Source::new(socket_with(family, SocketType::STREAM, flags, None)?);
    let deadline = timeout.and_then(deadline_after);
    let mut has_begun = false;
    loop {
        let begun = socket.operate_for(Reason::Writable, Interest::Write, timeout, |socket| {
            if has_begun {
                return finish(socket);
            }
            match connect(socket, address) {
                // An attempt that a signal interrupts continues in the kernel, so this also waits for its outcome.
                Err(Errno::INPROGRESS | Errno::INTR) => {
                    has_begun = true;
                    Err(io::ErrorKind::WouldBlock.into())
                }
                // A Unix listener's queue is full.
                Err(Errno::AGAIN) if family == AddressFamily::UNIX => Ok(false),
                // No local port is left.
                Err(Errno::AGAIN) => Err(Errno::ADDRNOTAVAIL.into()),
                result => result.map(|()| true).map_err(io::Error::from),
            }
        })?;
        if begun {
            return Ok(socket.into_inner());
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        sleep(QUEUE_FULL);
    }
}

/// Returns the outcome of a connection attempt, or `WouldBlock` while it is in progress.
fn finish(socket: &OwnedFd) -> io::Result<bool> {
    sockopt::socket_error(socket)??;
    match getpeername(socket) {
        Ok(_) => Ok(true),
        Err(Errno::NOTCONN) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error.into()),
    }
}

/// Connects to a TCP address.
#[track_caller]
pub(super) fn tcp(address: &SocketAddr, timeout: Option<Duration>) -> io::Result<std::net::TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    stream(family, address, timeout).map(std::net::TcpStream::from)
}

/// Looks up the addresses of a name, on another thread. Returns at least one address.
///
/// # Errors
/// Returns the error from the look-up.
#[track_caller]
pub(super) fn resolve(name: &(impl ToSocketAddrs + Sync)) -> io::Result<Vec<SocketAddr>> {
    let addresses: Vec<SocketAddr> = on_other_thread(|| name.to_socket_addrs().map(Iterator::collect))?;
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name has no address"));
    }
    Ok(addresses)
}

/// Calls `act` with each address until a call succeeds. If every call fails, returns the last error.
pub(super) fn first_of<T>(
    addresses: &[SocketAddr],
    mut act: impl FnMut(&SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = io::Error::from(io::ErrorKind::InvalidInput);
    for address in addresses {
        match act(address) {
            Ok(value) => return Ok(value),
            Err(error) => last = error,
        }
    }
    Err(last)
}
