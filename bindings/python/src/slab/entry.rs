//! An object that a scan of the slab has found.

use millstream_slab::{Holder, Object};
use pyo3::prelude::*;

use super::handle::Handle;
use crate::values::{hash, known};

/// An object of a slab: its handle, its state ("published", "orphan" or "private"), the process that has it if it is
/// private (otherwise 0), and the number of its owner.
#[pyclass(frozen, get_all, eq, module = "millstream.slab")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    handle: Handle,
    state: &'static str,
    pid: u32,
    owner: u64,
}

const STATES: [&str; 3] = ["published", "orphan", "private"];

impl From<Object> for Entry {
    fn from(object: Object) -> Self {
        let (state, pid) = match object.holder {
            Holder::Published => (STATES[0], 0),
            Holder::Orphan => (STATES[1], 0),
            Holder::Process { pid } => (STATES[2], pid),
        };
        Self { handle: Handle(object.handle), state, pid, owner: object.owner }
    }
}

#[pymethods]
impl Entry {
    #[new]
    fn new(handle: Handle, state: &str, pid: u32, owner: u64) -> PyResult<Self> {
        let state = known(Some(state), STATES)?.unwrap_or(STATES[0]);
        Ok(Self { handle, state, pid, owner })
    }

    fn __getnewargs__(&self) -> (Handle, &'static str, u32, u64) {
        (self.handle, self.state, self.pid, self.owner)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash(py, self.__getnewargs__())
    }

    fn __repr__(&self) -> String {
        format!("Entry({}, '{}', pid={}, owner={})", self.handle.__repr__(), self.state, self.pid, self.owner)
    }
}
