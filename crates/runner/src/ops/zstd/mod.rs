//! `zstd`: compresses or decompresses the payload.

mod compress;
mod decompress;

pub use self::compress::most_growth;
use super::Op;
use crate::file::model::ZstdMode;

/// The op for `mode`; see [`build`](super::build).
pub(super) fn build(mode: &ZstdMode, most_in_memory: u64) -> Box<dyn Op> {
    match mode {
        ZstdMode::Compress { level } => Box::new(compress::Compress::new(*level)),
        ZstdMode::Decompress { max_bytes } => Box::new(decompress::Decompress::new(max_bytes.clone(), most_in_memory)),
    }
}

/// The library's name for an error code.
fn reason(code: ::zstd::zstd_safe::ErrorCode) -> &'static str {
    ::zstd::zstd_safe::get_error_name(code)
}
