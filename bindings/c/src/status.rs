//! Status codes and error messages.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{CStr, OsStr, c_char};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytemuck::Pod;
use millstream_csm::Error;
use millstream_ring::shared::AttachError;

/// The call succeeded.
pub const MILLSTREAM_OK: i32 = 0;
/// A number is NaN, or is infinite where infinity has no meaning.
pub const MILLSTREAM_NOT_FINITE: i32 = 1;
/// A number is outside the range in which the question makes sense.
pub const MILLSTREAM_OUT_OF_RANGE: i32 = 2;
/// A part is larger than its whole, such as more successes than trials.
pub const MILLSTREAM_MORE_THAN_ALL: i32 = 3;
/// A count is beyond the range of exact computation.
pub const MILLSTREAM_TOO_MANY: i32 = 4;
/// A required pointer is NULL.
pub const MILLSTREAM_NULL: i32 = 5;
/// A code or a name is unknown.
pub const MILLSTREAM_UNKNOWN: i32 = 6;
/// The question has no answer for another reason; see the message.
pub const MILLSTREAM_NO_ANSWER: i32 = 7;
/// The slab has no free object.
pub const MILLSTREAM_SLAB_FULL: i32 = 8;
/// The object was freed: a use after free, or a double free.
pub const MILLSTREAM_SLAB_STALE: i32 = 9;
/// The handle belongs to another slab, or to none.
pub const MILLSTREAM_SLAB_FOREIGN: i32 = 10;
/// Another cache holds the object exclusively at the moment.
pub const MILLSTREAM_SLAB_HELD: i32 = 11;
/// The slab is unusable for another reason, such as users in another PID namespace; see the message.
pub const MILLSTREAM_SLAB_UNUSABLE: i32 = 12;
/// No further object exists.
pub const MILLSTREAM_SLAB_END: i32 = 13;
/// A file already exists at the path of a new slab: open it, or remove it.
pub const MILLSTREAM_SLAB_EXISTS: i32 = 14;
/// Another process has kept this process waiting for too long. The message names that process and says whether it is
/// stopped. Try again.
pub const MILLSTREAM_SLAB_BUSY: i32 = 15;
/// Living processes use all caches of the slab: try again after a cache was freed, or create the slab with more caches.
pub const MILLSTREAM_SLAB_NO_CACHE: i32 = 16;
/// The file is not a slab.
pub const MILLSTREAM_SLAB_NOT_A_SLAB: i32 = 17;
/// A newer library than this one wrote the slab.
pub const MILLSTREAM_SLAB_VERSION: i32 = 18;
/// The slab is truncated, or has contents that this library never writes.
pub const MILLSTREAM_SLAB_DAMAGED: i32 = 19;
/// The operating system reported an error: see millstream_error_number().
pub const MILLSTREAM_SLAB_SYSTEM: i32 = 20;
/// The file belongs to another user, or other users may write to it. To trust them, open the file and call
/// millstream_slab_open_fd.
pub const MILLSTREAM_SLAB_UNTRUSTED: i32 = 21;

/// Another process, or another object of this process, has this role at the ring.
pub const MILLSTREAM_RING_TAKEN: i32 = 22;
/// The ring has events of another size or alignment, or another number of slots.
pub const MILLSTREAM_RING_MISMATCH: i32 = 23;
/// The file contains something other than a ring.
pub const MILLSTREAM_RING_NOT_A_RING: i32 = 24;
/// The operating system reported an error: see millstream_error_number().
pub const MILLSTREAM_RING_SYSTEM: i32 = 25;
/// Another thread is using the object, which only one thread at a time may use.
pub const MILLSTREAM_IN_USE: i32 = 26;

/// The reason for a failed call.
pub(crate) enum Failure {
    Question(Error),
    Slab(millstream_slab::Error),
    Header(millstream_slab::Error),
    Ring(AttachError),
    End,
    /// A number is outside a range that this interface defines.
    Range {
        what: &'static str,
        expected: &'static str,
        found: u64,
    },
    /// A byte of an array of outcomes is neither 0 nor 1.
    Outcome {
        found: u8,
    },
    InUse {
        what: &'static str,
    },
    Null {
        what: &'static str,
    },
    Code {
        what: &'static str,
        found: i32,
    },
    Name {
        what: &'static str,
        found: String,
    },
    /// The first member of a struct cannot be its size.
    StructBytes {
        name: &'static str,
        found: u64,
        least: u64,
        most: u64,
    },
    /// A struct has nonzero members that this library does not know.
    NewerStruct {
        name: &'static str,
        found: u64,
        known: u64,
    },
    Text {
        what: &'static str,
    },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Question(error)
    }
}

impl From<millstream_slab::Error> for Failure {
    fn from(error: millstream_slab::Error) -> Self {
        Self::Slab(error)
    }
}

impl From<AttachError> for Failure {
    fn from(error: AttachError) -> Self {
        Self::Ring(error)
    }
}

impl Failure {
    fn status(&self) -> i32 {
        match self {
            Self::Question(Error::NotFinite { .. }) => MILLSTREAM_NOT_FINITE,
            Self::Question(Error::OutOfRange { .. }) => MILLSTREAM_OUT_OF_RANGE,
            Self::Question(Error::MoreThanAll { .. }) => MILLSTREAM_MORE_THAN_ALL,
            Self::Question(Error::TooMany { .. }) => MILLSTREAM_TOO_MANY,
            Self::Question(Error::UnknownMethod { .. }) | Self::Code { .. } | Self::Name { .. } | Self::Text { .. } => {
                MILLSTREAM_UNKNOWN
            }
            Self::StructBytes { .. } | Self::NewerStruct { .. } | Self::Range { .. } | Self::Outcome { .. } => {
                MILLSTREAM_OUT_OF_RANGE
            }
            Self::Question(_) => MILLSTREAM_NO_ANSWER,
            Self::Slab(error) => status_of(error),
            Self::Header(_) => MILLSTREAM_SLAB_DAMAGED,
            Self::Ring(error) => status_of_ring(error),
            Self::InUse { .. } => MILLSTREAM_IN_USE,
            Self::End => MILLSTREAM_SLAB_END,
            Self::Null { .. } => MILLSTREAM_NULL,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Question(error) => error.to_string(),
            Self::Slab(error) => error.to_string(),
            Self::Header(error) => format!("the slab's header is invalid: {error}"),
            Self::Ring(error) => error.to_string(),
            Self::End => "no further object exists".to_owned(),
            Self::Range { what, expected, found } => format!("{what} is {found}; expected {expected}"),
            Self::Outcome { found } => format!("an outcome is the byte {found}; expected true or false, 1 or 0"),
            Self::InUse { what } => {
                format!("another thread uses the {what} at the moment; give each to one thread at a time")
            }
            Self::Null { what } => format!("{what} is NULL; pass the address of an object"),
            Self::Code { what, found } => {
                format!("unknown {what}: found the code {found}; millstream.h lists the valid codes")
            }
            Self::Name { what, found } => {
                format!("unknown {what}: found the name `{found}`; millstream.h lists the valid names")
            }
            Self::StructBytes { name, found, least, most } => format!(
                "struct_bytes of a {name} is {found}, which is no size from {least} to {most}; set it to sizeof({name}) \
                 before the call"
            ),
            Self::NewerStruct { name, found, known } => format!(
                "this library is too old for this {name}: members beyond the {known} bytes that it knows are set, of \
                 {found}; set them to 0, or install a newer library"
            ),
            Self::Text { what } => format!("{what} must be UTF-8"),
        }
    }

    /// The system's error number, or 0 if the system was not involved.
    fn number(&self) -> i32 {
        match self {
            Self::Slab(millstream_slab::Error::System { source, .. })
            | Self::Ring(AttachError::System { source, .. }) => source.raw_os_error().unwrap_or(0),
            _ => 0,
        }
    }
}

fn status_of(error: &millstream_slab::Error) -> i32 {
    use millstream_slab::Error;
    match error {
        Error::OutOfRange { .. } => MILLSTREAM_OUT_OF_RANGE,
        Error::Full { .. } => MILLSTREAM_SLAB_FULL,
        Error::Stale { .. } => MILLSTREAM_SLAB_STALE,
        Error::Foreign => MILLSTREAM_SLAB_FOREIGN,
        Error::Held { .. } => MILLSTREAM_SLAB_HELD,
        Error::Exists { .. } => MILLSTREAM_SLAB_EXISTS,
        Error::Busy { .. } => MILLSTREAM_SLAB_BUSY,
        Error::NoCache { .. } => MILLSTREAM_SLAB_NO_CACHE,
        Error::Untrusted { .. } => MILLSTREAM_SLAB_UNTRUSTED,
        Error::NotASlab { .. } | Error::NotAFile { .. } => MILLSTREAM_SLAB_NOT_A_SLAB,
        Error::Version { .. } => MILLSTREAM_SLAB_VERSION,
        Error::Checksum { .. } | Error::Geometry { .. } | Error::Truncated { .. } | Error::Damaged { .. } => {
            MILLSTREAM_SLAB_DAMAGED
        }
        Error::System { .. } => MILLSTREAM_SLAB_SYSTEM,
        _ => MILLSTREAM_SLAB_UNUSABLE,
    }
}

fn status_of_ring(error: &AttachError) -> i32 {
    match error {
        AttachError::Taken(_) => MILLSTREAM_RING_TAKEN,
        AttachError::Mismatch { .. } => MILLSTREAM_RING_MISMATCH,
        AttachError::NotARing { .. } => MILLSTREAM_RING_NOT_A_RING,
        AttachError::TooLarge { .. } => MILLSTREAM_OUT_OF_RANGE,
        _ => MILLSTREAM_RING_SYSTEM,
    }
}

/// The maximum size of a message in bytes, including the NUL at its end. Longer messages are cut and end with "...".
pub const MILLSTREAM_MESSAGE_BYTES: usize = 8192;

thread_local! {
    /// The message of the last failure on this thread. It has no destructor and does not move, so a pointer to it is
    /// valid until the thread ends, even after a later failure overwrites the text.
    static MESSAGE: UnsafeCell<[u8; MILLSTREAM_MESSAGE_BYTES]> = const { UnsafeCell::new([0; MILLSTREAM_MESSAGE_BYTES]) };
    /// The system's error number of that failure.
    static NUMBER: Cell<i32> = const { Cell::new(0) };
}

/// Returns the message of the last failure on this thread, or the findings of the last millstream_slab_verify; before
/// both, an empty text. The address is always the same on a thread, and is valid until the thread ends. The next
/// failure on the thread overwrites the text. The text must not be freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_message() -> *const c_char {
    MESSAGE.with(|message| message.get().cast())
}

/// Returns the errno (ENOENT, EACCES, ENOSPC, …) of the last failure on this thread, if it was MILLSTREAM_SLAB_SYSTEM
/// or MILLSTREAM_RING_SYSTEM, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_number() -> i32 {
    NUMBER.get()
}

/// Stores a message for this thread, with the system's error number.
pub(crate) fn note(message: &str, number: i32) {
    let message = message.replace('\0', "\u{fffd}");
    let (text, end) = shortened(&message, MILLSTREAM_MESSAGE_BYTES - 1);
    MESSAGE.with(|last| {
        // SAFETY: only this thread accesses its message, and no reference to it leaves this function. A caller's
        // pointer is read only by the caller's code, which does not run at the same time.
        let last = unsafe { &mut *last.get() };
        last[..text.len()].copy_from_slice(text.as_bytes());
        last[text.len()..][..end.len()].copy_from_slice(end.as_bytes());
        last[text.len() + end.len()] = 0;
    });
    NUMBER.set(number);
}

/// Shortens a text to at most `most` bytes. Returns the whole text and an empty end, or as many whole characters as fit
/// and an ellipsis.
fn shortened(text: &str, most: usize) -> (&str, &'static str) {
    const ELLIPSIS: &str = "...";
    if text.len() <= most {
        return (text, "");
    }
    let end = (0..=most - ELLIPSIS.len()).rev().find(|&end| text.is_char_boundary(end));
    (&text[..end.unwrap_or(0)], ELLIPSIS)
}

/// Returns the status of `outcome`, and stores the message of a failure.
pub(crate) fn status(outcome: Result<(), Failure>) -> i32 {
    match outcome {
        Ok(()) => MILLSTREAM_OK,
        Err(failure) => {
            note(&failure.message(), failure.number());
            failure.status()
        }
    }
}

/// Checks `out`, computes a result and writes it through `out`.
///
/// # Safety
/// `out` is NULL or valid for a write.
pub(crate) unsafe fn answer<T>(out: *mut T, compute: impl FnOnce() -> Result<T, Failure>) -> i32 {
    if out.is_null() {
        return status(Err(Failure::Null { what: "out" }));
    }
    status(compute().map(|value| {
        // SAFETY: `out` is not NULL, so the caller guarantees that it is valid for a write.
        unsafe { out.write(value) };
    }))
}

/// Borrows the object behind a pointer.
///
/// # Safety
/// `object` is NULL or valid for reads for as long as the result is used, and no thread writes to it meanwhile.
pub(crate) unsafe fn borrow<'a, T>(what: &'static str, object: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller guarantees that a non-NULL `object` is valid for reads and not written to meanwhile.
    unsafe { object.as_ref() }.ok_or(Failure::Null { what })
}

/// Borrows the object behind a pointer mutably.
///
/// # Safety
/// `object` is NULL or valid for reads and writes for as long as the result is used, and no other code uses it
/// meanwhile.
pub(crate) unsafe fn borrow_mut<'a, T>(what: &'static str, object: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller guarantees that a non-NULL `object` is valid for reads and writes and used by no other code.
    unsafe { object.as_mut() }.ok_or(Failure::Null { what })
}

/// Checks an `out` pointer, and borrows the value to which it points.
///
/// # Safety
/// `out` is NULL or valid for reads and writes for as long as the result is used, and no other code uses it meanwhile.
pub(crate) unsafe fn place<'a, T: Copy>(what: &'static str, out: *mut T) -> Result<&'a mut MaybeUninit<T>, Failure> {
    // SAFETY: the caller guarantees that a non-NULL `out` is valid and used by no other code; its value may be missing.
    unsafe { out.cast::<MaybeUninit<T>>().as_mut() }.ok_or(Failure::Null { what })
}

/// Borrows the numbers behind a pointer, which may be NULL if `size` is 0.
///
/// # Safety
/// `numbers` is NULL or points to `size` numbers that do not change for as long as the result is used.
pub(crate) unsafe fn slice<'a, T: Pod>(what: &'static str, numbers: *const T, size: usize) -> Result<&'a [T], Failure> {
    if numbers.is_null() {
        return if size == 0 { Ok(&[]) } else { Err(Failure::Null { what }) };
    }
    if size.checked_mul(size_of::<T>()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Failure::Range { what, expected: "a size that memory can have", found: size as u64 });
    }
    // SAFETY: `numbers` is not NULL, so the caller guarantees that it points to `size` numbers that do not change.
    Ok(unsafe { std::slice::from_raw_parts(numbers, size) })
}

/// Frees an object that a `..._new` function made.
///
/// # Safety
/// `object` is NULL, or came from a box, and is not used afterwards.
pub(crate) unsafe fn release<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller guarantees that a non-NULL `object` came from a box and is not used afterwards.
        drop(unsafe { Box::from_raw(object) });
    }
}

/// Borrows a C string; returns `None` for NULL.
///
/// # Safety
/// `text` is NULL or ends with a NUL, and does not change for as long as the result is used.
pub(crate) unsafe fn text<'a>(what: &'static str, text: *const c_char) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: `text` is not NULL, so the caller guarantees that it is a C string that does not change.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| Failure::Text { what })
}

/// Borrows a path, which may have any bytes but NUL.
///
/// # Safety
/// `path` is NULL or ends with a NUL, and does not change for as long as the result is used.
pub(crate) unsafe fn file_path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    if path.is_null() {
        return Err(Failure::Null { what: "path" });
    }
    // SAFETY: `path` is not NULL, so the caller guarantees that it is a C string that does not change.
    Ok(Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_slab::{Error, Work};

    fn message() -> String {
        // SAFETY: the function returns the address of a text that ends with a NUL, and this thread does not change it
        // meanwhile.
        unsafe { CStr::from_ptr(millstream_error_message()) }.to_str().expect("messages are UTF-8").to_owned()
    }

    #[test]
    fn a_message_keeps_its_address_and_whatever_fits() {
        let address = millstream_error_message();
        let longest = MILLSTREAM_MESSAGE_BYTES - 1;
        for (text, expected) in [
            ("short".to_owned(), "short".to_owned()),
            ("a\0b".to_owned(), "a\u{fffd}b".to_owned()),
            ("x".repeat(longest), "x".repeat(longest)),
            ("x".repeat(longest + 1), "x".repeat(longest - 3) + "..."),
            // A character of three bytes is not cut in two.
            ("\u{20ac}".repeat(longest), "\u{20ac}".repeat((longest - 3) / 3) + "..."),
            (String::new(), String::new()),
        ] {
            note(&text, 0);
            assert!(message() == expected, "{} bytes became {}", text.len(), message());
            assert_eq!(millstream_error_message(), address);
        }
        let other = std::thread::spawn(|| (millstream_error_message() as usize, message())).join().unwrap();
        assert!(other.0 != address as usize && other.1.is_empty());
    }

    /// These errors occur only with a future program, in another namespace, or after a wait of ten seconds.
    #[test]
    fn errors_worth_retrying_have_their_own_status() {
        let busy = Error::Busy { pid: 1, waited_ms: 10_000, work: Work::Rebuilding, is_stopped: false };
        let untrusted = Error::Untrusted { path: "slab".into(), owner: 1, user: 2, mode: 0o666 };
        let version = Error::Version { major: 2, minor: 0, known_major: 1, known_minor: 1 };
        for (error, code) in [
            (busy, MILLSTREAM_SLAB_BUSY),
            (version, MILLSTREAM_SLAB_VERSION),
            (Error::Namespace { expected: 1, found: 2 }, MILLSTREAM_SLAB_UNUSABLE),
            (untrusted, MILLSTREAM_SLAB_UNTRUSTED),
        ] {
            assert_eq!(Failure::from(error).status(), code);
        }
    }
}
