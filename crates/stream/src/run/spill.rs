//! A queue on disk.
//!
//! Values are written to segments and read back in order. A segment is a file of some megabytes, which is freed once it has been
//! read. The files have no names, so none remains, however the process ends. The newest values wait in memory until there are
//! enough of them for a write. The oldest values are read in pieces of the same size. However long the queue grows, it needs only
//! these two buffers.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::error::RunError;

/// The size of a write and of a read, in bytes.
const PIECE: usize = 1 << 20;

/// The size of a stored value's length, in bytes.
const LENGTH: usize = size_of::<u32>();

/// The mark of a long value, stored instead of a length that does not fit into four bytes. The length follows in eight bytes.
const LONG: u32 = u32::MAX;

/// The size in bytes at which a new segment begins.
const SEGMENT: u64 = 16 << 20;

/// A value that can be written to disk and read back.
pub trait Stored: Default {
    /// Appends the value to `bytes`.
    fn store(&self, bytes: &mut Vec<u8>);

    /// Replaces this value with the value stored as `bytes`.
    fn load(&mut self, bytes: &[u8]);
}

macro_rules! stored_numbers {
    ($($number:ty),*) => {$(
        impl Stored for $number {
            #[inline]
            fn store(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn load(&mut self, bytes: &[u8]) {
                *self = Self::from_le_bytes(bytes.try_into().expect("the bytes of a number of this type"));
            }
        }
    )*};
}

stored_numbers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

impl Stored for Vec<u8> {
    #[inline]
    fn store(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    #[inline]
    fn load(&mut self, bytes: &[u8]) {
        self.clear();
        self.extend_from_slice(bytes);
    }
}

impl Stored for String {
    #[inline]
    fn store(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    #[inline]
    fn load(&mut self, bytes: &[u8]) {
        self.clear();
        self.push_str(std::str::from_utf8(bytes).expect("the bytes of a string"));
    }
}

/// A queue that keeps its values outside memory.
pub(crate) trait Disk<T> {
    fn front(&self) -> Option<&T>;
    fn front_mut(&mut self) -> Option<&mut T>;
    fn enter(&mut self, value: &T) -> Result<(), Box<RunError>>;
    fn leave(&mut self) -> Result<(), RunError>;

    /// Moves the oldest value into `into`. The memory of the value that was in `into` is reused for the next value.
    fn take(&mut self, into: &mut Option<T>) -> Result<(), RunError>;
}

struct Segment {
    file: File,
    written: u64,
    read: u64,
}

/// See the [module](self).
pub(crate) struct SpillQueue<T> {
    label: String,
    folder: PathBuf,
    segments: VecDeque<Segment>,
    /// The bytes of the oldest values. The bytes in the range `unread` have not been read yet.
    head: Vec<u8>,
    unread: Range<usize>,
    /// The bytes of the newest values.
    tail: Vec<u8>,
    front: T,
    /// The number of all values, including the front value, which has been loaded.
    values: u64,
}

impl<T: Stored> SpillQueue<T> {
    pub(crate) fn new(label: &str, folder: &Path) -> Self {
        Self {
            label: label.to_owned(),
            folder: folder.to_owned(),
            segments: VecDeque::new(),
            head: Vec::new(),
            unread: 0..0,
            tail: Vec::with_capacity(PIECE + PIECE / 4),
            front: T::default(),
            values: 0,
        }
    }

    fn failed(&self, error: io::Error) -> RunError {
        RunError::Spill { label: self.label.clone(), folder: self.folder.clone(), error }
    }

    /// Adds the newest values to the last segment.
    #[inline(never)]
    fn write(&mut self) -> Result<(), Box<RunError>> {
        self.try_write().map_err(|error| Box::new(self.failed(error)))
    }

    fn try_write(&mut self) -> io::Result<()> {
        if self.segments.back().is_none_or(|last| last.written >= SEGMENT) {
            self.segments.push_back(Segment { file: tempfile::tempfile_in(&self.folder)?, written: 0, read: 0 });
        }
        let last = self.segments.back_mut().expect("there is one");
        last.file.write_all_at(&self.tail, last.written)?;
        last.written += self.tail.len() as u64;
        self.tail.clear();
        Ok(())
    }

    /// Stores the length of a long value: the mark [`LONG`], then eight bytes.
    #[cold]
    fn insert_length(&mut self, behind: usize, length: usize) {
        self.tail.splice(behind..behind, (length as u64).to_le_bytes());
    }

    /// Makes sure that `head` has at least this many unread bytes.
    #[inline]
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        if self.unread.len() >= bytes { Ok(()) } else { self.refill(bytes) }
    }

    #[cold]
    fn refill(&mut self, bytes: usize) -> io::Result<()> {
        self.head.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        while self.unread.len() < bytes {
            let Some(first) = self.segments.front_mut() else {
                // There are no values left on disk, so those in memory come next.
                self.head.truncate(self.unread.end);
                self.head.append(&mut self.tail);
                self.unread.end = self.head.len();
                debug_assert!(self.unread.len() >= bytes, "a value is stored as a whole");
                return Ok(());
            };
            let piece = (first.written - first.read).min(PIECE.max(bytes) as u64) as usize;
            let into = self.unread.end..self.unread.end + piece;
            if self.head.len() < into.end {
                self.head.resize(into.end, 0);
            }
            first.file.read_exact_at(&mut self.head[into.clone()], first.read)?;
            self.unread.end = into.end;
            first.read += piece as u64;
            if first.read == first.written {
                self.segments.pop_front();
            }
        }
        Ok(())
    }

    /// Returns the next bytes of the queue.
    fn bytes(&mut self, count: usize) -> io::Result<&[u8]> {
        self.fill(count)?;
        let begin = self.unread.start;
        self.unread.start += count;
        Ok(&self.head[begin..begin + count])
    }

    fn read_front(&mut self) -> io::Result<()> {
        let short = self.bytes(LENGTH)?.try_into().expect("the bytes of a length");
        let length = match u32::from_le_bytes(short) {
            LONG => u64::from_le_bytes(self.bytes(size_of::<u64>())?.try_into().expect("eight bytes")) as usize,
            short => short as usize,
        };
        self.fill(length)?;
        let begin = self.unread.start;
        self.front.load(&self.head[begin..begin + length]);
        self.unread.start += length;
        Ok(())
    }
}

impl<T: Stored + Clone> Disk<T> for SpillQueue<T> {
    fn front(&self) -> Option<&T> {
        (self.values > 0).then_some(&self.front)
    }

    fn front_mut(&mut self) -> Option<&mut T> {
        (self.values > 0).then_some(&mut self.front)
    }

    fn enter(&mut self, value: &T) -> Result<(), Box<RunError>> {
        self.values += 1;
        if self.values == 1 {
            self.front.clone_from(value);
            return Ok(());
        }
        let begin = self.tail.len();
        self.tail.extend_from_slice(&LONG.to_le_bytes());
        value.store(&mut self.tail);
        let behind = begin + LENGTH;
        let length = self.tail.len() - behind;
        if length < LONG as usize {
            self.tail[begin..behind].copy_from_slice(&(length as u32).to_le_bytes());
        } else {
            self.insert_length(behind, length);
        }
        if self.tail.len() < PIECE { Ok(()) } else { self.write() }
    }

    fn leave(&mut self) -> Result<(), RunError> {
        self.values -= 1;
        if self.values > 0 {
            self.read_front().map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    fn take(&mut self, into: &mut Option<T>) -> Result<(), RunError> {
        std::mem::swap(into.get_or_insert_with(T::default), &mut self.front);
        self.leave()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_order_across_segments_however_the_queue_grows_and_shrinks() {
        let folder = tempfile::tempdir().unwrap();
        let mut queue = SpillQueue::<Vec<u8>>::new("x", folder.path());
        let value = |n: u64| -> Vec<u8> {
            let length = if n % 1000 == 7 { 3 * PIECE } else { (n * 37 % 300) as usize };
            n.to_le_bytes().into_iter().cycle().take(length).collect()
        };
        let (mut entered, mut left) = (0, 0);
        for (enter, leave) in [(1, 1), (100_000, 50), (3, 99_000), (70_000, 70_953), (5, 5)] {
            for _ in 0..enter {
                queue.enter(&value(entered)).unwrap();
                entered += 1;
            }
            for _ in 0..leave {
                assert_eq!(queue.front(), Some(&value(left)));
                queue.leave().unwrap();
                left += 1;
            }
            assert!(queue.head.capacity() < 16 * PIECE && queue.tail.capacity() < 16 * PIECE);
        }
        assert_eq!((entered, queue.front()), (left, None));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the files have no names");
    }

    #[test]
    fn the_error_names_a_missing_folder() {
        let mut queue = SpillQueue::<String>::new("x", Path::new("/nonexistent/folder"));
        let error = (0..).find_map(|_| queue.enter(&"a".repeat(1000)).err()).unwrap();
        assert!(error.to_string().contains("/nonexistent/folder"), "{error}");
    }
}
