//! The private objects of a process, and their cache.
//!
//! In Rust, a private object borrows its cache, but Python objects cannot borrow. So a single value owns the cache and
//! all its private objects, and Python objects refer to the private objects by numbers. A view of an object keeps this
//! value alive, so the memory of the view is neither unmapped nor reused before the view ends.

use std::collections::HashMap;
use std::process;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millstream_slab::{Error, Handle, RawCache, RawPrivate, RawSlab};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;

use super::error::{SlabError, refused};

/// The cache of a slab in this process, with its private objects. A thread holds the lock only during a single
/// operation, with the GIL and without running Python code. So no thread waits for the lock, and no fork copies it
/// while it is locked.
pub(super) struct Hands {
    held: Mutex<Option<Held>>,
    /// The number of views of the objects.
    views: AtomicUsize,
    /// The process to which the objects belong.
    pid: u32,
}

/// Private objects by number, and the cache that they borrow.
struct Held {
    objects: HashMap<u64, RawPrivate<'static>>,
    /// The number of the next object. Unlike an address, a number is never reused: if a published object is claimed
    /// again, it gets a new number.
    next: u64,
    /// From a box, which is freed after the objects.
    cache: NonNull<RawCache>,
}

// SAFETY: the objects borrow from the cache alone, both move together, and a cache may move to another thread. `Held` is
// reached only through the lock of `Hands`, so one thread at a time uses them.
unsafe impl Send for Held {}

impl Held {
    /// The cache, with a lifetime that is long enough for the objects.
    fn cache(&self) -> &'static RawCache {
        // SAFETY: `drop` frees the cache, after all values with this lifetime, which are the objects: callers get to see
        // both with shorter lifetimes only.
        unsafe { self.cache.as_ref() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.objects.clear();
        // SAFETY: the cache came from a box, and its last borrowers, the objects, are gone.
        drop(unsafe { Box::from_raw(self.cache.as_ptr()) });
    }
}

/// A private object: its number, and its bytes.
#[derive(Clone, Copy)]
pub(super) struct Object {
    pub(super) number: u64,
    pub(super) address: usize,
    pub(super) len: usize,
}

impl Hands {
    pub(super) fn new(slab: &RawSlab, owner: u64) -> Result<Arc<Self>, Error> {
        let cache = slab.cache()?;
        cache.set_owner(owner);
        let held = Held { objects: HashMap::new(), next: 0, cache: NonNull::from(Box::leak(Box::new(cache))) };
        Ok(Arc::new(Self { held: Mutex::new(Some(held)), views: AtomicUsize::new(0), pid: process::id() }))
    }

    /// Whether this process created the value, rather than a parent that forked.
    pub(super) fn is_ours(&self) -> bool {
        self.pid == process::id()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the objects and their cache.
    fn with<R>(&self, work: impl FnOnce(&mut Held) -> PyResult<R>) -> PyResult<R> {
        if !self.is_ours() {
            let problem = format!("the object belongs to process {}, which has forked this one", self.pid);
            return Err(SlabError::new_err(problem));
        }
        work(self.lock().as_mut().ok_or_else(closed)?)
    }

    /// Adds the object that `take` gets from the cache.
    pub(super) fn hold(
        &self,
        take: impl for<'c> FnOnce(&'c RawCache) -> Result<RawPrivate<'c>, Error>,
    ) -> PyResult<Object> {
        self.with(|held| {
            let mut object = take(held.cache()).map_err(refused)?;
            let number = held.next;
            held.next += 1;
            let named = Object { number, address: object.as_mut_ptr() as usize, len: object.len() };
            held.objects.insert(number, object);
            Ok(named)
        })
    }

    /// Calls `work` with the cache alone.
    pub(super) fn with_cache<R>(&self, work: impl FnOnce(&RawCache) -> Result<R, Error>) -> PyResult<R> {
        self.with(|held| work(held.cache()).map_err(refused))
    }

    /// Publishes an object.
    pub(super) fn publish(&self, number: u64) -> PyResult<Handle> {
        self.with(|held| held.objects.remove(&number).map(RawPrivate::publish).ok_or_else(gone))
    }

    /// Frees an object.
    pub(super) fn free(&self, number: u64) -> PyResult<()> {
        self.with(|held| held.objects.remove(&number).map(drop).ok_or_else(gone))
    }

    /// The handle of an object.
    pub(super) fn handle(&self, number: u64) -> PyResult<Handle> {
        self.with(|held| held.objects.get(&number).map(RawPrivate::handle).ok_or_else(gone))
    }

    /// Counts a view of an object.
    pub(super) fn add_view(&self, number: u64) -> PyResult<()> {
        self.handle(number)?;
        self.views.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Ends a view.
    pub(super) fn end_view(&self) {
        self.views.fetch_sub(1, Ordering::Relaxed);
    }

    /// Frees all objects and the cache, unless there are views of objects.
    pub(super) fn close(&self) -> PyResult<()> {
        let views = self.views.load(Ordering::Relaxed);
        if views > 0 {
            return Err(PyBufferError::new_err(format!(
                "cannot close a slab while its private objects have views ({views}); delete the arrays and \
                 memoryviews first"
            )));
        }
        let held = self.lock().take();
        drop(held);
        Ok(())
    }
}

pub(super) fn closed() -> PyErr {
    PyValueError::new_err("the slab is closed")
}

fn gone() -> PyErr {
    PyValueError::new_err("the object is no longer private: it was published or freed")
}
