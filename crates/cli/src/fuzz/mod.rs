//! Passes untrusted bytes to the code that reads them, with an entry point for each source of such bytes.
//!
//! An entry point reads its bytes as the command does, uses the result, and panics if it finds a broken promise. It
//! returns whether the bytes were valid input. `fuzz/` in the repository drives the entry points with libFuzzer, which
//! also checks time and memory; the tests here try seeds and mutations of them.

mod control;
mod flow_file;
#[cfg(feature = "http")]
mod http;
mod manifest;
#[cfg(test)]
mod mutation;
mod stage;
#[cfg(test)]
mod tests;

use millstream_command::screen::shown;
use millstream_runner::payload::Payload;
use millstream_runner::record::Record;

pub use self::control::control;
pub use self::flow_file::flow_file;
#[cfg(feature = "http")]
pub use self::http::http;
pub use self::manifest::manifest;

/// The path of a file that exists only in memory.
struct MemoryFile(std::fs::File);

impl MemoryFile {
    fn of(bytes: &[u8]) -> Self {
        use std::io::Write as _;

        let name = rustix::fs::memfd_create("input", rustix::fs::MemfdFlags::CLOEXEC);
        let mut file = std::fs::File::from(name.expect("the system gives memory"));
        file.write_all(bytes).expect("the system gives memory");
        Self(file)
    }

    fn path(&self) -> std::path::PathBuf {
        use std::os::fd::AsRawFd as _;

        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

/// Panics if a record's payload is larger than allowed, or occupies far more memory than that.
fn assert_taken(record: &Record, most: u64) {
    assert!(record.payload.known_len().is_none_or(|len| len <= most), "{:?} are taken", record.payload.known_len());
    if let Payload::Bytes(bytes) = &record.payload {
        assert!(bytes.capacity() as u64 <= 2 * most, "{} bytes are held", bytes.capacity());
    }
}

/// Panics if text that is about to be shown could control a terminal.
fn assert_printable(text: &str) {
    let steers = text.chars().find(|character| shown::is_hidden(*character) && !matches!(character, '\n' | '\t'));
    assert!(steers.is_none(), "{steers:?} would reach the terminal in {text:?}");
}
