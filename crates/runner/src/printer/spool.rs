//! Outputs on disk, which wait for their turn and do not fit into memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, fallocate};

/// A file without a name, to which outputs are written one after the other.
#[derive(Debug, Default)]
pub(super) struct Spool {
    file: Option<File>,
    /// The offset of the next output.
    end: u64,
    /// The number of outputs that have not been read back.
    left: u64,
}

/// The position of an output in the file.
#[derive(Debug)]
pub(super) struct Extent {
    start: u64,
    len: usize,
}

impl Spool {
    /// Writes an output to the disk.
    ///
    /// # Errors
    /// There is no temporary folder, or it has no room.
    pub(super) fn put(&mut self, content: &[u8]) -> io::Result<Extent> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        file.write_all_at(content, self.end)?;
        let extent = Extent { start: self.end, len: content.len() };
        self.end += content.len() as u64;
        self.left += 1;
        Ok(extent)
    }

    /// Reads an output back, and frees its room on the disk.
    ///
    /// # Errors
    /// The errors of the file system.
    pub(super) fn take(&mut self, extent: &Extent) -> io::Result<Vec<u8>> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut content = vec![0; extent.len];
        file.read_exact_at(&mut content, extent.start)?;
        self.left -= 1;
        if self.left == 0 {
            self.end = 0;
            file.set_len(0)?;
        } else {
            // If the file system cannot make holes, the room is freed with the last output.
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(file, hole, extent.start, extent.len as u64);
        }
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::Spool;

    #[test]
    fn outputs_come_back_in_any_order_and_the_room_with_them() {
        let mut spool = Spool::default();
        for _ in 0..3 {
            let extents: Vec<_> = (0..9_u8).map(|number| spool.put(&vec![number; 5000]).unwrap()).collect();
            for number in [3, 0, 8, 1, 2, 7, 6, 5, 4_u8] {
                assert_eq!(spool.take(&extents[usize::from(number)]).unwrap(), vec![number; 5000]);
            }
            assert_eq!((spool.end, spool.file.as_ref().unwrap().metadata().unwrap().len()), (0, 0));
        }
    }
}
