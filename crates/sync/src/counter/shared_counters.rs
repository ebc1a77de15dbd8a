//! Counters in a file that several processes map.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::percpu::processors;
use crate::percpu::section::{self, Here, MAX_ATTEMPTS, Numbers, Outcome, STRIDE, Slots};

/// Up to 512 counters in shared memory: a file, `/dev/shm`, a memfd.
///
/// All processes of one machine may add concurrently. Each addition is a [section](crate::percpu) on the page of its
/// processor, as within one process. Processes without restartable sequences add atomically to other pages. A process
/// may be killed at any moment: its addition either happened or did not, and other processes are unaffected.
///
/// The file consists of pages of 4096 bytes, and its words are little-endian. The first page is the header: the magic
/// `MSCOUNT` with a zero byte, and then, as `u64` each, version 1, the number of counters, and the number of processors
/// `p`. The header is followed by `p` pages that belong to processors, and by `p` pages for atomic additions. Counter
/// `i` is word `i` of each page.
///
/// ```
/// use millstream_sync::counter::SharedCounters;
///
/// let file = tempfile::tempfile()?;
/// let counters = SharedCounters::create(&file, 2)?;
/// let elsewhere = SharedCounters::open(&file)?; // another process
/// counters.add(0, 5);
/// elsewhere.add(0, 2);
/// assert_eq!((counters.sum(0), elsewhere.sum(1)), (7, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SharedCounters {
    first: NonNull<u8>,
    counters: usize,
    processors: u32,
}

/// The reason why a file cannot be used for shared counters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SharedError {
    /// The operating system refused an operation.
    #[error("the file of counters can't be used: {0}")]
    System(#[from] io::Error),
    /// The file is not a file of counters.
    #[error("this is not a file of counters: it begins with {found:#018x} instead of {MAGIC:#018x}")]
    Foreign {
        /// The first word of the file.
        found: u64,
    },
    /// Another version of this library made the file.
    #[error("the counters are of version {found}; this program reads version {VERSION}")]
    Version {
        /// The version in the header.
        found: u64,
    },
    /// The file is not as long as its header says.
    #[error("a file of {counters} counters for {processors} processors has {expected} bytes, this one has {found}")]
    Length {
        /// Number of counters according to the header.
        counters: u64,
        /// Number of processors according to the header.
        processors: u64,
        /// Length that follows from the header, in bytes.
        expected: u64,
        /// Actual length, in bytes.
        found: u64,
    },
    /// The number of counters is zero or too large.
    #[error("a file has 1 to {} counters, not {asked}", STRIDE / 8)]
    Number {
        /// The number requested.
        asked: u64,
    },
}

const MAGIC: u64 = u64::from_le_bytes(*b"MSCOUNT\0");
const VERSION: u64 = 1;

/// Indices of the header's words.
mod header {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 1;
    pub(super) const COUNTERS: usize = 2;
    pub(super) const PROCESSORS: usize = 3;
}

// SAFETY: the mapping belongs to the process, not to a thread, and is changed only by sections and atomic instructions.
unsafe impl Send for SharedCounters {}
// SAFETY: all accesses through a shared reference are sections and atomic instructions.
unsafe impl Sync for SharedCounters {}

/// More processors than any Linux supports.
const MAX_PROCESSORS: u32 = 65_536;

/// Reserves the file's blocks: on a full file system this returns an error here, instead of a SIGBUS in the process
/// that adds first.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    // SAFETY: the call takes numbers only, and `file` keeps the descriptor open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) } {
        // Some file systems cannot reserve blocks; the file then stays sparse.
        0 | libc::EOPNOTSUPP | libc::EINVAL => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

impl SharedCounters {
    /// Makes `file` a file of `counters` counters, all zero, and discards its previous content. Blocks for a few system
    /// calls.
    ///
    /// No other process may use the file before this call returns, so publish its path only then.
    ///
    /// # Errors
    /// If `counters` is zero or above 512, or a system call fails.
    pub fn create(file: &File, counters: usize) -> Result<Self, SharedError> {
        check_number(counters as u64)?;
        let processors = processors();
        file.set_len(0)?;
        file.set_len(length(processors.into()))?;
        allocate(file, length(processors.into()))?;
        let this = Self::map(file, counters, processors)?;
        this.header(header::VERSION).store(VERSION, Relaxed);
        this.header(header::COUNTERS).store(counters as u64, Relaxed);
        this.header(header::PROCESSORS).store(processors.into(), Relaxed);
        this.header(header::MAGIC).store(MAGIC, Relaxed);
        Ok(this)
    }

    /// Opens a file made by [`create`](Self::create). Blocks for a few system calls. The file must not shrink while it
    /// is in use.
    ///
    /// # Errors
    /// If it is not a file of counters, has another version, is not as long as its header says, or a system call fails.
    pub fn open(file: &File) -> Result<Self, SharedError> {
        let found = file.metadata()?.len();
        let word = |index: usize| {
            let mut bytes = [0; 8];
            let at = (index * size_of::<u64>()) as u64;
            std::os::unix::fs::FileExt::read_exact_at(file, &mut bytes, at).map(|()| u64::from_le_bytes(bytes))
        };
        match word(header::MAGIC)? {
            MAGIC => {}
            found => return Err(SharedError::Foreign { found }),
        }
        match word(header::VERSION)? {
            VERSION => {}
            found => return Err(SharedError::Version { found }),
        }
        let (counters, processors) = (word(header::COUNTERS)?, word(header::PROCESSORS)?);
        check_number(counters)?;
        let expected = length(processors);
        match u32::try_from(processors) {
            Ok(processors @ 1..=MAX_PROCESSORS) if expected == found => Self::map(file, counters as usize, processors),
            _ => Err(SharedError::Length { counters, processors, expected, found }),
        }
    }

    fn map(file: &File, counters: usize, processors: u32) -> Result<Self, SharedError> {
        const ACCESS: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
        let bytes = length(processors.into()) as usize;
        // SAFETY: the mapping is new and replaces no other, and `bytes` is the file's length.
        let first = unsafe { libc::mmap(ptr::null_mut(), bytes, ACCESS, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if first == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        let first = NonNull::new(first.cast()).expect("the kernel maps nothing at address zero by itself");
        Ok(SharedCounters { first, counters, processors })
    }

    /// Adds `n` to a counter; wraps around. Wait-free, about two cycles, not ordered with any other access.
    ///
    /// # Panics
    /// If there is no such counter.
    #[inline]
    pub fn add(&self, counter: usize, n: u64) {
        assert!(counter < self.counters, "counter {counter} of {}", self.counters);
        if let Some(here) = Here::current(Numbers::Processor) {
            let first = NonNull::from(self.word(0, counter)).cast();
            for _ in 0..MAX_ATTEMPTS {
                // SAFETY: each processor has a page with this word, and only sections that select it by the processor's
                // number write to it.
                if unsafe { section::add(here, Slots::new(first, self.processors), n) } == Outcome::Done {
                    return;
                }
            }
        }
        self.add_atomically(counter, n);
    }

    #[cold]
    #[inline(never)]
    fn add_atomically(&self, counter: usize, n: u64) {
        // SAFETY: the call only reads the thread's id. Any page would do; the id spreads the threads of all processes
        // over the pages.
        let thread = unsafe { libc::gettid() }.cast_unsigned();
        self.word(self.processors + thread % self.processors, counter).fetch_add(n, Relaxed);
    }

    /// The sum of all processes' additions to a counter, with the meaning of [`Counter::sum`](super::Counter::sum).
    /// Takes O(processors).
    ///
    /// # Panics
    /// If there is no such counter.
    #[must_use]
    pub fn sum(&self, counter: usize) -> u64 {
        assert!(counter < self.counters, "counter {counter} of {}", self.counters);
        (0..2 * self.processors).map(|page| self.word(page, counter).load(Relaxed)).fold(0, u64::wrapping_add)
    }

    fn header(&self, index: usize) -> &AtomicU64 {
        // SAFETY: the header is within the first page, which is mapped as long as `self` lives, and its words change
        // only by atomic instructions.
        unsafe { AtomicU64::from_ptr(self.first.cast::<u64>().as_ptr().add(index)) }
    }

    /// Word `index` of page `page` after the header.
    fn word(&self, page: u32, index: usize) -> &AtomicU64 {
        let at = (1 + page as usize) * STRIDE + index * size_of::<u64>();
        // SAFETY: the header is followed by twice as many pages as processors, and `index` is below the number of
        // counters.
        unsafe { AtomicU64::from_ptr(self.first.as_ptr().add(at).cast()) }
    }
}

impl Drop for SharedCounters {
    fn drop(&mut self) {
        // SAFETY: `map` made the mapping with this address and length for this value alone.
        unsafe { libc::munmap(self.first.as_ptr().cast(), length(self.processors.into()) as usize) };
    }
}

/// Length of the whole file in bytes.
fn length(processors: u64) -> u64 {
    processors.saturating_mul(2).saturating_add(1).saturating_mul(STRIDE as u64)
}

fn check_number(counters: u64) -> Result<(), SharedError> {
    if (1..=(STRIDE / 8) as u64).contains(&counters) { Ok(()) } else { Err(SharedError::Number { asked: counters }) }
}
