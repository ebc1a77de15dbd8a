//! Connections to servers. If a unit runs on a fiber, a wait for its connection suspends the fiber, and the thread
//! serves other units meanwhile.
//!
//! `ureq` adds TLS and proxies on top of these connections. A response that arrives [early](super::early) is not lost.
//! A host's name is looked up on another thread; a URL with an address needs no lookup. When the engine cancels a unit,
//! its fiber unwinds, which closes the connection.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use millstream_fiber::net::TcpStream;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, NextTimeout, RustlsConnector, TcpConnector,
    Transport,
};
use ureq::{Agent, Error, Timeout};

use super::buffers::GrowingBuffers;
use super::early::ReadsEarlyAnswers;

/// The minimum time for an attempt to connect, when a host has several addresses.
const MIN_FOR_ADDRESS: Duration = Duration::from_millis(10);

/// An agent whose waits suspend fibers.
pub(super) fn of_fibers(config: Config) -> Agent {
    let plain = ().chain(ConnectProxyConnector::default()).chain(Connects);
    let connector = plain.chain(ReadsEarlyAnswers).chain(RustlsConnector::default());
    Agent::with_parts(config, connector, Resolves(DefaultResolver::default()))
}

/// An agent whose waits block threads.
pub(super) fn of_threads(config: Config) -> Agent {
    let plain = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default());
    let connector = plain.chain(ReadsEarlyAnswers).chain(RustlsConnector::default());
    Agent::with_parts(config, connector, DefaultResolver::default())
}

/// Looks up names on another thread.
#[derive(Debug)]
struct Resolves(DefaultResolver);

impl Resolver for Resolves {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        if let Some(address) = literal(uri) {
            let mut addresses = self.empty();
            addresses.push(address);
            return Ok(addresses);
        }
        millstream_fiber::blocking(|| self.0.resolve(uri, config, timeout))
    }
}

/// The address in a URL, if the host is given by an address rather than by a name.
fn literal(uri: &Uri) -> Option<SocketAddr> {
    let host = uri.host()?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let address: IpAddr = host.parse().ok()?;
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    Some(SocketAddr::new(address, port))
}

/// Connects without blocking the thread.
#[derive(Debug)]
struct Connects;

impl<In: Transport> Connector<In> for Connects {
    type Out = Either<In, Connection>;

    fn connect(&self, details: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        if let Some(proxied) = chained {
            return Ok(Some(Either::A(proxied)));
        }
        let stream = first_of(&details.addrs, limit(details.timeout)?, details.timeout.reason)?;
        if details.config.no_delay() {
            stream.set_nodelay(true)?;
        }
        let buffers = GrowingBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Either::B(Connection { stream, buffers })))
    }
}

/// Connects to the first address that accepts. Each address except the last gets half of the remaining time.
fn first_of(addresses: &[SocketAddr], limit: Option<Duration>, reason: Timeout) -> Result<TcpStream, Error> {
    let began = Instant::now();
    let mut last = Error::Io(io::ErrorKind::ConnectionRefused.into());
    for (place, address) in addresses.iter().enumerate() {
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        let is_last = place + 1 == addresses.len();
        let share = left.map(|left| if is_last { left } else { left / 2 }.max(MIN_FOR_ADDRESS));
        let connected = match share {
            Some(share) => TcpStream::connect_timeout(address, share),
            None => TcpStream::connect_to(address),
        };
        last = match connected {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Error::Timeout(reason),
            Err(error) if is_of_address(&error) => Error::Io(error),
            Err(error) => return Err(error.into()),
        };
    }
    Err(last)
}

/// Whether the error concerns this address alone, so that another address may work.
fn is_of_address(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable | AddrNotAvailable)
}

/// The time left for one step of a request; `None` if the step has no time limit.
///
/// # Errors
/// No time is left.
fn limit(timeout: NextTimeout) -> Result<Option<Duration>, Error> {
    if timeout.after.is_zero() {
        return Err(Error::Timeout(timeout.reason));
    }
    Ok(timeout.not_zero().map(|limit| *limit))
}

/// A connection whose waits suspend the fiber.
struct Connection {
    stream: TcpStream,
    buffers: GrowingBuffers,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl Connection {
    /// The error of a step. If the step's time has run out, the error is a timeout of `ureq`.
    fn told(error: io::Error, timeout: NextTimeout) -> Error {
        if error.kind() == io::ErrorKind::TimedOut { Error::Timeout(timeout.reason) } else { error.into() }
    }
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        self.stream.set_write_timeout(limit(timeout)?)?;
        let output = &self.buffers.output()[..amount];
        self.stream.write_all(output).map_err(|error| Self::told(error, timeout))?;
        self.buffers.sent();
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        self.stream.set_read_timeout(limit(timeout)?)?;
        if self.buffers.await_first() {
            // The wait for the first bytes may be long, so the buffer is allocated after it.
            self.stream.peek(&mut [0]).map_err(|error| Self::told(error, timeout))?;
        }
        let input = self.buffers.input_append_buf();
        let amount = self.stream.read(input).map_err(|error| Self::told(error, timeout))?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    /// An idle connection is open if a read would block. The end of the stream, or a response that was not requested,
    /// makes the connection unusable.
    fn is_open(&mut self) -> bool {
        let mut byte = [0; 1];
        matches!(recv(&self.stream, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT), Err(Errno::AGAIN))
    }
}
