//! TCP.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{self, Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use super::connect;
use super::stream::{stream, timeouts, wraps};
use crate::io::{Interest, Source};

/// A TCP connection, like [`std::net::TcpStream`]; see the [module](super).
#[derive(Debug)]
pub struct TcpStream {
    source: Source<net::TcpStream>,
}

wraps!(TcpStream, net::TcpStream);
timeouts!(TcpStream);
stream!(TcpStream, read_all_there_is);

impl TcpStream {
    /// Connects to the first address that accepts the connection. The name is looked up on [another thread](crate::blocking()).
    /// If the address is known, use [`connect_to`](Self::connect_to), which needs no look-up.
    ///
    /// # Errors
    /// Returns the error from the look-up, or from the last address tried.
    #[track_caller]
    pub fn connect(address: impl ToSocketAddrs + Sync) -> io::Result<Self> {
        connect::first_of(&connect::resolve(&address)?, Self::connect_to)
    }

    /// Connects to an address.
    ///
    /// # Errors
    /// Returns the error from the connection attempt.
    #[track_caller]
    pub fn connect_to(address: &SocketAddr) -> io::Result<Self> {
        Ok(Self { source: Source::new(connect::tcp(address, None)?) })
    }

    /// Connects to an address within `timeout`.
    ///
    /// # Errors
    /// Returns the error from the connection attempt, or [`TimedOut`](io::ErrorKind::TimedOut).
    #[track_caller]
    pub fn connect_timeout(address: &SocketAddr, timeout: Duration) -> io::Result<Self> {
        if timeout.is_zero() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a time limit of zero; expected a longer one"));
        }
        Ok(Self { source: Source::new(connect::tcp(address, Some(timeout))?) })
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

    /// Closes one direction or both. Other fibers that wait in that direction stop waiting.
    ///
    /// # Errors
    /// Returns an error if the connection has ended already.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.source.inner().shutdown(how)
    }

    /// Reads without removing the data from the stream.
    ///
    /// # Errors
    /// Returns the same errors as a read.
    #[track_caller]
    pub fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.source.operate(Interest::Read, |inner| inner.peek(buf))
    }

    /// Sets whether small writes are sent immediately, instead of being coalesced (Nagle's algorithm).
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.source.inner().set_nodelay(nodelay)
    }

    /// Returns whether small writes are sent immediately.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.source.inner().nodelay()
    }

    /// Sets the maximum number of hops of a packet.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.source.inner().set_ttl(ttl)
    }

    /// Returns the maximum number of hops of a packet.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn ttl(&self) -> io::Result<u32> {
        self.source.inner().ttl()
    }
}

/// A TCP socket that accepts connections, like [`std::net::TcpListener`]; see the [module](super).
#[derive(Debug)]
pub struct TcpListener {
    source: Source<net::TcpListener>,
}

wraps!(TcpListener, net::TcpListener);

impl TcpListener {
    /// Listens on the first of the addresses that can be bound.
    ///
    /// # Errors
    /// Returns the error from the look-up, or from the last address tried.
    #[track_caller]
    pub fn bind(address: impl ToSocketAddrs + Sync) -> io::Result<Self> {
        Self::from_std(net::TcpListener::bind(&*connect::resolve(&address)?)?)
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// Returns the same errors as the standard library. A loop that accepts connections should ignore
    /// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted): it means that a peer gave up before its connection was accepted.
    #[track_caller]
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.source.operate(Interest::Read, net::TcpListener::accept)?;
        Ok((TcpStream::from_std(stream)?, peer))
    }

    /// Returns an iterator of connections, which never ends.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// Returns the address on which the socket listens.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.inner().local_addr()
    }
}

/// The connections of a listener; see [`TcpListener::incoming`].
#[derive(Debug)]
pub struct Incoming<'a> {
    listener: &'a TcpListener,
}

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    #[track_caller]
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.listener.accept().map(|(stream, _)| stream))
    }
}
