//! The roles of a ring, each held by a lock on the file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

use super::AttachError;

/// A role. Its number is the offset of the byte that is locked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    Producer = 0,
    Consumer = 1,
}

const ATTACHING: libc::off_t = 2;

/// A role that this process holds until the value is dropped.
pub(super) struct RoleLock {
    role: Role,
    /// The lock belongs to this open file description. The kernel releases it with the last descriptor, however the
    /// process ends.
    pub(super) file: File,
}

impl RoleLock {
    pub(super) fn take(file: &File, role: Role) -> Result<Self, AttachError> {
        let is_regular = file.metadata().map_err(AttachError::system("read the file's type"))?.is_file();
        if !is_regular {
            // A pipe, for example, is refused: reading from it might never return.
            let error =
                io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file, such as one of /dev/shm");
            return Err(AttachError::system("use the descriptor for a ring")(error));
        }
        // This makes a new open file description, because locks belong to descriptions, and the caller's description
        // may be shared.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let opened = OpenOptions::new().read(true).write(true).open(&path);
        let file = opened.map_err(AttachError::system(format!("open {path} to read and write")))?;
        if !lock(&file, role as libc::off_t, libc::F_OFD_SETLK, libc::F_WRLCK)? {
            return Err(AttachError::Taken(match role {
                Role::Producer => "producer",
                Role::Consumer => "consumer",
            }));
        }
        Ok(RoleLock { role, file })
    }

    /// Runs `work` under the lock for attaching, so that one process at a time runs it. Waits for the lock.
    pub(super) fn alone<R>(&self, work: impl FnOnce(&File) -> Result<R, AttachError>) -> Result<R, AttachError> {
        lock(&self.file, ATTACHING, libc::F_OFD_SETLKW, libc::F_WRLCK)?;
        let outcome = work(&self.file)?;
        lock(&self.file, ATTACHING, libc::F_OFD_SETLK, libc::F_UNLCK)?;
        Ok(outcome)
    }
}

impl Drop for RoleLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child that another thread is just starting has a copy of the descriptor
        // until it executes its program. If unlocking fails, the kernel releases the lock later.
        for byte in [self.role as libc::off_t, ATTACHING] {
            let _ = lock(&self.file, byte, libc::F_OFD_SETLK, libc::F_UNLCK);
        }
    }
}

/// Locks or unlocks one byte; `false` if another description holds the lock.
fn lock(file: &File, byte: libc::off_t, command: libc::c_int, kind: libc::c_int) -> Result<bool, AttachError> {
    // SAFETY: all zero is a valid `flock`, and the fields that matter are set below.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    (range.l_type, range.l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    (range.l_start, range.l_len) = (byte, 1);
    loop {
        // SAFETY: the descriptor is open, and `range` is a valid `flock`, which the kernel only reads.
        if unsafe { libc::fcntl(file.as_raw_fd(), command, &range) } == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => return Ok(false),
            Some(libc::EINTR) => (),
            _ => return Err(AttachError::system(format!("lock byte {byte} of the file"))(error)),
        }
    }
}
