//! The control socket as a file. Only the owner of the file may connect, and the run that created the file removes it.
//!
//! When a run is killed, its socket stays and refuses connections, and the next run at the same path replaces the
//! socket. Between the check of a socket and its removal, another run could create its own socket at the path. So every
//! run, and every `status`, locks the folder while it creates or removes a socket. The kernel releases the lock when
//! the process ends for any reason.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use millstream_command::screen::shown;
use rustix::fs::{FlockOperation, Mode, fchmod, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::geteuid;

use super::place;

/// The number of connections that may wait to be accepted.
const BACKLOG: i32 = 64;
/// The maximum time to wait for the lock on a folder. Normally, other runs hold this lock for only a few system calls.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause between two attempts to take a lock that another process holds.
const LOOK: Duration = Duration::from_millis(5);

/// A socket's file. Its path, device and inode number distinguish it from a later file of the same name.
#[derive(Debug, Clone)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// The device and the inode number of the file.
    identity: (u64, u64),
}

impl SocketFile {
    /// Removes the file, unless another file has the same name by now.
    pub(crate) fn remove(&self) {
        let _lock = Lock::on_folder_of(&self.path);
        self.remove_locked();
    }

    fn remove_locked(&self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A run's own socket. It is removed when this value is dropped, unless another run's socket has replaced it.
#[derive(Debug)]
pub(super) struct Socket(SocketFile);

impl Socket {
    /// Listens at `path`. Replaces the socket of a dead run.
    ///
    /// # Errors
    /// A live run listens at the path, the path is that of another kind of file, or the system reports an error.
    pub(super) fn listen(path: &Path) -> io::Result<(Self, UnixListener)> {
        let _lock = Lock::on_folder_of(path);
        let socket = match bound(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                make_way(path)?;
                bound(path)?
            }
            bound => bound?,
        };
        let made = fs::symlink_metadata(path)?;
        let file = SocketFile { path: path.to_owned(), identity: identity(&made) };
        let opened = if !made.file_type().is_socket() || made.uid() != geteuid().as_raw() || made.mode() & 0o077 != 0 {
            let found = format!("it belongs to user {} with mode {:04o}", made.uid(), made.mode() & 0o7777);
            Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{} cannot be kept from other users here: {found}; choose another folder", shown::path(path)),
            ))
        } else {
            listen(&socket, BACKLOG).map_err(io::Error::from)
        };
        match opened {
            Ok(()) => Ok((Self(file), UnixListener::from(socket))),
            Err(error) => {
                file.remove_locked();
                Err(error)
            }
        }
    }

    /// The socket's file.
    pub(super) fn file(&self) -> &SocketFile {
        &self.0
    }

    /// The path of the socket's file.
    pub(super) fn path(&self) -> &Path {
        &self.0.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// Removes the socket of a dead run, unless another run listens at the path by now.
pub(super) fn remove_dead(path: &Path) {
    let _lock = Lock::on_folder_of(path);
    let _ = make_way(path);
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Removes the socket of a dead run. The caller has locked the folder.
fn make_way(path: &Path) -> io::Result<()> {
    let taken = |what: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{} {what}", shown::path(path))));
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return taken("exists and is not a socket; choose another path");
    }
    match place::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => taken("is the control socket of a run that is still there; choose another path, or let that run end"),
    }
}

fn bound(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{} is too long for a socket", shown::path(path)))
    })?;
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    // The mode is set on the descriptor before the file exists, so no other user can connect at any moment.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &address)?;
    Ok(socket)
}

/// A lock on a folder, which is released when this is dropped.
#[derive(Debug)]
struct Lock {
    /// The locked folder; `None` if it could not be locked.
    _folder: Option<File>,
}

impl Lock {
    /// Locks the folder, or continues without the lock. The folder may be unreadable, the file system may have no
    /// locks, or a process of another user may hold the lock for longer than [`PATIENCE`]. None of these may prevent
    /// the run. Without the lock, two runs that start at the same path at the same moment may remove each other's
    /// socket.
    fn on_folder_of(path: &Path) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // `O_NONBLOCK` keeps the call from blocking if the path is that of a pipe.
        let flags = libc::O_DIRECTORY | libc::O_NONBLOCK;
        let Ok(file) = File::options().read(true).custom_flags(flags).open(folder) else {
            return Self { _folder: None };
        };
        let end = Instant::now() + PATIENCE;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Self { _folder: Some(file) },
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => thread::sleep(LOOK),
                Err(_) => return Self { _folder: None },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn only_the_run_that_made_a_socket_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (first, _first_listener) = Socket::listen(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // If a user removes the socket, the path is free for another run.
        fs::remove_file(&path).unwrap();
        let (second, _second_listener) = Socket::listen(&path).unwrap();
        drop(first);
        UnixStream::connect(&path).expect("the second run's socket is there");
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn only_one_of_several_runs_that_start_at_one_path_gets_it() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..50 {
            let path = folder.path().join(format!("socket-{round}"));
            if round % 2 == 1 {
                // The socket left by a killed run.
                drop(UnixListener::bind(&path).unwrap());
            }
            let start = Barrier::new(4);
            let made: Vec<_> = thread::scope(|scope| {
                let run = || {
                    start.wait();
                    Socket::listen(&path)
                };
                let runs: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
                runs.into_iter().map(|run| run.join().unwrap()).collect()
            });
            assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1, "{made:?}");
            for error in made.iter().filter_map(|made| made.as_ref().err()) {
                assert!(error.to_string().contains("run that is still there"), "{error}");
            }
            UnixStream::connect(&path).expect("the one that has it is reached");
        }
    }

    #[test]
    fn a_lock_of_another_process_delays_no_run_for_long() {
        let folder = tempfile::tempdir().unwrap();
        let held = File::open(folder.path()).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        let path = folder.path().join("socket");
        drop(Socket::listen(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_is_not_a_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "content").unwrap();
        let error = Socket::listen(&path).unwrap_err().to_string();
        assert!(error.contains("is not a socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "content");
    }
}
