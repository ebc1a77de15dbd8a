//! Fences that stand in for one that is not to be had any more: the kernel refuses it since a sandbox was entered, or its daemon has ended.

use crate::backend::Backend;
use crate::{global, membarrier, mprotect};

/// First that works. Light fences are free already, so it has to be one that allows that.
static STAND_INS: [&Backend; 3] = [&membarrier::BACKEND, &mprotect::BACKEND, &global::BACKEND];

/// The first that works here, made ready.
pub(crate) fn first() -> Option<&'static Backend> {
    STAND_INS.into_iter().find(|backend| (backend.prepare)().is_ok())
}

/// Passes the back-end's fence; if it is refused, another one.
///
/// # Errors
/// Why the back-end's fence was refused, if all are. Then none was passed.
pub(crate) fn pass(backend: &Backend) -> Result<(), String> {
    (backend.heavy)().or_else(|refused| {
        let mut others = STAND_INS.into_iter().filter(|other| other.name != backend.name);
        let passed = others.any(|other| (other.prepare)().is_ok() && (other.heavy)().is_ok());
        if passed { Ok(()) } else { Err(refused) }
    })
}
