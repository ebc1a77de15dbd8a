//! Messages on the daemon's socket.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::layout::{Hello, MAGIC, MAX_REASON_BYTES, VERSION};

/// The space for a control message with two descriptors. It consists of words, so that it is aligned.
const CONTROL_WORDS: usize = 8;

/// Sends the greeting with the descriptors of the page and of the times.
///
/// # Errors
/// Returns the error of sendmsg(2), which is `WouldBlock` if the receiver has no room.
pub fn send_hello(socket: BorrowedFd<'_>, hello: Hello, page: BorrowedFd<'_>, times: BorrowedFd<'_>) -> io::Result<()> {
    let bytes = hello.to_bytes();
    let part = [IoSlice::new(&bytes)];
    let mut control = [0_u64; CONTROL_WORDS];
    let descriptors = [page.as_raw_fd(), times.as_raw_fd()];
    // SAFETY: the header describes memory that outlives the call. The control words have room for two descriptors at the position
    // that the macros return.
    let sent = unsafe {
        let mut header: libc::msghdr = MaybeUninit::zeroed().assume_init();
        header.msg_iov = part.as_ptr() as *mut libc::iovec;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(size_of_val(&descriptors) as u32) as _;
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        (*message).cmsg_level = libc::SOL_SOCKET;
        (*message).cmsg_type = libc::SCM_RIGHTS;
        (*message).cmsg_len = libc::CMSG_LEN(size_of_val(&descriptors) as u32) as _;
        ptr::copy_nonoverlapping(descriptors.as_ptr(), libc::CMSG_DATA(message).cast(), descriptors.len());
        libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends a refusal. A reason longer than [`MAX_REASON_BYTES`] is cut off.
///
/// # Errors
/// Returns the error of send(2), which is `WouldBlock` if the receiver has no room.
pub fn send_refusal(socket: BorrowedFd<'_>, hello: Hello, reason: &str) -> io::Result<()> {
    let mut bytes = Hello { cpus: 0, ..hello }.to_bytes().to_vec();
    bytes.extend(reason.bytes().take(MAX_REASON_BYTES));
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the bytes outlive the call.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The first message of a daemon.
#[derive(Debug)]
pub(super) enum Greeting {
    /// The greeting with the descriptors of the page and of the times.
    Welcome(Hello, OwnedFd, OwnedFd),
    /// The reason for a refusal, in words.
    Declined(String),
    /// The daemon has another version.
    OtherVersion,
}

/// Receives the greeting. Waits for it at most for the socket's time-out.
pub(super) fn receive_hello(socket: BorrowedFd<'_>) -> io::Result<Greeting> {
    let mut bytes = [0_u8; size_of::<Hello>() + MAX_REASON_BYTES];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = [0_u64; CONTROL_WORDS];
    let mut descriptors = Vec::new();
    // SAFETY: the header describes memory that outlives the call. The descriptors in the control words come from the kernel, and
    // have no other owner. They are read at the positions that the macros return, and only as many as there is room for.
    let received = unsafe {
        let mut header: libc::msghdr = MaybeUninit::zeroed().assume_init();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control) as _;
        let received = libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC);
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        if received >= 0 && !message.is_null() && (*message).cmsg_type == libc::SCM_RIGHTS {
            let bytes = (*message).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
            let first: *const libc::c_int = libc::CMSG_DATA(message).cast();
            for place in 0..bytes / size_of::<libc::c_int>() {
                descriptors.push(OwnedFd::from_raw_fd(first.add(place).read_unaligned()));
            }
        }
        received
    };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    let no_hello = || io::Error::new(io::ErrorKind::InvalidData, "the answering process is not a barrierd");
    let (said, _) = bytes.split_at(received as usize);
    let (hello, reason) = Hello::from_start(said).ok_or_else(no_hello)?;
    if hello.magic != MAGIC {
        return Err(no_hello());
    }
    if hello.version != VERSION {
        return Ok(Greeting::OtherVersion);
    }
    if hello.cpus == 0 {
        return Ok(Greeting::Declined(String::from_utf8_lossy(reason).into_owned()));
    }
    let [page, times] = <[OwnedFd; 2]>::try_from(descriptors).map_err(|_| no_hello())?;
    Ok(Greeting::Welcome(hello, page, times))
}

impl Hello {
    /// Returns the bytes as they are sent.
    fn to_bytes(self) -> [u8; size_of::<Hello>()] {
        let mut bytes = [0; size_of::<Hello>()];
        bytes[..8].copy_from_slice(&self.magic.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.version.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.cpus.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.client.to_ne_bytes());
        bytes
    }

    /// Returns the greeting at the start of these bytes, and the bytes after it. The greeting of another version may be shorter;
    /// the connection's number is then zero.
    fn from_start(bytes: &[u8]) -> Option<(Hello, &[u8])> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (version, rest) = rest.split_first_chunk()?;
        let (cpus, rest) = rest.split_first_chunk()?;
        let hello = Hello {
            magic: u64::from_ne_bytes(*magic),
            version: u32::from_ne_bytes(*version),
            cpus: u32::from_ne_bytes(*cpus),
            client: rest.first_chunk().map_or(0, |client| u32::from_ne_bytes(*client)),
        };
        Some((hello, bytes.get(size_of::<Hello>()..).unwrap_or_default()))
    }
}

/// A client's request to be woken when processors have passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The virtual time that the processors must exceed.
    pub virtual_time: u64,
    /// One bit for each processor, which is set if the processor matters. The lowest bit of the first word is for processor 0.
    /// Empty if all processors matter.
    pub cpus: Vec<u64>,
}

/// The maximum length of a request, in bytes.
pub const MAX_REQUEST_BYTES: usize = 8 + super::layout::MAX_CPUS / 8;

impl Request {
    /// Returns the bytes as they are sent.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        std::iter::once(&self.virtual_time).chain(&self.cpus).flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// Returns the request in these bytes; `None` if they are not a valid request.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Request> {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_ne_bytes(*word));
        let virtual_time = words.next()?;
        (rest.is_empty() && bytes.len() <= MAX_REQUEST_BYTES).then(|| Request { virtual_time, cpus: words.collect() })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    const HELLO: Hello = Hello { magic: MAGIC, version: VERSION, cpus: 3, client: 7 };

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let request = Request { virtual_time: 7, cpus: vec![0b101, 1 << 63] };
        assert_eq!(Request::from_bytes(&request.to_bytes()), Some(request));
        for nonsense in [&[][..], &[0; 7], &[0; 9], &[0; MAX_REQUEST_BYTES + 8]] {
            assert_eq!(Request::from_bytes(nonsense), None);
        }
    }

    #[test]
    fn the_greeting_brings_two_descriptors() {
        let (daemon, client) = UnixStream::pair().unwrap();
        let (file, other) = (std::fs::File::open("/dev/null").unwrap(), std::fs::File::open("/dev/zero").unwrap());
        send_hello(daemon.as_fd(), HELLO, file.as_fd(), other.as_fd()).unwrap();
        let greeting = receive_hello(client.as_fd()).unwrap();
        let Greeting::Welcome(got, first, second) = greeting else { panic!("{greeting:?}") };
        assert_eq!(got, HELLO);
        assert_ne!(first.as_raw_fd(), second.as_raw_fd());
    }

    #[test]
    fn a_refusal_brings_its_reason() {
        let (daemon, client) = UnixStream::pair().unwrap();
        send_refusal(daemon.as_fd(), HELLO, &"too many ".repeat(50)).unwrap();
        let greeting = receive_hello(client.as_fd()).unwrap();
        let Greeting::Declined(reason) = greeting else { panic!("{greeting:?}") };
        assert!(reason.starts_with("too many too many ") && reason.len() == MAX_REASON_BYTES, "{reason}");
    }

    #[test]
    fn a_greeting_of_another_version_is_recognized() {
        let (mut daemon, client) = UnixStream::pair().unwrap();
        daemon.write_all(&Hello { version: 1, ..HELLO }.to_bytes()[..16]).unwrap();
        assert!(matches!(receive_hello(client.as_fd()).unwrap(), Greeting::OtherVersion));
    }

    #[test]
    fn a_greeting_without_descriptors_is_refused() {
        let (mut daemon, client) = UnixStream::pair().unwrap();
        daemon.write_all(&HELLO.to_bytes()).unwrap();
        assert_eq!(receive_hello(client.as_fd()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
