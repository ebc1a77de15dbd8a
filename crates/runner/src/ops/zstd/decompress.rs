//! Decompression into memory that was granted first.
//!
//! If a payload is one frame that states the size of its content, the buffer has exactly that size. Otherwise the
//! buffer doubles when it is full, and memory is granted before each growth. A stated size is refused if no frame of
//! this length can have so much content. Content that exceeds its share of the byte budget is not stored in memory: it
//! is decompressed once to check it and to learn its size, and again for each stage that needs it.

use std::cell::RefCell;

use ::zstd::zstd_safe::{
    DCtx, InBuffer, OutBuffer, ResetDirective, find_frame_compressed_size, get_frame_content_size,
};
use millstream_flow::{Cx, Failure};

use super::super::limit::Limit;
use super::super::{Op, growing};
use super::reason;
use crate::file::model::MaxBytes;
use crate::payload::{Coding, Payload, Stream};
use crate::record::Record;

/// No frame expands by a greater factor: a block has at most 128 KiB of content, and occupies more than three bytes.
const MAX_EXPANSION: u64 = 128 << 10;

/// The number of bytes produced between two checks of the time limit and of cancellation.
const STEP: usize = 8 << 20;

/// The largest window that a frame may require, as a power of two: the default of the `zstd` program.
const MAX_WINDOW_LOG: u32 = 27;

/// The window that the format requires every decoder to support, as a power of two. Every frame may require it.
const MIN_WINDOW_LOG: u32 = 23;

/// See the [module](self).
pub(super) struct Decompress {
    max_bytes: Option<MaxBytes>,
    most_in_memory: u64,
}

impl Decompress {
    pub(super) fn new(max_bytes: Option<MaxBytes>, most_in_memory: u64) -> Self {
        Self { max_bytes, most_in_memory }
    }
}

thread_local! {
    /// The decompressor. It is created once per thread, because its creation takes longer than the decompression of a
    /// small payload.
    static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

impl Op for Decompress {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        if record.payload.is_empty() {
            return Err(Failure::permanent("cannot decompress: the payload is empty, not a zstd frame"));
        }
        let (limit, held) = (Limit::new(self.max_bytes.as_ref(), record)?, record.held());
        let made = match &record.payload {
            Payload::Bytes(packed) => self.in_memory(packed, limit, held, cx)?,
            Payload::Slice(packed) => self.in_memory(packed, limit, held, cx)?,
            Payload::Stream(_) => None,
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

/// The size of the content, if the payload is a single frame that states it.
fn content_size(packed: &[u8]) -> Result<Option<u64>, Failure> {
    let size = get_frame_content_size(packed)
        .map_err(|_| Failure::permanent("cannot decompress: the payload does not start with a zstd frame"))?;
    let Some(size) = size.filter(|_| find_frame_compressed_size(packed) == Ok(packed.len())) else {
        return Ok(None);
    };
    if size > (packed.len() as u64).saturating_mul(MAX_EXPANSION) {
        return Err(Failure::permanent(format!(
            "cannot decompress: the frame of {} bytes says it holds {size}, which no frame of this length can",
            packed.len()
        )));
    }
    Ok(Some(size))
}

/// The window that the frame at the start of a payload requires, as a power of two.
fn window_log(start: &[u8]) -> u32 {
    const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
    const IS_SINGLE_SEGMENT: u8 = 1 << 5;
    let window = match start {
        [a, b, c, d, descriptor, ..] if [*a, *b, *c, *d] == MAGIC && descriptor & IS_SINGLE_SEGMENT != 0 => {
            // In a frame with this flag, the window is as large as the content.
            get_frame_content_size(start).ok().flatten().unwrap_or(0)
        }
        [a, b, c, d, _, window, ..] if [*a, *b, *c, *d] == MAGIC => {
            let base = 1_u64 << (10 + (window >> 3));
            base + base / 8 * u64::from(window & 7)
        }
        // There is no frame, or the frame is skippable.
        _ => 0,
    };
    let log = u64::BITS - window.saturating_sub(1).leading_zeros();
    log.clamp(MIN_WINDOW_LOG, MAX_WINDOW_LOG)
}

impl Decompress {
    /// The content; `None` if it is too large for memory.
    fn in_memory(&self, packed: &[u8], limit: Limit, held: u64, cx: &mut Cx<'_>) -> Result<Option<Vec<u8>>, Failure> {
        let announced = content_size(packed)?;
        limit.admit(announced.unwrap_or(0))?;
        CONTEXT.with_borrow_mut(|context| match announced {
            Some(size) if size > self.most_in_memory => Ok(None),
            Some(size) if size <= STEP as u64 => in_one_call(context, packed, size, held, cx).map(Some),
            size => self.in_steps(context, packed, size.unwrap_or(0), limit, held, cx),
        })
    }

    fn in_steps(
        &self,
        context: &mut DCtx<'_>,
        packed: &[u8],
        size: u64,
        limit: Limit,
        held: u64,
        cx: &mut Cx<'_>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        context.reset(ResetDirective::SessionOnly).map_err(failed)?;
        cx.reserve(held + size)?;
        let mut content = growing::with_room(size)?;
        let mut input = InBuffer::around(packed);
        let mut wanted = 1;
        let mut looked_at = 0;
        while wanted > 0 || input.pos() < packed.len() {
            if content.len() == content.capacity() {
                let capacity = growing::next_capacity(&content);
                if capacity as u64 > self.most_in_memory {
                    return Ok(None);
                }
                cx.reserve(held + capacity as u64)?;
                growing::grow_to(&mut content, capacity)?;
            }
            let before = (content.len(), input.pos());
            let filled = content.len();
            wanted = context
                .decompress_stream(&mut OutBuffer::around_pos(&mut content, filled), &mut input)
                .map_err(failed)?;
            limit.admit(content.len() as u64)?;
            if wanted > 0 && before == (content.len(), input.pos()) {
                return Err(Failure::permanent("cannot decompress: the payload ends in the middle of a zstd frame"));
            }
            if content.len() - looked_at >= STEP {
                looked_at = content.len();
                cx.check()?;
            }
        }
        growing::trim(&mut content);
        Ok(Some(content))
    }

    /// The content as a stream. The whole payload has been decompressed once to check it.
    fn streamed(&self, packed: &Payload, limit: Limit, held: u64, cx: &mut Cx<'_>) -> Result<Stream, Failure> {
        let (mut window_log, weight) = match packed {
            Payload::Bytes(bytes) => (window_log(bytes), self.most_in_memory + bytes.len() as u64),
            Payload::Slice(bytes) => (window_log(bytes), self.most_in_memory + bytes.len() as u64),
            Payload::Stream(stream) => (window_log(stream.start(&mut [0; 18])?), stream.weight()),
        };
        let mut base = None;
        loop {
            cx.reserve(held + weight.max(1 << window_log))?;
            let base = base.get_or_insert_with(|| match packed {
                Payload::Bytes(bytes) => Stream::of_bytes(bytes.clone(), self.most_in_memory),
                Payload::Slice(bytes) => Stream::of_bytes(bytes.to_vec(), self.most_in_memory),
                Payload::Stream(stream) => (**stream).clone(),
            });
            let stream = base.clone().at_least(1 << window_log).then(Coding::Decompress { window_log });
            let mut made = 0;
            let passed = stream.each(cx, |piece| {
                made += piece.len() as u64;
                limit.admit(made)
            });
            match passed {
                Ok(_) => return Ok(stream.of_len(made)),
                // The window was computed from the first frame. A later frame may require a larger window.
                Err(failure) if failure.is_permanent() && window_log < MAX_WINDOW_LOG => window_log = MAX_WINDOW_LOG,
                Err(failure) => return Err(failure),
            }
        }
    }
}

fn in_one_call(
    context: &mut DCtx<'_>,
    packed: &[u8],
    size: u64,
    held: u64,
    cx: &mut Cx<'_>,
) -> Result<Vec<u8>, Failure> {
    cx.reserve(held + size)?;
    let mut content = growing::with_room(size)?;
    context.decompress(&mut content, packed).map_err(failed)?;
    Ok(content)
}

fn failed(code: ::zstd::zstd_safe::ErrorCode) -> Failure {
    Failure::permanent(format!("cannot decompress: {}", reason(code)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::Decompress;
    use crate::file::model::MaxBytes;
    use crate::file::template::Template;
    use crate::ops::one_stage::{run, run_under};
    use crate::record::Record;

    fn content() -> Vec<u8> {
        (0..2_600_000_u32).flat_map(|n| (n / 7).to_le_bytes()).collect()
    }

    /// A frame that does not state the size of its content.
    fn streamed(content: &[u8]) -> Vec<u8> {
        let mut encoder = ::zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn frames_with_and_without_a_size_come_back() {
        let content = content();
        for length in [0, 1, 1000, 65_536, 131_073, content.len()] {
            let content = &content[..length];
            for packed in [::zstd::bulk::compress(content, 1).unwrap(), streamed(content)] {
                let back = run(Decompress::new(None, u64::MAX), Record::holding(packed)).unwrap().payload;
                let back = back.bytes();
                assert!(*back == content, "{length} bytes");
                assert!(back.capacity() <= back.len() + back.len() / 8 + 1024);
            }
        }
    }

    #[test]
    fn frames_in_a_row_are_one_content() {
        let packed = [::zstd::bulk::compress(b"one ", 1).unwrap(), streamed(b"two "), streamed(b"")].concat();
        assert_eq!(run(Decompress::new(None, u64::MAX), Record::holding(packed)).unwrap().payload, b"one two ");
    }

    #[test]
    fn a_damaged_payload_is_a_failure_and_never_a_panic() {
        let packed = ::zstd::bulk::compress(&content()[..5000], 3).unwrap();
        for end in 0..packed.len() {
            assert!(
                run(Decompress::new(None, u64::MAX), Record::holding(packed[..end].to_vec()))
                    .unwrap_err()
                    .contains("cannot decompress"),
                "cut at {end}"
            );
        }
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x55;
            // Without a checksum, a flipped bit of the content may remain undetected, but it must do no harm.
            let _ = run(Decompress::new(None, u64::MAX), Record::holding(damaged));
        }
        let error = run(Decompress::new(None, u64::MAX), Record::holding(b"plain text".to_vec())).unwrap_err();
        assert!(error.contains("does not start with a zstd frame"), "{error}");
    }

    #[test]
    fn a_stated_size_that_the_frame_cannot_hold_is_refused() {
        // A magic number, a descriptor that announces a size of eight bytes, a window, the size, and an empty last
        // block.
        let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0b1100_0000, 0x58];
        frame.extend((1_u64 << 40).to_le_bytes());
        frame.extend([1, 0, 0]);
        let error = run(Decompress::new(None, u64::MAX), Record::holding(frame)).unwrap_err();
        assert!(error.contains("no frame of this length can"), "{error}");
    }

    #[test]
    fn content_beyond_the_limit_is_not_taken() {
        let content = &content()[..100_000];
        for packed in [::zstd::bulk::compress(content, 1).unwrap(), streamed(content)] {
            assert!(
                run(Decompress::new(Some(MaxBytes::Size(100_000)), u64::MAX), Record::holding(packed.clone())).is_ok()
            );
            let error =
                run(Decompress::new(Some(MaxBytes::Size(99_999)), u64::MAX), Record::holding(packed)).unwrap_err();
            assert!(error.contains("more than `max_bytes`, 99999"), "{error}");
        }
    }

    #[test]
    fn content_larger_than_its_share_is_made_on_demand() {
        let content = content();
        for packed in [::zstd::bulk::compress(&content, 1).unwrap(), streamed(&content)] {
            let back = run(Decompress::new(None, 1 << 20), Record::holding(packed.clone())).unwrap();
            assert_eq!(back.payload.known_len(), Some(content.len() as u64));
            assert!(back.bytes() < (9 << 20) + packed.len() as u64, "{} bytes", back.bytes());
            let hashed = run(crate::ops::blake3::Blake3, back).unwrap();
            assert_eq!(hashed.rare.blake3, Some(*blake3::hash(&content).as_bytes()));

            let limit = Some(MaxBytes::Size(content.len() as u64 - 1));
            let error = run(Decompress::new(limit, 1 << 20), Record::holding(packed.clone())).unwrap_err();
            assert!(error.contains("more than `max_bytes`"), "{error}");
            let cut = Record::holding(&packed[..packed.len() - 1]);
            assert!(run(Decompress::new(None, 1 << 20), cut).unwrap_err().contains("cannot decompress"));
        }
    }

    #[test]
    fn a_later_frame_may_want_a_larger_window_than_the_first() {
        let content = content();
        let mut encoder = ::zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(25).unwrap();
        encoder.write_all(&content).unwrap();
        let large = encoder.finish().unwrap();
        let skipped = [0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, b'x'].to_vec();
        for (first, before) in [(streamed(b"small"), &b"small"[..]), (skipped, &b""[..])] {
            let packed = [first, large.clone()].concat();
            let back = run(Decompress::new(None, 1 << 20), Record::holding(packed)).unwrap();
            assert_eq!(back.payload.known_len(), Some((before.len() + content.len()) as u64));
            let hashed = run(crate::ops::blake3::Blake3, back).unwrap();
            assert_eq!(hashed.rare.blake3, Some(*blake3::hash(&[before, &content].concat()).as_bytes()));
        }
    }

    #[test]
    fn a_field_can_say_the_largest_content() {
        let field = Template::parse("{line}").unwrap();
        let unpack = |line: &str| {
            let mut record = Record::line(line.into());
            record.payload = ::zstd::bulk::compress(&[7; 1000], 1).unwrap().into();
            run(Decompress::new(Some(MaxBytes::Field(field.clone())), u64::MAX), record)
        };
        assert_eq!(unpack("1000").unwrap().payload, [7; 1000]);
        assert!(unpack("999").unwrap_err().contains("more than `max_bytes`, 999"));
        let error = unpack("many").unwrap_err();
        assert!(error.contains("`max_bytes` is `{line}`, which is `many` here"), "{error}");
    }

    #[test]
    fn content_beyond_the_budget_runs_alone() {
        let content = content();
        let back = run_under(Decompress::new(None, u64::MAX), Record::holding(streamed(&content)), 1 << 20).unwrap();
        assert!(back.payload == content);
    }
}
