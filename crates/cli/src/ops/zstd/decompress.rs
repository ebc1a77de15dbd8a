//! Decompression into memory that was granted first.
//!
//! A frame that says how large its content is gets a buffer of exactly that size. A frame that does not, or several
//! frames in a row, grow a buffer by doubling, each growth granted before it happens. What a frame says is not trusted
//! beyond what its length can hold.

use std::cell::RefCell;

use ::zstd::zstd_safe::{
    DCtx, InBuffer, OutBuffer, ResetDirective, find_frame_compressed_size, get_frame_content_size,
};
use millstream_flow::{Cx, Failure};

use super::super::{Op, growing};
use super::reason;
use crate::record::Record;

/// A block holds at most 128 KiB and takes more than three bytes: no frame expands more than this.
const MOST_EXPANSION: u64 = 128 << 10;

/// Bytes produced between two looks at the time limit and at cancellation.
const STEP: usize = 8 << 20;

/// See the [module](self).
pub(super) struct Decompress {
    most_bytes: u64,
}

impl Decompress {
    pub(super) fn new(max_bytes: Option<u64>) -> Self {
        Self { most_bytes: max_bytes.unwrap_or(u64::MAX) }
    }

    /// Refuses content of this size, or that has come to this size already, when it is too large.
    fn limit(&self, size: u64) -> Result<(), Failure> {
        if size <= self.most_bytes {
            return Ok(());
        }
        Err(Failure::permanent(format!(
            "cannot decompress: the content has more than `max_bytes`, {}",
            self.most_bytes
        )))
    }
}

thread_local! {
    /// Made once a thread: it costs more than a small payload's decompression.
    static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

impl Op for Decompress {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let packed = &record.payload;
        if packed.is_empty() {
            return Err(Failure::permanent("cannot decompress: the payload is empty, not a zstd frame"));
        }
        record.payload = CONTEXT.with_borrow_mut(|context| match content_size(packed)? {
            Some(size) if size <= STEP as u64 => self.in_one_call(context, packed, size, cx),
            size => self.in_steps(context, packed, size.unwrap_or(0), cx),
        })?;
        record.headroom = 0;
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

/// The size of the content, when the payload is a single frame that says it.
fn content_size(packed: &[u8]) -> Result<Option<u64>, Failure> {
    let size = get_frame_content_size(packed)
        .map_err(|_| Failure::permanent("cannot decompress: the payload does not start with a zstd frame"))?;
    let Some(size) = size.filter(|_| find_frame_compressed_size(packed) == Ok(packed.len())) else {
        return Ok(None);
    };
    if size > (packed.len() as u64).saturating_mul(MOST_EXPANSION) {
        return Err(Failure::permanent(format!(
            "cannot decompress: the frame of {} bytes says it holds {size}, which no frame of this length can",
            packed.len()
        )));
    }
    Ok(Some(size))
}

impl Decompress {
    fn in_one_call(
        &self,
        context: &mut DCtx<'_>,
        packed: &[u8],
        size: u64,
        cx: &mut Cx<'_>,
    ) -> Result<Vec<u8>, Failure> {
        self.limit(size)?;
        cx.reserve(packed.len() as u64 + size)?;
        let mut content = growing::with_room(size)?;
        context.decompress(&mut content, packed).map_err(failed)?;
        Ok(content)
    }

    fn in_steps(&self, context: &mut DCtx<'_>, packed: &[u8], size: u64, cx: &mut Cx<'_>) -> Result<Vec<u8>, Failure> {
        context.reset(ResetDirective::SessionOnly).map_err(failed)?;
        self.limit(size)?;
        cx.reserve(packed.len() as u64 + size)?;
        let mut content = growing::with_room(size)?;
        let mut input = InBuffer::around(packed);
        let mut wanted = 1;
        let mut looked_at = 0;
        while wanted > 0 || input.pos() < packed.len() {
            if content.len() == content.capacity() {
                let capacity = growing::next_capacity(&content);
                cx.reserve(packed.len() as u64 + capacity as u64)?;
                growing::grow_to(&mut content, capacity)?;
            }
            let before = (content.len(), input.pos());
            let filled = content.len();
            wanted = context
                .decompress_stream(&mut OutBuffer::around_pos(&mut content, filled), &mut input)
                .map_err(failed)?;
            self.limit(content.len() as u64)?;
            if wanted > 0 && before == (content.len(), input.pos()) {
                return Err(Failure::permanent("cannot decompress: the payload ends in the middle of a zstd frame"));
            }
            if content.len() - looked_at >= STEP {
                looked_at = content.len();
                cx.check()?;
            }
        }
        growing::trim(&mut content);
        Ok(content)
    }
}

fn failed(code: ::zstd::zstd_safe::ErrorCode) -> Failure {
    Failure::permanent(format!("cannot decompress: {}", reason(code)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::Decompress;
    use crate::ops::one_stage::{run, run_under};
    use crate::record::Record;

    fn content() -> Vec<u8> {
        (0..2_600_000_u32).flat_map(|n| (n / 7).to_le_bytes()).collect()
    }

    /// A frame that does not say how large its content is.
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
                let back = run(Decompress::new(None), Record::holding(packed)).unwrap().payload;
                assert!(back == content, "{length} bytes");
                assert!(back.capacity() <= back.len() + back.len() / 8 + 1024);
            }
        }
    }

    #[test]
    fn frames_in_a_row_are_one_content() {
        let packed = [::zstd::bulk::compress(b"one ", 1).unwrap(), streamed(b"two "), streamed(b"")].concat();
        assert_eq!(run(Decompress::new(None), Record::holding(packed)).unwrap().payload, b"one two ");
    }

    #[test]
    fn a_damaged_payload_is_a_failure_and_never_a_panic() {
        let packed = ::zstd::bulk::compress(&content()[..5000], 3).unwrap();
        for end in 0..packed.len() {
            assert!(
                run(Decompress::new(None), Record::holding(packed[..end].to_vec()))
                    .unwrap_err()
                    .contains("cannot decompress"),
                "cut at {end}"
            );
        }
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x55;
            // A flipped bit of the content need not be seen without a checksum; it must not do harm.
            let _ = run(Decompress::new(None), Record::holding(damaged));
        }
        let error = run(Decompress::new(None), Record::holding(b"plain text".to_vec())).unwrap_err();
        assert!(error.contains("does not start with a zstd frame"), "{error}");
    }

    #[test]
    fn a_frame_that_boasts_is_not_believed() {
        // Magic, a descriptor with an eight-byte size, a window, the size, an empty last block.
        let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0b1100_0000, 0x58];
        frame.extend((1_u64 << 40).to_le_bytes());
        frame.extend([1, 0, 0]);
        let error = run(Decompress::new(None), Record::holding(frame)).unwrap_err();
        assert!(error.contains("no frame of this length can"), "{error}");
    }

    #[test]
    fn content_beyond_the_limit_is_not_taken() {
        let content = &content()[..100_000];
        for packed in [::zstd::bulk::compress(content, 1).unwrap(), streamed(content)] {
            assert!(run(Decompress::new(Some(100_000)), Record::holding(packed.clone())).is_ok());
            let error = run(Decompress::new(Some(99_999)), Record::holding(packed)).unwrap_err();
            assert!(error.contains("more than `max_bytes`, 99999"), "{error}");
        }
    }

    #[test]
    fn content_beyond_the_budget_runs_alone() {
        let content = content();
        let back = run_under(Decompress::new(None), Record::holding(streamed(&content)), 1 << 20).unwrap();
        assert!(back.payload == content);
    }
}
