//! UDP.

use std::io;
use std::net::{self, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use super::connect;
use super::stream::{timeouts, wraps};
use crate::io::{Interest, Source};

/// A UDP socket, like [`std::net::UdpSocket`]; see the [module](super).
#[derive(Debug)]
pub struct UdpSocket {
    source: Source<net::UdpSocket>,
}

wraps!(UdpSocket, net::UdpSocket);
timeouts!(UdpSocket);

impl UdpSocket {
    /// Binds to the first of the addresses that can be bound.
    ///
    /// # Errors
    /// Returns the error from the look-up, or from the last address tried.
    #[track_caller]
    pub fn bind(address: impl ToSocketAddrs + Sync) -> io::Result<Self> {
        Self::from_std(net::UdpSocket::bind(&*connect::resolve(&address)?)?)
    }

    /// Sets the peer of [`send`](Self::send) and [`recv`](Self::recv) to the first address that the kernel accepts.
    ///
    /// # Errors
    /// Returns the error from the look-up, or from the last address tried.
    #[track_caller]
    pub fn connect(&self, address: impl ToSocketAddrs + Sync) -> io::Result<()> {
        self.source.inner().connect(&*connect::resolve(&address)?)
    }

    /// Sends a datagram to the peer.
    ///
    /// # Errors
    /// Returns the same errors as the standard library, and [`TimedOut`](io::ErrorKind::TimedOut).
    #[track_caller]
    pub fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.source.operate(Interest::Write, |inner| inner.send(buf))
    }

    /// Receives a datagram from the peer; bytes that do not fit into `buf` are lost.
    ///
    /// # Errors
    /// Returns the same errors as the standard library, and [`TimedOut`](io::ErrorKind::TimedOut).
    #[track_caller]
    pub fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.source.operate(Interest::Read, |inner| inner.recv(buf))
    }

    /// Sends a datagram to an address.
    ///
    /// # Errors
    /// Returns the same errors as the standard library, and [`TimedOut`](io::ErrorKind::TimedOut).
    #[track_caller]
    pub fn send_to(&self, buf: &[u8], address: &SocketAddr) -> io::Result<usize> {
        self.source.operate(Interest::Write, |inner| inner.send_to(buf, address))
    }

    /// Receives a datagram and its sender; bytes that do not fit into `buf` are lost.
    ///
    /// # Errors
    /// Returns the same errors as the standard library, and [`TimedOut`](io::ErrorKind::TimedOut).
    #[track_caller]
    pub fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.source.operate(Interest::Read, |inner| inner.recv_from(buf))
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.inner().local_addr()
    }
}
