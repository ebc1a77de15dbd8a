//! Content with random access, for example an archive whose directory is at its end.

use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use super::{Base, Pass, Stream, Unread};

/// The bytes of a payload that can be read from any offset.
#[derive(Debug, Clone)]
pub struct RandomAccess(Base);

/// A reader of a section of a payload.
#[derive(Debug)]
pub struct Section {
    content: RandomAccess,
    at: u64,
    end: u64,
}

impl Stream {
    /// The content for random access; `None` if it can only be made from its start.
    pub fn random_access(&self) -> Option<RandomAccess> {
        self.codings.is_empty().then(|| RandomAccess(self.base.clone()))
    }
}

impl RandomAccess {
    /// The number of bytes.
    pub fn size(&self) -> u64 {
        match &self.0 {
            Base::File(opened) => opened.len,
            Base::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// If an earlier stage has read the file to its end, reads the file once more, and compares the hashes of the two
    /// passes. [`is_unread`] recognises the errors.
    pub fn verify(&self) -> io::Result<()> {
        match &self.0 {
            Base::File(opened) if opened.hash.get().is_some() => {
                io::copy(&mut Pass::of(opened), &mut io::sink()).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// The `len` bytes from `at` on, or fewer if the content ends before that. [`is_unread`] recognises errors of the
    /// system.
    pub fn section(&self, at: u64, len: u64) -> Section {
        let end = at.saturating_add(len).min(self.size());
        Section { content: self.clone(), at: at.min(end), end }
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end - self.at;
        let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let buffer = &mut buffer[..most];
        let read = match &self.content.0 {
            Base::Bytes(bytes) => {
                let at = usize::try_from(self.at).expect("bytes in memory have places that fit");
                buffer.copy_from_slice(&bytes[at..at + most]);
                most
            }
            Base::File(opened) => {
                let read = loop {
                    match opened.file.read_at(buffer, self.at) {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        read => break read,
                    }
                };
                let read = match read {
                    Ok(0) if most > 0 => {
                        let message = "it has become shorter while this unit was in flight; run the flow again for it";
                        // Errors of this kind are permanent: a retry would read the same open file.
                        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
                    }
                    read => read,
                };
                read.map_err(|error| io::Error::other(Unread { path: opened.path.clone(), error }))?
            }
        };
        self.at += read as u64;
        Ok(read)
    }
}

/// Whether the error comes from reading a payload rather than from interpreting its bytes.
pub fn is_unread(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Unread>)
}
