//! Buffers that grow while a descriptor is read.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;

/// The first capacity of a buffer whose final size is not known. Each later capacity is twice the previous one.
const MIN_GROWTH: usize = 16 << 10;

/// Reads at most `most` bytes into the spare capacity of `buffer`, without growing it. Returns the number of bytes
/// read, which is 0 only at the end of the input.
///
/// # Panics
/// The buffer has no spare capacity. A read of zero bytes would look like the end of the input.
pub(super) fn read_some(from: impl AsFd, buffer: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    let room = buffer.spare_capacity_mut();
    let most = most.min(room.len());
    assert!(most > 0, "the buffer has room");
    let read = loop {
        match rustix::io::read(&from, &mut room[..most]) {
            Ok((read, _)) => break read.len(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    };
    // SAFETY: the call has initialised `read` bytes right behind the buffer's length, within its capacity.
    unsafe { buffer.set_len(buffer.len() + read) };
    Ok(read)
}

/// The capacity that a full buffer should get next.
pub(super) fn next_capacity(buffer: &Vec<u8>) -> usize {
    buffer.capacity().saturating_mul(2).max(MIN_GROWTH)
}

/// Gives `buffer` exactly this capacity if it has less.
///
/// # Errors
/// There is not enough memory. (The ordinary growth of a `Vec` would abort the process instead.)
pub(super) fn grow_to(buffer: &mut Vec<u8>, capacity: usize) -> io::Result<()> {
    buffer.try_reserve_exact(capacity.saturating_sub(buffer.len())).map_err(|_| no_memory(capacity as u64))
}

/// An empty buffer with room for exactly `bytes`.
///
/// # Errors
/// As [`grow_to`].
pub(super) fn with_room(bytes: u64) -> io::Result<Vec<u8>> {
    let mut buffer = Vec::new();
    grow_to(&mut buffer, usize::try_from(bytes).map_err(|_| no_memory(bytes))?)?;
    Ok(buffer)
}

/// Frees the unused capacity of a finished buffer, if enough is unused to justify the copy.
pub(super) fn trim(buffer: &mut Vec<u8>) {
    if buffer.capacity() - buffer.len() > buffer.len() / 8 + 1024 {
        buffer.shrink_to_fit();
    }
}

fn no_memory(bytes: u64) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, format!("no memory for {bytes} bytes"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{grow_to, next_capacity, read_some, trim, with_room};

    #[test]
    fn reads_are_appended_up_to_the_most_asked_for() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut buffer = b"ab".to_vec();
        grow_to(&mut buffer, 8).unwrap();
        assert_eq!(read_some(&file, &mut buffer, 4).unwrap(), 4);
        assert_eq!(buffer, b"ab0123");
        assert_eq!(read_some(&file, &mut buffer, 100).unwrap(), 2, "the room is the limit");
        grow_to(&mut buffer, 32).unwrap();
        assert_eq!(read_some(&file, &mut buffer, 100).unwrap(), 4);
        assert_eq!(read_some(&file, &mut buffer, 100).unwrap(), 0);
        assert_eq!(buffer, b"ab0123456789");
    }

    #[test]
    fn a_lack_of_memory_is_an_error() {
        assert!(with_room(u64::MAX).is_err());
        assert!(with_room(isize::MAX as u64).is_err());
    }

    #[test]
    fn unused_capacity_is_freed() {
        let mut buffer = Vec::with_capacity(1 << 20);
        buffer.extend_from_slice(&[1; 100_000]);
        assert!(next_capacity(&buffer) >= 2 << 20);
        trim(&mut buffer);
        assert!(buffer.capacity() < 200_000);
        assert_eq!(buffer.len(), 100_000);
    }
}
