//! Looking at a slab without changing it.

use std::fs::File;
use std::path::Path;

use crate::mapped::check::{Report, Usage};
use crate::mapped::error::Error;
use crate::mapped::handle::Handle;
use crate::mapped::live::Live;
use crate::mapped::memory::Access;
use crate::mapped::raw::{RawSlab, read_header};
use crate::mapped::shared::Shared;

/// A slab that is only looked at, as it is: nothing is recovered or made anew, and what dead processes had is shown as theirs.
///
/// For those who come after a crash and want to see what it left before anybody [opens](RawSlab::open) the slab and mends it; for those
/// who may not write to the file; and for files that are too damaged to be opened. While others use the slab each answer
/// is of about that moment.
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
    /// Of a mapping whose changes are nobody's but ours, and there are none.
    slab: RawSlab,
}

impl Inspection {
    /// Of the slab in a file, which has to be readable.
    ///
    /// # Errors
    /// As [`RawSlab::open`], but for [`Error::Damaged`], [`Error::Namespace`] and [`Error::Busy`].
    pub fn of(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| Error::system(format!("open {}", path.display()), source))?;
        let header = read_header(&file)?;
        let shared = Shared::map(Some(file), header, false, Access::Copy)?;
        Ok(Inspection { slab: RawSlab::new(shared.into()) })
    }

    /// Checks every invariant. What is on its way to or from the depot is no problem, whether its process lives or has died; that
    /// of processes which go on meanwhile may show as one. Ask again then: what is wrong stays wrong.
    #[must_use]
    pub fn report(&self) -> Report {
        self.slab.verify()
    }

    /// How the objects are used.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.slab.usage()
    }

    /// How many of the caches in use are of processes that live; the others are recovered when the slab is opened. `None` if they are of
    /// another PID or time namespace, whose processes can't be watched from here, and whose numbers mean others here.
    #[must_use]
    pub fn living_caches(&self) -> Option<u64> {
        self.slab.shared().living_caches()
    }

    /// All objects that are allocated, in order.
    #[must_use]
    pub fn live(&self) -> Live<'_> {
        self.slab.live()
    }

    /// Copies an object that is published, or an orphan; see [`RawSlab::read`].
    ///
    /// # Errors
    /// As there.
    pub fn read(&self, handle: Handle, bytes: &mut [u8]) -> Result<(), Error> {
        self.slab.read(handle, bytes)
    }

    /// The bytes of an object.
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
