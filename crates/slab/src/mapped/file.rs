//! Opening files. Anything but a regular file is refused before it is read, and another user's file before it is
//! mapped.

use std::fs::{File, FileType};
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::mapped::error::Error;

/// The permissions of a file that only its owner may write to.
pub(crate) const OWNER_ONLY: u32 = 0o600;
/// The permissions to write, for users other than the owner.
const OTHERS_WRITE: u32 = 0o022;
const ROOT: u32 = 0;
/// With these flags, opening a FIFO returns at once, and a terminal does not become the controlling terminal.
const FLAGS: i32 = libc::O_NONBLOCK | libc::O_NOCTTY;

/// Opens a file to use it as a slab. The file must belong to this user or to root, and other users may write to it only
/// where `mode` has the same permission.
pub(crate) fn open(path: &Path, mode: u32) -> Result<File, Error> {
    let file = open_trusting(path)?;
    let metadata = file.metadata().map_err(|source| Error::system(format!("look at {}", path.display()), source))?;
    let user = rustix::process::geteuid().as_raw();
    let (owner, found) = (metadata.uid(), metadata.mode() & 0o7777);
    if metadata.is_file() && (owner != user && owner != ROOT || found & OTHERS_WRITE & !mode != 0) {
        return Err(Error::Untrusted { path: path.to_owned(), owner, user, mode: found });
    }
    Ok(file)
}

/// Opens a file to use it as a slab, whichever user owns it.
pub(crate) fn open_trusting(path: &Path) -> Result<File, Error> {
    let file = File::options().read(true).write(true).custom_flags(FLAGS).open(path);
    file.map_err(|source| Error::system(format!("open {}", path.display()), source))
}

/// Opens a file for reading only.
pub(crate) fn open_to_read(path: &Path) -> Result<File, Error> {
    let file = File::options().read(true).custom_flags(FLAGS).open(path);
    file.map_err(|source| Error::system(format!("open {}", path.display()), source))
}

/// The ranges of a part of the file that are not holes; the whole part on a file system that does not report holes.
pub(crate) fn data(file: &File, part: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut at = part.start;
    std::iter::from_fn(move || {
        if at >= part.end {
            return None;
        }
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // No more data, or the end of the file.
            Err(Errno::NXIO) => return None,
            Err(_) => at,
        };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(part.end).max(start + 1);
        at = end.min(part.end);
        (start < at).then_some(start..at)
    })
}

/// Names the type of a file that is not a regular one.
pub(crate) fn kind(found: FileType) -> &'static str {
    if found.is_fifo() {
        "a FIFO"
    } else if found.is_dir() {
        "a folder"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}
