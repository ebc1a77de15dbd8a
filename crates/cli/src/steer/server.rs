//! The run's end of the control socket.
//!
//! One thread serves all connections and never blocks on a connection. A client that sends half a request, or does not
//! read its answer, delays neither the run nor other clients: it has a buffer and a deadline of its own. If there are
//! too many connections, a new connection replaces the connection that has been idle the longest.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use millstream_command::screen::text;
use millstream_flow::Control;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use super::connection::{Connection, Reply, Turn};
use super::facts::{Behind, Facts, Peer};
use super::protocol::{self, Answer, REQUESTS, Request};
use super::setting::{self, SettingError};
use super::socket::{Socket, SocketFile};
use super::window::Windows;
use crate::explain;

/// The maximum number of connections served at once.
const CONNECTIONS: usize = 64;
/// The number of connections that are accepted before the existing connections are served again.
const ACCEPTED_AT_ONCE: usize = 32;
/// The pause if no connection can be accepted, for example because too many files are open.
const PAUSE: Duration = Duration::from_millis(100);
/// The maximum time to wait for the backtraces of fibers.
const BACKTRACE_PATIENCE: Duration = Duration::from_millis(500);
/// The maximum number of keys of a resource that a client may request.
const MAX_KEYS: usize = 100;
/// A snapshot is sent again until it has this age. Each new snapshot needs the scheduler's lock, so a flood of requests
/// would slow down the run if each got a new snapshot.
const FRESH: Duration = Duration::from_millis(10);

/// Serves a run's control socket until this is dropped. The drop also removes the socket.
#[derive(Debug)]
pub(crate) struct Server {
    /// The socket. It is dropped before the thread ends, so that no new client finds the run.
    socket: Option<Socket>,
    /// One end of a socket pair. The thread polls the other end together with the socket, so a drop of this end wakes
    /// the thread.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at `path`. Replaces the socket of a dead run.
    ///
    /// # Errors
    /// A live run listens at the path, the path is that of another kind of file, or the system reports an error.
    pub(crate) fn start(path: &Path, control: Control, behind: Behind) -> io::Result<Self> {
        let (socket, listener) = Socket::listen(path)?;
        let (wake, woken) = UnixStream::pair()?;
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || serve(&listener, &woken, &mut Desk::new(control, behind)))?;
        Ok(Self { socket: Some(socket), wake: Some(wake), thread: Some(thread) })
    }

    /// The path of the socket.
    ///
    /// # Panics
    /// Never: the socket exists as long as the server.
    pub(crate) fn path(&self) -> &Path {
        self.socket().path()
    }

    /// The file of the socket.
    pub(crate) fn file(&self) -> &SocketFile {
        self.socket().file()
    }

    fn socket(&self) -> &Socket {
        self.socket.as_ref().expect("taken by `drop` alone")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.socket.take());
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves connections until the other end of `woken` is closed. Then answers the requests that have arrived, and
/// returns.
fn serve(listener: &UnixListener, woken: &UnixStream, desk: &mut Desk) {
    let mut connections: Vec<Client> = Vec::new();
    let mut accepts_from = Instant::now();
    let mut is_over = false;
    loop {
        let now = Instant::now();
        if now >= accepts_from && !accept(listener, &mut connections, now) {
            accepts_from = now + PAUSE;
        }
        let mut has_more = false;
        connections.retain_mut(|Client { connection, peer }| {
            match connection.turn(now, &mut |line| desk.answer(line, *peer)) {
                Turn::Waits => true,
                Turn::HasMore => {
                    has_more = true;
                    true
                }
                Turn::Over => false,
            }
        });
        if is_over {
            return;
        }
        let deadlines = connections
            .iter()
            .map(|client| client.connection.deadline())
            .chain((now < accepts_from).then_some(accepts_from));
        let wait = match deadlines.min() {
            _ if has_more => Some(Duration::ZERO),
            deadline => deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
        };
        let events = if now < accepts_from { PollFlags::empty() } else { PollFlags::IN };
        let mut ends = vec![PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN), PollFd::new(&listener, events)];
        ends.extend(
            connections.iter().map(|client| PollFd::new(client.connection.stream(), client.connection.waits_for())),
        );
        // The result of `poll` is ignored, because each connection is tried in any case, without blocking.
        let _ = poll(&mut ends, wait.and_then(|wait| Timespec::try_from(wait).ok()).as_ref());
        is_over = !ends[0].revents().is_empty();
    }
}

/// Accepts waiting connections. Returns `false` if the system cannot accept connections at present.
fn accept(listener: &UnixListener, connections: &mut Vec<Client>, now: Instant) -> bool {
    for _ in 0..ACCEPTED_AT_ONCE {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                return matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                );
            }
        };
        if stream.set_nonblocking(true).is_err() {
            continue;
        }
        let own = geteuid().as_raw();
        let peer = match socket_peercred(&stream) {
            Ok(peer) => Peer { user: peer.uid.as_raw(), process: peer.pid.as_raw_nonzero().get() },
            Err(_) => continue,
        };
        if peer.user != own && peer.user != 0 {
            let answer = Answer::error(format!("this is a run of user {own}: user {} cannot steer it", peer.user));
            Connection::new(stream, now).refuse(&answer);
            continue;
        }
        if connections.len() == CONNECTIONS {
            let idlest =
                (0..CONNECTIONS).min_by_key(|&place| connections[place].connection.since()).expect("there are some");
            let answer = Answer::error(format!("more than {CONNECTIONS} connections; try again"));
            connections.swap_remove(idlest).connection.refuse(&answer);
        }
        connections.push(Client { connection: Connection::new(stream, now), peer });
    }
    true
}

/// A connection, with the user and the process at its other end.
struct Client {
    connection: Connection,
    peer: Peer,
}

/// The data from which requests are answered.
struct Desk {
    control: Control,
    behind: Behind,
    /// The last answer to `status`, and when it was computed.
    status: Option<(Instant, Arc<[u8]>)>,
    windows: Windows,
}

impl Desk {
    fn new(control: Control, behind: Behind) -> Self {
        let windows = Windows::of(behind.live.clone());
        Self { control, behind, status: None, windows }
    }

    fn answer(&mut self, line: &[u8], peer: Peer) -> Reply {
        self.windows.tidy(Instant::now());
        match protocol::read::<Request>(line) {
            Ok(Request::Status) => Reply { line: self.status(), is_to_request: true },
            Ok(Request::Watch { keys }) => {
                Reply { line: protocol::line(&self.watch(keys)).into(), is_to_request: true }
            }
            Ok(Request::Set { settings }) => {
                self.status = None;
                Reply { line: protocol::line(&self.set(&settings, peer)).into(), is_to_request: true }
            }
            Ok(Request::Retry) => {
                self.status = None;
                Reply { line: protocol::line(&self.retry(peer)).into(), is_to_request: true }
            }
            Ok(Request::Drain) => {
                self.status = None;
                Reply { line: protocol::line(&self.drain(peer)).into(), is_to_request: true }
            }
            Ok(Request::Trace { number, from }) => {
                let part = self.windows.part(number, from, Instant::now());
                Reply { line: protocol::line(&part).into(), is_to_request: true }
            }
            Ok(Request::Explain { what }) => {
                Reply { line: protocol::line(&self.explain(&what)).into(), is_to_request: true }
            }
            Ok(Request::Fibers { backtraces }) => {
                let fibers = match backtraces {
                    true => self.control.fibers_with_backtraces(BACKTRACE_PATIENCE),
                    false => self.control.fibers(),
                };
                let fibers = Some(Box::new(fibers));
                let line = protocol::line(&Answer { ok: true, fibers, ..Answer::default() }).into();
                Reply { line, is_to_request: true }
            }
            Err(error) => match protocol::unknown_request(line) {
                // The line is a well-formed request of an unknown kind, so the connection stays open.
                Some(name) => {
                    let (version, known) = (env!("CARGO_PKG_VERSION"), REQUESTS.join(", "));
                    let error = format!("a run of millstream {version} knows no request `{name}`; it knows {known}");
                    let answer = Answer { unknown: true, ..Answer::error(error) };
                    Reply { line: protocol::line(&answer).into(), is_to_request: true }
                }
                None => Reply { line: protocol::line(&Answer::error(error.to_string())).into(), is_to_request: false },
            },
        }
    }

    fn status(&mut self) -> Arc<[u8]> {
        match &self.status {
            Some((given, line)) if given.elapsed() < FRESH => Arc::clone(line),
            _ => {
                let snapshot = Some(Box::new(self.control.snapshot()));
                let line: Arc<[u8]> = protocol::line(&Answer { ok: true, snapshot, ..Answer::default() }).into();
                self.status = Some((Instant::now(), Arc::clone(&line)));
                line
            }
        }
    }

    fn explain(&self, what: &str) -> Answer {
        match explain::answer::explain(what, &self.control) {
            Ok(explained) => Answer { ok: true, explained: Some(Box::new(explained)), ..Answer::default() },
            Err(error) => Answer::error(error),
        }
    }

    fn watch(&self, keys: usize) -> Answer {
        let facts = Facts {
            total: self.behind.total,
            keys: self.control.busiest_keys(keys.min(MAX_KEYS)),
            causes: self.behind.causes.groups(),
            steered: self.behind.audit.steered(),
        };
        let snapshot = Some(Box::new(self.control.snapshot()));
        Answer { ok: true, snapshot, facts: Some(Box::new(facts)), ..Answer::default() }
    }

    fn retry(&self, peer: Peer) -> Answer {
        match (self.behind.retry)() {
            Ok(began) => {
                let changed = vec![began];
                self.behind.audit.note(peer, changed.clone());
                Answer { ok: true, changed, ..Answer::default() }
            }
            Err(why) => Answer::error(why),
        }
    }

    fn drain(&self, peer: Peer) -> Answer {
        (self.behind.drain)();
        let in_flight = self.control.snapshot().in_flight;
        let changed = vec![format!("admission is closed; {} in flight are finished", text::counted(in_flight, "unit"))];
        self.behind.audit.note(peer, changed.clone());
        Answer { ok: true, changed, ..Answer::default() }
    }

    fn set(&self, settings: &[String], peer: Peer) -> Answer {
        match setting::apply_all(settings, &self.control) {
            Ok(changed) => {
                self.behind.audit.note(peer, changed.clone());
                if !changed.is_empty() {
                    self.windows.restart();
                }
                Answer { ok: true, changed, ..Answer::default() }
            }
            Err(error) => {
                let settable = match error {
                    SettingError::Unknown { .. } => setting::settable(&self.control.snapshot()),
                    SettingError::Value { .. } | SettingError::Refused { .. } => Vec::new(),
                };
                Answer { settable, ..Answer::error(error.to_string()) }
            }
        }
    }
}

/// The bytes that a client receives if it sends these bytes and nothing else.
#[cfg(any(fuzzing, test))]
pub(crate) fn answers_to(mut requests: &[u8], control: Control) -> Vec<u8> {
    use std::io::{Read as _, Write as _};

    let (mut client, stream) = UnixStream::pair().expect("the system gives sockets");
    for end in [&client, &stream] {
        end.set_nonblocking(true).expect("a socket need not block");
    }
    let (mut desk, mut connection) = (Desk::new(control, Behind::nothing()), Connection::new(stream, Instant::now()));
    let peer = Peer { user: 0, process: 1 };
    let mut answers = Vec::new();
    loop {
        match client.write(requests) {
            Ok(sent) => requests = &requests[sent..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => requests = &[],
        }
        if requests.is_empty() {
            let _ = client.shutdown(std::net::Shutdown::Write);
        }
        let turn = connection.turn(Instant::now(), &mut |line| desk.answer(line, peer));
        // An error only means that no more bytes are available yet.
        let _ = client.read_to_end(&mut answers);
        if turn == Turn::Over {
            return answers;
        }
    }
}
