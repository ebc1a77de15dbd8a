//! The command of membarrier(2) that interrupts no core: the kernel waits for a grace period.
//!
//! When the call returns, every core has switched to another thread, was idle, or was interrupted in user mode. Each of these
//! events is a full barrier for the thread that ran on the core. The call costs only time: one grace period of the kernel's
//! read-copy-update; [`Fence`](crate::Fence) says how long. A kernel with tickless cores for single threads (`nohz_full`) refuses
//! the call, because such a core may never go through any of these events.

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
