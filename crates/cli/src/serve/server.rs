//! The listener and its connections.
//!
//! Each connection has its own thread and carries one request, so a slow peer delays neither other peers nor the run.
//! The number of connections is limited, and so is the duration of each step.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::host;
use super::request::{self, Method, NoRequest, Request};
use super::response::Response;

/// The maximum number of open connections. A further connection gets status 503 and is closed.
pub(super) const MAX_CONNECTIONS: usize = 64;
/// The pause after a connection could not be accepted, for example because too many files were open.
const PAUSE: Duration = Duration::from_millis(100);
/// The stack size of a connection's thread.
const STACK_BYTES: usize = 256 << 10;
/// How long a peer may read a response before its connection is closed.
const LINGER: Duration = Duration::from_millis(500);
/// How long a server waits for unfinished responses when it is dropped.
const FAREWELL: Duration = Duration::from_millis(500);

/// The resources of a server, by path.
pub(super) trait Resources: Send + Sync + 'static {
    /// Writes the response to a request.
    ///
    /// # Errors
    /// Returns the errors of the connection.
    fn answer(&self, stream: &TcpStream, request: &Request) -> io::Result<()>;
}

/// A server, which stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    /// One end of a socket pair. The listener's thread polls the other end, and a drop of this end wakes the thread.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    connections: Arc<Connections>,
}

impl Server {
    /// Listens on `address` and serves `resources`.
    ///
    /// # Errors
    /// The address is in use or is not an address of this machine, or the system refuses a thread.
    pub(super) fn start(address: SocketAddr, resources: impl Resources) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (wake, woken) = UnixStream::pair()?;
        let connections = Arc::new(Connections::default());
        let open = Arc::clone(&connections);
        let resources: Arc<dyn Resources> = Arc::new(resources);
        let thread = thread::Builder::new()
            .name("http".to_owned())
            .spawn(move || serve(&listener, &woken, &open, &resources))?;
        Ok(Self { address, wake: Some(wake), thread: Some(thread), connections })
    }

    /// Returns the address on which the server listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // After this time, connections of peers that still read are abandoned.
        self.connections.wait_for_none(FAREWELL);
    }
}

/// The number of open connections.
#[derive(Debug, Default)]
struct Connections {
    open: Mutex<usize>,
    closed: Condvar,
}

impl Connections {
    /// Counts a new connection, unless there are too many.
    fn enter(self: &Arc<Self>) -> Option<Entry> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        (*open < MAX_CONNECTIONS).then(|| {
            *open += 1;
            Entry(Arc::clone(self))
        })
    }

    fn wait_for_none(&self, time: Duration) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.closed.wait_timeout_while(open, time, |open| *open > 0));
    }
}

/// Counts an open connection until it is dropped.
struct Entry(Arc<Connections>);

impl Drop for Entry {
    fn drop(&mut self) {
        *self.0.open.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.closed.notify_all();
    }
}

/// Accepts connections until the other end of `woken` is closed.
fn serve(listener: &TcpListener, woken: &UnixStream, open: &Arc<Connections>, resources: &Arc<dyn Resources>) {
    let mut wait = None;
    loop {
        let events = if wait.is_some() { PollFlags::empty() } else { PollFlags::IN };
        let mut ends = [PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN), PollFd::new(listener, events)];
        let _ = poll(&mut ends, wait.and_then(|wait| Timespec::try_from(wait).ok()).as_ref());
        if !ends[0].revents().is_empty() {
            return;
        }
        wait = None;
        match listener.accept() {
            Ok((stream, _)) => begin(stream, open, resources),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                ) => {}
            Err(_) => wait = Some(PAUSE),
        }
    }
}

/// Starts the thread of a connection.
fn begin(stream: TcpStream, open: &Arc<Connections>, resources: &Arc<dyn Resources>) {
    if stream.set_nonblocking(false).is_err() || stream.set_nodelay(true).is_err() {
        return;
    }
    let Some(entry) = open.enter() else {
        let refusal = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        // The refusal fits into the send buffer of a new connection, so this write does not wait.
        let _ = stream.set_write_timeout(Some(PAUSE)).and_then(|()| (&stream).write(refusal));
        return;
    };
    let resources = Arc::clone(resources);
    let talk = move || {
        let _entry = entry;
        converse(&stream, &*resources);
    };
    // If the thread cannot be started, the connection is closed.
    let _ = thread::Builder::new().name("http connection".to_owned()).stack_size(STACK_BYTES).spawn(talk);
}

fn converse(stream: &TcpStream, resources: &dyn Resources) {
    let answered = match request::read(stream) {
        Ok(request) => answer(stream, &request, resources),
        Err(NoRequest::Refused(refusal)) => refusal.write(stream, false),
        Err(NoRequest::Gone) => return,
    };
    if answered.is_ok() {
        linger(stream);
    }
}

fn answer(stream: &TcpStream, request: &Request, resources: &dyn Resources) -> io::Result<()> {
    let own = stream.local_addr()?.ip();
    if !host::is_own(&request.host, own) {
        let why = format!(
            "this server answers under localhost, a loopback address or {own}, and the request names another host: pages \
             of strangers could read it under a name of theirs"
        );
        return Response::refusal(421, why).write(stream, request.method == Method::Head);
    }
    resources.answer(stream, request)
}

/// Gives the peer time to read the response. If a connection is closed while input is unread, it is reset, and the peer
/// may lose the response.
fn linger(mut stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let deadline = Instant::now() + LINGER;
    let mut rest = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return;
        }
        match stream.read(&mut rest) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}
