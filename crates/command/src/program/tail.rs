//! The last bytes of a program's standard error.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use rustix::io::Errno;

/// The maximum number of bytes of standard error that a message shows.
pub const STDERR_TAIL: usize = 4 << 10;

/// The last bytes of a stream.
#[derive(Debug, Default, Clone)]
pub struct Tail {
    bytes: Vec<u8>,
    cut: bool,
}

impl Tail {
    /// The last bytes of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let cut = bytes.len() > STDERR_TAIL;
        Self { bytes: bytes[bytes.len().saturating_sub(STDERR_TAIL)..].to_vec(), cut }
    }

    /// Reads the available bytes, at most 64 KiB, which is the usual size of a pipe. Returns whether more bytes may
    /// follow.
    ///
    /// # Errors
    /// Returns the stream's error if a read fails.
    pub fn read(&mut self, from: impl AsFd) -> io::Result<bool> {
        let mut room = [MaybeUninit::uninit(); 1 << 16];
        let said = match rustix::io::read(from, &mut room) {
            Ok((said, _)) => said,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(true),
            Err(errno) => return Err(errno.into()),
        };
        let more = !said.is_empty();
        self.bytes.extend_from_slice(said);
        if self.bytes.len() > STDERR_TAIL {
            self.cut = true;
            self.bytes.drain(..self.bytes.len() - STDERR_TAIL);
        }
        Ok(more)
    }
}

impl fmt::Display for Tail {
    /// The end of a message: `; standard error: …`, or nothing if there are no bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.bytes.trim_ascii();
        if text.is_empty() {
            return Ok(());
        }
        write!(f, "; standard error: {}{}", if self.cut { "…" } else { "" }, String::from_utf8_lossy(text))
    }
}
