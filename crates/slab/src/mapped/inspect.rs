//! Inspecting a slab without changing it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use crate::mapped::check::{Report, Usage};
use crate::mapped::error::Error;
use crate::mapped::file;
use crate::mapped::handle::Handle;
use crate::mapped::header::Header;
use crate::mapped::live::Live;
use crate::mapped::mapping::Mapping;
use crate::mapped::memory::{Memory, Source};
use crate::mapped::raw::{RawSlab, read_header};
use crate::word::Word;

/// A read-only view of a slab as it is: nothing is recovered or rebuilt, and a dead process's objects are shown as its
/// own.
///
/// It is for the aftermath of a crash, before a process [opens](RawSlab::open) and repairs the slab; for users without
/// permission to write to the file; for files of other users; and for files that are too damaged to open. The file is
/// read and never mapped, so it may be truncated meanwhile. Everything except the bytes of objects is copied when the
/// inspection begins. While other processes use the slab, the copy is only approximate. The copy takes 24 bytes of
/// memory for each object ever used.
///
/// ```
/// use millstream_slab::{Inspection, RawSlab};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("slab");
/// let slab = RawSlab::options(64, 1000).create(&path)?;
/// let held = slab.cache()?;
/// let object = held.alloc()?;
///
/// let inspection = Inspection::of(&path)?;
/// assert_eq!((inspection.usage().held, inspection.living_caches()), (1, Some(1)));
/// assert!(inspection.report().is_sound());
/// # drop(object);
/// # Ok::<(), millstream_slab::Error>(())
/// ```
#[derive(Debug)]
pub struct Inspection {
    /// A slab over a copy of everything but the objects.
    slab: RawSlab,
    file: File,
}

impl Inspection {
    /// Inspects the slab in a file, which must be readable. Never blocks.
    ///
    /// # Errors
    /// As [`RawSlab::open`], except [`Error::Untrusted`], [`Error::Damaged`], [`Error::Namespace`] and [`Error::Busy`].
    pub fn of(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = file::open_to_read(path.as_ref())?;
        let header = read_header(&file)?;
        let mut memory = Memory::map(Source::Own, header.geometry.objects(), false)?;
        copy(&file, &header, &mut memory)?;
        let mapping = Mapping::new(memory, header, false)?;
        Ok(Inspection { slab: RawSlab::new(mapping.into()), file })
    }

    /// Checks every invariant. An object on its way to or from the depot is not a problem, whether its process lives or
    /// has died. A change that another process made while the file was read may show as a problem: inspect the slab
    /// again, and see which problems remain.
    #[must_use]
    pub fn report(&self) -> Report {
        self.slab.verify()
    }

    /// Counts the objects by state.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.slab.usage()
    }

    /// The number of caches in use whose processes live; opening the slab recovers the others. `None` if the processes
    /// belong to another PID or time namespace: they cannot be watched from here, where their PIDs name other
    /// processes.
    #[must_use]
    pub fn living_caches(&self) -> Option<u64> {
        self.slab.mapping().living_caches()
    }

    /// Iterates over all allocated objects, in order.
    #[must_use]
    pub fn live(&self) -> Live<'_> {
        self.slab.live()
    }

    /// Copies an object that is published, or an orphan, as it is now; see [`RawSlab::read`].
    ///
    /// # Errors
    /// As [`RawSlab::read`], and [`Error::Truncated`].
    pub fn read(&self, handle: Handle, bytes: &mut [u8]) -> Result<(), Error> {
        self.slab.check_size(bytes)?;
        let mapping = self.slab.mapping();
        mapping.look_up(handle)?;
        let Header { geometry, .. } = mapping.header;
        let (index, generation) = (handle.index(), handle.in_place());
        let check = || {
            let mut word = [0; 8];
            read_at(&self.file, &mapping.header, &mut word, geometry.words() + 8 * index)?;
            let found = u64::from_le_bytes(word);
            let is_good = found == generation.published() || found == generation.orphan();
            if is_good { Ok(()) } else { Err(mapping.refusal(handle, Word(found))) }
        };
        check()?;
        read_at(&self.file, &mapping.header, bytes, geometry.objects() + index * geometry.object_bytes)?;
        // The word is checked again, as in a mapped slab, so the bytes belong to the life that the handle names.
        fence(Ordering::Acquire);
        check()
    }

    /// The size of an object in bytes.
    #[must_use]
    pub fn object_bytes(&self) -> u64 {
        self.slab.object_bytes()
    }

    /// The alignment of objects.
    #[must_use]
    pub fn align_bytes(&self) -> u64 {
        self.slab.align_bytes()
    }

    /// The application's tag.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.slab.tag()
    }
}

/// Copies everything but the objects; holes of the file take no memory in the copy.
fn copy(file: &File, header: &Header, memory: &mut Memory) -> Result<(), Error> {
    for range in file::data(file, 0..header.geometry.objects()) {
        read_at(file, header, memory.bytes_mut(range.clone()), range.start)?;
    }
    // This returns an error if the file is shorter than its header says: then its last byte is missing.
    read_at(file, header, &mut [0], header.geometry.file_bytes() - 1)
}

fn read_at(file: &File, header: &Header, bytes: &mut [u8], offset: u64) -> Result<(), Error> {
    file.read_exact_at(bytes, offset).map_err(|source| {
        if source.kind() == io::ErrorKind::UnexpectedEof {
            let found = file.metadata().map_or(offset, |metadata| metadata.len());
            return Error::Truncated { expected: header.geometry.file_bytes(), found };
        }
        Error::system("read the slab", source)
    })
}
