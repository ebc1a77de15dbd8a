//! A value with its cache lines to itself.

use std::ops::Deref;

/// Keeps what two threads write from sharing a cache line.
///
/// 128 bytes: x86-64 fetches lines in pairs, and aarch64 has machines with lines of 128 bytes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
