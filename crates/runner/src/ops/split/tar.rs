//! Cuts a tar archive into its regular files. Folders and links have no content and are skipped.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tar::{Archive, Entry};

use super::{Cut, Kind, Torn};

/// An archive consists of blocks of this size.
const BLOCK: u64 = 512;

/// The maximum number of bytes before the content of a file. They are the file's header, and perhaps a long name.
const MAX_BEFORE: u64 = 1 << 20;

/// Programs that compress archives, and the first bytes of their files.
const COMPRESSORS: [(&str, &[u8]); 4] =
    [("gzip", b"\x1f\x8b"), ("zstd", b"\x28\xb5\x2f\xfd"), ("xz", b"\xfd7zXZ"), ("bzip2", b"BZh")];

/// See the [module](self).
pub(super) struct Members<R> {
    input: Input<R>,
    /// The maximum size of a file.
    most: usize,
    ended: bool,
}

/// The bytes of the archive from the current position on. The library's reader of a file borrows its `Archive`. So each
/// file gets an `Archive` of its own, which begins at the current position.
struct Input<R>(Arc<Mutex<State<R>>>);

struct State<R> {
    reader: BufReader<R>,
    at: u64,
    /// The number of bytes that may still be read before the next file's content, so that a long name cannot occupy all
    /// memory.
    left: u64,
    /// The error of the reader. The library would return an error of its own instead.
    error: Option<io::Error>,
}

impl<R> Clone for Input<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> Input<R> {
    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state();
        if state.left == 0 {
            return Err(io::Error::other("the headers before a file's content take more than 1 MiB"));
        }
        let most = usize::try_from(state.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        match state.reader.read(&mut buffer[..most]) {
            Ok(read) => {
                state.at += read as u64;
                state.left -= read as u64;
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
        Self {
            input: Input(Arc::new(Mutex::new(State { reader: input, at: 0, left: u64::MAX, error: None }))),
            most,
            ended: false,
        }
    }

    fn read(&mut self) -> io::Result<Option<Cut>> {
        loop {
            let mut archive = Archive::new(self.input.clone());
            self.input.state().left = MAX_BEFORE;
            let entry = archive.entries()?.next();
            self.input.state().left = u64::MAX;
            let Some(mut entry) = entry.transpose()? else {
                // The payload is read to its end, where it is compared with an earlier reading of the same payload.
                io::copy(&mut self.input, &mut io::sink())?;
                return Ok(None);
            };
            let path = entry.path_bytes().into_owned();
            let kind = entry.header().entry_type();
            let is_sparse = kind.is_gnu_sparse() || is_sparse_by_pax(&mut entry);
            // Of a sparse file, the archive contains only the data between the holes.
            let size = if is_sparse { entry.header().entry_size()? } else { entry.size() };
            drop(entry);
            let from = self.input.state().at;
            let fault = if is_sparse {
                Some("is sparse, and only whole files are taken".to_owned())
            } else {
                (size > self.most as u64)
                    .then(|| format!("has {size} bytes, more than the {} of `max_bytes`", self.most))
            };
            let mut content = Vec::new();
            let mut data = self.input.by_ref().take(size);
            if fault.is_none() && kind.is_file() {
                data.read_to_end(&mut content)?;
            } else {
                io::copy(&mut data, &mut io::sink())?;
            }
            self.skip_to_block()?;
            if self.input.state().at != (from + size).next_multiple_of(BLOCK) {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it breaks off within a file"));
            }
            if kind.is_file() || is_sparse {
                let fault = fault.map(|fault| format!("{} {fault}", String::from_utf8_lossy(&path)));
                return Ok(Some(Cut { kind: Kind::Member(path), content, fault, ..Cut::default() }));
            }
        }
    }

    /// The program that seems to have compressed the archive, judged by the first bytes.
    fn compressor(&self) -> io::Result<Option<&'static str>> {
        let mut state = self.input.state();
        if state.at > 0 {
            return Ok(None);
        }
        let begin = state.reader.fill_buf()?;
        Ok(COMPRESSORS.into_iter().find(|(_, magic)| begin.starts_with(magic)).map(|(program, _)| program))
    }

    fn skip_to_block(&mut self) -> io::Result<()> {
        let at = self.input.state().at;
        io::copy(&mut self.input.by_ref().take(at.next_multiple_of(BLOCK) - at), &mut io::sink()).map(drop)
    }
}

/// Whether extended headers say that the file is sparse.
fn is_sparse_by_pax<R: Read>(entry: &mut Entry<'_, R>) -> bool {
    let extensions = entry.pax_extensions().ok().flatten();
    extensions.into_iter().flatten().flatten().any(|extension| extension.key_bytes().starts_with(b"GNU.sparse"))
}

impl<R: Read> Iterator for Members<R> {
    type Item = Result<Cut, Torn>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let compressor = match self.compressor() {
            Ok(compressor) => compressor,
            Err(error) => {
                self.ended = true;
                return Some(Err(Torn::Unread(error)));
            }
        };
        let member = self.read().map_err(|error| {
            let unread = self.input.state().error.take();
            // The name of an archive's first file may begin with the bytes by which a compressed file is recognized. So
            // the program's name is used only to explain an error.
            let senseless = || match compressor {
                Some(op @ ("gzip" | "zstd")) => format!(
                    "the archive is compressed: decompress it in a stage before, with `op = \"{op}\"` and \
                     `mode = \"decompress\"`"
                ),
                Some(program) => {
                    format!("the archive is compressed: decompress it in a stage before, as `{program} -dc` does")
                }
                None => format!("the archive is damaged: {error}"),
            };
            unread.map_or_else(|| Torn::Senseless(senseless()), Torn::Unread)
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
    fn a_file_that_is_too_large_fails_alone() {
        assert_eq!(members(&archive(), 1000), [(3, 5, false), (242, 0, true), (5, 0, false)]);
    }

    #[test]
    fn a_name_without_end_takes_little_memory() {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::GNULongName);
        header.set_size(3 << 30);
        header.set_cksum();
        let endless = header.as_bytes().chain(io::repeat(b'a'));
        let found: Vec<_> = Members::new(BufReader::new(endless), 10_000).collect();
        assert!(matches!(&found[..], [Err(Torn::Senseless(message))] if message.contains("1 MiB")), "{found:?}");
    }

    #[test]
    fn a_compressed_archive_is_reported_as_such() {
        for (program, first) in [("gzip", &b"\x1f\x8b\x08\x00"[..]), ("bzip2", b"BZh9"), ("xz", b"\xfd7zXZ\x00")] {
            let bytes = [first, &[1; 2000]].concat();
            let found: Vec<_> = Members::new(BufReader::new(bytes.as_slice()), 10_000).collect();
            let [Err(Torn::Senseless(message))] = &found[..] else { panic!("{found:?}") };
            assert!(message.starts_with("the archive is compressed: ") && message.contains(program), "{message}");
        }
        let mut builder = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_size(2);
        builder.append_data(&mut header, "BZh9", &b"ok"[..]).unwrap();
        assert_eq!(members(&builder.into_inner().unwrap(), 10_000), [(4, 2, false)]);
    }

    #[test]
    fn a_damaged_archive_ends() {
        let bytes = archive();
        // The archive is cut off within a header, in the first file, in the last file, and in the padding of the last
        // file.
        for cut in [100, 1026, 3600, 5000] {
            let last = Members::new(BufReader::new(&bytes[..cut]), 10_000).last();
            assert!(matches!(last, Some(Err(Torn::Senseless(_)))), "{cut}: {last:?}");
        }
        let mut torn = bytes.clone();
        torn[512 + 150] ^= 1;
        let found: Vec<_> = Members::new(BufReader::new(torn.as_slice()), 10_000).collect();
        assert!(matches!(found.last(), Some(Err(Torn::Senseless(message))) if message.contains("damaged")));
    }
}
