//! Stand-ins: fences that replace a fence that no longer works. Either the process has entered a sandbox in which the kernel
//! refuses that fence, or the daemon has ended.

use crate::backend::Backend;
use crate::{global, membarrier, mprotect};

/// The candidates, best first. Light fences are already free in this process, so only asymmetric back-ends can be stand-ins.
static STAND_INS: [&Backend; 3] = [&membarrier::BACKEND, &mprotect::BACKEND, &global::BACKEND];

/// Returns the first stand-in that works here, after preparing it.
pub(crate) fn first() -> Option<&'static Backend> {
    STAND_INS.into_iter().find(|backend| (backend.prepare)().is_ok())
}

/// Passes the back-end's fence. If the kernel refuses it, passes a stand-in's fence.
///
/// # Errors
/// If all fences are refused, returns the reason why the back-end's own fence was refused. In this case, no fence was passed.
pub(crate) fn pass(backend: &Backend) -> Result<(), String> {
    (backend.heavy)().or_else(|refused| {
        let mut others = STAND_INS.into_iter().filter(|other| other.name != backend.name);
        let passed = others.any(|other| (other.prepare)().is_ok() && (other.heavy)().is_ok());
        if passed { Ok(()) } else { Err(refused) }
    })
}
