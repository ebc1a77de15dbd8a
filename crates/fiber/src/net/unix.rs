//! Unix sockets.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::{self, SocketAddr};
use std::path::Path;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix};

use super::connect;
use super::stream::{stream, timeouts, wraps};
use crate::io::{Interest, Source};

/// A Unix stream socket, like [`std::os::unix::net::UnixStream`]; see the [module](super).
#[derive(Debug)]
pub struct UnixStream {
    source: Source<net::UnixStream>,
}

wraps!(UnixStream, net::UnixStream);
timeouts!(UnixStream);
stream!(UnixStream, read_some);

impl UnixStream {
    /// Connects to a listener's path. While the listener's queue is full, tries again every millisecond.
    ///
    /// # Errors
    /// Returns the error from the connection attempt.
    #[track_caller]
    pub fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path.as_ref())?;
        Ok(Self { source: Source::new(connect::stream(AddressFamily::UNIX, &address, None)?.into()) })
    }

    /// Returns two sockets that are connected to each other.
    ///
    /// # Errors
    /// Returns an error if no descriptors are left.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = net::UnixStream::pair()?;
        Ok((Self::from_std(one)?, Self::from_std(other)?))
    }

    /// Closes one direction or both. Other fibers that wait in that direction stop waiting.
    ///
    /// # Errors
    /// Returns an error if the connection has ended already.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.source.inner().shutdown(how)
    }

    /// Returns the address of the peer.
    ///
    /// # Errors
    /// Returns an error if the socket is no longer connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.source.inner().peer_addr()
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.inner().local_addr()
    }
}

/// A Unix socket that accepts connections, like [`std::os::unix::net::UnixListener`]; see the [module](super).
#[derive(Debug)]
pub struct UnixListener {
    source: Source<net::UnixListener>,
}

wraps!(UnixListener, net::UnixListener);

impl UnixListener {
    /// Listens at a path. No file may exist at the path yet.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::from_std(net::UnixListener::bind(path)?)
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    #[track_caller]
    pub fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let (stream, peer) = self.source.operate(Interest::Read, net::UnixListener::accept)?;
        Ok((UnixStream::from_std(stream)?, peer))
    }

    /// Returns the address on which the socket listens.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.inner().local_addr()
    }
}
