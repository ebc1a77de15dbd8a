//! Compares the content of a file with a payload. The file may be compressed.
//!
//! The file is read and decompressed once, a piece at a time. An uncompressed file of a different length is not even
//! read.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use ::zstd::stream::read::Decoder;
use ::zstd::zstd_safe::{DCtx, compress_bound, get_frame_content_size};
use millstream_flow::{Cx, Failure};

use super::failing::io_failure;
use crate::payload::{PIECE, Payload};
use crate::regular;

/// The largest payload whose file is decompressed in one call. The thread's buffers are no larger.
const ONE_CALL: usize = 2 << 20;

thread_local! {
    /// The decompressor, with buffers for a file's bytes and for their content. It is created once per thread, because
    /// its creation takes longer than the decompression of a small file.
    static WORKSHOP: RefCell<(DCtx<'static>, Vec<u8>, Vec<u8>)> =
        RefCell::new((DCtx::create(), Vec::new(), Vec::new()));
}

/// Whether there is a regular file at `path` with the payload's content. With `zstd`, the decompressed content of the
/// file is compared. A damaged file counts as different.
///
/// # Errors
/// The file exists but cannot be read, or the payload cannot be computed.
pub(super) fn has_content(path: &Path, zstd: bool, payload: &Payload, cx: &Cx<'_>) -> Result<bool, Failure> {
    let failed = |error: &io::Error| io_failure("compare with", path, error);
    let (file, found) = match regular::open(path) {
        Ok(opened) => opened,
        Err(error) => {
            use io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
            // The path leads to something other than a regular file, or to nothing.
            let is_other = matches!(error.kind(), NotFound | NotADirectory | InvalidInput);
            return if is_other { Ok(false) } else { Err(failed(&error)) };
        }
    };
    if !zstd {
        let same_length = payload.known_len().is_none_or(|len| len == found.len());
        return if same_length { is_made_of(&file, payload, cx, |error| Err(failed(&error))) } else { Ok(false) };
    }
    if let Some(content) = payload.as_bytes().filter(|content| content.len() <= ONE_CALL)
        && found.len() <= compress_bound(content.len()) as u64
    {
        if let Some(same) = in_one_call(&file, content).map_err(|error| failed(&error))? {
            return Ok(same);
        }
        (&file).rewind().map_err(|error| failed(&error))?;
    }
    // A file that cannot be decompressed is damaged, or was never compressed.
    let Ok(decoder) = Decoder::new(file) else { return Ok(false) };
    is_made_of(decoder, payload, cx, |_| Ok(()))
}

/// Whether the file is a single frame with this content; `None` if the frame does not state the size of its content.
fn in_one_call(file: &File, content: &[u8]) -> io::Result<Option<bool>> {
    WORKSHOP.with_borrow_mut(|(context, packed, unpacked)| {
        packed.clear();
        file.take(compress_bound(ONE_CALL) as u64).read_to_end(packed)?;
        match get_frame_content_size(packed) {
            Ok(None) => return Ok(None),
            Ok(Some(size)) if size == content.len() as u64 => {}
            _ => return Ok(Some(false)),
        }
        unpacked.clear();
        unpacked.reserve(content.len());
        Ok(Some(context.decompress(unpacked, packed).is_ok() && unpacked == content))
    })
}

/// Whether `reader` yields exactly the payload's content. An error of the reader counts as a difference, unless
/// `on_error` turns it into a failure.
fn is_made_of(
    mut reader: impl Read,
    payload: &Payload,
    cx: &Cx<'_>,
    on_error: impl Fn(io::Error) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let mut buffer = vec![0; PIECE];
    let mut differs = None;
    let made = payload.each(cx, |content| {
        for part in content.chunks(PIECE) {
            let piece = &mut buffer[..part.len()];
            let same = match reader.read_exact(piece) {
                Ok(()) => piece == part,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
                Err(error) => {
                    differs = Some(on_error(error));
                    return Err(Failure::msg("the file cannot be read"));
                }
            };
            if !same {
                differs = Some(Ok(()));
                // This error only ends the reading of the payload early, and is ignored.
                return Err(Failure::msg("the contents differ"));
            }
        }
        Ok(())
    });
    match (made, differs) {
        (_, Some(difference)) => difference.map(|()| false),
        (Err(failure), None) => Err(failure),
        (Ok(_), None) => match reader.read(&mut buffer[..1]) {
            Ok(more) => Ok(more == 0),
            Err(error) => on_error(error).map(|()| false),
        },
    }
}
