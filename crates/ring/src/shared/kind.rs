//! The description of a ring at the start of its file. It turns a new file into a ring, and tells rings from other
//! files.

use std::alloc::Layout;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use super::AttachError;
use super::header::Header;

/// The first bytes of a ring's file.
const MAGIC: &[u8; 8] = b"MSTRING2";

/// The numbers on which all processes that attach must agree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    event_bytes: u32,
    event_align: u32,
    slots: u64,
}

impl Kind {
    /// The length of the description in bytes, including the magic number.
    pub(super) const BYTES: usize = 24;

    /// The description of a ring of `slots` slots, and the length of the ring's file in bytes.
    pub(super) fn new(slots: usize, event: Layout) -> Result<(Self, usize), AttachError> {
        let event_bytes = event.size();
        let too_large = AttachError::TooLarge { slots, event_bytes };
        let bytes = slots.checked_mul(event_bytes).and_then(|bytes| bytes.checked_add(size_of::<Header>()));
        // No allocation and no pointer offset exceeds `isize::MAX`.
        let bytes = bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(too_large)?;
        let kind = Kind { event_bytes: event_bytes as u32, event_align: event.align() as u32, slots: slots as u64 };
        Ok((kind, bytes))
    }

    /// Turns a new file into a ring of this kind and length, or checks that it already is one. The caller holds the
    /// lock for attaching.
    ///
    /// A file is new if it is empty, or if it has the right length and only zeros in its header, because its creator
    /// was killed before it wrote the header. Any other file is left unchanged. Returns whether the file was empty.
    pub(super) fn agree(self, file: &File, expected_bytes: u64) -> Result<bool, AttachError> {
        let found_bytes = file.metadata().map_err(AttachError::system("measure the file"))?.len();
        let header = beginning(file).map_err(AttachError::system("read the file's header"))?;
        let is_blank = found_bytes == expected_bytes && header.iter().all(|&byte| byte == 0);
        if found_bytes == 0 || is_blank {
            self.make(file, expected_bytes)?;
            return Ok(found_bytes == 0);
        }
        match Kind::from_bytes(&header) {
            Some(found) if found != self => {
                Err(AttachError::Mismatch { found: found.to_string(), expected: self.to_string() })
            }
            Some(_) if found_bytes == expected_bytes => Ok(false),
            _ => {
                let beginning = header[..header.len().min(MAGIC.len())].escape_ascii().to_string();
                Err(AttachError::NotARing { expected_bytes, found_bytes, beginning })
            }
        }
    }

    /// Sets the length first, then writes the header in one piece, so that a process killed in between leaves a file
    /// that counts as new. All other bytes of a ring start as zero.
    fn make(self, file: &File, bytes: u64) -> Result<(), AttachError> {
        file.set_len(bytes).map_err(AttachError::system(format!("give the file {bytes} bytes")))?;
        file.write_all_at(&self.to_bytes(), 0).map_err(AttachError::system("write the file's header"))
    }

    fn to_bytes(self) -> [u8; Kind::BYTES] {
        let mut bytes = [0; Kind::BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&self.event_bytes.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.event_align.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.slots.to_ne_bytes());
        bytes
    }

    /// Parses the description; `None` if the header is not that of a ring.
    fn from_bytes(header: &[u8]) -> Option<Self> {
        if header.len() < size_of::<Header>() {
            return None;
        }
        let numbers = header.strip_prefix(MAGIC)?;
        let (event_bytes, rest) = numbers.split_first_chunk()?;
        let (event_align, rest) = rest.split_first_chunk()?;
        Some(Kind {
            event_bytes: u32::from_ne_bytes(*event_bytes),
            event_align: u32::from_ne_bytes(*event_align),
            slots: u64::from_ne_bytes(*rest.first_chunk()?),
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} slots of {} bytes, aligned to {}", self.slots, self.event_bytes, self.event_align)
    }
}

/// The first bytes of the file, up to the length of a header.
fn beginning(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(size_of::<Header>() as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
