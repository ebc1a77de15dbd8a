//! The listening socket, and the messages of a connection.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use millstream_fence::barrierd::{MAX_REQUEST_BYTES, Request};

/// Returns a socket that listens at this path. Every user may connect to it.
pub(crate) fn listen(path: &Path) -> io::Result<OwnedFd> {
    // SAFETY: socket takes three integers; it has just returned this descriptor, which has no other owner.
    let socket = unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        match libc::socket(libc::AF_UNIX, kind, 0) {
            -1 => return Err(io::Error::last_os_error()),
            socket => OwnedFd::from_raw_fd(socket),
        }
    };
    // SAFETY: all fields are integers or arrays of integers, for which zero is a valid value.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as _;
    let name = path.as_os_str().as_bytes();
    if name.len() >= address.sun_path.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a socket's path has at most 107 bytes"));
    }
    for (to, from) in address.sun_path.iter_mut().zip(name) {
        *to = *from as _;
    }
    // SAFETY: the address is a local variable, which outlives the calls, and bind receives its size.
    unsafe {
        if libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as u32) != 0 {
            return Err(io::Error::last_os_error());
        }
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o666))?;
        if libc::listen(socket.as_raw_fd(), 64) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(socket)
}

/// Returns the next connection; `None` if none is pending.
pub(crate) fn accept(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: with null pointers the call writes no address.
    let socket = unsafe { libc::accept4(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags) };
    if socket >= 0 {
        // SAFETY: accept4 has just returned this descriptor, which has no other owner.
        return Ok(Some(unsafe { OwnedFd::from_raw_fd(socket) }));
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) }
}

/// Returns the user of the other side, as reported by the kernel.
pub(crate) fn user(socket: &OwnedFd) -> io::Result<u32> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = size_of_val(&credentials) as u32;
    // SAFETY: the credentials are a local variable, whose size the call receives.
    let outcome = unsafe {
        let room = (&raw mut credentials).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, room, &raw mut bytes)
    };
    if outcome != 0 { Err(io::Error::last_os_error()) } else { Ok(credentials.uid) }
}

/// The result of reading from a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A request has arrived.
    Asks(Request),
    /// No message is pending.
    Silence,
    /// The other side has closed, or has sent an invalid message.
    Leaves,
}

/// Reads the next message.
pub(crate) fn hear(socket: &OwnedFd) -> Heard {
    let mut bytes = [0_u8; MAX_REQUEST_BYTES + 1];
    // SAFETY: `bytes` has room for the number of bytes passed.
    let length = unsafe { libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT) };
    match usize::try_from(length) {
        Ok(length) => Request::from_bytes(&bytes[..length]).map_or(Heard::Leaves, Heard::Asks),
        Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock => Heard::Silence,
        Err(_) => Heard::Leaves,
    }
}
