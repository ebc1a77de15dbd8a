//! The running flow's end of the control socket.

use std::fs::{self, Permissions};
use std::io::{self, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use millstream_flow::Control;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

use super::place;
use super::protocol::{Answer, REQUEST_BYTES, Request, read_line, write_line};
use super::setting::{self, SettingError};

/// Connections served at once; each takes a thread.
const CONNECTIONS: usize = 16;
/// A connection on which nothing is asked is closed.
const IDLE: Duration = Duration::from_secs(60);
/// A client that does not take its answer is given up on.
const UNREAD: Duration = Duration::from_secs(5);
/// How long to wait when no connection can be accepted (too many open files).
const PAUSE: Duration = Duration::from_millis(100);

/// Serves one flow's control socket until it is dropped, which removes the socket.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    /// The other end is polled beside the socket: dropping this end wakes the thread.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    control: Control,
    /// Settings of two clients must not mix: each change is all or none.
    change: Mutex<()>,
    connections: AtomicUsize,
}

impl Server {
    /// Listens at `path`; a socket that nobody listens at any more is replaced.
    ///
    /// # Errors
    /// The path is taken by a live run or by something that is no socket, or the system refuses.
    pub fn start(path: &Path, control: Control) -> io::Result<Self> {
        let listener = make_socket(path)?;
        listener.set_nonblocking(true)?;
        let (wake, woken) = UnixStream::pair()?;
        let shared = Arc::new(Shared { control, change: Mutex::new(()), connections: AtomicUsize::new(0) });
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || accept_all(&listener, &woken, &shared))
            .inspect_err(|_| drop(fs::remove_file(path)))?;
        Ok(Self { path: path.to_owned(), wake: Some(wake), thread: Some(thread) })
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Binds a socket that only its owner may connect to, at no moment anybody else.
fn make_socket(path: &Path) -> io::Result<UnixListener> {
    match bind_private(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let taken =
                |what: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{} {what}", path.display())));
            if !fs::symlink_metadata(path)?.file_type().is_socket() {
                return taken("exists and is no socket");
            }
            match place::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    fs::remove_file(path)?;
                    bind_private(path)
                }
                _ => taken("is the control socket of a run that is still there"),
            }
        }
        done => done,
    }
}

fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{} is too long for a socket", path.display()))
    })?;
    let socket: OwnedFd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Linux gives the file the mode of the socket; the second setting is for systems that do not.
    let _ = fchmod(&socket, Mode::RUSR | Mode::WUSR);
    bind(&socket, &address)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))
        .and_then(|()| Ok(listen(&socket, 16)?))
        .inspect_err(|_| drop(fs::remove_file(path)))?;
    Ok(UnixListener::from(socket))
}

fn accept_all(listener: &UnixListener, woken: &UnixStream, shared: &Arc<Shared>) {
    loop {
        let mut ends = [PollFd::new(&listener, PollFlags::IN), PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN)];
        let polled = poll(&mut ends, None);
        if !ends[1].revents().is_empty() {
            return;
        }
        match (polled, listener.accept()) {
            (_, Ok((stream, _))) => serve_aside(stream, shared),
            (_, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            _ => thread::sleep(PAUSE),
        }
    }
}

/// Serves a connection on a thread of its own, or turns it away if there are too many.
fn serve_aside(mut stream: UnixStream, shared: &Arc<Shared>) {
    let usable = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_read_timeout(Some(IDLE)))
        .and_then(|()| stream.set_write_timeout(Some(UNREAD)));
    if usable.is_err() {
        return;
    }
    if shared.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
        shared.connections.fetch_sub(1, Ordering::Relaxed);
        let _ =
            write_line(&mut stream, &Answer::error(format!("more than {CONNECTIONS} connections; try again later")));
        return;
    }
    let own = Arc::clone(shared);
    let spawned = thread::Builder::new().name("control client".to_owned()).spawn(move || {
        serve(&stream, &own);
        own.connections.fetch_sub(1, Ordering::Relaxed);
    });
    if spawned.is_err() {
        shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers requests until the client leaves or says something that is none.
fn serve(mut stream: &UnixStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    loop {
        let answer = match read_line::<Request>(&mut reader, REQUEST_BYTES) {
            Ok(None) => return,
            Ok(Some(request)) => answer(&request, shared),
            Err(error) => {
                // What follows a broken line cannot be told apart from it.
                if error.kind() == io::ErrorKind::InvalidData {
                    let _ = write_line(&mut stream, &Answer::error(error.to_string()));
                }
                return;
            }
        };
        if write_line(&mut stream, &answer).is_err() {
            return;
        }
    }
}

fn answer(request: &Request, shared: &Shared) -> Answer {
    match request {
        Request::Status => {
            Answer { ok: true, snapshot: Some(Box::new(shared.control.snapshot())), ..Answer::default() }
        }
        Request::Set { settings } => {
            let _one = shared.change.lock().unwrap_or_else(PoisonError::into_inner);
            match setting::apply_all(settings, &shared.control) {
                Ok(changed) => Answer { ok: true, changed, ..Answer::default() },
                Err(error) => {
                    let settable = match error {
                        SettingError::Unknown { .. } => setting::settable(&shared.control.snapshot()),
                        SettingError::Value { .. } | SettingError::Refused { .. } => Vec::new(),
                    };
                    Answer { settable, ..Answer::error(error.to_string()) }
                }
            }
        }
    }
}
