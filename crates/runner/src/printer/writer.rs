//! Writes outputs to the streams: small ones together, and lines with their tags.

use std::sync::atomic::AtomicU64;
use std::{io, mem};

use super::stream::Stream;
use super::{Output, Trouble};

/// Small outputs are written together up to this size.
const PIECE: usize = 64 << 10;

/// The streams, and the bytes that are not written to standard output yet.
pub(super) struct Writer<'a> {
    stdout: Option<Stream<'a>>,
    /// `None` once a write has failed; that failure cannot be reported anywhere.
    stderr: Option<Stream<'a>>,
    piece: Vec<u8>,
    trouble: Option<Trouble>,
}

impl<'a> Writer<'a> {
    /// A writer that adds the number of the bytes it writes to `written`.
    pub(super) fn open(written: &'a AtomicU64) -> Self {
        let stderr = Stream::stderr(written).ok();
        let mut writer = Self { stdout: None, stderr, piece: Vec::new(), trouble: None };
        match Stream::stdout(written) {
            Ok(stdout) => writer.stdout = Some(stdout),
            Err(error) => writer.fails(&error),
        }
        writer
    }

    /// Writes an output, or keeps it with others until [`flush`](Self::flush).
    pub(super) fn write(&mut self, output: &Output) {
        let tag = output.tag.as_deref();
        put(&mut self.piece, &output.stdout, tag, |piece| {
            write_all(&mut self.stdout, piece).unwrap_or_else(|error| self.trouble = trouble_of(&error));
        });
        if !output.stderr.is_empty() {
            self.flush();
            let mut piece = mem::take(&mut self.piece);
            put(&mut piece, &output.stderr, tag, |piece| drop(write_all(&mut self.stderr, piece)));
            let _ = write_all(&mut self.stderr, &piece);
            piece.clear();
            self.piece = piece;
        }
    }

    /// Writes the outputs that are kept.
    pub(super) fn flush(&mut self) {
        if let Err(error) = write_all(&mut self.stdout, &self.piece) {
            self.fails(&error);
        }
        self.piece.clear();
    }

    /// Whether all outputs have been written, so that none is kept for [`flush`](Self::flush).
    pub(super) fn is_flushed(&self) -> bool {
        self.piece.is_empty()
    }

    /// Gives up on standard output.
    pub(super) fn fails(&mut self, error: &io::Error) {
        self.stdout = None;
        self.trouble = trouble_of(error);
    }

    /// The reason why standard output was given up; only the first call after that returns it.
    pub(super) fn take_trouble(&mut self) -> Option<Trouble> {
        self.trouble.take()
    }
}

fn trouble_of(error: &io::Error) -> Option<Trouble> {
    Some(match error.kind() {
        io::ErrorKind::BrokenPipe => Trouble::ReaderGone,
        _ => Trouble::Failed(error.to_string()),
    })
}

/// Writes to a stream; an error closes the stream.
fn write_all(stream: &mut Option<Stream<'_>>, content: &[u8]) -> io::Result<()> {
    let written = stream.as_mut().map_or(Ok(()), |stream| stream.write_all(content));
    if written.is_err() {
        *stream = None;
    }
    written
}

/// Adds content to a piece, and writes the piece when it is full. If there is a tag, the tag and a tab are added before
/// each line, and a newline after a last line without one.
fn put(piece: &mut Vec<u8>, content: &[u8], tag: Option<&[u8]>, mut write: impl FnMut(&[u8])) {
    let mut add = |piece: &mut Vec<u8>, content: &[u8]| {
        if piece.len() + content.len() > PIECE {
            write(piece);
            piece.clear();
        }
        if content.len() > PIECE {
            write(content);
        } else {
            piece.extend_from_slice(content);
        }
    };
    let Some(tag) = tag else { return add(piece, content) };
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        add(piece, tag);
        add(piece, b"\t");
        add(piece, line);
    }
    if !content.is_empty() && !content.ends_with(b"\n") {
        add(piece, b"\n");
    }
}

#[cfg(test)]
mod tests {
    use super::{PIECE, put};

    fn written(content: &[u8], tag: Option<&[u8]>) -> Vec<u8> {
        let (mut piece, mut all) = (Vec::new(), Vec::new());
        put(&mut piece, content, tag, |piece| all.extend_from_slice(piece));
        assert!(piece.len() <= PIECE);
        all.extend(piece);
        all
    }

    #[test]
    fn every_line_bears_the_tag_and_the_last_one_ends() {
        assert_eq!(written(b"one\ntwo", Some(b"a")), b"a\tone\na\ttwo\n");
        assert_eq!(written(b"one\n\n", Some(b"a")), b"a\tone\na\t\n");
        assert_eq!(written(b"", Some(b"a")), b"");
        assert_eq!(written(b"one\ntwo", None), b"one\ntwo");
    }

    #[test]
    fn content_longer_than_a_piece_is_written_whole() {
        let long = vec![b'x'; 3 * PIECE];
        assert_eq!(written(&long, None), long);
        assert_eq!(written(&long, Some(b"a")), [b"a\t", &long[..], b"\n"].concat());
        let lines = b"line\n".repeat(PIECE);
        assert_eq!(written(&lines, Some(b"a")), b"a\tline\n".repeat(PIECE));
    }
}
