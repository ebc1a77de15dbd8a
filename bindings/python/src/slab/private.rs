//! A private object, and Python's views of it.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::handle::Handle;
use super::hands::{Hands, Object};

/// An object that only this process can access, until it is published. `memoryview(private)` and
/// `numpy.frombuffer(private, dtype)` show its bytes and change them, without a copy.
///
/// While there are views of it, `publish` and `free` raise BufferError. If the Python object is deleted before it is
/// published, the slab's object is freed. If the process dies, it becomes an orphan, with its contents. In a forked
/// child, it still belongs to the parent: views from before the fork show the parent's bytes, and must not be written
/// to; new views are refused.
#[pyclass(frozen, module = "millstream.slab")]
pub(crate) struct Private {
    hands: Arc<Hands>,
    object: Object,
    /// The number of views.
    views: AtomicUsize,
}

impl Private {
    pub(super) fn new(hands: Arc<Hands>, object: Object) -> Self {
        Self { hands, object, views: AtomicUsize::new(0) }
    }

    /// Fails while there are views of the object.
    fn check(&self, what: &str) -> PyResult<()> {
        match self.views.load(Ordering::Relaxed) {
            0 => Ok(()),
            views => Err(PyBufferError::new_err(format!(
                "cannot {what} an object while it has views ({views}); delete the arrays and memoryviews first"
            ))),
        }
    }
}

#[pymethods]
impl Private {
    /// Publishes the object: from now on any process can claim, read and free it by the handle.
    fn publish(&self) -> PyResult<Handle> {
        self.check("publish")?;
        self.hands.publish(self.object.number).map(Handle)
    }

    /// Frees the object.
    fn free(&self) -> PyResult<()> {
        self.check("free")?;
        self.hands.free(self.object.number)
    }

    /// The handle that the object will have, or has again, when it is published.
    #[getter]
    fn handle(&self) -> PyResult<Handle> {
        self.hands.handle(self.object.number).map(Handle)
    }

    fn __len__(&self) -> usize {
        self.object.len
    }

    /// # Safety
    /// `view` is NULL or points to a buffer's description, as the interpreter passes it.
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        if view.is_null() {
            return Err(PyBufferError::new_err("a view needs a description to fill"));
        }
        // SAFETY: `view` is not NULL, so it points to a description. Its member must be NULL where the request fails.
        unsafe { (*view).obj = std::ptr::null_mut() };
        if let Err(error) = this.hands.add_view(this.object.number) {
            return Err(PyBufferError::new_err(error.value(slf.py()).to_string()));
        }
        let address = this.object.address as *mut std::ffi::c_void;
        // SAFETY: the object is private to this process and has this many bytes. The view holds a reference to `slf`,
        // and `check` and `Hands::close` refuse to end the object while its view is counted, so the bytes stay mapped
        // and private. Rust makes no reference to them meanwhile, so Python may write to them.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address, this.object.len as ffi::Py_ssize_t, 0, flags)
        };
        if filled != 0 {
            this.hands.end_view();
            return Err(PyErr::fetch(slf.py()));
        }
        this.views.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// # Safety
    /// `__getbuffer__` has filled the description, and its view ends now.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.views.fetch_sub(1, Ordering::Relaxed);
        self.hands.end_view();
    }

    fn __repr__(&self) -> String {
        match self.hands.handle(self.object.number) {
            Ok(handle) => format!("<Private {} of {} bytes>", Handle(handle).__repr__(), self.object.len),
            Err(_) => "<Private, no longer private>".to_owned(),
        }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // If the object was published or freed before, or belongs to the parent, there is nothing to do.
        let _ = self.hands.free(self.object.number);
    }
}
