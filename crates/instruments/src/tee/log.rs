//! The part of the input that at least one command has not read yet.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;

/// The maximum size of a piece, in bytes.
pub(super) const PIECE: usize = 64 << 10;

/// The number of bytes after which a new file begins.
const FILE_BYTES: u64 = 64 << 20;

/// A piece of the input.
enum Piece {
    Memory(Vec<u8>),
    /// A part of an unnamed file, whose space is freed with its last piece.
    Disk {
        file: Rc<File>,
        at: u64,
        length: usize,
    },
}

/// Pieces of the input, numbered from its start. Pieces that every command has read are dropped.
pub(super) struct Log {
    pieces: VecDeque<Piece>,
    /// The number of the first piece.
    first: u64,
    in_memory: u64,
    max_memory: u64,
    spill: Option<PathBuf>,
    file: Option<(Rc<File>, u64)>,
}

impl Log {
    pub(super) fn new(max_memory: u64, spill: Option<PathBuf>) -> Self {
        Self { pieces: VecDeque::new(), first: 0, in_memory: 0, max_memory, spill, file: None }
    }

    /// Returns the number of the next piece.
    pub(super) fn end(&self) -> u64 {
        self.first + self.pieces.len() as u64
    }

    /// Returns the number of the first piece that is still in the log.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn is_full(&self) -> bool {
        self.spill.is_none() && self.in_memory >= self.max_memory
    }

    /// Appends a piece of the input.
    ///
    /// # Errors
    /// Returns an error if the piece must go to disk and cannot be written there completely.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(folder) = self.spill.as_ref().filter(|_| self.in_memory >= self.max_memory) else {
            self.in_memory += bytes.len() as u64;
            self.pieces.push_back(Piece::Memory(bytes.to_vec()));
            return Ok(());
        };
        let (file, at) = match self.file.take() {
            Some((file, at)) if at < FILE_BYTES => (file, at),
            _ => (Rc::new(tempfile::tempfile_in(folder)?), 0),
        };
        file.write_all_at(bytes, at)?;
        self.pieces.push_back(Piece::Disk { file: Rc::clone(&file), at, length: bytes.len() });
        self.file = Some((file, at + bytes.len() as u64));
        Ok(())
    }

    /// Calls `take` with the bytes of a piece; a piece on disk is read into `scratch`, unless `held` says that
    /// `scratch` has it already.
    pub(super) fn with<T>(
        &self,
        number: u64,
        scratch: &mut Vec<u8>,
        held: &mut Option<u64>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<T> {
        match &self.pieces[(number - self.first) as usize] {
            Piece::Memory(bytes) => Ok(take(bytes)),
            Piece::Disk { file, at, length } => {
                if *held != Some(number) {
                    scratch.resize(*length, 0);
                    file.read_exact_at(scratch, *at)?;
                    *held = Some(number);
                }
                Ok(take(scratch))
            }
        }
    }

    /// Drops the pieces before piece `number`.
    pub(super) fn drop_before(&mut self, number: u64) {
        while self.first < number {
            if let Some(Piece::Memory(bytes)) = self.pieces.pop_front() {
                self.in_memory -= bytes.len() as u64;
            }
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Log;

    #[test]
    fn pieces_come_back_from_memory_and_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::new(10, Some(folder.path().to_owned()));
        for n in 0..100_u8 {
            log.push(&[n; 7]).unwrap();
        }
        assert!(!log.is_full());
        let (mut scratch, mut held) = (Vec::new(), None);
        for n in 0..100_u8 {
            for _ in 0..2 {
                let bytes = log.with(u64::from(n), &mut scratch, &mut held, <[u8]>::to_vec).unwrap();
                assert_eq!(bytes, [n; 7]);
            }
            log.drop_before(u64::from(n) + 1);
        }
        assert_eq!((log.in_memory, log.first(), log.end()), (0, 100, 100));
    }

    #[test]
    fn without_a_folder_it_is_full_at_its_limit() {
        let mut log = Log::new(10, None);
        log.push(&[0; 9]).unwrap();
        assert!(!log.is_full());
        log.push(&[0; 9]).unwrap();
        assert!(log.is_full());
        log.drop_before(1);
        assert!(!log.is_full());
    }
}
