//! `gzip`: compresses or decompresses the payload, in the format of the program `gzip`.
//!
//! The result of a payload in memory goes to a second buffer, and memory is granted before each growth of that buffer.
//! The content length in a gzip file is ignored: it may be wrong, and is only known modulo 2^32. Content that exceeds
//! its share of the byte budget is not stored in memory: it is decompressed once to check it and to learn its size, and
//! again for each stage that needs it.

use std::io::Read;

use flate2::Compression;
use flate2::bufread::{GzEncoder, MultiGzDecoder};
use millstream_flow::{Cx, Failure};

use super::limit::Limit;
use super::{Op, growing};
use crate::file::model::{GzipMode, MaxBytes};
use crate::payload::{Coding, PIECE, Payload, Stream};
use crate::record::Record;

/// The op for `mode`; see [`build`](super::build).
pub(super) fn build(mode: &GzipMode, most_in_memory: u64) -> Box<dyn Op> {
    match mode {
        GzipMode::Compress { level } => Box::new(Compress { level: *level }),
        GzipMode::Decompress { max_bytes } => Box::new(Decompress { max_bytes: max_bytes.clone(), most_in_memory }),
    }
}

struct Compress {
    level: u32,
}

struct Decompress {
    max_bytes: Option<MaxBytes>,
    most_in_memory: u64,
}

impl Op for Compress {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let made = match record.payload.as_bytes() {
            Some(content) => {
                let encoder = GzEncoder::new(content, Compression::new(self.level));
                let step = PIECE.min(content.len() + 64);
                let making = Making { what: "compress", held: record.held(), most: u64::MAX, limit: Limit::NONE };
                making.all_of(encoder, step, cx)?.expect("any size is taken").into()
            }
            None => {
                let mut made = Payload::from(record.payload.clone().share().then(Coding::Gzip(self.level)));
                if record.size.is_none() {
                    // `{size}` is computed from the payload, since the size of the unit's file is not known.
                    made.find_len(cx)?;
                }
                made
            }
        };
        record.payload = made;
        record.headroom = 0;
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

/// The parameters of a result that is made in memory.
struct Making {
    /// The verb for messages, such as `decompress`.
    what: &'static str,
    /// The number of bytes that the unit occupies in addition to the result.
    held: u64,
    /// The maximum size of the result's buffer.
    most: u64,
    limit: Limit,
}

impl Making {
    /// Reads `reader` to its end, at most `step` bytes per read. Returns `None` if the result would be too large for
    /// memory.
    fn all_of(&self, mut reader: impl Read, step: usize, cx: &mut Cx<'_>) -> Result<Option<Vec<u8>>, Failure> {
        let (mut result, mut piece) = (Vec::new(), vec![0; step]);
        loop {
            let read = reader
                .read(&mut piece)
                .map_err(|error| Failure::permanent(format!("cannot {}: {error}", self.what)))?;
            if read == 0 {
                growing::trim(&mut result);
                return Ok(Some(result));
            }
            let made = result.len() + read;
            self.limit.admit(made as u64)?;
            if made > result.capacity() {
                let capacity = growing::next_capacity(&result).max(made);
                if capacity as u64 > self.most {
                    return Ok(None);
                }
                cx.reserve(self.held.saturating_add(capacity as u64))?;
                growing::grow_to(&mut result, capacity)?;
            }
            result.extend_from_slice(&piece[..read]);
            cx.check()?;
        }
    }
}

impl Op for Decompress {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        if record.payload.is_empty() {
            return Err(Failure::permanent("cannot decompress: the payload is empty, and was not made by gzip"));
        }
        let (limit, held) = (Limit::new(self.max_bytes.as_ref(), record)?, record.held());
        let made = match record.payload.as_bytes() {
            Some(packed) => {
                let making = Making { what: "decompress", held, most: self.most_in_memory, limit };
                making.all_of(MultiGzDecoder::new(packed), PIECE.min(16 * packed.len()), cx)?
            }
            None => None,
        };
        record.payload = match made {
            Some(content) => content.into(),
            None => self.streamed(&record.payload, limit, held, cx)?.into(),
        };
        record.headroom = 0;
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

impl Decompress {
    /// The content as a stream. The whole payload has been decompressed once to check it.
    fn streamed(&self, packed: &Payload, limit: Limit, held: u64, cx: &mut Cx<'_>) -> Result<Stream, Failure> {
        let base = match packed.as_bytes() {
            Some(bytes) => {
                cx.reserve(held.saturating_add(self.most_in_memory).saturating_add(bytes.len() as u64))?;
                Stream::of_bytes(bytes.to_vec(), self.most_in_memory)
            }
            None => packed.clone().share(),
        };
        let stream = base.then(Coding::Gunzip);
        let mut made = 0;
        stream.each(cx, |piece| {
            made += piece.len() as u64;
            limit.admit(made)
        })?;
        Ok(stream.of_len(made))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::time::Duration;

    use super::{Compress, Decompress};
    use crate::file::model::MaxBytes;
    use crate::file::template::Template;
    use crate::ops::one_stage::{run, run_under, run_within};
    use crate::payload;
    use crate::record::Record;

    /// The text `hello`, as `printf hello | gzip -n` makes it.
    const HELLO: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9\x07\0\x86\xa6\x106\x05\0\0\0";

    fn content() -> Vec<u8> {
        (0..600_000_u32).flat_map(|n| (n / 7).to_le_bytes()).collect()
    }

    /// Bytes that do not compress.
    fn noise(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        bytes
    }

    fn compressed(content: &[u8], level: u32) -> Vec<u8> {
        run(Compress { level }, Record::holding(content)).unwrap().payload.bytes().clone()
    }

    fn decompress(max_bytes: Option<u64>, most_in_memory: u64) -> Decompress {
        Decompress { max_bytes: max_bytes.map(MaxBytes::Size), most_in_memory }
    }

    fn decompressed(packed: &[u8]) -> Result<Vec<u8>, String> {
        run(decompress(None, u64::MAX), Record::holding(packed)).map(|record| record.payload.bytes().clone())
    }

    /// The content of a payload that may be a stream.
    fn made(mut record: Record) -> Vec<u8> {
        let mut content = Vec::new();
        record.payload.share().reader().unwrap().read_to_end(&mut content).unwrap();
        content
    }

    #[test]
    fn what_was_compressed_comes_back() {
        let content = content();
        for length in [0, 1, 1000, 65_536, 131_073, content.len()] {
            for level in [1, 6, 9] {
                for content in [&content[..length], &noise(length)] {
                    assert!(decompressed(&compressed(content, level)).unwrap() == content, "{length} bytes at {level}");
                }
            }
        }
        assert!(compressed(&content, 6).len() < content.len() / 2);
    }

    #[test]
    fn the_same_content_always_becomes_the_same_bytes() {
        assert_eq!(compressed(b"hello", 6), compressed(b"hello", 6));
    }

    #[test]
    fn what_the_program_has_made_is_read_one_file_or_several() {
        assert_eq!(decompressed(HELLO).unwrap(), b"hello");
        assert_eq!(decompressed(&[HELLO, HELLO].concat()).unwrap(), b"hellohello");
    }

    #[test]
    fn what_is_damaged_or_was_not_made_by_gzip_is_a_lasting_failure() {
        let mut wrong = HELLO.to_vec();
        wrong[16] ^= 1;
        for packed in [b"", &HELLO[..HELLO.len() - 1], &HELLO[..5], b"plain text", &wrong] {
            for most_in_memory in [u64::MAX, 1] {
                let error = run(decompress(None, most_in_memory), Record::holding(packed)).unwrap_err();
                assert!(error.starts_with("cannot decompress: "), "{error}");
            }
        }
    }

    #[test]
    fn any_change_of_a_byte_is_found_or_harmless() {
        // The checksum does not cover these bytes of the header: the text flag, the time, the level and the system.
        for at in 0..HELLO.len() {
            for bit in 0..8 {
                let mut packed = HELLO.to_vec();
                packed[at] ^= 1 << bit;
                if let Ok(content) = decompressed(&packed) {
                    assert_eq!(content, b"hello", "bit {bit} of byte {at}");
                }
            }
        }
    }

    #[test]
    fn content_beyond_the_limit_is_not_taken() {
        let content = content();
        let packed = compressed(&content, 6);
        for most_in_memory in [u64::MAX, 1000] {
            let fits = run(decompress(Some(content.len() as u64), most_in_memory), Record::holding(packed.as_slice()));
            assert!(made(fits.unwrap()) == content);
            let less = decompress(Some(content.len() as u64 - 1), most_in_memory);
            let error = run(less, Record::holding(packed.as_slice())).unwrap_err();
            assert!(error.contains("more than `max_bytes`"), "{error}");
        }
        let field = Template::parse("{line}").unwrap();
        let limited = |line: &str| {
            let mut record = Record::line(line.into());
            record.payload = HELLO.to_vec().into();
            let max_bytes = Some(MaxBytes::Field(field.clone()));
            run(Decompress { max_bytes, most_in_memory: u64::MAX }, record)
        };
        assert_eq!(limited("5").unwrap().payload, b"hello");
        assert!(limited("4").unwrap_err().contains("`max_bytes`, 4"));
        assert!(limited("five").unwrap_err().contains("not a number of bytes"));
    }

    #[test]
    fn a_large_payload_is_compressed_and_decompressed_piece_by_piece() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, content()).unwrap();
        let mut record = Record::line(b"f".to_vec());
        record.payload = payload::Stream::of_file(File::open(&path).unwrap(), content().len() as u64, &path, 0).into();
        let packed = run(Compress { level: 6 }, record).unwrap();
        assert!(packed.payload.as_bytes().is_none(), "the content stays in the file");
        let back = run(decompress(None, 1000), packed).unwrap();
        assert_eq!(back.payload.known_len(), Some(content().len() as u64));
        assert!(made(back) == content());
    }

    #[test]
    fn a_payload_larger_than_the_budget_is_processed_alone() {
        let packed = run_under(Compress { level: 1 }, Record::holding(content()), 4096).unwrap();
        let back = run_under(decompress(None, u64::MAX), packed, 4096).unwrap();
        assert!(made(back) == content());
    }

    #[test]
    fn a_small_payload_with_much_content_ends_at_its_time_limit() {
        // 32 MiB of zeros compress to about 32 KiB, by a factor of about a thousand.
        let much = compressed(&vec![0; 32 << 20], 9).repeat(1000);
        let error =
            run_within(decompress(None, 1 << 20), Record::holding(much), Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("time limit"), "{error}");
    }
}
