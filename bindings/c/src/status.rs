//! How a function says that it failed.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

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
/// The slab can't be made, opened or used; see the message.
pub const MILLSTREAM_SLAB_UNUSABLE: i32 = 12;
/// There is no further object.
pub const MILLSTREAM_SLAB_END: i32 = 13;

/// Why there is no answer.
pub(crate) enum Failure {
    Question(Error),
    Slab(millstream_slab::Error),
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
            Self::Slab(millstream_slab::Error::Full { .. }) => MILLSTREAM_SLAB_FULL,
            Self::Slab(millstream_slab::Error::Stale { .. }) => MILLSTREAM_SLAB_STALE,
            Self::Slab(millstream_slab::Error::Foreign) => MILLSTREAM_SLAB_FOREIGN,
            Self::Slab(millstream_slab::Error::Held { .. }) => MILLSTREAM_SLAB_HELD,
            Self::Slab(_) => MILLSTREAM_SLAB_UNUSABLE,
            Self::End => MILLSTREAM_SLAB_END,
            Self::Null { .. } => MILLSTREAM_NULL,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Question(error) => error.to_string(),
            Self::Slab(error) => error.to_string(),
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
}

thread_local! {
    /// Why the last function that failed on this thread did so.
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Why the last function that failed on this thread did so; empty if none has. The text is valid until the next failure
/// on the same thread and must not be freed.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error_message() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}

/// The status of `outcome`, and its message if it is a failure.
pub(crate) fn status(outcome: Result<(), Failure>) -> i32 {
    match outcome {
        Ok(()) => MILLSTREAM_OK,
        Err(failure) => {
            let message = failure.message().replace('\0', "\u{fffd}");
            let message = CString::new(message).expect("every NUL was replaced");
            MESSAGE.with_borrow_mut(|last| *last = message);
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
