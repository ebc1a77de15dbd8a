//! A unit's bytes.
//!
//! Most payloads are in memory. A payload that is larger than its share of the byte budget is a [`Stream`] instead: an
//! open file or compressed bytes, with the transformations to apply. Each stage that needs the content produces it
//! again, a piece at a time. So a file of any size passes through stages that hash, compress, decompress, compare and
//! write it, with the memory of a few pieces and without a second copy on disk.
//!
//! Content that is produced twice must be the same both times: for example, a stage must store the bytes that an
//! earlier stage has hashed. So the first pass over a file computes its hash, and each later pass compares its own
//! hash with that one at the end.

mod section;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::{GzEncoder, MultiGzDecoder};
use millstream_flow::{Cx, Failure};
use zstd::stream::read::{Decoder, Encoder};

pub use self::section::{RandomAccess, Section, is_unread};
use crate::ops::io_failure;

/// The number of bytes that a stream makes at once.
pub const PIECE: usize = 256 << 10;

/// The number of bytes of a payload in memory that a stage gets between two checks of the time limit and of
/// cancellation.
const STEP: usize = 8 << 20;

/// See the [module](self).
#[derive(Debug, Clone)]
pub enum Payload {
    /// In memory.
    Bytes(Vec<u8>),
    /// In memory, in a block that several units share.
    Slice(Bytes),
    /// Content that is made whenever it is needed.
    Stream(Box<Stream>),
}

/// Content that is not in memory.
#[derive(Debug, Clone)]
pub struct Stream {
    base: Base,
    codings: Vec<Coding>,
    /// The number of the content's bytes, if it is known.
    len: Option<u64>,
    weight: u64,
}

/// The origin of a stream's bytes.
#[derive(Debug, Clone)]
enum Base {
    File(Arc<Opened>),
    Bytes(Arc<Vec<u8>>),
}

/// The first `len` bytes of a file.
#[derive(Debug)]
struct Opened {
    file: File,
    len: u64,
    path: PathBuf,
    /// The hash of these bytes, known after the first pass.
    hash: OnceLock<blake3::Hash>,
}

/// The transformation of a stream's bytes.
#[derive(Debug, Clone, Copy)]
pub enum Coding {
    /// Compresses with zstd at this level.
    Compress(i32),
    /// Decompresses what zstd has compressed.
    Decompress {
        /// The binary logarithm of the largest window that is accepted, in bytes.
        window_log: u32,
    },
    /// Compresses with gzip at this level.
    Gzip(u32),
    /// Decompresses what gzip has compressed.
    Gunzip,
}

impl Default for Payload {
    fn default() -> Self {
        Self::Bytes(Vec::new())
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Stream> for Payload {
    fn from(stream: Stream) -> Self {
        Self::Stream(Box::new(stream))
    }
}

impl Payload {
    /// The part of the byte budget that the content takes.
    pub fn weight(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Slice(bytes) => bytes.len() as u64,
            Self::Stream(stream) => stream.weight(),
        }
    }

    /// The number of the content's bytes, if it is known without making the content.
    pub fn known_len(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::Slice(bytes) => Some(bytes.len() as u64),
            Self::Stream(stream) => stream.len,
        }
    }

    /// The number of the content's bytes.
    ///
    /// # Errors
    /// The errors of [`each`](Self::each), if only reading the content shows its length.
    pub fn len(&self, cx: &Cx<'_>) -> Result<u64, Failure> {
        self.known_len().map_or_else(|| self.each(cx, |_| Ok(())), Ok)
    }

    /// Determines the length of a stream, which then remembers it. The content is made once if its length cannot be
    /// known otherwise.
    ///
    /// # Errors
    /// As [`each`](Self::each).
    pub fn find_len(&mut self, cx: &Cx<'_>) -> Result<(), Failure> {
        let found = self.len(cx)?;
        if let Self::Stream(stream) = self {
            stream.len = Some(found);
        }
        Ok(())
    }

    /// Turns the payload into a stream, and returns that stream. Bytes in memory are shared rather than copied, unless
    /// they are a part of a block.
    pub fn share(&mut self) -> Stream {
        if let Some(bytes) = self.owned() {
            *self = Stream::of_bytes(std::mem::take(bytes), 0).into();
        }
        let Self::Stream(stream) = self else { unreachable!("it is a stream now") };
        (**stream).clone()
    }

    /// The bytes of a payload in memory, for a change in place; `None` for a stream. A slice of a block is copied
    /// first.
    pub fn owned(&mut self) -> Option<&mut Vec<u8>> {
        if let Self::Slice(bytes) = self {
            *self = Self::Bytes(bytes.to_vec());
        }
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Slice(_) | Self::Stream(_) => None,
        }
    }

    /// Whether there are no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.known_len() == Some(0)
    }

    /// Passes the content to `take`, piece by piece; returns the number of its bytes.
    ///
    /// # Errors
    /// Fails if `take` fails, if the stage's time is over, or if the content cannot be made: a file that cannot be read
    /// or has changed since its first reading, or bytes that cannot be decompressed.
    pub fn each(&self, cx: &Cx<'_>, mut take: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<u64, Failure> {
        let bytes = match self {
            Self::Bytes(bytes) => bytes.as_slice(),
            Self::Slice(bytes) => bytes,
            Self::Stream(stream) => return stream.each(cx, take),
        };
        for step in bytes.chunks(STEP) {
            take(step)?;
            if bytes.len() > STEP {
                cx.check()?;
            }
        }
        Ok(bytes.len() as u64)
    }

    /// The number of bytes that [`in_memory`](Self::in_memory) will make; 0 for a payload in memory.
    ///
    /// # Errors
    /// The errors of [`each`](Self::each), if only reading the content shows its length.
    pub fn to_make(&self, cx: &Cx<'_>) -> Result<u64, Failure> {
        match self {
            Self::Bytes(_) | Self::Slice(_) => Ok(0),
            Self::Stream(_) => self.len(cx),
        }
    }

    /// The content in memory, for a stage that cannot work on pieces and has reserved the [bytes](Self::to_make) for
    /// it. The payload itself is unchanged, so if the stage fails, the unit's weight is still right.
    ///
    /// # Errors
    /// The errors of [`each`](Self::each), or that the system has no memory.
    pub fn in_memory(&self, made: u64, cx: &Cx<'_>) -> Result<Cow<'_, [u8]>, Failure> {
        let stream = match self {
            Self::Bytes(bytes) => return Ok(Cow::Borrowed(bytes.as_slice())),
            Self::Slice(bytes) => return Ok(Cow::Borrowed(bytes)),
            Self::Stream(stream) => stream,
        };
        let mut bytes = Vec::new();
        let room = usize::try_from(made).ok().filter(|made| bytes.try_reserve_exact(*made).is_ok());
        room.ok_or_else(|| Failure::msg(format!("no memory for {made} bytes")))?;
        stream.each(cx, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(Cow::Owned(bytes))
    }

    /// The bytes of a payload that is in memory; `None` for a stream.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Slice(bytes) => Some(bytes),
            Self::Stream(_) => None,
        }
    }

    /// The bytes of a payload in memory.
    #[cfg(test)]
    pub fn bytes(&self) -> &Vec<u8> {
        let Self::Bytes(bytes) = self else { panic!("the payload has bytes of its own") };
        bytes
    }
}

/// Tests compare payloads in memory with bytes.
#[cfg(test)]
impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Payload {
    fn eq(&self, other: &T) -> bool {
        self.as_bytes().expect("the payload is in memory") == other.as_ref()
    }
}

impl Stream {
    /// The first `len` bytes of a file. `weight` is the part of the byte budget that the payload takes.
    pub fn of_file(file: File, len: u64, path: &Path, weight: u64) -> Self {
        let opened = Opened { file, len, path: path.to_owned(), hash: OnceLock::new() };
        Self { base: Base::File(Arc::new(opened)), codings: Vec::new(), len: Some(len), weight }
    }

    /// Bytes in memory, which weigh `weight` in addition to their own size.
    pub fn of_bytes(bytes: Vec<u8>, weight: u64) -> Self {
        let (len, weight) = (bytes.len() as u64, weight + bytes.len() as u64);
        Self { base: Base::Bytes(Arc::new(bytes)), codings: Vec::new(), len: Some(len), weight }
    }

    /// The same stream with one more transformation of its bytes.
    #[must_use]
    pub fn then(mut self, coding: Coding) -> Self {
        self.codings.push(coding);
        self.len = None;
        self
    }

    /// The same stream, whose content is known to have `len` bytes.
    #[must_use]
    pub fn of_len(mut self, len: u64) -> Self {
        self.len = Some(len);
        self
    }

    /// The same stream, with at least this weight.
    #[must_use]
    pub fn at_least(mut self, weight: u64) -> Self {
        self.weight = self.weight.max(weight);
        self
    }

    /// The part of the byte budget that the content takes.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// The content's first bytes, as many as fit into `room`.
    pub fn start<'a>(&self, room: &'a mut [u8]) -> Result<&'a [u8], Failure> {
        let mut reader = self.reader().map_err(|error| self.failure(&error))?;
        let mut filled = 0;
        while filled < room.len() {
            match reader.read(&mut room[filled..]).map_err(|error| self.failure(&error))? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(&room[..filled])
    }

    /// The BLAKE3 hash of the content.
    pub fn blake3(&self, cx: &Cx<'_>) -> Result<blake3::Hash, Failure> {
        if let (Base::File(opened), []) = (&self.base, self.codings.as_slice()) {
            // A pass over the file computes that hash anyway.
            self.each(cx, |_| Ok(()))?;
            return Ok(*opened.hash.get().expect("set at the end of a pass"));
        }
        let mut hasher = blake3::Hasher::new();
        self.each(cx, |piece| {
            hasher.update(piece);
            Ok(())
        })?;
        Ok(hasher.finalize())
    }

    /// As [`Payload::each`].
    pub fn each(&self, cx: &Cx<'_>, mut take: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<u64, Failure> {
        let mut reader = self.reader().map_err(|error| self.failure(&error))?;
        let mut piece = vec![0; PIECE];
        let mut made = 0;
        loop {
            let read = reader.read(&mut piece).map_err(|error| self.failure(&error))?;
            if read == 0 {
                return Ok(made);
            }
            take(&piece[..read])?;
            made += read as u64;
            cx.check()?;
        }
    }

    /// Reads the content from its start to its end. [`failure`](Self::failure) turns an error into the unit's failure.
    pub fn reader(&self) -> io::Result<Box<dyn Read + Send>> {
        let (mut reader, mut len): (Box<dyn Read + Send>, _) = match &self.base {
            Base::File(opened) => (Box::new(Pass::of(opened)), Some(opened.len)),
            Base::Bytes(bytes) => (Box::new(Cursor::new(Shared(Arc::clone(bytes)))), Some(bytes.len() as u64)),
        };
        for coding in &self.codings {
            reader = match *coding {
                Coding::Compress(level) => {
                    let mut encoder = Encoder::new(reader, level)?;
                    encoder.set_pledged_src_size(len)?;
                    Box::new(encoder)
                }
                Coding::Decompress { window_log } => {
                    let mut decoder = Decoder::new(reader)?;
                    decoder.window_log_max(window_log)?;
                    Box::new(decoder)
                }
                Coding::Gzip(level) => Box::new(GzEncoder::new(reader, Compression::new(level))),
                Coding::Gunzip => Box::new(MultiGzDecoder::new(reader)),
            };
            len = None;
        }
        Ok(reader)
    }

    /// The failure of a unit whose content could not be made for this reason.
    pub fn failure(&self, error: &io::Error) -> Failure {
        if let Some(unread) = error.get_ref().and_then(|inner| inner.downcast_ref::<Unread>()) {
            return io_failure("read", &unread.path, &unread.error);
        }
        let decompresses =
            self.codings.iter().any(|coding| matches!(coding, Coding::Decompress { .. } | Coding::Gunzip));
        Failure::permanent(format!("cannot {}: {error}", if decompresses { "decompress" } else { "compress" }))
    }
}

/// Bytes that several readers share.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// One reading of a file from its start to its end.
struct Pass {
    opened: Arc<Opened>,
    at: u64,
    hasher: blake3::Hasher,
}

impl Read for Pass {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.next(buffer).map_err(|error| io::Error::other(Unread { path: self.opened.path.clone(), error }))
    }
}

impl Pass {
    fn of(opened: &Arc<Opened>) -> Self {
        Self { opened: Arc::clone(opened), at: 0, hasher: blake3::Hasher::new() }
    }

    fn next(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Errors of this kind are permanent: a retry would read the same open file.
        let changed = |message: String| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        let left = self.opened.len - self.at;
        if left == 0 {
            let hash = self.hasher.finalize();
            if *self.opened.hash.get_or_init(|| hash) != hash {
                return changed("it has changed while this unit was in flight; run the flow again for it".to_owned());
            }
            return Ok(0);
        }
        let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = loop {
            match self.opened.file.read_at(&mut buffer[..most], self.at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        if read == 0 && most > 0 {
            return changed(format!(
                "it has become shorter while this unit was in flight: {} bytes are left of {}; run the flow again for it",
                self.at, self.opened.len
            ));
        }
        self.hasher.update(&buffer[..read]);
        self.at += read as u64;
        Ok(read)
    }
}

/// The reason why a stream's file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
struct Unread {
    path: PathBuf,
    error: io::Error,
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};
    use std::io::Write as _;
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use millstream_flow::{Cx, Failure};

    use super::{Coding, PIECE, Payload, Stream};
    use crate::ops::Op;
    use crate::ops::one_stage::run;
    use crate::record::Record;

    /// Runs `test` with the context of a stage.
    fn within<T: Send + 'static>(
        test: impl Fn(&mut Cx<'_>) -> Result<T, Failure> + Send + Sync + 'static,
    ) -> Result<T, String> {
        struct Test<T, F>(F, Arc<Mutex<Option<T>>>);
        impl<T: Send, F: Fn(&mut Cx<'_>) -> Result<T, Failure> + Send + Sync> Op for Test<T, F> {
            fn run(&self, _record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
                *self.1.lock().unwrap() = Some((self.0)(cx)?);
                Ok(())
            }
        }
        let result = Arc::default();
        run(Test(test, Arc::clone(&result)), Record::line(b"l".to_vec()))?;
        Ok(result.lock().unwrap().take().unwrap())
    }

    fn content() -> Vec<u8> {
        (0..PIECE as u32).flat_map(|n| (n / 3).to_le_bytes()).collect()
    }

    fn file_of(path: &Path, content: &[u8]) -> Stream {
        fs::write(path, content).unwrap();
        Stream::of_file(File::open(path).unwrap(), content.len() as u64, path, 1000)
    }

    fn made(stream: Stream) -> Result<Vec<u8>, String> {
        within(move |cx| {
            let payload = Payload::from(stream.clone());
            let made = payload.to_make(cx)?;
            Ok(payload.in_memory(made, cx)?.into_owned())
        })
    }

    #[test]
    fn a_stream_gives_the_same_content_each_time_and_weighs_what_was_said() {
        let folder = tempfile::tempdir().unwrap();
        let stream = file_of(&folder.path().join("f"), &content());
        assert_eq!(Payload::from(stream.clone()).weight(), 1000);
        for _ in 0..2 {
            assert!(made(stream.clone()).unwrap() == content());
        }
        let hashed = stream.clone();
        assert_eq!(within(move |cx| hashed.blake3(cx)).unwrap(), blake3::hash(&content()));
        let packed = stream.then(Coding::Compress(3));
        let bytes = made(packed.clone()).unwrap();
        assert!(zstd::decode_all(bytes.as_slice()).unwrap() == content());
        let announced = zstd::zstd_safe::get_frame_content_size(&bytes).ok().flatten();
        assert_eq!(announced, Some(content().len() as u64));
        assert!(made(packed.then(Coding::Decompress { window_log: 23 })).unwrap() == content());
    }

    #[test]
    fn a_file_that_changes_or_shrinks_on_its_way_is_a_lasting_failure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let stream = file_of(&path, &content());
        made(stream.clone()).unwrap();
        // Bytes that are appended later are not part of the content.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"more").unwrap();
        assert!(made(stream.clone()).unwrap() == content());
        let mut other = content();
        other[PIECE + 1] ^= 1;
        fs::write(&path, other).unwrap();
        for stream in [stream.clone(), stream.clone().then(Coding::Compress(1))] {
            let error = made(stream).unwrap_err();
            assert!(error.contains("it has changed while this unit was in flight"), "{error}");
        }
        fs::write(&path, &content()[..1000]).unwrap();
        let error = made(stream).unwrap_err();
        assert!(error.contains(&format!("1000 bytes are left of {}", content().len())), "{error}");
    }

    #[test]
    fn content_that_cannot_be_decompressed_is_a_failure() {
        let packed = zstd::bulk::compress(&content(), 1).unwrap();
        let cut = packed[..packed.len() - 1].to_vec();
        for packed in [cut, b"plain text".to_vec()] {
            let stream = Stream::of_bytes(packed, 0).then(Coding::Decompress { window_log: 27 });
            let error = made(stream).unwrap_err();
            assert!(error.contains("cannot decompress"), "{error}");
        }
    }
}
