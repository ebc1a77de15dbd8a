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
use crate::mapped::memory::Source;
use crate::mapped::options::Options;
use crate::mapped::parcel::RawParcel;
use crate::mapped::recover::Recovered;
use crate::mapped::shared::Shared;
use crate::word::Word;

/// A slab of objects of so many raw bytes, shared by threads and processes; [`Slab`](crate::Slab) is the typed form.
///
/// Cheap to clone: clones are the same slab. To allocate and free, each thread makes a [cache](RawSlab::cache).
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
    shared: Arc<Shared>,
}

impl RawSlab {
    /// What a new slab of at most `max_objects` objects is like. The bytes of an object are rounded up to a multiple of 8.
    #[must_use]
    pub fn options(object_bytes: u64, max_objects: u64) -> Options<RawSlab> {
        Options::new(object_bytes.max(1).checked_next_multiple_of(8).unwrap_or(u64::MAX), 8, max_objects)
    }

    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        RawSlab { shared }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Opens the slab in a file, whatever state its last users left it in.
    ///
    /// What dead processes had in their hands is recovered, while others go on. If no process uses the slab, its free list is checked, and rebuilt from
    /// the words of its objects if it is damaged or the machine was restarted. Either takes time in proportion to the objects ever used, some
    /// ten milliseconds for a million.
    ///
    /// Waits while another process rebuilds the free list: for ten seconds at most, or 0.1 s while that process is stopped. Waits as long for processes that
    /// recover, and then opens all the same: what such a process recovers stays out of reach until it goes on or dies.
    ///
    /// The file belongs to this user or to root, and no others may write to it: who may write can cut it off, and then every process that has mapped it dies
    /// of SIGBUS. To trust others, open the file and use [`open_file`](RawSlab::open_file).
    ///
    /// # Errors
    /// [`Error::Untrusted`] for a file that others may write to; [`Error::NotAFile`], [`Error::NotASlab`], [`Error::Version`], [`Error::Checksum`],
    /// [`Error::Geometry`], [`Error::OutOfRange`], [`Error::Truncated`], [`Error::Damaged`] for a file that is not a sound slab, whatever its bytes are;
    /// [`Error::Namespace`]; [`Error::Busy`]; [`Error::System`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_file(file::open(path.as_ref(), file::OWNER_ONLY)?)
    }

    /// Opens the slab in a file that is open: a memfd that was handed over, for example. All who may write to the file are trusted, whoever its owner is. A
    /// memfd that [`Options::memfd`] made can't be cut off.
    ///
    /// # Errors
    /// As [`open`](RawSlab::open), but for [`Error::Untrusted`].
    pub fn open_file(file: File) -> Result<Self, Error> {
        Ok(Self::attach(file, Others::Watched)?.0)
    }

    /// Opens the slab in a file on the caller's word that no other process uses it: for a file whose last users ran in
    /// a PID namespace that is gone, and can't be watched. What caches had in their hands is recovered.
    ///
    /// # Errors
    /// As [`open`](RawSlab::open).
    ///
    /// # Safety
    /// Nobody else uses the slab, neither another process nor this one: objects would be allocated twice, and two would hold one.
    pub unsafe fn open_alone(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(Self::attach(file::open(path.as_ref(), file::OWNER_ONLY)?, Others::Absent)?.0)
    }

    fn attach(file: File, others: Others) -> Result<(Self, Recovered), Error> {
        let header = read_header(&file)?;
        let shared = Shared::map(Source::File(file), header, false)?;
        let recovered = shared.attach(others)?;
        Ok((Self::new(Arc::new(shared)), recovered))
    }

    /// Opens as [`open`](RawSlab::open), and tells what was found in the hands of the dead.
    ///
    /// # Errors
    /// As [`open`](RawSlab::open).
    pub fn open_and_report(path: impl AsRef<Path>) -> Result<(Self, Recovered), Error> {
        Self::open_file_and_report(file::open(path.as_ref(), file::OWNER_ONLY)?)
    }

    /// Opens as [`open_file`](RawSlab::open_file), and tells what was found in the hands of the dead.
    ///
    /// # Errors
    /// As [`open_file`](RawSlab::open_file).
    pub fn open_file_and_report(file: File) -> Result<(Self, Recovered), Error> {
        Self::attach(file, Others::Watched)
    }

    /// A cache for a thread of this process.
    ///
    /// Takes some 10 µs. Waits while another process rebuilds the free list, and if no slot is free while others recover some; as long as
    /// [`open`](RawSlab::open).
    ///
    /// # Errors
    /// [`Error::NoCache`]; [`Error::Busy`]; [`Error::System`].
    pub fn cache(&self) -> Result<RawCache, Error> {
        RawCache::new(Arc::clone(&self.shared))
    }

    /// An empty parcel, to carry private objects from one thread of this process to another.
    ///
    /// # Errors
    /// As [`cache`](RawSlab::cache).
    pub fn parcel(&self) -> Result<RawParcel, Error> {
        RawParcel::new(Arc::clone(&self.shared))
    }

    /// Copies a published object, or an orphan.
    ///
    /// The handle is checked again after the bytes were read, so they are never those of a later life of the object. They
    /// can be a mixture if the object is claimed, changed and published again meanwhile, and an orphan's can be what a kill has left half
    /// written: whoever wants to exclude the first [claims](RawCache::claim) it. Lock-free.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Foreign`]; [`Error::Held`]; [`Error::OtherObjects`] when `bytes` are not as many as
    /// an object has.
    pub fn read(&self, handle: Handle, bytes: &mut [u8]) -> Result<(), Error> {
        self.check_size(bytes)?;
        self.read_beginning(handle, bytes)
    }

    /// Whether there is room for exactly an object.
    pub(crate) fn check_size(&self, bytes: &[u8]) -> Result<(), Error> {
        let (expected, found) = (bytes.len() as u64, self.object_bytes());
        if expected == found { Ok(()) } else { Err(Error::OtherObjects { what: "size", expected, found }) }
    }

    /// [`read`](RawSlab::read) of as many bytes as there is room for, at most those of an object.
    pub(crate) fn read_beginning(&self, handle: Handle, bytes: &mut [u8]) -> Result<(), Error> {
        self.check(handle)?;
        let start = self.shared.object(handle.index()).cast::<AtomicU64>();
        // SAFETY: an object is aligned to 8 bytes and a multiple of 8 long. Whoever writes to it meanwhile makes these
        // bytes worthless, which the check below finds out. As a rule such a writer is another process, which is none of the language's
        // business; one of this process that has claimed the object writes plainly, a race that the language has no words for (a copy that
        // tears, whose result is thrown away: what a sequence lock does), and that machines give a meaning to.
        let words = unsafe { std::slice::from_raw_parts(start.as_ptr(), self.object_bytes() as usize / 8) };
        for (copy, word) in bytes.chunks_mut(8).zip(words) {
            copy.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes()[..copy.len()]);
        }
        // The loads above before the load of the word: if any of them saw a later holder's store, this one sees that the
        // object is not published any more.
        fence(Ordering::Acquire);
        self.check(handle)
    }

    /// Whether a handle is good, and its object neither freed nor private.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Foreign`]; [`Error::Held`].
    pub fn check(&self, handle: Handle) -> Result<(), Error> {
        let generation = handle.in_place();
        // Acquire: pairs with the release of whoever published it.
        let found = self.shared.look_up(handle)?.load(Ordering::Acquire);
        if found == generation.published() || found == generation.orphan() {
            return Ok(());
        }
        Err(self.shared.refusal(handle, Word(found)))
    }

    /// What the application called who published the object, or who held it and died: the number given to the cache by
    /// [`set_owner`](RawCache::set_owner); 0 where none was given, or where the slab does not keep [owners](Options::owners).
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
    /// // What worker 7 left, once it is known to be dead:
    /// for object in slab.live().filter(|object| object.owner == 7) {
    ///     cache.free(object.handle)?;
    /// }
    /// # Ok::<(), millstream_slab::Error>(())
    /// ```
    pub fn owner(&self, handle: Handle) -> Result<u64, Error> {
        self.check(handle)?;
        let index = handle.index();
        let found = Word(self.shared.look_up(handle)?.load(Ordering::Acquire));
        let owner = live::owner(&self.shared, index, found);
        // The number is the object's if the object is still the same.
        fence(Ordering::Acquire);
        self.check(handle).map(|()| owner)
    }

    /// Where a published object lies in this process, for structures whose users have an agreement of their own (atomics in
    /// the object, a lock). The bytes must not be touched once somebody frees or claims the object.
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Foreign`]; [`Error::Held`].
    pub fn pointer(&self, handle: Handle) -> Result<NonNull<u8>, Error> {
        self.check(handle)?;
        Ok(self.shared.object(handle.index()))
    }

    /// All objects that are allocated, in order, each as it is when it is come to.
    #[must_use]
    pub fn live(&self) -> Live<'_> {
        self.live_from(0)
    }

    /// [`live`](RawSlab::live) from the object with this number on.
    #[must_use]
    pub fn live_from(&self, index: u64) -> Live<'_> {
        Live::new(&self.shared, index)
    }

    /// Returns what dead processes had in their caches, and makes orphans of what they held, while the others go on. Opening
    /// does that, and so does an allocation that finds no object.
    ///
    /// Lock-free as long as no other process recovers or rebuilds the free list: those are waited for, as by [`open`](RawSlab::open), so that afterwards
    /// all is recovered of processes that were dead before.
    ///
    /// # Errors
    /// [`Error::Busy`] when another process takes too long with what it recovers, all else is recovered then; [`Error::Namespace`]; [`Error::Damaged`];
    /// [`Error::System`].
    pub fn recover(&self) -> Result<Recovered, Error> {
        self.shared.recover()
    }

    /// How the objects are used: a count over all of them, exact if nobody allocates or frees meanwhile.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::count(&self.shared)
    }

    /// Checks every invariant. What is on its way to or from the depot is no problem; what others do while this looks may show as one.
    #[must_use]
    pub fn verify(&self) -> Report {
        Report::of(&self.shared)
    }

    /// Makes the kernel write everything to the device, and waits for it: the level at which a slab survives a power
    /// failure. Objects that were published before are found afterwards, with their contents.
    ///
    /// Without it, a slab survives the death of any or all of its processes, but a power failure leaves of a file whatever
    /// pages the kernel had written: it opens, but objects may be missing, and contents may be older than their words.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn sync(&self) -> Result<(), Error> {
        self.shared.memory.sync(0, self.shared.header.geometry.file_bytes())
    }

    /// [`sync`](RawSlab::sync) of one object: once it returns, the object is there after a power failure, with its contents. Before, the kernel
    /// may have written its word without its bytes: tell others of the handle afterwards.
    ///
    /// # Errors
    /// [`Error::System`]; [`Error::Stale`]; [`Error::Foreign`]; [`Error::Held`].
    pub fn sync_object(&self, handle: Handle) -> Result<(), Error> {
        self.check(handle)?;
        let geometry = &self.shared.header.geometry;
        let index = handle.index();
        self.shared.memory.sync(geometry.objects() + index * geometry.object_bytes, geometry.object_bytes)?;
        self.shared.memory.sync(geometry.words() + 8 * index, 8)
    }

    /// The bytes of an object.
    #[must_use]
    pub fn object_bytes(&self) -> u64 {
        self.shared.header.geometry.object_bytes
    }

    /// The alignment of objects.
    #[must_use]
    pub fn align_bytes(&self) -> u64 {
        self.shared.header.geometry.align_bytes
    }

    /// The most objects there can be.
    #[must_use]
    pub fn max_objects(&self) -> u64 {
        self.shared.header.geometry.max_objects
    }

    /// The application's tag, given when the slab was made.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.shared.header.tag
    }

    /// The descriptor of its memory, to be handed to another process; `None` if it has none.
    #[must_use]
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.shared.memory.file().map(AsFd::as_fd)
    }
}

impl std::fmt::Debug for RawSlab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawSlab").field("header", &self.shared.header).finish_non_exhaustive()
    }
}

/// Reads the header without mapping anything: nothing of the file is believed before.
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
