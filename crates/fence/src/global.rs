//! The system call membarrier(2) without interrupts: the kernel waits for a grace period of its own.
//!
//! When it returns, every core has switched to another thread, was idle, or was interrupted in user mode; each of these
//! is a full barrier for the thread that ran there. It costs only time: one grace period of the kernel's
//! read-copy-update ([`Fence::QUIET`](crate::Fence) says how long). A kernel with tickless cores for single threads
//! (`nohz_full`) refuses it, since on such a core none of these need ever happen.

use crate::backend::{Backend, Tickets};
use crate::membarrier::{call, offered};

pub(crate) const BACKEND: Backend = Backend {
    name: "global",
    about: "membarrier(GLOBAL) on the heavy side, a grace period of the kernel; nothing on the light side",
    asymmetric: true,
    tickets: Tickets::ByThread,
    prepare,
    heavy,
};

fn prepare() -> Result<(), String> {
    if offered()? & libc::MEMBARRIER_CMD_GLOBAL == 0 {
        return Err("the kernel has no membarrier(GLOBAL)".to_owned());
    }
    heavy()
}

fn heavy() -> Result<(), String> {
    call(libc::MEMBARRIER_CMD_GLOBAL).map(drop).map_err(|error| format!("membarrier(GLOBAL): {error}"))
}
