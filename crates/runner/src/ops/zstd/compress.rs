//! Compresses a payload in the memory that the payload already occupies.
//!
//! A small payload is compressed in one call into a buffer of the thread and copied back. A large payload is compressed
//! in place, one step at a time: the compressor has its own copy of the window, so the bytes that it has consumed can
//! be overwritten with output. The output may be a few bytes longer than the consumed input, and these few bytes are
//! stored separately. So compression needs almost no memory, and works even if the flow's byte budget is full. A
//! streamed payload is compressed each time a stage reads it.

use std::cell::RefCell;

use ::zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use ::zstd::zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, compress_bound};
use millstream_flow::{Cause, Cx, Failure};

use super::super::{Op, growing};
use super::reason;
use crate::payload::{Coding, Payload};
use crate::record::Record;

/// The largest payload that is compressed in one call. The thread's buffer is hardly larger.
const ONE_CALL: usize = 2 << 20;

/// The number of bytes that each step of a compression in place consumes.
const STEP: usize = 128 << 10;

/// See the [module](self).
pub(super) struct Compress {
    level: i32,
}

/// A compressor and a buffer. They are created once per thread, because their creation takes longer than the
/// compression of a small payload.
struct Workshop {
    context: CCtx<'static>,
    level: Option<i32>,
    buffer: Vec<u8>,
}

thread_local! {
    static WORKSHOP: RefCell<Workshop> =
        RefCell::new(Workshop { context: CCtx::create(), level: None, buffer: Vec::new() });
}

/// The maximum number of bytes by which compression makes `bytes` larger.
pub fn most_growth(bytes: u64) -> u64 {
    usize::try_from(bytes).map_or(0, |bytes| compress_bound(bytes).saturating_sub(bytes) as u64)
}

impl Compress {
    pub(super) fn new(level: i32) -> Self {
        Self { level }
    }
}

impl Op for Compress {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let beside = record.held() - record.headroom - record.payload.weight();
        if let Payload::Stream(stream) = &record.payload {
            let mut made = Payload::from((**stream).clone().then(Coding::Compress(self.level)));
            if record.size.is_none() {
                // `{size}` is computed from the payload, since the size of the unit's file is not known.
                made.find_len(cx)?;
            }
            record.payload = made;
        } else if let Some(payload) = record.payload.owned() {
            WORKSHOP.with_borrow_mut(|workshop| {
                workshop.set_level(self.level)?;
                if payload.len() <= ONE_CALL {
                    workshop.in_one_call(payload, beside, cx)
                } else {
                    workshop.in_place(payload, beside, cx)
                }
            })?;
        }
        record.headroom = 0;
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

impl Workshop {
    fn set_level(&mut self, level: i32) -> Result<(), Failure> {
        if self.level != Some(level) {
            self.context.reset(ResetDirective::SessionAndParameters).map_err(failed)?;
            self.context.set_parameter(CParameter::CompressionLevel(level)).map_err(failed)?;
            self.level = Some(level);
        }
        Ok(())
    }

    fn in_one_call(&mut self, payload: &mut Vec<u8>, beside: u64, cx: &mut Cx<'_>) -> Result<(), Failure> {
        self.buffer.clear();
        self.buffer.reserve(compress_bound(payload.len()));
        self.context.compress2(&mut self.buffer, payload).map_err(failed)?;
        // An incompressible payload grows by a few bytes. Memory for these must also be granted before the payload
        // changes.
        cx.reserve(beside + self.buffer.len() as u64)?;
        payload.clear();
        payload.extend_from_slice(&self.buffer);
        growing::trim(payload);
        Ok(())
    }

    /// Compresses in place. Only the end of the flow interrupts this, because a half-compressed payload could not be
    /// retried.
    fn in_place(&mut self, payload: &mut Vec<u8>, beside: u64, cx: &mut Cx<'_>) -> Result<(), Failure> {
        cx.check()?;
        cx.reserve(beside + compress_bound(payload.len()) as u64)?;
        self.context.reset(ResetDirective::SessionOnly).map_err(failed)?;
        self.context.set_pledged_src_size(Some(payload.len() as u64)).map_err(failed)?;
        self.buffer.clear();
        self.buffer.reserve(compress_bound(STEP));
        let (mut consumed, mut written) = (0, 0);
        let mut aside = Vec::new();
        loop {
            let end = payload.len().min(consumed + STEP);
            let directive =
                if end == payload.len() { ZSTD_EndDirective::ZSTD_e_end } else { ZSTD_EndDirective::ZSTD_e_continue };
            let mut input = InBuffer::around(&payload[consumed..end]);
            self.buffer.clear();
            let left = self.context.compress_stream2(&mut OutBuffer::around(&mut self.buffer), &mut input, directive);
            consumed += input.pos();
            aside.extend_from_slice(&self.buffer);
            let fits = aside.len().min(consumed - written);
            payload[written..written + fits].copy_from_slice(&aside[..fits]);
            aside.drain(..fits);
            written += fits;
            if left.map_err(failed)? == 0 && end == payload.len() {
                break;
            }
            if let Err(failure) = cx.check()
                && failure.cause() == Cause::Cancelled
            {
                return Err(failure);
            }
        }
        payload.truncate(written);
        payload.append(&mut aside);
        growing::trim(payload);
        Ok(())
    }
}

fn failed(code: ::zstd::zstd_safe::ErrorCode) -> Failure {
    Failure::msg(format!("cannot compress: {}", reason(code)))
}

#[cfg(test)]
mod tests {
    use super::{Compress, ONE_CALL, STEP, most_growth};
    use crate::ops::one_stage::run;
    use crate::record::Record;

    /// Bytes that do not compress.
    fn noise(length: usize) -> Vec<u8> {
        let mut reader = blake3::Hasher::new().finalize_xof();
        let mut bytes = vec![0; length];
        reader.fill(&mut bytes);
        bytes
    }

    fn round(payload: &[u8], level: i32) -> usize {
        let made = run(Compress::new(level), Record::holding(payload)).unwrap().payload;
        let packed = made.bytes();
        assert!(packed.capacity() <= packed.len() + packed.len() / 8 + 1024, "memory is given back");
        assert_eq!(
            ::zstd::zstd_safe::get_frame_content_size(packed).ok().flatten(),
            Some(payload.len() as u64),
            "the frame says how large its content is"
        );
        assert!(::zstd::decode_all(packed.as_slice()).unwrap() == payload, "{} bytes at level {level}", payload.len());
        packed.len()
    }

    #[test]
    fn what_was_compressed_comes_back() {
        let lengths =
            [0, 1, 1000, ONE_CALL - 1, ONE_CALL, ONE_CALL + 1, ONE_CALL + STEP, ONE_CALL + 5 * STEP + 17, 3_000_000];
        for length in lengths {
            for level in [1, 3, 9] {
                let text: Vec<u8> = b"the mill turns ".iter().copied().cycle().take(length).collect();
                assert!(round(&text, level) <= length / 2 + 32);
                let noise = noise(length);
                assert!(round(&noise, level) <= length + length / 1000 + 64);
            }
        }
    }

    #[test]
    fn nothing_grows_by_more_than_is_said() {
        for length in [0, 1, 1000, ONE_CALL, ONE_CALL + 1, 3_000_000] {
            let mut record = Record::holding(noise(length));
            record.headroom = most_growth(length as u64);
            let before = record.bytes();
            assert!(run(Compress::new(3), record).unwrap().bytes() <= before, "{length} bytes");
        }
    }

    #[test]
    fn noise_after_text_and_text_after_noise_compress_in_place() {
        let (noise, text) = (noise(1 << 20), vec![b'x'; 1 << 20]);
        round(&[noise.clone(), text.clone(), noise.clone(), noise.clone()].concat(), 3);
        round(&[text.clone(), noise, text.clone(), text].concat(), 19);
    }
}
