//! A value with cache lines of its own.

use std::ops::Deref;

/// Gives a value cache lines of its own, so that two threads that write to different values do not share a line.
///
/// The alignment is 128 bytes: x86-64 fetches lines in pairs, and aarch64 has machines with lines of 128 bytes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

impl<T> Deref for CachePadded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
