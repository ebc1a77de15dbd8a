//! Fences that stand in for one that no longer works: the kernel refuses it since a sandbox was entered, or its daemon
//! has ended.

use crate::backend::Backend;
use crate::{global, membarrier, mprotect};

/// The candidates, best first. Light fences are free already, so a stand-in must allow that.
static STAND_INS: [&Backend; 3] = [&membarrier::BACKEND, &mprotect::BACKEND, &global::BACKEND];

/// The first stand-in that works here, made ready.
pub(crate) fn first() -> Option<&'static Backend> {
    STAND_INS.into_iter().find(|backend| (backend.prepare)().is_ok())
}

/// Passes the back-end's fence or, if it is refused, another one.
///
/// # Errors
/// The reason why the back-end's fence was refused, if all are. Then no fence was passed.
pub(crate) fn pass(backend: &Backend) -> Result<(), String> {
    (backend.heavy)().or_else(|refused| {
        let mut others = STAND_INS.into_iter().filter(|other| other.name != backend.name);
        let passed = others.any(|other| (other.prepare)().is_ok() && (other.heavy)().is_ok());
        if passed { Ok(()) } else { Err(refused) }
    })
}
