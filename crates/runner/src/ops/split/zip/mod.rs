//! Cuts a zip archive into its regular files, in the order of its directory. Folders and links have no content and are
//! skipped.
//!
//! Only the directory, at the archive's end, states the offsets of the files. So the directory is read one entry at a
//! time, and each file is read at the offset in its entry. The memory does not depend on the number of files. Each
//! entry is checked against the file's own header, the length of its content and its checksum.
//!
//! If several files could share the same bytes, a small archive could expand to any amount of content. So all files
//! together may have no more compressed bytes than the archive has before its directory.

mod directory;

use std::io::{self, Read};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use self::directory::{Directory, Entry};
use super::{Cut, Kind, Torn};
use crate::payload::{RandomAccess, is_unread};

/// The method of content that is not compressed.
const STORED: u16 = 0;

/// The method of content compressed by DEFLATE.
const DEFLATED: u16 = 8;

/// The maximum initial capacity of the buffer for a file's content. The length in the file's entry may be wrong, so it
/// does not decide the capacity alone.
const FIRST_ROOM: usize = 64 << 10;

/// See the [module](self).
pub(super) struct Members {
    archive: RandomAccess,
    /// The unread part of the directory, once the directory has been found.
    directory: Option<Directory>,
    /// The maximum size of a file.
    most: usize,
    ended: bool,
}

/// The reason why a file cannot become a piece.
enum Refused {
    /// The archive cannot be read.
    Unread(io::Error),
    /// The file is wrong. The text states the reason.
    Wrong(String),
}

impl Members {
    pub(super) fn new(archive: RandomAccess, most: usize) -> Self {
        Self { archive, directory: None, most, ended: false }
    }

    fn read(&mut self) -> Result<Option<Cut>, Torn> {
        let mut directory = match self.directory.take() {
            Some(directory) => directory,
            None => Directory::find(&self.archive)?,
        };
        let next = loop {
            match directory.next()? {
                Some(entry) if entry.is_file => break Some(entry),
                Some(_) => {}
                None => break None,
            }
        };
        let Some(entry) = next else {
            self.archive.verify().map_err(Torn::Unread)?;
            return Ok(None);
        };
        let (content, fault) = match self.content(&entry, &directory) {
            Ok(content) => (content, None),
            Err(Refused::Wrong(reason)) => {
                (Vec::new(), Some(format!("{} {reason}", String::from_utf8_lossy(&entry.name))))
            }
            Err(Refused::Unread(error)) => return Err(Torn::Unread(error)),
        };
        self.directory = Some(directory);
        Ok(Some(Cut { kind: Kind::Member(entry.name), content, fault, ..Cut::default() }))
    }

    /// The content of a file, if it has the length and the checksum in its entry.
    fn content(&self, entry: &Entry, directory: &Directory) -> Result<Vec<u8>, Refused> {
        let wrong = |reason: String| Err(Refused::Wrong(reason));
        if entry.encrypted {
            return wrong("is encrypted; only files without encryption are taken".to_owned());
        }
        if !matches!(entry.method, STORED | DEFLATED) {
            let method = method_name(entry.method);
            return wrong(format!("is compressed by {method}, but only stored and deflated files are taken"));
        }
        if entry.bytes > self.most as u64 {
            return wrong(format!("has {} bytes, more than the {} of `max_bytes`", entry.bytes, self.most));
        }
        let data = directory.data(entry, &self.archive)?;
        let room = usize::try_from(entry.bytes).map_or(FIRST_ROOM, |bytes| bytes.min(FIRST_ROOM));
        let mut content = Vec::with_capacity(room);
        // One byte more than the stated length is read, to detect longer content.
        let most = entry.bytes.saturating_add(1);
        let read = match entry.method {
            STORED => data.take(most).read_to_end(&mut content),
            _ => DeflateDecoder::new(data).take(most).read_to_end(&mut content),
        };
        match read {
            Err(error) if is_unread(&error) => return Err(Refused::Unread(error)),
            Err(error) => return wrong(format!("is damaged: {error}")),
            Ok(read) if read as u64 > entry.bytes => {
                return wrong(format!("has more bytes than the {} that the directory says", entry.bytes));
            }
            Ok(read) if (read as u64) < entry.bytes => {
                return wrong(format!("has {read} bytes, and the directory says {}", entry.bytes));
            }
            Ok(_) => {}
        }
        let mut crc = Crc::new();
        crc.update(&content);
        if crc.sum() != entry.crc {
            return wrong("is damaged: its checksum differs from the one in the directory".to_owned());
        }
        Ok(content)
    }
}

/// The name of a compression method.
fn method_name(method: u16) -> String {
    match method {
        9 => "Deflate64".to_owned(),
        12 => "bzip2".to_owned(),
        14 => "LZMA".to_owned(),
        93 => "Zstandard".to_owned(),
        95 => "xz".to_owned(),
        other => format!("method {other}"),
    }
}

impl Iterator for Members {
    type Item = Result<Cut, Torn>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let member = self.read().transpose();
        self.ended = !matches!(member, Some(Ok(_)));
        member
    }
}

#[cfg(test)]
mod tests;
