//! The restart of other threads' sections.

use std::io;
use std::sync::atomic::{Ordering::SeqCst, fence};

/// The sections that [`restart`] aborts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sections {
    /// The sections of the whole process.
    All,
    /// The sections on the processor with this number: for data that is indexed by it.
    On(u32),
}

/// Aborts each section of *this process* that is in progress, and orders memory accesses.
///
/// A section that commits after this call sees everything written before the call; a section that commits without
/// seeing it has already committed when the call returns. So a thread first sets a word that the sections check and
/// that keeps them out. Then it calls this function, and owns the data until it clears the word. Sections of other
/// processes continue undisturbed.
///
/// Blocks for about 0.4 µs with one running thread and 2 to 10 µs with several: one system call (Linux ≥ 5.10), which
/// interrupts the processors that run this process.
///
/// # Errors
/// If the kernel does not know the call or forbids it; then no section was aborted.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
/// use millstream_sync::percpu::{Sections, restart};
///
/// static CLOSED: AtomicBool = AtomicBool::new(false); // sections of this program check it
///
/// CLOSED.store(true, Relaxed);
/// if restart(Sections::All).is_ok() {
///     // No section runs that has not seen the word.
/// }
/// CLOSED.store(false, Relaxed);
/// ```
pub fn restart(sections: Sections) -> io::Result<()> {
    /// `MEMBARRIER_CMD_FLAG_CPU`, which restricts the call to one processor.
    const ONE: libc::c_int = 1;
    // The kernel does not interrupt a processor that it finds idle or in another process; this fence pairs with the
    // barrier of that processor's context switch.
    fence(SeqCst);
    let call = || match sections {
        Sections::All => membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0),
        Sections::On(cpu) => {
            membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, ONE, libc::c_int::try_from(cpu).unwrap_or(-1))
        }
    };
    match call() {
        // The kernel requires a process to register once before its first such call.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0)?;
            call()
        }
        outcome => outcome,
    }
}

fn membarrier(command: libc::c_int, flags: libc::c_int, cpu: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes numbers only, and touches no memory.
    if unsafe { libc::syscall(libc::SYS_membarrier, command, flags, cpu) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
