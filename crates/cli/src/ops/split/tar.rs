//! The regular files of a tar archive. Folders and links have no content and are passed over.

use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};

use tar::Archive;

use super::{Cut, Kind, Torn};

/// An archive consists of blocks of this size.
const BLOCK: u64 = 512;

/// See the [module](self).
pub(super) struct Members<R> {
    input: Input<R>,
    /// The largest file taken.
    most: usize,
    ended: bool,
}

/// The archive from where it was last read. The reader of a member borrows its archive, so each member gets an archive of
/// its own, which begins there.
struct Input<R>(Arc<Mutex<State<R>>>);

struct State<R> {
    reader: BufReader<R>,
    at: u64,
    /// Why the reader has failed, which the archive would tell in other words.
    error: Option<io::Error>,
}

impl<R> Clone for Input<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.reader.read(buffer) {
            Ok(read) => {
                state.at += read as u64;
                Ok(read)
            }
            Err(error) => {
                let again = io::Error::from(error.kind());
                state.error = Some(error);
                Err(again)
            }
        }
    }
}

impl<R: Read> Members<R> {
    pub(super) fn new(input: BufReader<R>, most: usize) -> Self {
        Self { input: Input(Arc::new(Mutex::new(State { reader: input, at: 0, error: None }))), most, ended: false }
    }

    fn read(&mut self) -> io::Result<Option<Cut>> {
        loop {
            let mut archive = Archive::new(self.input.clone());
            let mut entries = archive.entries()?;
            let Some(entry) = entries.next() else { return Ok(None) };
            let mut entry = entry?;
            if !entry.header().entry_type().is_file() {
                io::copy(&mut entry, &mut io::sink())?;
                drop(entry);
                self.skip_to_block()?;
                continue;
            }
            let path = entry.path_bytes().into_owned();
            let (size, mut content) = (entry.size(), Vec::new());
            let fault = (size > self.most as u64).then(|| {
                format!(
                    "{} has {size} bytes, more than the {} of `max_bytes`",
                    String::from_utf8_lossy(&path),
                    self.most
                )
            });
            match &fault {
                None => entry.read_to_end(&mut content)? as u64,
                Some(_) => io::copy(&mut entry, &mut io::sink())?,
            };
            drop(entry);
            self.skip_to_block()?;
            return Ok(Some(Cut { kind: Kind::Member(path), content, fault, ..Cut::default() }));
        }
    }

    fn skip_to_block(&mut self) -> io::Result<()> {
        let at = self.input.0.lock().unwrap_or_else(PoisonError::into_inner).at;
        io::copy(&mut self.input.by_ref().take(at.next_multiple_of(BLOCK) - at), &mut io::sink()).map(drop)
    }
}

impl<R: Read> Iterator for Members<R> {
    type Item = Result<Cut, Torn>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let member = self.read().map_err(|error| {
            let unread = self.input.0.lock().unwrap_or_else(PoisonError::into_inner).error.take();
            unread.map_or_else(|| Torn::Senseless(format!("the archive is damaged: {error}")), Torn::Unread)
        });
        let member = member.transpose();
        self.ended = !matches!(member, Some(Ok(_)));
        member
    }
}

#[cfg(test)]
mod tests {
    use tar::{Builder, EntryType, Header};

    use super::*;

    fn archive() -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        let mut add = |path: &str, content: &[u8], kind| {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            if kind == EntryType::Symlink {
                header.set_link_name("a").unwrap();
            }
            builder.append_data(&mut header, path, content).unwrap();
        };
        add("d/", b"", EntryType::Directory);
        add("d/a", b"first", EntryType::Regular);
        add("link", b"", EntryType::Symlink);
        add(&format!("d/{}", "long".repeat(60)), &[7; 1500], EntryType::Regular);
        add("empty", b"", EntryType::Regular);
        builder.into_inner().unwrap()
    }

    fn members(bytes: &[u8], most: usize) -> Vec<(usize, usize, bool)> {
        let members = Members::new(BufReader::with_capacity(100, bytes), most);
        members
            .map(|cut| {
                let cut = cut.unwrap();
                let Kind::Member(path) = cut.kind else { panic!("every file has a path") };
                (path.len(), cut.content.len(), cut.fault.is_some())
            })
            .collect()
    }

    #[test]
    fn files_come_with_their_paths_and_contents() {
        assert_eq!(members(&archive(), 10_000), [(3, 5, false), (242, 1500, false), (5, 0, false)]);
    }

    #[test]
    fn a_file_that_is_too_large_is_wrong_by_itself() {
        assert_eq!(members(&archive(), 1000), [(3, 5, false), (242, 0, true), (5, 0, false)]);
    }

    #[test]
    fn a_damaged_archive_ends() {
        let bytes = archive();
        for cut in [100, 600, 1700, bytes.len() - 1100] {
            let members = Members::new(BufReader::new(&bytes[..cut]), 10_000);
            let last = members.last();
            assert!(!matches!(last, Some(Err(Torn::Unread(_)))), "{cut}");
        }
        let mut torn = bytes.clone();
        torn[512 + 150] ^= 1;
        let found: Vec<_> = Members::new(BufReader::new(torn.as_slice()), 10_000).collect();
        assert!(matches!(found.last(), Some(Err(Torn::Senseless(message))) if message.contains("damaged")));
    }
}
