//! Sockets that suspend the fiber, with the signatures of [`std::net`] and [`std::os::unix::net`].
//!
//! Outside of fibers they block the thread, so one body runs everywhere. How a fiber waits is its [`IoModel`](crate::IoModel).
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
//! Those of the standard library, but for a time limit that is over: that is always
//! [`TimedOut`](std::io::ErrorKind::TimedOut). No call fails with `WouldBlock` or `Interrupted`.
//!
//! # Cost
//! A call that need not wait is the system call and a few nanoseconds. A wait under
//! [`Readiness`](crate::IoModel::Readiness) adds no system call to that of the worker, which asks for all its fibers at
//! once; the first wait for a descriptor registers it, with one more.
//!
//! # Cancellation
//! Every call is a wait at which a cancelled fiber unwinds, and none loses data: a fiber that unwinds has read nothing in
//! that call. A fiber that has had 64 calls without a wait lets others run.
//!
//! # Descriptors
//! All are non-blocking and close-on-exec. `into_std` gives a blocking object back.

mod connect;
mod stream;
mod tcp;
mod udp;
mod unix;

pub use tcp::{Incoming, TcpListener, TcpStream};
pub use udp::UdpSocket;
pub use unix::{UnixListener, UnixStream};
