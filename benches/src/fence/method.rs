//! The kinds of heavy fence, each reduced to its essential calls.

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use millstream_fence::barrierd::{Client, VirtualTime};
use rustix::time::{ClockId, clock_gettime};

use crate::error::Error;
use crate::fence::daemon::Daemon;

/// Number of kinds.
pub const COUNT: usize = 5;
/// Names of the kinds, in the order that every array here uses.
pub const NAMES: [&str; COUNT] = ["expedited", "mprotect", "global", "barrierd, real time", "barrierd, virtual time"];
/// Index of `global`.
pub const GLOBAL: usize = 2;
/// Indices of the daemon's kinds.
pub const DAEMON: [usize; 2] = [3, 4];
/// The maximum time of a fence; beyond it, the fence has failed.
const LIMIT: Duration = Duration::from_secs(10);
const PAGE_BYTES: usize = 4096;

/// The connection and the page that the kinds need.
pub struct Methods {
    client: Client,
    page: *mut libc::c_void,
}

// SAFETY: the page belongs to this value alone, so it may move to another thread with it.
unsafe impl Send for Methods {}

impl Methods {
    /// Registers with membarrier, maps the page and connects to the daemon.
    ///
    /// # Errors
    /// Fails if this kernel lacks one of the kinds.
    pub fn new(daemon: &Daemon) -> Result<Methods, Error> {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)?;
        membarrier(libc::MEMBARRIER_CMD_GLOBAL)?;
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping overlaps no existing memory.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE_BYTES, rights, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(Error::new("mmap gave no page for mprotect"));
        }
        Ok(Methods { client: daemon.client()?, page })
    }

    /// Executes a fence of this kind and returns its duration.
    ///
    /// # Errors
    /// Fails if the kernel refuses the fence or the daemon ends.
    pub fn pass(&self, method: usize) -> Result<Duration, Error> {
        let begun = Instant::now();
        match method {
            0 => membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)?,
            1 => self.protect()?,
            GLOBAL => membarrier(libc::MEMBARRIER_CMD_GLOBAL)?,
            3 => {
                fence(Ordering::SeqCst);
                let clock = clock_gettime(ClockId::Monotonic);
                let since_ns = clock.tv_sec as u64 * 1_000_000_000 + clock.tv_nsec as u64;
                // A processor may have read its clock before the fence began, and virtual time after the fence began.
                // The fence is then repeated.
                while !self.client.has_passed_clock(since_ns) {
                    self.until_passed(self.client.now())?;
                }
            }
            _ => self.until_passed(self.client.now())?,
        }
        Ok(begun.elapsed())
    }

    fn until_passed(&self, since: VirtualTime) -> Result<(), Error> {
        let deadline = Instant::now() + LIMIT;
        while !self.client.has_passed(since) {
            self.client.wait(since, deadline).map_err(|gone| Error::new(gone.to_string()))?;
            if Instant::now() > deadline {
                return Err(Error::new("a fence of the daemon took more than ten seconds"));
            }
        }
        Ok(())
    }

    fn protect(&self) -> Result<(), Error> {
        // SAFETY: this value owns the page, which holds no data; the write happens between the calls, while the page is
        // writable.
        let outcome = unsafe {
            let writable = libc::mprotect(self.page, PAGE_BYTES, libc::PROT_READ | libc::PROT_WRITE);
            if writable == 0 {
                self.page.cast::<u8>().write_volatile(1);
            }
            writable | libc::mprotect(self.page, PAGE_BYTES, libc::PROT_READ)
        };
        if outcome == 0 { Ok(()) } else { Err(Error::new("mprotect refused")) }
    }
}

impl Drop for Methods {
    fn drop(&mut self) {
        // SAFETY: this value owns the page, and no reference into it exists.
        unsafe { libc::munmap(self.page, PAGE_BYTES) };
    }
}

fn membarrier(command: libc::c_int) -> Result<(), Error> {
    // SAFETY: membarrier takes integers and touches none of this program's memory.
    let outcome = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if outcome < 0 {
        return Err(Error::new(format!("membarrier({command}): {}", std::io::Error::last_os_error())));
    }
    Ok(())
}
