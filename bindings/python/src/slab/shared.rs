//! A slab.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millstream_slab::{Error, Options, RawSlab};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::entry::Entry;
use super::error::refused;
use super::handle::Handle;
use super::hands::{Hands, closed};
use super::private::Private;
use crate::long::compute;

/// Objects of one size in a file that many processes share. All threads may use it concurrently, and so may a forked
/// child.
///
/// The file must not be truncated while it is open, and its file system must have room: a process that finds no room is
/// killed by SIGBUS. reserve=True reserves the room when the slab is made. Processes of one machine and PID namespace
/// may share a slab. A file that others may write to is refused.
#[pyclass(frozen, module = "millstream.slab")]
pub(crate) struct Slab {
    slab: Mutex<Option<Open>>,
}

struct Open {
    slab: RawSlab,
    /// The owner of the objects that this process publishes.
    owner: u64,
    hands: Option<Arc<Hands>>,
}

impl Open {
    /// The cache of this process and its private objects. After a fork, the child gets a new cache.
    fn hands(&mut self) -> PyResult<Arc<Hands>> {
        if let Some(hands) = self.hands.as_ref().filter(|hands| hands.is_ours()) {
            return Ok(Arc::clone(hands));
        }
        let hands = Hands::new(&self.slab, self.owner).map_err(refused)?;
        self.hands = Some(Arc::clone(&hands));
        Ok(hands)
    }
}

impl Slab {
    fn of(slab: RawSlab) -> Self {
        Self { slab: Mutex::new(Some(Open { slab, owner: 0, hands: None })) }
    }

    fn made(py: Python<'_>, make: impl FnOnce() -> Result<RawSlab, Error> + Send + 'static) -> PyResult<Self> {
        compute(py, make)?.map(Self::of).map_err(refused)
    }

    /// Like the lock of [`Hands`], this lock is held only during single operations, with the GIL.
    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.slab.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slab(&self) -> PyResult<RawSlab> {
        self.lock().as_ref().map(|open| open.slab.clone()).ok_or_else(closed)
    }

    fn hands(&self) -> PyResult<Arc<Hands>> {
        self.lock().as_mut().ok_or_else(closed)?.hands()
    }
}

fn options(
    object_bytes: u64,
    max_objects: u64,
    caches: u64,
    tag: u64,
    owners: bool,
    reserve: bool,
) -> Options<RawSlab> {
    let mut options = RawSlab::options(object_bytes, max_objects).caches(caches).tag(tag);
    if owners {
        options = options.owners();
    }
    if reserve {
        options = options.reserve();
    }
    options
}

#[pymethods]
impl Slab {
    /// Makes a slab in a new file; FileExistsError if the file exists. Objects have `object_bytes` bytes, rounded up to
    /// a multiple of 8. At most `caches` processes use the slab at once. `tag` tells the objects of this program from
    /// those of others. owners=True keeps the number of each object's owner.
    #[staticmethod]
    #[pyo3(signature = (path, object_bytes, max_objects, *, caches = 64, tag = 0, owners = false, reserve = false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        object_bytes: u64,
        max_objects: u64,
        caches: u64,
        tag: u64,
        owners: bool,
        reserve: bool,
    ) -> PyResult<Self> {
        let options = options(object_bytes, max_objects, caches, tag, owners, reserve);
        Self::made(py, move || options.create(path))
    }

    /// Opens the slab in a file, or makes it as `create` does; if several processes start at once, one of them makes
    /// it.
    #[staticmethod]
    #[pyo3(signature = (path, object_bytes, max_objects, *, caches = 64, tag = 0, owners = false, reserve = false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn open_or_create(
        py: Python<'_>,
        path: PathBuf,
        object_bytes: u64,
        max_objects: u64,
        caches: u64,
        tag: u64,
        owners: bool,
        reserve: bool,
    ) -> PyResult<Self> {
        let options = options(object_bytes, max_objects, caches, tag, owners, reserve);
        Self::made(py, move || options.open_or_create(path))
    }

    /// Opens the slab in a file, in whatever state its last users left it, and recovers the objects of dead processes.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::made(py, move || RawSlab::open(path))
    }

    /// Makes a slab in memory without a name, shared with children that are forked later.
    #[staticmethod]
    #[pyo3(signature = (object_bytes, max_objects, *, caches = 64, tag = 0, owners = false, reserve = false))]
    fn memory(
        py: Python<'_>,
        object_bytes: u64,
        max_objects: u64,
        caches: u64,
        tag: u64,
        owners: bool,
        reserve: bool,
    ) -> PyResult<Self> {
        let options = options(object_bytes, max_objects, caches, tag, owners, reserve);
        Self::made(py, move || options.memfd())
    }

    /// Makes a private object. Its bytes are those of its previous use, or zero. SlabError if the slab is full.
    fn allocate(&self) -> PyResult<Private> {
        let hands = self.hands()?;
        let object = hands.hold(|cache| cache.alloc())?;
        Ok(Private::new(hands, object))
    }

    /// Makes a published object, or an orphan, private to this process, to read it in place or to change it. Its handle
    /// stays valid, but raises SlabError elsewhere until the object is published again.
    fn claim(&self, handle: Handle) -> PyResult<Private> {
        let hands = self.hands()?;
        let object = hands.hold(|cache| cache.claim(handle.0))?;
        Ok(Private::new(hands, object))
    }

    /// Copies a published object, or an orphan. If the object is claimed, changed and published during the copy, the
    /// bytes may be a mixture of old and new ones; `claim` excludes that.
    fn read<'py>(&self, py: Python<'py>, handle: Handle) -> PyResult<Bound<'py, PyBytes>> {
        let slab = self.slab()?;
        PyBytes::new_with(py, slab.object_bytes() as usize, |bytes| slab.read(handle.0, bytes).map_err(refused))
    }

    /// Frees a published object, or an orphan. SlabError if it was freed before.
    fn free(&self, handle: Handle) -> PyResult<()> {
        self.hands()?.with_cache(|cache| cache.free(handle.0))
    }

    /// All objects that are not free, in order. The scan is not atomic: each state is the one that the object had when
    /// the scan examined it.
    fn live(&self) -> PyResult<Vec<Entry>> {
        Ok(self.slab()?.live().map(Entry::from).collect())
    }

    /// Sets the owner: a number for a worker or a job. It becomes the owner of all objects that the process publishes
    /// from now on, and of its private objects when it dies. The call has no effect on a slab without owners.
    fn set_owner(&self, owner: u64) -> PyResult<()> {
        self.lock().as_mut().ok_or_else(closed)?.owner = owner;
        self.hands()?.with_cache(|cache| {
            cache.set_owner(owner);
            Ok(())
        })
    }

    /// Recovers the objects of dead processes: their free objects become free for all caches, and their private objects
    /// become orphans. Returns the number of recovered objects.
    fn recover(&self, py: Python<'_>) -> PyResult<u64> {
        let slab = self.slab()?;
        let recovered = compute(py, move || slab.recover())?.map_err(refused)?;
        Ok(recovered.freed + recovered.orphans)
    }

    /// Checks every invariant, and returns the problems. The result is exact if no other thread or process uses the
    /// slab.
    fn verify(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let slab = self.slab()?;
        compute(py, move || slab.verify().problems.iter().map(ToString::to_string).collect())
    }

    /// Writes everything to the device, so that objects published before the call survive a power failure, too.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let slab = self.slab()?;
        compute(py, move || slab.sync())?.map_err(refused)
    }

    /// The size of an object in bytes.
    #[getter]
    fn object_bytes(&self) -> PyResult<u64> {
        Ok(self.slab()?.object_bytes())
    }

    /// The largest number of objects.
    #[getter]
    fn max_objects(&self) -> PyResult<u64> {
        Ok(self.slab()?.max_objects())
    }

    /// The tag with which the slab was made.
    #[getter]
    fn tag(&self) -> PyResult<u64> {
        Ok(self.slab()?.tag())
    }

    /// Closes the slab, and frees this process's private objects; published objects remain. Raises BufferError if there
    /// are views of private objects. Closing again does nothing.
    fn close(&self) -> PyResult<()> {
        let mut slab = self.lock();
        if let Some(hands) = slab.as_ref().and_then(|open| open.hands.as_ref()) {
            hands.close()?;
        }
        *slab = None;
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close()
    }

    fn __repr__(&self) -> String {
        match self.slab() {
            Ok(slab) => format!("<Slab of {} objects of {} bytes>", slab.max_objects(), slab.object_bytes()),
            Err(_) => "<Slab, closed>".to_owned(),
        }
    }
}
