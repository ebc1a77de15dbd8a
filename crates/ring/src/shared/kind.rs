//! What a file says of itself: how a new one is made a ring, and how it is told from anything else.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use super::AttachError;
use super::header::Header;

/// What a file of this kind begins with.
const MAGIC: &[u8; 8] = b"MSTRING2";

/// The numbers that all who attach have to agree on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    event_bytes: u32,
    event_align: u32,
    slots: u64,
}

impl Kind {
    /// With the magic number before.
    pub(super) const BYTES: usize = 24;

    /// Of a ring of this many slots for `T`, and how many bytes it has.
    pub(super) fn of<T>(slots: usize) -> Result<(Self, usize), AttachError> {
        let event_bytes = size_of::<T>();
        let too_large = AttachError::TooLarge { slots, event_bytes };
        let bytes = slots.checked_mul(event_bytes).and_then(|bytes| bytes.checked_add(size_of::<Header>()));
        // No allocation, and no offset of a pointer, is larger.
        let bytes = bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(too_large)?;
        let kind = Kind { event_bytes: event_bytes as u32, event_align: align_of::<T>() as u32, slots: slots as u64 };
        Ok((kind, bytes))
    }

    /// Makes the file a ring of this kind and length if it is new, or checks that it is one; with the lock for attaching.
    ///
    /// New is a file that is empty, or has the right length and nothing in its header: who made it was killed before it wrote
    /// there. Nothing is written to any other, which may be anything.
    pub(super) fn agree(self, file: &File, expected_bytes: u64) -> Result<(), AttachError> {
        let found_bytes = file.metadata().map_err(AttachError::system("measure the file"))?.len();
        let header = beginning(file).map_err(AttachError::system("read the file's header"))?;
        let is_blank = found_bytes == expected_bytes && header.iter().all(|&byte| byte == 0);
        if found_bytes == 0 || is_blank {
            return self.make(file, expected_bytes);
        }
        match Kind::from_bytes(&header) {
            Some(found) if found != self => {
                Err(AttachError::Mismatch { found: found.to_string(), expected: self.to_string() })
            }
            Some(_) if found_bytes == expected_bytes => Ok(()),
            _ => {
                let beginning = header[..header.len().min(MAGIC.len())].escape_ascii().to_string();
                Err(AttachError::NotARing { expected_bytes, found_bytes, beginning })
            }
        }
    }

    /// First the length, then the header, in one piece: killed in between, this leaves what is new. All else of a ring
    /// begins as zero.
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

    /// `None` if it is no header of a ring.
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

/// The file's first bytes, as many as a header has, or fewer if it ends before.
fn beginning(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(size_of::<Header>() as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
