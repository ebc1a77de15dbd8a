//! The name of an object.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::values::hash;

/// The name of an object, which is the same in every process. It identifies the slab, the object, and the current use
/// of the object, which ends when the object is freed. `bytes(handle)` returns 16 bytes, which may be sent to other
/// processes and stored in objects; `Handle.from_bytes` reads them.
///
/// Every use checks the handle. If its object was freed, or if it belongs to another slab, SlabError is raised.
#[pyclass(frozen, eq, from_py_object, module = "millstream.slab")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle(pub(super) millstream_slab::Handle);

#[pymethods]
impl Handle {
    #[new]
    fn new(low: u64, high: u64) -> Self {
        Self(bytemuck::cast([low, high]))
    }

    /// The handle of these 16 bytes.
    #[staticmethod]
    fn from_bytes(bytes: Vec<u8>) -> PyResult<Self> {
        let bytes: [u8; 16] = bytes
            .try_into()
            .map_err(|bytes: Vec<u8>| PyValueError::new_err(format!("a handle has 16 bytes, found {}", bytes.len())))?;
        Ok(Self(bytemuck::cast(bytes)))
    }

    /// The number of the object in its slab.
    #[getter]
    fn index(&self) -> u64 {
        self.0.index()
    }

    fn __bytes__(&self) -> [u8; 16] {
        bytemuck::cast(self.0)
    }

    fn __getnewargs__(&self) -> (u64, u64) {
        let [low, high] = bytemuck::cast(self.0);
        (low, high)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash(py, self.__getnewargs__())
    }

    pub(super) fn __repr__(&self) -> String {
        let (low, high) = self.__getnewargs__();
        format!("Handle({low:#x}, {high:#x})")
    }
}
