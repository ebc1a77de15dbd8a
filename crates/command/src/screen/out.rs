//! The only module that writes to standard output and standard error.
//!
//! A text may contain names, arguments and messages of other processes. A terminal or a log receives only visible
//! characters, line ends and colours (see [`shown`]). The output of stages is not written by this module.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::panic::{self, PanicHookInfo};
use std::thread;

use super::shown;

/// Writes a message to standard error, as one line. A failure is ignored, because it could not be reported anywhere.
pub fn complain(message: impl fmt::Display) {
    let _ = try_complain(message);
}

/// Writes a message to standard error, as one line.
///
/// # Errors
/// Returns the stream's error if a write fails.
pub fn try_complain(message: impl fmt::Display) -> io::Result<()> {
    to_stderr(&format!("{}\n", shown::line(&message.to_string())))
}

/// Writes lines to standard error. The last line also gets a line end.
pub fn complain_page(page: &str) {
    let _ = to_stderr(&format!("{}\n", shown::page(page.trim_end())));
}

/// Prints lines to standard output.
///
/// # Errors
/// Returns the stream's error if a write fails. It is not an error if the reader has closed the stream.
pub fn print(page: &str) -> io::Result<()> {
    print_with(|out| out.write_all(page.as_bytes()))
}

/// Prints lines to standard output piece by piece.
///
/// # Errors
/// See [`print()`].
#[expect(clippy::disallowed_methods, reason = "the only place that writes")]
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // `io::stdout` would report success for a write to a closed descriptor.
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut out = Page(io::BufWriter::new(stdout));
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the only place that writes")]
fn to_stderr(text: &str) -> io::Result<()> {
    io::stderr().write_all(text.as_bytes())
}

/// A writer that makes text visible before it writes it. Each piece must consist of whole characters, as those from
/// `write!` do.
struct Page<W>(W);

impl<W: Write> Write for Page<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.0.write_all(shown::page(&String::from_utf8_lossy(piece)).as_bytes())?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Makes panics print their messages through this module, because such a message may quote names and messages of other
/// processes.
pub fn show_panics() {
    panic::set_hook(Box::new(|panic| complain_page(&told(panic))));
}

fn told(panic: &PanicHookInfo<'_>) -> String {
    use std::backtrace::{Backtrace, BacktraceStatus};
    let thread = thread::current();
    let mut told = format!("thread '{}' {panic}", thread.name().unwrap_or("<unnamed>"));
    let trace = Backtrace::capture();
    match trace.status() {
        BacktraceStatus::Captured => told += &format!("\nstack backtrace:\n{trace}"),
        _ => told += "\nnote: run with `RUST_BACKTRACE=1` to see where it came from",
    }
    told
}
