//! Sockets that suspend the fiber, with the signatures of [`std::net`] and [`std::os::unix::net`].
//!
//! Outside fibers they block the thread, so one body runs everywhere. A fiber's [`IoModel`](crate::IoModel) sets how it waits.
//!
//! ```
//! use std::io::{Read, Write};
//! use millstream_fiber::net::{TcpListener, TcpStream};
//! use millstream_fiber::{Options, Runtime, Threads};
//!
//! let runtime = Runtime::start(Options::new(Threads::One))?;
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let address = listener.local_addr()?;
//! let echo = runtime.spawn(move || -> std::io::Result<()> {
//!     let (mut stream, _) = listener.accept()?;
//!     let mut line = [0; 5];
//!     stream.read_exact(&mut line)?;
//!     stream.write_all(&line)
//! });
//! let asked = runtime.spawn(move || -> std::io::Result<[u8; 5]> {
//!     let mut stream = TcpStream::connect_to(&address)?;
//!     stream.write_all(b"hello")?;
//!     let mut answer = [0; 5];
//!     stream.read_exact(&mut answer)?;
//!     Ok(answer)
//! });
//! assert_eq!(&asked.join().unwrap()?, b"hello");
//! echo.join().unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Errors
//! Calls return the errors of the standard library, except that a time limit always ends in
//! [`TimedOut`](std::io::ErrorKind::TimedOut). No call fails with `WouldBlock` or `Interrupted`.
//!
//! # Cost
//! A call that need not wait costs its system call and a few nanoseconds. Under [`Readiness`](crate::IoModel::Readiness), a
//! wait adds no system call, because the worker polls for all its fibers together. Only the first wait for a descriptor adds a
//! call, which registers the descriptor.
//!
//! # Cancellation
//! A cancelled fiber unwinds in its next call, even if the call need not wait. No data are lost: a fiber that unwinds in a
//! call has read nothing in it. A fiber that has made 64 calls without a wait lets others run.
//!
//! # Descriptors
//! All descriptors are non-blocking and close-on-exec. `into_std` returns an object in blocking mode.

mod connect;
mod stream;
mod tcp;
mod udp;
mod unix;

pub use tcp::{Incoming, TcpListener, TcpStream};
pub use udp::UdpSocket;
pub use unix::{UnixListener, UnixStream};
