//! Names for temporary files, which no other process has and none can foresee.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sixteen hexadecimal digits at random, which tell this process from others of the same number.
pub fn token() -> &'static str {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| format!("{:016x}", RandomState::new().build_hasher().finish()))
}

/// How the names of this process's temporary files begin.
pub const PREFIX: &str = ".millstream-";

/// A name for a temporary file of this process, another one at each call, and short enough for any folder.
pub fn name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    // Relaxed: the number only has to differ; it publishes nothing.
    format!("{PREFIX}{}-{}-{}.tmp", std::process::id(), token(), NUMBER.fetch_add(1, Ordering::Relaxed))
}
