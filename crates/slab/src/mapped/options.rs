//! Creation of slabs.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;

use crate::mapped::attach::Others;
#[cfg(doc)]
use crate::mapped::cache::RawCache;
use crate::mapped::error::Error;
use crate::mapped::file;
use crate::mapped::geometry::{Geometry, MAX_CHAIN, PAGE};
use crate::mapped::handle::IDENTITY_BITS;
use crate::mapped::header::Header;
use crate::mapped::mapping::Mapping;
use crate::mapped::memory::Source;
use crate::mapped::raw::RawSlab;

/// The properties of a new slab; `S` is the type to make, [`RawSlab`] or [`Slab`](crate::Slab).
///
/// ```
/// use millstream_slab::Slab;
///
/// let slab = Slab::<[u64; 8]>::options(1_000_000).capacity(10_000).caches(128).private()?;
/// assert_eq!(slab.raw().max_objects(), 1_000_000);
/// # Ok::<(), millstream_slab::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options<S = RawSlab> {
    object_bytes: u64,
    align_bytes: u64,
    max_objects: u64,
    capacity: Option<u64>,
    caches: u64,
    chain: Option<u64>,
    tag: u64,
    huge_pages: bool,
    owners: bool,
    reserve: bool,
    mode: u32,
    trusts_others: bool,
    face: PhantomData<S>,
}

/// The permissions to read, write and execute, without set-user-ID and similar bits.
const MAX_MODE: u32 = 0o777;
/// The number of caches by default.
const DEFAULT_CACHES: u64 = 64;

impl<S: TryFrom<RawSlab, Error: Into<Error>>> Options<S> {
    pub(crate) fn new(object_bytes: u64, align_bytes: u64, max_objects: u64) -> Self {
        Options {
            object_bytes,
            align_bytes,
            max_objects,
            capacity: None,
            caches: DEFAULT_CACHES,
            chain: None,
            tag: 0,
            huge_pages: false,
            owners: false,
            reserve: false,
            mode: file::OWNER_ONLY,
            trusts_others: false,
            face: PhantomData,
        }
    }

    /// Sets how many objects may be used at first; the number doubles on demand, up to the maximum. The default is the
    /// maximum.
    ///
    /// Objects never move. The file has its full length at once, with holes where no object has been used.
    #[must_use]
    pub fn capacity(mut self, objects: u64) -> Self {
        self.capacity = Some(objects);
        self
    }

    /// Sets how many caches and [parcels](crate::RawParcel) can exist at once, in all processes. Each takes 128 bytes
    /// of the file. The default is 64, the maximum 16384.
    #[must_use]
    pub fn caches(mut self, caches: u64) -> Self {
        self.caches = caches;
        self
    }

    /// Sets how many objects move between a cache and the depot at once, at most 64. A cache keeps up to twice that
    /// number to itself, so an allocation can fail while each other cache in use has `2 × chain` free objects. The
    /// default is 64, or less where all caches together could keep more than a quarter of a small slab.
    #[must_use]
    pub fn chain(mut self, objects: u64) -> Self {
        self.chain = Some(objects);
        self
    }

    /// Sets a number that tells this application's objects from those of others; see [`RawSlab::tag`]. The default is
    /// 0.
    #[must_use]
    pub fn tag(mut self, tag: u64) -> Self {
        self.tag = tag;
        self
    }

    /// Keeps an owner for each object: the number that the application gave its last holder's
    /// [cache](RawCache::set_owner), written when the object is published and when its holder is found dead. So a
    /// supervisor can tell a dead worker's objects from those of others; see [`RawSlab::owner`]. This option costs 8
    /// bytes for each object, and one more store for each publication.
    #[must_use]
    pub fn owners(mut self) -> Self {
        self.owners = true;
        self
    }

    /// Sets the permissions of the file that [`create`](Self::create) makes, at most 0777; the process's umask applies.
    /// The default is 0600: only the owner may read and write. A process needs to read and to write the file to use the
    /// slab. [`open_or_create`](Self::open_or_create) refuses an existing file that more users may write to than these
    /// permissions allow.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Lets [`open_or_create`](Self::open_or_create) open a file that belongs to another user, or that others may write
    /// to although [`mode`](Self::mode) does not say so. Those users can fill the file with garbage. They can also
    /// truncate it, and then every process that uses the slab dies of SIGBUS.
    #[must_use]
    pub fn trust_others(mut self) -> Self {
        self.trusts_others = true;
        self
    }

    /// Asks for huge pages: objects begin at a multiple of 2 MiB, in the file and in memory, and the kernel is advised
    /// to use huge pages for them. The kernel grants them for memory without a file, and for `/dev/shm` and memfd where
    /// `/sys/kernel/mm/transparent_hugepage/shmem_enabled` allows it. This option affects speed only.
    #[must_use]
    pub fn huge_pages(mut self) -> Self {
        self.huge_pages = true;
        self
    }

    /// Reserves space in the file system for every object before the object can be allocated. So a full device is an
    /// error of the allocation that grows the slab, and not a SIGBUS at the first write. Without this option, the
    /// processor that first accesses a page allocates it, on its own NUMA node. A process that opens the slab does not
    /// reserve objects when it grows the slab: make the slab with its full capacity, or let only this process grow it.
    #[must_use]
    pub fn reserve(mut self) -> Self {
        self.reserve = true;
        self
    }

    /// Makes the slab in a new file. For memory that outlives its processes but not a reboot, choose a path in
    /// `/dev/shm`. The file appears whole or not at all.
    ///
    /// # Errors
    /// [`Error::Exists`]; [`Error::OutOfRange`]; [`Error::System`].
    pub fn create(&self, path: impl AsRef<Path>) -> Result<S, Error> {
        self.geometry()?;
        let path = path.as_ref();
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let slab = match rustix::fs::open(folder, flags, Mode::from_raw_mode(self.mode)) {
            Ok(file) => {
                let file = File::from(file);
                // The file has no name until it is whole: a killed process leaves nothing.
                let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
                let slab = self.make(Source::File(file))?;
                let linked = rustix::fs::linkat(CWD, nameless, CWD, path, AtFlags::SYMLINK_FOLLOW);
                linked.map_err(|error| not_made(path, error.into()))?;
                slab
            }
            // This file system has no `O_TMPFILE`.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => self.create_by_draft(folder, path)?,
            Err(error) => return Err(not_made(path, error.into())),
        };
        // The name, too, should survive a power failure. If the folder cannot be written out, or not by this user, the
        // kernel writes it at some later time.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
        Ok(slab)
    }

    /// Makes the slab under a temporary name first, then links the file to its own name.
    fn create_by_draft(&self, folder: &Path, path: &Path) -> Result<S, Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // The PID distinguishes processes that make the same slab at once, and random bits distinguish threads.
        let draft = folder.join(format!(".{name}.{}-{:x}", std::process::id(), identity()?));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(self.mode).open(&draft);
        let file = file.map_err(|source| Error::system(format!("make {}", draft.display()), source))?;
        let made = self.make(Source::File(file));
        let made = made.and_then(|slab| match fs::hard_link(&draft, path) {
            Ok(()) => Ok(slab),
            Err(error) => Err(not_made(path, error)),
        });
        let removed = fs::remove_file(&draft);
        let removed = removed.map_err(|source| Error::system(format!("remove {}", draft.display()), source));
        made.and_then(|slab| removed.map(|()| slab))
    }

    /// Opens the slab in this file, or makes it if there is none; processes that start together get the same slab.
    ///
    /// An existing slab must hold objects of this size and alignment, with this tag. It keeps all its other properties,
    /// whatever these options say.
    ///
    /// # Errors
    /// [`Error::OtherObjects`]; otherwise as [`RawSlab::open`] and [`create`](Self::create).
    ///
    /// ```
    /// use millstream_slab::Slab;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("sessions");
    /// let options = Slab::<[u64; 8]>::options(1000).tag(7);
    /// let handle = options.open_or_create(&path)?.cache()?.alloc([1; 8])?.publish();
    /// assert_eq!(options.open_or_create(&path)?.read(handle)?, [1; 8]);
    /// # Ok::<(), millstream_slab::Error>(())
    /// ```
    pub fn open_or_create(&self, path: impl AsRef<Path>) -> Result<S, Error> {
        let path = path.as_ref();
        loop {
            match self.open(path) {
                Err(Error::System { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                opened => return self.accept(opened?),
            }
            match self.create(path) {
                // Another process made the file first. A dangling symlink, however, would fail again.
                Err(Error::Exists { .. }) if !path.is_symlink() => {}
                created => return created,
            }
        }
    }

    fn open(&self, path: &Path) -> Result<RawSlab, Error> {
        RawSlab::open_file(if self.trusts_others { file::open_trusting(path) } else { file::open(path, self.mode) }?)
    }

    fn accept(&self, slab: RawSlab) -> Result<S, Error> {
        for (what, expected, found) in [
            ("size", self.object_bytes, slab.object_bytes()),
            ("alignment", self.align_bytes, slab.align_bytes()),
            ("tag", self.tag, slab.tag()),
        ] {
            if expected != found {
                return Err(Error::OtherObjects { what, expected, found });
            }
        }
        S::try_from(slab).map_err(Into::into)
    }

    /// Makes the slab in memory that has a [descriptor](RawSlab::file) but no name, for processes that receive the
    /// descriptor. The memory disappears with the last process that uses it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::System`].
    pub fn memfd(&self) -> Result<S, Error> {
        let failed = |source: io::Error| Error::system("make a memfd", source);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("millstream-slab", flags).map_err(|errno| failed(errno.into()))?;
        let file = File::from(file);
        let slab = self.make(Source::File(file.try_clone().map_err(failed)?))?;
        // With the seals, no process that gets the descriptor can truncate the memory under the others.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals).map_err(|errno| failed(errno.into()))?;
        Ok(slab)
    }

    /// Makes the slab in memory without a file, for the threads of this process and for children that it forks.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::System`].
    pub fn private(&self) -> Result<S, Error> {
        self.make(Source::Inherited)
    }

    fn make(&self, source: Source) -> Result<S, Error> {
        let geometry = self.geometry()?;
        if let Source::File(file) = &source {
            let bytes = geometry.file_bytes();
            file.set_len(bytes).map_err(|source| Error::system(format!("make a file of {bytes} bytes"), source))?;
        }
        let header = Header { geometry, identity: identity()?, tag: self.tag };
        let mapping = Mapping::map(source, header, self.reserve)?;
        let most = geometry.max_objects;
        let capacity = self.capacity.unwrap_or(most);
        if !(1..=most).contains(&capacity) {
            return Err(Error::OutOfRange { what: "capacity", found: capacity, least: 1, most });
        }
        mapping.initialise(capacity)?;
        mapping.attach(Others::Watched)?;
        if let Some(file) = mapping.memory.file() {
            // The header is written out before the file has a name, so a file with a name is a slab, even after a power
            // failure.
            mapping.memory.sync(0, PAGE)?;
            file.sync_all().map_err(|source| Error::system("write the new slab to its device", source))?;
        }
        S::try_from(RawSlab::new(Arc::new(mapping))).map_err(Into::into)
    }

    /// The layout of the slab, if every option is within its range.
    fn geometry(&self) -> Result<Geometry, Error> {
        if self.mode > MAX_MODE {
            let (what, found) = ("mode (the permissions of the file)", u64::from(self.mode));
            return Err(Error::OutOfRange { what, found, least: 0, most: u64::from(MAX_MODE) });
        }
        let fair = self.max_objects / self.caches.max(1).saturating_mul(8);
        let geometry = Geometry {
            object_bytes: self.object_bytes,
            align_bytes: self.align_bytes,
            max_objects: self.max_objects,
            caches: self.caches,
            chain: self.chain.unwrap_or(fair.clamp(1, MAX_CHAIN)),
            huge_pages: self.huge_pages,
            owners: self.owners,
        };
        geometry.check()?;
        Ok(geometry)
    }
}

/// The reason why a file could not be given its name.
fn not_made(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::AlreadyExists {
        Error::Exists { path: path.to_owned() }
    } else {
        Error::system(format!("make {}", path.display()), error)
    }
}

/// A new slab's identity, never 0: a handle of zeros belongs to no slab.
fn identity() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    // The kernel fills a request for at most 256 bytes completely, or fails.
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|source| Error::system("draw random bytes", source))?;
    Ok((u64::from_le_bytes(bytes) >> (64 - IDENTITY_BITS)) | 1)
}
