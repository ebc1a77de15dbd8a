//! The slab of raw bytes.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::mapped::attach::Others;
use crate::mapped::cache::RawCache;
use crate::mapped::check::{Report, Usage};
use crate::mapped::error::Error;
use crate::mapped::file;
use crate::mapped::handle::Handle;
use crate::mapped::header::{FIXED, Header, MAGIC};
use crate::mapped::live::{self, Live};
use crate::mapped::mapping::Mapping;
use crate::mapped::memory::Source;
use crate::mapped::options::Options;
use crate::mapped::parcel::RawParcel;
use crate::mapped::recover::Recovered;
use crate::word::Word;

/// A slab of objects of a given number of raw bytes, shared by threads and processes; [`Slab`](crate::Slab) is the
/// typed form.
///
/// Cloning is cheap, and all clones are the same slab. To allocate and free, each thread makes a
/// [cache](RawSlab::cache).
///
/// ```
/// use millstream_slab::RawSlab;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pool.slab");
/// let slab = RawSlab::options(256, 100_000).create(&path)?;
/// let handle = slab.cache()?.alloc()?.publish();
/// drop(slab);
///
/// // Another time, in another process:
/// let slab = RawSlab::open(&path)?;
/// assert_eq!(slab.live().map(|object| object.handle).collect::<Vec<_>>(), [handle]);
/// # Ok::<(), millstream_slab::Error>(())
/// ```
#[derive(Clone)]
pub struct RawSlab {
    mapping: Arc<Mapping>,
}

impl RawSlab {
    /// The options of a new slab of at most `max_objects` objects. The size of an object is rounded up to a multiple of
    /// 8 bytes.
    #[must_use]
    pub fn options(object_bytes: u64, max_objects: u64) -> Options<RawSlab> {
        Options::new(object_bytes.max(1).checked_next_multiple_of(8).unwrap_or(u64::MAX), 8, max_objects)
    }

    pub(crate) fn new(mapping: Arc<Mapping>) -> Self {
        RawSlab { mapping }
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Opens the slab in a file, whatever state its last users left it in.
    ///
    /// Recovers the objects of dead processes, while others continue. If no process uses the slab, checks the free
    /// list. A list that is damaged, or older than the last reboot, or left by processes of another namespace, is
    /// rebuilt from the objects' words. Recovery and check each take time in proportion to the objects ever used, about
    /// ten milliseconds for a million.
    ///
    /// Waits while another process rebuilds the free list: for ten seconds at most, or 0.1 s while that process is
    /// stopped. Waits equally long for processes that recover, and opens even if they have not finished: the objects
    /// that such a process is recovering stay out of reach until it continues or dies.
    ///
    /// The file must belong to this user or to root, and other users must not have permission to write to it: with that
    /// permission they can truncate it, and then every process that has mapped it dies of SIGBUS. To trust others, open
    /// the file and use [`open_file`](RawSlab::open_file).
    ///
    /// # Errors
    /// [`Error::Untrusted`] for a file that others may write to; [`Error::NotAFile`], [`Error::NotASlab`],
    /// [`Error::Version`], [`Error::Checksum`], [`Error::Geometry`], [`Error::OutOfRange`], [`Error::Truncated`],
    /// [`Error::Damaged`] for a file that is not a sound slab, whatever its bytes are; [`Error::Namespace`];
    /// [`Error::Busy`]; [`Error::System`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_file(file::open(path.as_ref(), file::OWNER_ONLY)?)
    }

    /// Opens the slab in an open file, for example in a memfd received from another process. Every user with permission
    /// to write to the file is trusted, whatever its owner. A memfd that [`Options::memfd`] made can't be truncated.
    ///
    /// # Errors
    /// As [`open`](RawSlab::open), except [`Error::Untrusted`].
    pub fn open_file(file: File) -> Result<Self, Error> {
        Ok(Self::attach(file, Others::Watched)?.0)
    }

    /// Opens the slab in a file; the caller guarantees that no other process uses it. This is for a file whose last
    /// users ran in a PID namespace that is gone, so its processes can't be watched. Recovers the objects in their
    /// caches.
    ///
    /// # Errors
    /// As [`open`](RawSlab::open).
    ///
    /// # Safety
    /// No other process uses the slab, and this process has not opened it: otherwise objects would be allocated twice,
    /// and two caches would hold one object.
    pub unsafe fn open_alone(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(Self::attach(file::open(path.as_ref(), file::OWNER_ONLY)?, Others::Absent)?.0)
    }

    fn attach(file: File, others: Others) -> Result<(Self, Recovered), Error> {
        let header = read_header(&file)?;
        let mapping = Mapping::map(Source::File(file), header, false)?;
        let recovered = mapping.attach(others)?;
        Ok((Self::new(Arc::new(mapping)), recovered))
    }

    /// Opens as [`open`](RawSlab::open), and returns the result of the recovery.
    ///
    /// # Errors
    /// As [`open`](RawSlab::open).
    pub fn open_and_report(path: impl AsRef<Path>) -> Result<(Self, Recovered), Error> {
        Self::open_file_and_report(file::open(path.as_ref(), file::OWNER_ONLY)?)
    }

    /// Opens as [`open_file`](RawSlab::open_file), and returns the result of the recovery.
    ///
    /// # Errors
    /// As [`open_file`](RawSlab::open_file).
    pub fn open_file_and_report(file: File) -> Result<(Self, Recovered), Error> {
        Self::attach(file, Others::Watched)
    }

    /// Makes a cache for a thread of this process.
    ///
    /// Takes about 10 µs. Waits while another process rebuilds the free list, and, if no slot is free, while other
    /// processes recover slots. The wait lasts no longer than that of [`open`](RawSlab::open).
    ///
    /// # Errors
    /// [`Error::NoCache`]; [`Error::Busy`]; [`Error::System`].
    pub fn cache(&self) -> Result<RawCache, Error> {
        RawCache::new(Arc::clone(&self.mapping))
    }

    /// Makes an empty parcel, to carry private objects from one thread of this process to another.
    ///
    /// # Errors
    /// As [`cache`](RawSlab::cache).
    pub fn parcel(&self) -> Result<RawParcel, Error> {
        RawParcel::new(Arc::clone(&self.mapping))
    }

    /// Copies a published object, or an orphan.
    ///
    /// The handle is checked again after the bytes were read, so they never belong to a later life of the object. They
    /// can be torn if the object is claimed, changed and published again meanwhile; a [claim](RawCache::claim) excludes
    /// that. The bytes of an orphan may have been half written when its process was killed. Lock-free.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Foreign`]; [`Error::Held`]; [`Error::OtherObjects`] when the length of `bytes` is not
    /// that of an object.
    pub fn read(&self, handle: Handle, bytes: &mut [u8]) -> Result<(), Error> {
        self.check_size(bytes)?;
        self.read_beginning(handle, bytes)
    }

    /// Checks that the buffer has exactly the length of an object.
    pub(crate) fn check_size(&self, bytes: &[u8]) -> Result<(), Error> {
        let (expected, found) = (bytes.len() as u64, self.object_bytes());
        if expected == found { Ok(()) } else { Err(Error::OtherObjects { what: "size", expected, found }) }
    }

    /// [`read`](RawSlab::read) into a buffer that may be shorter than an object, but not longer.
    pub(crate) fn read_beginning(&self, handle: Handle, bytes: &mut [u8]) -> Result<(), Error> {
        self.check(handle)?;
        let start = self.mapping.object(handle.index()).cast::<AtomicU64>();
        // SAFETY: an object is aligned to 8 bytes and a multiple of 8 long, so these words are within the mapping. A
        // concurrent writer makes the copy worthless, and the check below then rejects it. Usually such a writer is
        // another process, which is outside the language's memory model; a writer in this process, which has claimed
        // the object, uses non-atomic stores. The language does not define this race (the copy may be torn and is then
        // discarded, as with a seqlock), but the machine does.
        let words = unsafe { std::slice::from_raw_parts(start.as_ptr(), self.object_bytes() as usize / 8) };
        for (copy, word) in bytes.chunks_mut(8).zip(words) {
            copy.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes()[..copy.len()]);
        }
        // The loads above come before the load of the word: if any of them saw a later holder's store, the check sees
        // that the object is no longer published.
        fence(Ordering::Acquire);
        self.check(handle)
    }

    /// Checks that a handle is valid, and its object neither freed nor private.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Foreign`]; [`Error::Held`].
    pub fn check(&self, handle: Handle) -> Result<(), Error> {
        let generation = handle.in_place();
        // Acquire: pairs with the release of the store that published the object.
        let found = self.mapping.look_up(handle)?.load(Ordering::Acquire);
        if found == generation.published() || found == generation.orphan() {
            return Ok(());
        }
        Err(self.mapping.refusal(handle, Word(found)))
    }

    /// The application's number for the cache that published the object, or that held it and died, as given to
    /// [`set_owner`](RawCache::set_owner); 0 where no number was given, or where the slab does not keep
    /// [owners](Options::owners).
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Foreign`]; [`Error::Held`].
    ///
    /// ```
    /// use millstream_slab::RawSlab;
    ///
    /// let slab = RawSlab::options(64, 100).owners().private()?;
    /// let cache = slab.cache()?;
    /// cache.set_owner(7);
    /// let handle = cache.alloc()?.publish();
    /// assert_eq!(slab.owner(handle)?, 7);
    ///
    /// // Frees the objects of worker 7, once it is known to be dead:
    /// for object in slab.live().filter(|object| object.owner == 7) {
    ///     cache.free(object.handle)?;
    /// }
    /// # Ok::<(), millstream_slab::Error>(())
    /// ```
    pub fn owner(&self, handle: Handle) -> Result<u64, Error> {
        self.check(handle)?;
        let index = handle.index();
        let found = Word(self.mapping.look_up(handle)?.load(Ordering::Acquire));
        let owner = live::owner(&self.mapping, index, found);
        // The number belongs to the object only if the object has not changed meanwhile.
        fence(Ordering::Acquire);
        self.check(handle).map(|()| owner)
    }

    /// The address of a published object in this process, for structures whose users synchronise by their own means
    /// (atomics in the object, a lock). The bytes must not be touched once a cache frees or claims the object.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Foreign`]; [`Error::Held`].
    pub fn pointer(&self, handle: Handle) -> Result<NonNull<u8>, Error> {
        self.check(handle)?;
        Ok(self.mapping.object(handle.index()))
    }

    /// Iterates over all allocated objects, in order, each as it is when the iterator reaches it.
    #[must_use]
    pub fn live(&self) -> Live<'_> {
        self.live_from(0)
    }

    /// [`live`](RawSlab::live), beginning at the object with this index.
    #[must_use]
    pub fn live_from(&self, index: u64) -> Live<'_> {
        Live::new(&self.mapping, index)
    }

    /// Gives the free objects of dead processes to the depot, and makes the held ones orphans, while others continue.
    /// Opening does the same, and so does an allocation that finds no object.
    ///
    /// Lock-free as long as no other process recovers or rebuilds the free list. If a process does, this call waits for
    /// that process as [`open`](RawSlab::open) does. So afterwards all objects of processes that were dead before the
    /// call are recovered.
    ///
    /// # Errors
    /// [`Error::Busy`] when another process takes too long over its recovery, after everything else is recovered;
    /// [`Error::Namespace`]; [`Error::Damaged`]; [`Error::System`].
    pub fn recover(&self) -> Result<Recovered, Error> {
        self.mapping.recover()
    }

    /// Counts the objects by state, exactly if no thread allocates or frees meanwhile.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::count(&self.mapping)
    }

    /// Checks every invariant. An object on its way to or from the depot is not a problem; a change that another thread
    /// makes during the check may show as a problem.
    #[must_use]
    pub fn verify(&self) -> Report {
        Report::of(&self.mapping)
    }

    /// Makes the kernel write everything to the device, and waits for it; after that, the slab survives a power
    /// failure. Objects published before the call are found after the failure, with their contents.
    ///
    /// Without this call, a slab survives the death of any or all of its processes. But after a power failure, its file
    /// consists of whichever pages the kernel had written: the slab opens, but objects may be missing, and contents may
    /// be older than their words.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn sync(&self) -> Result<(), Error> {
        self.mapping.memory.sync(0, self.mapping.header.geometry.file_bytes())
    }

    /// Like [`sync`](RawSlab::sync), for one object: once this returns, the object survives a power failure, with its
    /// contents. Before that, the device may have the object's word without its bytes, so do not pass the handle on
    /// earlier.
    ///
    /// # Errors
    /// [`Error::System`]; [`Error::Stale`]; [`Error::Foreign`]; [`Error::Held`].
    pub fn sync_object(&self, handle: Handle) -> Result<(), Error> {
        self.check(handle)?;
        let geometry = &self.mapping.header.geometry;
        let index = handle.index();
        self.mapping.memory.sync(geometry.objects() + index * geometry.object_bytes, geometry.object_bytes)?;
        self.mapping.memory.sync(geometry.words() + 8 * index, 8)
    }

    /// The size of an object in bytes.
    #[must_use]
    pub fn object_bytes(&self) -> u64 {
        self.mapping.header.geometry.object_bytes
    }

    /// The alignment of objects in bytes.
    pub(crate) fn align_bytes(&self) -> u64 {
        self.mapping.header.geometry.align_bytes
    }

    /// The maximum number of objects.
    #[must_use]
    pub fn max_objects(&self) -> u64 {
        self.mapping.header.geometry.max_objects
    }

    /// The application's tag, given when the slab was made.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.mapping.header.tag
    }

    /// The descriptor of the slab's memory, to be passed to another process; `None` if it has none.
    #[must_use]
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.mapping.memory.file().map(AsFd::as_fd)
    }
}

impl std::fmt::Debug for RawSlab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawSlab").field("header", &self.mapping.header).finish_non_exhaustive()
    }
}

/// Reads the header without mapping the file, which is not trusted until the header has been checked.
pub(crate) fn read_header(file: &File) -> Result<Header, Error> {
    let failed = |source| Error::system("read the slab's header", source);
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(Error::NotAFile { found: file::kind(metadata.file_type()) });
    }
    let length = metadata.len();
    let mut bytes = [0; 8 * FIXED];
    if length < bytes.len() as u64 {
        let mut first = [0; 8];
        let short = first.len().min(length as usize);
        file.read_exact_at(&mut first[..short], 0).map_err(failed)?;
        let found = u64::from_le_bytes(first);
        return Err(if found == MAGIC {
            Error::Truncated { expected: bytes.len() as u64, found: length }
        } else {
            Error::NotASlab { expected: MAGIC, found }
        });
    }
    file.read_exact_at(&mut bytes, 0).map_err(failed)?;
    let mut words = [0; FIXED];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("chunks of eight bytes"));
    }
    Header::read(&words, length)
}
