//! How a function says that it failed.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use millstream_csm::Error;

/// It worked.
pub const MILLSTREAM_OK: i32 = 0;
/// A number is not a number, or infinite where that means nothing.
pub const MILLSTREAM_NOT_FINITE: i32 = 1;
/// A number is outside the range that the question makes sense for.
pub const MILLSTREAM_OUT_OF_RANGE: i32 = 2;
/// There are more successes than trials, or the like.
pub const MILLSTREAM_MORE_THAN_ALL: i32 = 3;
/// A count is beyond the range that is computed exactly.
pub const MILLSTREAM_TOO_MANY: i32 = 4;
/// A pointer is NULL that must not be.
pub const MILLSTREAM_NULL: i32 = 5;
/// A code or a name that does not exist.
pub const MILLSTREAM_UNKNOWN: i32 = 6;
/// Any other reason why the question has no answer; see the message.
pub const MILLSTREAM_NO_ANSWER: i32 = 7;
/// No object can be allocated.
pub const MILLSTREAM_SLAB_FULL: i32 = 8;
/// The object was freed: a use after free, or a double free.
pub const MILLSTREAM_SLAB_STALE: i32 = 9;
/// The handle belongs to another slab, or is none.
pub const MILLSTREAM_SLAB_FOREIGN: i32 = 10;
/// Somebody has the object to himself at the moment.
pub const MILLSTREAM_SLAB_HELD: i32 = 11;
/// The slab can't be used for any other reason, such as users in another PID namespace; see the message.
pub const MILLSTREAM_SLAB_UNUSABLE: i32 = 12;
/// There is no further object.
pub const MILLSTREAM_SLAB_END: i32 = 13;
/// There is a file already where a slab was to be made: open it, or remove it.
pub const MILLSTREAM_SLAB_EXISTS: i32 = 14;
/// Another process keeps this one waiting for too long; the message names it, and says whether it is stopped: try again.
pub const MILLSTREAM_SLAB_BUSY: i32 = 15;
/// All caches of the slab are in use by living processes: try again when one was given back, or make it with more.
pub const MILLSTREAM_SLAB_NO_CACHE: i32 = 16;
/// The file is something else than a slab.
pub const MILLSTREAM_SLAB_NOT_A_SLAB: i32 = 17;
/// The slab was written by a program that knows more than this library.
pub const MILLSTREAM_SLAB_VERSION: i32 = 18;
/// The slab is cut off, or something is in it that this library never leaves there.
pub const MILLSTREAM_SLAB_DAMAGED: i32 = 19;
/// The operating system refused; millstream_error_number() says why.
pub const MILLSTREAM_SLAB_SYSTEM: i32 = 20;
/// The file belongs to another user, or others may write to it: to trust them, open it and use millstream_slab_open_fd.
pub const MILLSTREAM_SLAB_UNTRUSTED: i32 = 21;

/// Why there is no answer.
pub(crate) enum Failure {
    Question(Error),
    Slab(millstream_slab::Error),
    Header(millstream_slab::Error),
    End,
    Null { what: &'static str },
    Code { what: &'static str, found: i32 },
    Name { what: &'static str, found: String },
    Text { what: &'static str },
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
            Self::Question(_) => MILLSTREAM_NO_ANSWER,
            Self::Slab(error) => status_of(error),
            Self::Header(_) => MILLSTREAM_SLAB_DAMAGED,
            Self::End => MILLSTREAM_SLAB_END,
            Self::Null { .. } => MILLSTREAM_NULL,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Question(error) => error.to_string(),
            Self::Slab(error) => error.to_string(),
            Self::Header(error) => format!("the slab's header is wrong: {error}"),
            Self::End => "there is no further object".to_owned(),
            Self::Null { what } => format!("{what} is NULL; pass the address of an object"),
            Self::Code { what, found } => {
                format!("there is no {what} with the code {found}; see millstream.h for those there are")
            }
            Self::Name { what, found } => {
                format!("there is no {what} with the name `{found}`; see millstream.h for those there are")
            }
            Self::Text { what } => format!("{what} is not UTF-8"),
        }
    }

    /// The system's number; 0 if it had no part in it.
    fn number(&self) -> i32 {
        match self {
            Self::Slab(millstream_slab::Error::System { source, .. }) => source.raw_os_error().unwrap_or(0),
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

thread_local! {
    /// Why the last function that failed on this thread did so.
    static MESSAGE: RefCell<CString> = RefCell::default();
    /// The system's number for it.
    static NUMBER: Cell<i32> = const { Cell::new(0) };
}

/// Why the last function that failed on this thread did so, or what millstream_slab_verify found last; empty if there was
/// neither. The text is valid until the next failure on the same thread and must not be freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_message() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}

/// What errno was when the last function that failed on this thread did so with MILLSTREAM_SLAB_SYSTEM: ENOENT, EACCES,
/// ENOSPC, …; 0 if it failed for another reason.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_number() -> i32 {
    NUMBER.get()
}

/// Leaves a message for this thread, and the system's number for it.
pub(crate) fn note(message: &str, number: i32) {
    let message = CString::new(message.replace('\0', "\u{fffd}")).expect("every NUL was replaced");
    MESSAGE.with_borrow_mut(|last| *last = message);
    NUMBER.set(number);
}

/// The status of `outcome`, and its message if it is a failure.
pub(crate) fn status(outcome: Result<(), Failure>) -> i32 {
    match outcome {
        Ok(()) => MILLSTREAM_OK,
        Err(failure) => {
            note(&failure.message(), failure.number());
            failure.status()
        }
    }
}

/// Writes the answer through `out`, which is looked at first.
///
/// # Safety
/// `out` is NULL or valid for a write.
pub(crate) unsafe fn answer<T>(out: *mut T, compute: impl FnOnce() -> Result<T, Failure>) -> i32 {
    if out.is_null() {
        return status(Err(Failure::Null { what: "out" }));
    }
    status(compute().map(|value| {
        // SAFETY: not NULL, so the caller's promise makes it valid for a write.
        unsafe { out.write(value) };
    }))
}

/// The object behind a pointer.
///
/// # Safety
/// `object` is NULL or valid for reads for as long as the result is used, and nobody writes to it meanwhile.
pub(crate) unsafe fn borrow<'a, T>(what: &'static str, object: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { object.as_ref() }.ok_or(Failure::Null { what })
}

/// The object behind a pointer, to change it.
///
/// # Safety
/// `object` is NULL or valid for reads and writes for as long as the result is used, and nobody else uses it meanwhile.
pub(crate) unsafe fn borrow_mut<'a, T>(what: &'static str, object: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { object.as_mut() }.ok_or(Failure::Null { what })
}

/// The numbers behind a pointer, which may be NULL if there are none.
///
/// # Safety
/// `numbers` is NULL or points to so many numbers that stay as they are for as long as the result is used.
pub(crate) unsafe fn slice<'a>(what: &'static str, numbers: *const f64, size: usize) -> Result<&'a [f64], Failure> {
    if numbers.is_null() {
        return if size == 0 { Ok(&[]) } else { Err(Failure::Null { what }) };
    }
    // SAFETY: not NULL, so the caller's promise makes it valid.
    Ok(unsafe { std::slice::from_raw_parts(numbers, size) })
}

/// Frees what a `..._new` function made.
///
/// # Safety
/// `object` is NULL, or came from a box, and nobody uses it any more.
pub(crate) unsafe fn release<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(object) });
    }
}

/// A C string; `None` for NULL.
///
/// # Safety
/// `text` is NULL or ends with a NUL, and stays as it is for as long as the result is used.
pub(crate) unsafe fn text<'a>(what: &'static str, text: *const c_char) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, so the caller's promise makes it a C string.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| Failure::Text { what })
}

/// A path, which is any bytes but NUL.
///
/// # Safety
/// `path` is NULL or ends with a NUL, and stays as it is for as long as the result is used.
pub(crate) unsafe fn file_path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    if path.is_null() {
        return Err(Failure::Null { what: "path" });
    }
    // SAFETY: not NULL, so the caller's promise makes it a C string.
    Ok(Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_slab::{Error, Work};

    /// Those that take a program of the future, another namespace or ten seconds to come about.
    #[test]
    fn what_is_to_be_tried_again_is_told_from_what_is_not() {
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
