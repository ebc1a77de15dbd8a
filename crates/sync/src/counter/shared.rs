//! Counters in a file that several processes map.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::percpu::processors;
use crate::percpu::raw::{self, ATTEMPTS, Here, Numbers, Outcome, STRIDE, Slots};

/// Up to 512 counters in shared memory: a file, `/dev/shm`, a memfd.
///
/// Processes of one machine add at once, each addition by a [section](crate::percpu) on the page of its processor, as within one process;
/// those without restartable sequences add atomically to other pages. A process may be killed at any moment: an addition was made
/// or it was not, and nobody else notices.
///
/// The file, in pages of 4096 bytes, words little-endian as the machine's: the header (magic `MSCOUNT` and 0, then as `u64`
/// each: version 1, counters, processors `p`), `p` pages that belong to processors, `p` pages for atomic additions. Counter `i` is
/// word `i` of each page.
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

/// Why counters cannot be shared.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    /// The system refused.
    #[error("the file of counters can't be used: {0}")]
    System(#[from] io::Error),
    /// Not a file of counters.
    #[error("this is not a file of counters: it begins with {found:#018x} instead of {MAGIC:#018x}")]
    Foreign {
        /// Its first word.
        found: u64,
    },
    /// Made by another version.
    #[error("the counters are of version {found}; this program knows version {VERSION}")]
    Version {
        /// Its version.
        found: u64,
    },
    /// What the header says does not fit the file.
    #[error("a file of {counters} counters for {processors} processors has {expected} bytes, this one has {found}")]
    Length {
        /// How many counters it should have.
        counters: u64,
        /// For so many processors.
        processors: u64,
        /// The length it should have, in bytes.
        expected: u64,
        /// Its length in bytes.
        found: u64,
    },
    /// Too many, or none.
    #[error("a file has 1 to {} counters, not {asked}", STRIDE / 8)]
    Number {
        /// What was asked for.
        asked: u64,
    },
}

const MAGIC: u64 = u64::from_le_bytes(*b"MSCOUNT\0");
const VERSION: u64 = 1;

/// The header's words, by index.
mod header {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 1;
    pub(super) const COUNTERS: usize = 2;
    pub(super) const PROCESSORS: usize = 3;
}

// SAFETY: shared memory that is changed by sections and atomic instructions only.
unsafe impl Send for SharedCounters {}
// SAFETY: as above.
unsafe impl Sync for SharedCounters {}

/// More than any Linux has.
const PROCESSORS_MOST: u32 = 65_536;

/// Has the file system set the space aside: where it is full, that should be an error here and not a signal in whoever adds first.
fn allocate(file: &File, bytes: u64) -> std::io::Result<()> {
    // SAFETY: the descriptor is open.
    match unsafe { libc::posix_fallocate(std::os::fd::AsRawFd::as_raw_fd(file), 0, bytes as libc::off_t) } {
        // Not every file system can say; then it is as it was.
        0 | libc::EOPNOTSUPP | libc::EINVAL => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(error)),
    }
}

impl SharedCounters {
    /// Makes `file` a file of so many counters, all zero; what it held is gone.
    ///
    /// Nobody else may use it yet: then put it where others find it.
    ///
    /// # Errors
    /// A number that is zero or above 512, or the system's.
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

    /// Opens what [`create`](Self::create) made. The file must not become shorter while it is used.
    ///
    /// # Errors
    /// When it is not a file of counters, is of another version, has another length than its header says, or the system's.
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
            Ok(processors @ 1..=PROCESSORS_MOST) if expected == found => Self::map(file, counters as usize, processors),
            _ => Err(SharedError::Length { counters, processors, expected, found }),
        }
    }

    fn map(file: &File, counters: usize, processors: u32) -> Result<Self, SharedError> {
        const ACCESS: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
        let bytes = length(processors.into()) as usize;
        // SAFETY: a new mapping of the whole file.
        let first = unsafe { libc::mmap(ptr::null_mut(), bytes, ACCESS, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if first == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        let first = NonNull::new(first.cast()).expect("a mapping of the system's choice is not at zero");
        Ok(SharedCounters { first, counters, processors })
    }

    /// How many counters there are.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.counters
    }

    /// Adds `n` to a counter; wraps around. Wait-free, about two cycles, ordered with nothing.
    ///
    /// # Panics
    /// If there are not so many counters.
    #[inline]
    pub fn add(&self, counter: usize, n: u64) {
        assert!(counter < self.counters, "counter {counter} of {}", self.counters);
        if let Some(here) = Here::current(Numbers::Processor) {
            let first = NonNull::from(self.word(0, counter)).cast();
            for _ in 0..ATTEMPTS {
                // SAFETY: there is a page with this word for each processor, which only sections write that go by the
                // processor's number.
                if unsafe { raw::add(here, Slots::new(first, self.processors), n) } == Outcome::Done {
                    return;
                }
            }
        }
        self.add_atomically(counter, n);
    }

    #[cold]
    #[inline(never)]
    fn add_atomically(&self, counter: usize, n: u64) {
        // SAFETY: a question. Any page will do; this spreads the threads of all processes.
        let thread = unsafe { libc::gettid() }.cast_unsigned();
        self.word(self.processors + thread % self.processors, counter).fetch_add(n, Relaxed);
    }

    /// All additions of all processes to a counter, with the meaning of [`Counter::sum`](super::Counter::sum). Takes O(processors).
    ///
    /// # Panics
    /// If there are not so many counters.
    #[must_use]
    pub fn sum(&self, counter: usize) -> u64 {
        assert!(counter < self.counters, "counter {counter} of {}", self.counters);
        (0..2 * self.processors).map(|page| self.word(page, counter).load(Relaxed)).fold(0, u64::wrapping_add)
    }

    fn header(&self, index: usize) -> &AtomicU64 {
        // SAFETY: within the first page.
        unsafe { AtomicU64::from_ptr(self.first.cast::<u64>().as_ptr().add(index)) }
    }

    /// A word of a page behind the header.
    fn word(&self, page: u32, index: usize) -> &AtomicU64 {
        let at = (1 + page as usize) * STRIDE + index * size_of::<u64>();
        // SAFETY: there are twice as many pages as processors, and `index` is below the number of counters.
        unsafe { AtomicU64::from_ptr(self.first.as_ptr().add(at).cast()) }
    }
}

impl Drop for SharedCounters {
    fn drop(&mut self) {
        // SAFETY: our mapping, which nobody uses any more.
        unsafe { libc::munmap(self.first.as_ptr().cast(), length(self.processors.into()) as usize) };
    }
}

/// Of the whole file, in bytes.
fn length(processors: u64) -> u64 {
    processors.saturating_mul(2).saturating_add(1).saturating_mul(STRIDE as u64)
}

fn check_number(counters: u64) -> Result<(), SharedError> {
    if (1..=(STRIDE / 8) as u64).contains(&counters) { Ok(()) } else { Err(SharedError::Number { asked: counters }) }
}
