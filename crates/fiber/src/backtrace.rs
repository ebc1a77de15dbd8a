//! Backtraces of fibers.

use std::fmt;
use std::ptr;

use crate::scheduler::core::Core;

/// The maximum number of frames of a backtrace. If a stack has more, the outermost frames are left out.
pub(crate) const MAX_FRAMES: usize = 96;

/// The free stack space that a fiber needs to capture its backtrace: several times what the unwinder uses.
const MIN_ROOM: usize = 16 << 10;

/// The frames on a fiber's stack, captured while the fiber waits or while it keeps its worker for too long.
/// [`Display`](fmt::Display) writes one line for each frame.
///
/// A backtrace consists of addresses, so it is cheap to capture and to compare. [`frames`](Self::frames) looks up the names of
/// the functions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Backtrace {
    /// Return addresses, the innermost first.
    addresses: Box<[usize]>,
}

/// A function on a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The function's name, or its address if the program has no symbols.
    pub function: String,
    /// The line that the function executes, as `file:line`, if the program has debug information.
    pub place: Option<String>,
}

/// The reason why a [stall](crate::Report::Stalled) has no backtrace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoBacktrace {
    /// The program itself handles `SIGURG`, the signal that requests a backtrace from a worker.
    #[error("the program handles SIGURG itself")]
    SignalTaken,
    /// The kernel refused to install a handler for `SIGURG`, or to send the signal.
    #[error("SIGURG could not be sent: {}", std::io::Error::from_raw_os_error(*os_error))]
    Refused {
        /// The kernel's error.
        os_error: i32,
    },
    /// The worker's thread did not respond in time: it did not run, or it blocks `SIGURG`.
    #[error("its thread did not answer SIGURG")]
    NoAnswer,
    /// The fiber no longer ran on the worker when the signal arrived.
    #[error("it had already left its worker")]
    Left,
    /// This crate reads the registers of x86-64 and aarch64 only.
    #[error("backtraces of fibers work only on x86-64 and aarch64")]
    Unsupported,
}

impl Backtrace {
    pub(crate) fn of(addresses: Vec<usize>) -> Self {
        Backtrace { addresses: addresses.into() }
    }

    /// Captures the backtrace of the running fiber; `None` if too little of its stack is free.
    pub(crate) fn take(fiber: &Core) -> Option<Self> {
        let [_, floor, _] = fiber.state.stack()?;
        let here = 0_u8;
        if ptr::from_ref(&here).addr().checked_sub(floor)? < MIN_ROOM {
            return None;
        }
        let mut addresses = Vec::with_capacity(MAX_FRAMES);
        backtrace::trace(|frame| {
            addresses.push(frame.ip().addr());
            addresses.len() < MAX_FRAMES
        });
        Some(Backtrace::of(addresses))
    }

    /// Returns the frames of the fiber's code, the innermost first. The frames of this crate at both ends of the stack are left
    /// out.
    ///
    /// The first call reads the program's debug information. For a large program, this can take seconds, and the memory stays
    /// allocated until [`forget_symbols`](Self::forget_symbols) frees it.
    #[must_use]
    pub fn frames(&self) -> Vec<Frame> {
        let mut frames = Vec::new();
        for &address in &self.addresses {
            let before = frames.len();
            backtrace::resolve(ptr::without_provenance_mut(address), |symbol| {
                let function = symbol.name().map_or_else(|| format!("{address:#x}"), |name| format!("{name:#}"));
                let file = symbol.filename().map(|file| file.display().to_string());
                let place = file.map(|file| format!("{file}:{}", symbol.lineno().unwrap_or(0)));
                frames.push(Frame { function, place });
            });
            if frames.len() == before {
                frames.push(Frame { function: format!("{address:#x}"), place: None });
            }
        }
        // If some frames have names, the frames without a name are hidden. The innermost function may be in code that the kernel
        // provides, which has no names.
        let has_names = frames.iter().any(|frame| !frame.is_unknown());
        let is_hidden = |frame: &Frame| frame.is_of_wait() || has_names && frame.is_unknown();
        let first = frames.iter().position(|frame| !is_hidden(frame)).unwrap_or(frames.len());
        frames.drain(..first);
        let root = frames.iter().position(Frame::is_of_root).unwrap_or(frames.len());
        // The functions between the root and the fiber's body belong to this crate and to the standard library, so they are left
        // out.
        let last = frames[..root].iter().rposition(|frame| !frame.is_of_wait());
        frames.truncate(last.map_or(0, |last| last + 1));
        frames
    }

    /// Frees the memory that [`frames`](Self::frames) uses to cache the names of this program's functions.
    pub fn forget_symbols() {
        backtrace::clear_symbol_cache();
    }
}

/// The path of this crate's source folder in debug information.
const SOURCES: &str = file!().split_at(file!().len() - "backtrace.rs".len()).0;

/// The paths of the standard library's source folders in debug information.
const STD_SOURCES: [&str; 3] = ["/library/core/src/", "/library/std/src/", "/library/alloc/src/"];

// A function is recognised by its path or by its file. With line tables alone, a function's name lacks the path, but the file is
// known. Without any debug information, the name includes the path.
impl Frame {
    /// Returns whether the function's path begins with one of `crates`, or its file is in one of `folders`.
    fn is_of(&self, crates: &[&str], folders: &[&str]) -> bool {
        let name = self.function.trim_start_matches(['<', '&']);
        let place = self.place.as_deref().unwrap_or_default();
        crates.iter().any(|known| name.starts_with(known)) || folders.iter().any(|known| place.contains(known))
    }

    fn is_unknown(&self) -> bool {
        self.function.starts_with("0x")
    }

    /// Returns whether the frame belongs to the code that suspends the fiber and captures the backtrace, at the inner end of the
    /// stack. The code at the outer end, which calls the body, is in the same crates and matches as well.
    fn is_of_wait(&self) -> bool {
        self.is_of(&["backtrace::", "millstream_fiber::"], &["/backtrace-0.", SOURCES]) || self.is_of_std()
    }

    /// Returns whether the frame is at the outer end of a stack, where code calls the fiber's body.
    fn is_of_root(&self) -> bool {
        self.is_of(&["millstream_fiber::spawn::", "corosensei::"], &[&format!("{SOURCES}spawn.rs"), "/corosensei-0."])
    }

    fn is_of_std(&self) -> bool {
        self.is_of(&["core::", "std::", "alloc::", "__rust"], &STD_SOURCES)
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        self.place.iter().try_for_each(|place| write!(f, " at {place}"))
    }
}

impl fmt::Display for Backtrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frames = self.frames();
        frames.iter().enumerate().try_for_each(|(n, frame)| write!(f, "{}{frame}", if n == 0 { "" } else { "\n" }))
    }
}
