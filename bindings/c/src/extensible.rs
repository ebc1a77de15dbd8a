//! Structs that callers allocate and later versions extend.
//!
//! The first member, `struct_bytes`, is the size with which the caller's program was compiled, so program and library
//! may have different versions. A new version only appends members. If a setup has members that the library does not
//! know, they must be 0. If a result has members that the library does not know, they are set to 0.

use std::ptr;

use bytemuck::Zeroable;

use crate::status::{Failure, status};

/// A bound above the size of every version, which detects values that cannot be a size.
const MAX_BYTES: u64 = 4096;

/// A struct that later versions extend.
///
/// # Safety
/// The type is `repr(C)`, its first member is `struct_bytes: u64`, every bit pattern is a value, and there is no
/// padding: a member that a version appends never takes the place of bytes that an older program leaves undefined.
pub(crate) unsafe trait Extensible: Copy + Zeroable {
    /// The name in C.
    const NAME: &'static str;
    /// The size of the first version.
    const FIRST_BYTES: u64;
    /// The size of this version, for `struct_bytes`.
    const BYTES: u64 = {
        assert!(size_of::<Self>() as u64 >= Self::FIRST_BYTES);
        size_of::<Self>() as u64
    };
}

/// The size in the first member, checked.
///
/// # Safety
/// `given` is NULL or points to at least its first member.
unsafe fn bytes_of<T: Extensible>(what: &'static str, given: *const T) -> Result<usize, Failure> {
    if given.is_null() {
        return Err(Failure::Null { what });
    }
    // SAFETY: `given` is not NULL, so the caller guarantees that it starts with a word.
    let found = unsafe { given.cast::<u64>().read() };
    if !(T::FIRST_BYTES..=MAX_BYTES).contains(&found) {
        return Err(Failure::StructBytes { name: T::NAME, found, least: T::FIRST_BYTES, most: MAX_BYTES });
    }
    Ok(found as usize)
}

/// Reads a struct of a program whose header may be older or newer than this library.
///
/// # Safety
/// `given` is NULL, or points to as many bytes as its first member says.
pub(crate) unsafe fn read<T: Extensible>(what: &'static str, given: *const T) -> Result<T, Failure> {
    // SAFETY: the caller guarantees that a non-NULL `given` points to its first member.
    let found = unsafe { bytes_of(what, given) }?;
    let known = found.min(size_of::<T>());
    let mut value = T::zeroed();
    // SAFETY: the caller guarantees `found` bytes at `given`; `value` has `size_of::<T>()`, and every bit pattern is a
    // value.
    unsafe { ptr::copy_nonoverlapping(given.cast::<u8>(), (&raw mut value).cast::<u8>(), known) };
    // SAFETY: the caller guarantees `found` bytes at `given`, of which these are the last.
    let unknown = unsafe { std::slice::from_raw_parts(given.cast::<u8>().add(known), found - known) };
    if unknown.iter().any(|&byte| byte != 0) {
        return Err(Failure::NewerStruct { name: T::NAME, found: found as u64, known: T::BYTES });
    }
    Ok(value)
}

/// Checks `out`, computes a result and writes it through `out`: the members that both the caller's struct and this
/// library's version have. Sets the other members of the caller's struct to 0.
///
/// # Safety
/// `out` is NULL, or points to as many bytes as its first member says.
pub(crate) unsafe fn answer<T: Extensible>(out: *mut T, compute: impl FnOnce() -> Result<T, Failure>) -> i32 {
    let write = || {
        // SAFETY: the caller guarantees that a non-NULL `out` points to its first member.
        let found = unsafe { bytes_of("out", out.cast_const()) }?;
        let value = compute()?;
        let known = found.min(size_of::<T>());
        let (from, to, first) = ((&raw const value).cast::<u8>(), out.cast::<u8>(), size_of::<u64>());
        // SAFETY: the caller guarantees `found` bytes at `out`, `value` has `size_of::<T>()`, and both are no less than
        // `known`, which is more than the first member.
        unsafe {
            ptr::copy_nonoverlapping(from.add(first), to.add(first), known - first);
            ptr::write_bytes(to.add(known), 0, found - known);
        }
        Ok(())
    };
    status(write())
}

#[cfg(test)]
mod tests {
    use bytemuck::Pod;

    use super::*;
    use crate::status::{MILLSTREAM_NULL, MILLSTREAM_OK, MILLSTREAM_OUT_OF_RANGE};

    /// The third version of a struct. Each version has a member more than the previous one.
    #[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
    #[repr(C)]
    struct Third {
        struct_bytes: u64,
        first: u64,
        second: u64,
        third: u64,
    }

    // SAFETY: `Pod` rules out padding, and the first member is the size.
    unsafe impl Extensible for Third {
        const NAME: &'static str = "third";
        const FIRST_BYTES: u64 = 16;
    }

    /// A caller's struct with this size, in memory for any version.
    fn given(struct_bytes: u64) -> [u64; 6] {
        [struct_bytes, 1, 2, 3, 0, 7]
    }

    #[test]
    fn setups_of_older_and_newer_programs_are_read() {
        for (bytes, expected) in [(16, [1, 0, 0]), (24, [1, 2, 0]), (32, [1, 2, 3]), (40, [1, 2, 3])] {
            let words = given(bytes);
            // SAFETY: there are more words than the first one says.
            let Ok(found) = (unsafe { read("setup", words.as_ptr().cast::<Third>()) }) else { panic!("{bytes} bytes") };
            assert_eq!([found.first, found.second, found.third], expected);
        }
        let words = given(48);
        // SAFETY: there are as many words as the first one says.
        let refused = unsafe { read("setup", words.as_ptr().cast::<Third>()) };
        assert!(matches!(refused, Err(Failure::NewerStruct { found: 48, known: 32, .. })));
    }

    #[test]
    fn results_reach_as_far_as_both_versions() {
        let value = Third { struct_bytes: Third::BYTES, first: 11, second: 12, third: 13 };
        for (bytes, expected) in [
            (16, [16, 11, 2, 3, 0, 7]),
            (24, [24, 11, 12, 3, 0, 7]),
            (32, [32, 11, 12, 13, 0, 7]),
            (48, [48, 11, 12, 13, 0, 0]),
        ] {
            let mut words = given(bytes);
            // SAFETY: there are at least as many words as the first one says.
            assert_eq!(unsafe { answer(words.as_mut_ptr().cast::<Third>(), || Ok(value)) }, MILLSTREAM_OK);
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn what_is_no_size_is_refused_and_nothing_is_written() {
        for bytes in [0, 8, 15, 4097, u64::MAX] {
            let mut words = given(bytes);
            // SAFETY: the size is refused before anything else is accessed.
            let status = unsafe { answer(words.as_mut_ptr().cast::<Third>(), || unreachable!()) };
            assert_eq!((status, words), (MILLSTREAM_OUT_OF_RANGE, given(bytes)));
        }
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { answer(ptr::null_mut::<Third>(), || unreachable!()) }, MILLSTREAM_NULL);
    }
}
