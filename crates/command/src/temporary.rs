//! Names for temporary files. No other process uses or can predict these names.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sixteen random hexadecimal digits, which distinguish this process from others with the same process id.
pub fn token() -> &'static str {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| format!("{:016x}", RandomState::new().build_hasher().finish()))
}

/// The beginning of the names of all temporary files.
pub const PREFIX: &str = ".millstream-";

/// A name for a temporary file of this process. Each call returns a new name, which is short enough for any folder.
pub fn name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    // Relaxed: the number only needs to differ; it publishes nothing.
    format!("{PREFIX}{}-{}-{}.tmp", std::process::id(), token(), NUMBER.fetch_add(1, Ordering::Relaxed))
}
