//! TCP.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{self, Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use super::connect;
use super::stream::{stream, timeouts, wraps};
use crate::io::{Interest, Source};

/// A TCP connection, as [`std::net::TcpStream`]; see the [module](super).
#[derive(Debug)]
pub struct TcpStream {
    source: Source<net::TcpStream>,
}

wraps!(TcpStream, net::TcpStream);
timeouts!(TcpStream);
stream!(TcpStream, read_all_there_is);

impl TcpStream {
    /// Connects to the first address that accepts. The name is looked up on [another thread](crate::blocking()); where the
    /// address is known, [`connect_to`](Self::connect_to) does without.
    ///
    /// # Errors
    /// Those of the look-up, or of the last address.
    #[track_caller]
    pub fn connect(address: impl ToSocketAddrs + Sync) -> io::Result<Self> {
        connect::first_of(&connect::resolve(&address)?, Self::connect_to)
    }

    /// Connects to an address.
    ///
    /// # Errors
    /// Those of the connection.
    #[track_caller]
    pub fn connect_to(address: &SocketAddr) -> io::Result<Self> {
        Ok(Self { source: Source::new(connect::tcp(address, None)?) })
    }

    /// Connects to an address within a time.
    ///
    /// # Errors
    /// Those of the connection, and [`TimedOut`](io::ErrorKind::TimedOut).
    #[track_caller]
    pub fn connect_timeout(address: &SocketAddr, timeout: Duration) -> io::Result<Self> {
        if timeout.is_zero() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a time limit of zero; expected a longer one"));
        }
        Ok(Self { source: Source::new(connect::tcp(address, Some(timeout))?) })
    }

    /// The address of the other side.
    ///
    /// # Errors
    /// There is none any more.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.source.inner().peer_addr()
    }

    /// The address of this side.
    ///
    /// # Errors
    /// The kernel refuses to say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.inner().local_addr()
    }

    /// Closes one direction or both. Waits of other fibers in that direction end.
    ///
    /// # Errors
    /// The connection is over already.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.source.inner().shutdown(how)
    }

    /// Reads without taking the data.
    ///
    /// # Errors
    /// Those of a read.
    #[track_caller]
    pub fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.source.operate(Interest::Read, |inner| inner.peek(buf))
    }

    /// Whether small writes are sent at once, and not gathered (Nagle's algorithm).
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.source.inner().set_nodelay(nodelay)
    }

    /// Whether small writes are sent at once.
    ///
    /// # Errors
    /// The kernel refuses to say.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.source.inner().nodelay()
    }

    /// The hops that a packet may take.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.source.inner().set_ttl(ttl)
    }

    /// The hops that a packet may take.
    ///
    /// # Errors
    /// The kernel refuses to say.
    pub fn ttl(&self) -> io::Result<u32> {
        self.source.inner().ttl()
    }
}

/// A TCP socket that accepts connections, as [`std::net::TcpListener`]; see the [module](super).
#[derive(Debug)]
pub struct TcpListener {
    source: Source<net::TcpListener>,
}

wraps!(TcpListener, net::TcpListener);

impl TcpListener {
    /// Listens at the first of the addresses that is free.
    ///
    /// # Errors
    /// Those of the look-up, or of the last address.
    #[track_caller]
    pub fn bind(address: impl ToSocketAddrs + Sync) -> io::Result<Self> {
        Self::from_std(net::TcpListener::bind(&*connect::resolve(&address)?)?)
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// Those of the standard library. A connection that its peer has given up meanwhile
    /// ([`ConnectionAborted`](io::ErrorKind::ConnectionAborted)) is no reason to end a loop.
    #[track_caller]
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.source.operate(Interest::Read, net::TcpListener::accept)?;
        Ok((TcpStream::from_std(stream)?, peer))
    }

    /// The connections, without end.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// The kernel refuses to say.
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
