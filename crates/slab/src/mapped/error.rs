//! Errors.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::depot::Damage;

/// The reason why a slab could not be made, opened or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{what}: {source}")]
    System {
        /// The request.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// An option is outside of its range.
    #[error("{what} is {found}; it must be from {least} to {most}")]
    OutOfRange {
        /// The option.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The smallest valid value.
        least: u64,
        /// The largest valid value.
        most: u64,
    },
    /// The file to be made exists already.
    #[error("{} exists already; open it, or remove it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The path names no regular file.
    #[error("this is {found}, and a slab is a file")]
    NotAFile {
        /// The type found: a FIFO, a folder, a device, …
        found: &'static str,
    },
    /// The file belongs to another user, or other users may write to it. They can truncate the file, and then every
    /// process that has mapped it dies of SIGBUS.
    #[error(
        "{} belongs to user {owner} and has mode {mode:03o}; a slab of user {user} belongs to that user or to root, and no others may write to it. To \
         trust those who may, open the file and hand it over (`open_file`, `--trust-others`)",
        path.display()
    )]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// This process's effective user.
        user: u32,
        /// Its permissions.
        mode: u32,
    },
    /// The file does not begin with the bytes of a slab.
    #[error("this is not a slab: it begins with {found:#018x}, not {expected:#018x}")]
    NotASlab {
        /// The first eight bytes of every slab.
        expected: u64,
        /// The first eight bytes of the file.
        found: u64,
    },
    /// The file has a version that this program does not know.
    #[error(
        "the slab has version {major}.{minor}, and this program knows versions {known_major}.0 to {known_major}.{known_minor}"
    )]
    Version {
        /// The file's major version.
        major: u32,
        /// The file's minor version.
        minor: u32,
        /// The only major version that is known.
        known_major: u32,
        /// The highest minor version that is known.
        known_minor: u32,
    },
    /// The header's checksum does not match its words: something other than this library changed the header.
    #[error("the slab's header is damaged: its checksum is {found:#018x}, and its words have {expected:#018x}")]
    Checksum {
        /// The checksum of the words that are there.
        expected: u64,
        /// The checksum that was found.
        found: u64,
    },
    /// The header's numbers do not describe a slab, although their checksum is right.
    #[error("the slab's header is wrong: {what} is {found}, expected {expected}")]
    Geometry {
        /// The name of the number.
        what: &'static str,
        /// The value that it must have.
        expected: u64,
        /// The value found.
        found: u64,
    },
    /// The file is shorter than its header says: it was truncated.
    #[error("the slab is cut off: the file has {found} bytes of {expected}")]
    Truncated {
        /// The length that its header promises.
        expected: u64,
        /// The length found.
        found: u64,
    },
    /// The slab holds objects of another type.
    #[error("the slab holds other objects: {what} is {found}, and this type has {expected}")]
    OtherObjects {
        /// The property that differs: size, alignment or tag.
        what: &'static str,
        /// The type's value.
        expected: u64,
        /// The slab's value.
        found: u64,
    },
    /// The slab is in use, or being opened, in another PID or time namespace, whose processes this process cannot
    /// watch.
    #[error(
        "the slab is used by processes of another PID or time namespace ({found:#x}; this one is {expected:#x}), which can't be watched from here"
    )]
    Namespace {
        /// This process's namespaces, or a digest of them.
        expected: u64,
        /// The namespaces in use, in the same form.
        found: u64,
    },
    /// Another process keeps this one waiting.
    #[error("process {pid} has been {work} for {waited_ms} ms and {}", outlook(*pid, *is_stopped))]
    Busy {
        /// The PID of that process.
        pid: u32,
        /// The time for which this process has waited.
        waited_ms: u64,
        /// The work of the other process.
        work: Work,
        /// Whether a signal or a debugger has stopped the other process, so that it does not finish unless it is
        /// continued.
        is_stopped: bool,
    },
    /// Live processes use all caches that the slab has room for.
    #[error("all {caches} caches of the slab are in use; create the slab with more")]
    NoCache {
        /// The number of caches.
        caches: u64,
    },
    /// All objects are in use, or free in other caches.
    #[error("the slab is full: none of its {objects} objects can be allocated")]
    Full {
        /// The number of objects.
        objects: u64,
    },
    /// The cache or parcel is a copy: the original belongs to the process that forked this one, and stays in use there.
    #[error("this cache or parcel belongs to process {pid}, which has forked this one; make one here")]
    Forked {
        /// The process that made it.
        pid: u32,
    },
    /// The handle belongs to another slab, or to none.
    #[error("the handle does not belong to this slab")]
    Foreign,
    /// The object has been freed since the handle was made: a use after free, or a double free.
    #[error("object {index} was freed: the handle has generation {generation}, and the object has {found}")]
    Stale {
        /// The object.
        index: u64,
        /// The handle's generation.
        generation: u64,
        /// The object's generation.
        found: u64,
    },
    /// A cache has claimed the object, so the object is private to that cache at the moment.
    #[error("object {index} is private to process {pid} at the moment")]
    Held {
        /// The object.
        index: u64,
        /// The process that has the object.
        pid: u32,
    },
    /// The shared memory holds a value that this library never leaves there.
    #[error("the slab is damaged: {what} ({at})")]
    Damaged {
        /// The damage.
        what: &'static str,
        /// The damaged object, slot or value.
        at: u64,
    },
}

/// The work for which other processes wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// Rebuilds the free list after a reboot, after use from another namespace, or because the list is damaged. No
    /// process has a cache meanwhile.
    Rebuilding,
    /// Recovers the caches of dead processes, which it has taken over.
    Recovering,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Work::Rebuilding => "rebuilding the slab's free list",
            Work::Recovering => "recovering the caches of dead processes",
        })
    }
}

fn outlook(pid: u32, is_stopped: bool) -> String {
    if is_stopped {
        format!("is stopped; continue it (kill -CONT {pid}) or end it (kill -KILL {pid}), then try again")
    } else {
        "is still running; try again".to_owned()
    }
}

impl Error {
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Error::System { what: what.into(), source: source.into() }
    }
}

impl From<Damage> for Error {
    fn from(Damage { what, at }: Damage) -> Self {
        Error::Damaged { what, at }
    }
}

/// Raw bytes suit every slab, so the conversion of a raw slab never fails.
impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
