//! Finds the directory of a zip archive and reads its entries.
//!
//! The layout is that of PKWARE's APPNOTE 6.3, sections 4.3 to 4.5. Numbers are little-endian. Other bytes may precede
//! an archive, as in a self-extracting file. All stated offsets are then too small by the same amount. This amount is
//! the difference between the actual and the stated offset of the directory.

use std::io::{self, BufReader, Read};

use super::Refused;
use crate::ops::split::{READ, Torn};
use crate::payload::{RandomAccess, Section, is_unread};

/// The length of an archive's last record, without the comment at its end.
const END: u64 = 22;
/// The maximum length of the comment.
const MAX_COMMENT: u64 = 0xffff;
const END_SIGNATURE: &[u8] = b"PK\x05\x06";

/// The length of an additional record in large archives. It repeats the numbers of the last record in fields of 64
/// bits, and a third record, the locator, states its offset.
const END_64: u64 = 56;
const END_64_SIGNATURE: &[u8] = b"PK\x06\x06";
const LOCATOR: u64 = 20;
const LOCATOR_SIGNATURE: &[u8] = b"PK\x06\x07";

/// The length of an entry, without its name and the fields after it.
const ENTRY: usize = 46;
const ENTRY_SIGNATURE: &[u8] = b"PK\x01\x02";

/// The length of the header of a file, without its name.
const HEADER: usize = 30;
const HEADER_SIGNATURE: &[u8] = b"PK\x03\x04";

/// The id of the extra field with numbers that need 64 bits.
const WIDE: u16 = 1;

/// The flags of an entry whose content or header is encrypted.
const ENCRYPTED: u16 = 1 | 1 << 13;

/// The number that stands for Unix in an entry's field for the operating system.
const UNIX: u8 = 3;
/// The bits of a mode that state the type of a file.
const TYPE: u32 = 0o170_000;
/// The value of these bits for a regular file.
const REGULAR: u32 = 0o100_000;

/// An iterator over the entries of a directory.
pub(super) struct Directory {
    entries: BufReader<Section>,
    /// The number of bytes of the directory that are still to be read.
    left: u64,
    /// The offset of the directory; all files are before it.
    start: u64,
    /// The difference between the actual offsets and those that the archive states.
    shift: u64,
    /// The number of bytes of all files so far, including their headers.
    taken: u64,
    /// The number of entries read so far.
    read: u64,
    /// The number of entries that the archive announces. It is compared with `read` modulo 2^16.
    announced: u64,
}

/// A file of an archive.
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    /// Whether the entry is a regular file, rather than a folder, a link or a special file.
    pub(super) is_file: bool,
    pub(super) encrypted: bool,
    pub(super) method: u16,
    pub(super) crc: u32,
    /// The length of the file's content.
    pub(super) bytes: u64,
    compressed: u64,
    header_at: u64,
}

impl Directory {
    /// Finds the directory of an archive.
    ///
    /// # Errors
    /// There is no directory, or the archive is one part of several.
    pub(super) fn find(archive: &RandomAccess) -> Result<Self, Torn> {
        let senseless = |reason: &str| Torn::Senseless(format!("it is not a zip archive, or is damaged: {reason}"));
        let tail_at = archive.size().saturating_sub(END + MAX_COMMENT);
        let tail = read(archive, tail_at, archive.size() - tail_at)?;
        let last = tail.len().checked_sub(END as usize).ok_or_else(|| senseless("it is too short"))?;
        // The comment may also contain the signature. Then the length after that signature does not match the end of
        // the archive.
        let is_end = |at: &usize| {
            tail[*at..].starts_with(END_SIGNATURE)
                && usize::from(u16_at(&tail[*at..], 20)) == tail.len() - at - END as usize
        };
        let found = (0..=last).rev().find(is_end).ok_or_else(|| senseless("its directory is not at its end"))?;
        let (end, end_at) = (&tail[found..], tail_at + found as u64);
        let small = Numbers {
            disks: u32::from(u16_at(end, 4)) | u32::from(u16_at(end, 6)),
            entries: u16_at(end, 10).into(),
            bytes: u32_at(end, 12).into(),
            at: u32_at(end, 16).into(),
        };
        let (numbers, ends_at) = match large(archive, end_at)? {
            Some((large, at)) if small.lacks_room() => (large, at),
            _ => (small, end_at),
        };
        if numbers.disks != 0 {
            return Err(Torn::Senseless("the archive is one part of several: join them first".to_owned()));
        }
        let start = ends_at.checked_sub(numbers.bytes).ok_or_else(|| senseless("its directory is cut off"))?;
        let shift = start.checked_sub(numbers.at).ok_or_else(|| senseless("its directory is cut off"))?;
        Ok(Self {
            entries: BufReader::with_capacity(READ, archive.section(start, numbers.bytes)),
            left: numbers.bytes,
            start,
            shift,
            taken: 0,
            read: 0,
            announced: numbers.entries,
        })
    }

    /// The next entry.
    ///
    /// # Errors
    /// The directory is damaged, or several files share the same bytes.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, Torn> {
        let damaged = |reason: &str| Torn::Senseless(format!("the archive's directory is damaged: {reason}"));
        if self.left == 0 {
            if self.read & MAX_COMMENT != self.announced & MAX_COMMENT {
                return Err(damaged(&format!("it has {} entries, and should have {}", self.read, self.announced)));
            }
            return Ok(None);
        }
        let mut fixed = [0; ENTRY];
        self.take(&mut fixed)?;
        if !fixed.starts_with(ENTRY_SIGNATURE) {
            return Err(damaged("it has bytes that belong to no entry"));
        }
        let mut name = vec![0; u16_at(&fixed, 28).into()];
        self.take(&mut name)?;
        let mut extra = vec![0; u16_at(&fixed, 30).into()];
        self.take(&mut extra)?;
        let mut comment = vec![0; u16_at(&fixed, 32).into()];
        self.take(&mut comment)?;
        let mut wide = wide_numbers(&extra);
        // Numbers that do not fit into 32 bits are in the extra field, in this order.
        let mut number = |at: usize| match u32_at(&fixed, at) {
            u32::MAX => wide.next().unwrap_or_else(|| u32::MAX.into()),
            number => number.into(),
        };
        let (bytes, compressed, header_at) = (number(24), number(20), number(42));
        self.read += 1;
        self.taken = self.taken.saturating_add(compressed).saturating_add((HEADER + name.len()) as u64);
        if self.taken > self.start {
            return Err(damaged("its files say that they have more compressed bytes than the archive"));
        }
        Ok(Some(Entry {
            is_file: is_file(&name, fixed[5], u32_at(&fixed, 38)),
            name,
            encrypted: u16_at(&fixed, 8) & ENCRYPTED != 0,
            method: u16_at(&fixed, 10),
            crc: u32_at(&fixed, 16),
            bytes,
            compressed,
            header_at,
        }))
    }

    /// The compressed bytes of a file, which follow its header.
    pub(super) fn data(&self, entry: &Entry, archive: &RandomAccess) -> Result<Section, Refused> {
        let wrong = |reason: &str| Refused::Wrong(format!("is damaged: {reason}"));
        let outside = || wrong("it lies outside of the archive");
        let at = entry.header_at.checked_add(self.shift).ok_or_else(outside)?;
        if at.checked_add(HEADER as u64).is_none_or(|end| end > self.start) {
            return Err(outside());
        }
        let unread = |error: io::Error| match is_unread(&error) {
            true => Refused::Unread(error),
            false => wrong(&error.to_string()),
        };
        let mut section = archive.section(at, self.start - at);
        let mut header = [0; HEADER];
        section.read_exact(&mut header).map_err(unread)?;
        if !header.starts_with(HEADER_SIGNATURE) {
            return Err(wrong("it has no header where the directory says"));
        }
        let mut name = vec![0; u16_at(&header, 26).into()];
        section.read_exact(&mut name).map_err(unread)?;
        if name != entry.name {
            return Err(wrong("it has another name in its own header"));
        }
        let before = HEADER as u64 + name.len() as u64 + u64::from(u16_at(&header, 28));
        let data_at = at + before;
        if data_at.checked_add(entry.compressed).is_none_or(|end| end > self.start) {
            return Err(outside());
        }
        Ok(archive.section(data_at, entry.compressed))
    }

    /// Reads the next bytes of the directory.
    fn take(&mut self, bytes: &mut [u8]) -> Result<(), Torn> {
        let taken = bytes.len() as u64;
        self.left = self.left.checked_sub(taken).ok_or_else(|| {
            Torn::Senseless("the archive's directory is damaged: its last entry breaks off".to_owned())
        })?;
        Ok(self.entries.read_exact(bytes)?)
    }
}

/// The numbers in the last record of an archive.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    /// The number of this part and the number of the part with the directory, combined by a bitwise or.
    disks: u32,
    entries: u64,
    /// The length of the directory.
    bytes: u64,
    /// The offset of the directory.
    at: u64,
}

impl Numbers {
    /// Whether a number may have been too large for its field.
    fn lacks_room(self) -> bool {
        let (short, long) = (u64::from(u16::MAX), u64::from(u32::MAX));
        self.entries == short || self.bytes == long || self.at == long || self.disks & 0xffff == 0xffff
    }
}

/// The record of a large archive and its offset, if there is such a record before the last record.
fn large(archive: &RandomAccess, end_at: u64) -> Result<Option<(Numbers, u64)>, Torn> {
    let Some(locator_at) = end_at.checked_sub(LOCATOR) else { return Ok(None) };
    let locator = read(archive, locator_at, LOCATOR)?;
    if !locator.starts_with(LOCATOR_SIGNATURE) {
        return Ok(None);
    }
    // If other bytes precede the archive, the stated offset is too small. The record then usually ends where the
    // locator begins.
    let places = [Some(u64_at(&locator, 8)), locator_at.checked_sub(END_64)];
    for at in places.into_iter().flatten().filter(|at| *at <= locator_at) {
        let record = read(archive, at, END_64)?;
        if record.len() as u64 == END_64 && record.starts_with(END_64_SIGNATURE) {
            let numbers = Numbers {
                disks: u32_at(&record, 16) | u32_at(&record, 20),
                entries: u64_at(&record, 32),
                bytes: u64_at(&record, 40),
                at: u64_at(&record, 48),
            };
            return Ok(Some((numbers, at)));
        }
    }
    Ok(None)
}

/// The 64-bit numbers in the extra fields of an entry.
fn wide_numbers(mut extra: &[u8]) -> impl Iterator<Item = u64> {
    let mut numbers: &[u8] = &[];
    while extra.len() >= 4 {
        let (id, len) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
        let field = &extra[4..];
        let field = &field[..len.min(field.len())];
        if id == WIDE {
            numbers = field;
            break;
        }
        extra = &extra[4 + field.len()..];
    }
    numbers.chunks_exact(8).map(|number| u64_at(number, 0))
}

fn is_file(name: &[u8], system: u8, attributes: u32) -> bool {
    let of_unix = if system == UNIX { (attributes >> 16) & TYPE } else { 0 };
    !name.ends_with(b"/") && matches!(of_unix, 0 | REGULAR)
}

/// The `len` bytes of the archive from `at` on, or fewer at its end.
fn read(archive: &RandomAccess, at: u64, len: u64) -> Result<Vec<u8>, Torn> {
    let mut bytes = Vec::new();
    archive.section(at, len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
