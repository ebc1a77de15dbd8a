//! The system call membarrier(2): the kernel makes other cores pass a full fence.
//!
//! The expedited commands send an interrupt to each core that currently runs a thread which the command reaches. A thread that
//! does not run needs no interrupt: the switch away from it was a full fence, and the switch back to it will be one. The
//! commands reach only processes that have registered. The private command reaches only the calling process.

use std::io;

use crate::backend::{Backend, Tickets};

pub(crate) const BACKEND: Backend = Backend {
    name: "membarrier",
    about: "membarrier(PRIVATE_EXPEDITED) on the heavy side, nothing on the light side",
    asymmetric: true,
    tickets: Tickets::AtOnce,
    prepare: || prepare(&PRIVATE),
    heavy: || PRIVATE.issue(),
};

/// The command that reaches the threads of this process.
pub(crate) const PRIVATE: Command = Command {
    register: libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
    issue: libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED,
    name: "PRIVATE_EXPEDITED",
};

/// The command that reaches the threads of every process that has registered for it.
pub(crate) const GLOBAL: Command = Command {
    register: libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
    issue: libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED,
    name: "GLOBAL_EXPEDITED",
};

/// An expedited command, and the command that registers a process for it.
pub(crate) struct Command {
    register: libc::c_int,
    issue: libc::c_int,
    name: &'static str,
}

impl Command {
    /// Checks that the kernel has the command and its registration.
    pub(crate) fn probe(&self) -> Result<(), String> {
        let needed = self.register | self.issue;
        if offered()? & needed == needed { Ok(()) } else { Err(format!("the kernel has no membarrier({})", self.name)) }
    }

    /// Registers this process, so that the command reaches its threads from now on. Registering again is harmless.
    pub(crate) fn register(&self) -> Result<(), String> {
        call(self.register).map(drop).map_err(|error| format!("membarrier(REGISTER_{}): {error}", self.name))
    }

    /// Makes every other running thread that the command reaches pass a full fence.
    pub(crate) fn issue(&self) -> Result<(), String> {
        call(self.issue).map(drop).map_err(|error| format!("membarrier({}): {error}", self.name))
    }
}

/// Checks that the kernel has the command, registers this process, and issues the command once as a test.
pub(crate) fn prepare(command: &Command) -> Result<(), String> {
    command.probe()?;
    command.register()?;
    command.issue()
}

/// Returns the commands that this kernel has, one bit for each.
pub(crate) fn offered() -> Result<libc::c_int, String> {
    call(libc::MEMBARRIER_CMD_QUERY).map_err(|error| format!("no membarrier: {error}"))
}

pub(crate) fn call(command: libc::c_int) -> io::Result<libc::c_int> {
    let (flags, cpu): (libc::c_uint, libc::c_int) = (0, 0);
    // SAFETY: the call takes three integers and accesses no memory of this process.
    let outcome = unsafe { libc::syscall(libc::SYS_membarrier, command, flags, cpu) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(outcome as libc::c_int) }
}
