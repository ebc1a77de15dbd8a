//! Guards: pages below a stack on which every access faults.
//!
//! Since Linux 6.13, `madvise(MADV_GUARD_INSTALL)` marks pages in the page table as guards. It does not split the mapping, so a
//! million stacks need only a few mappings. On older kernels, guards are made by `mprotect`, which splits the mapping at each
//! guard. Each stack then takes two mappings, and a process may have 65,530 mappings by default (`vm.max_map_count`).
//!
//! A fault on a marked page is a `SIGSEGV` with the code for an unmapped address, and `/proc/self/maps` does not show the guard.
//! Such a fault can be recognised only by its address. Guards of both kinds survive `MADV_DONTNEED` and a fork.

use std::io;
use std::sync::OnceLock;

use super::layout::page_bytes;

/// The advice that installs guard marks, from Linux 6.13 on.
const MADV_GUARD_INSTALL: libc::c_int = 102;
/// The number of guards that one system call installs. Larger batches are not faster.
const BATCH: usize = 64;

/// The kind of guards below stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guards {
    /// Marks in the page table (`MADV_GUARD_INSTALL`, Linux 6.13): the number of mappings does not grow with the
    /// number of stacks.
    Marks,
    /// Pages without access rights (`mprotect`): two mappings for each stack, so `vm.max_map_count` limits the number
    /// of stacks in a process.
    Mappings,
}

impl Guards {
    /// Returns the best kind for this kernel: [`Marks`](Self::Marks) if they are supported, otherwise
    /// [`Mappings`](Self::Mappings). The first call tries to mark a page.
    ///
    /// ```
    /// println!("stacks are guarded by {:?}", millstream_fiber::Guards::best());
    /// ```
    #[must_use]
    pub fn best() -> Self {
        static BEST: OnceLock<Guards> = OnceLock::new();
        *BEST.get_or_init(|| if can_mark() { Guards::Marks } else { Guards::Mappings })
    }
}

/// Tries to mark a fresh page. Returns whether the kernel supports this.
fn can_mark() -> bool {
    let bytes = page_bytes();
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: maps a fresh page at an address that the kernel chooses, marks it and unmaps it; nothing else uses it.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), bytes, rights, kind, -1, 0);
        if page == libc::MAP_FAILED {
            return false;
        }
        let marked = libc::madvise(page, bytes, MADV_GUARD_INSTALL) == 0;
        libc::munmap(page, bytes);
        marked
    }
}

/// A row of guards of `bytes` bytes each. The first is at `first`, and each further guard is `stride` bytes above the previous
/// one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) first: *mut u8,
    pub(super) stride: usize,
    pub(super) bytes: usize,
}

impl Row {
    fn at(&self, index: usize) -> *mut libc::c_void {
        self.first.wrapping_add(index * self.stride).cast()
    }

    /// Installs `count` guards. If the kernel refuses, returns the number of guards in place and the kernel's error.
    ///
    /// # Safety
    /// The guards are in a private anonymous mapping that the caller owns, and nothing uses their pages.
    pub(super) unsafe fn install(&self, kind: Guards, count: usize) -> Result<(), (usize, io::Error)> {
        let mut installed = 0;
        if kind == Guards::Marks {
            // SAFETY: the caller promises that it owns the pages and that they are unused.
            installed = unsafe { self.mark_in_batches(count) };
        }
        for index in installed..count {
            // SAFETY: the caller promises that it owns the pages and that they are unused.
            let result = unsafe {
                match kind {
                    Guards::Marks => libc::madvise(self.at(index), self.bytes, MADV_GUARD_INSTALL),
                    Guards::Mappings => libc::mprotect(self.at(index), self.bytes, libc::PROT_NONE),
                }
            };
            if result != 0 {
                return Err((index, io::Error::last_os_error()));
            }
        }
        Ok(())
    }

    /// Marks guards by `process_madvise`, many in one call, until the kernel refuses. Returns the number of guards
    /// marked.
    ///
    /// # Safety
    /// The contract of [`install`](Self::install).
    unsafe fn mark_in_batches(&self, count: usize) -> usize {
        // SAFETY: requests a descriptor of this process.
        let own = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) };
        if own < 0 {
            return 0;
        }
        let mut marked = 0;
        while marked < count {
            let batch = BATCH.min(count - marked);
            let spans: [libc::iovec; BATCH] = std::array::from_fn(|index| libc::iovec {
                iov_base: self.at(marked + index.min(batch - 1)),
                iov_len: self.bytes,
            });
            // SAFETY: the first `batch` spans are guards that belong to the caller, and nothing uses their pages.
            let bytes =
                unsafe { libc::syscall(libc::SYS_process_madvise, own, spans.as_ptr(), batch, MADV_GUARD_INSTALL, 0) };
            // The kernel returns the number of bytes it has processed, and may stop early.
            let Ok(bytes @ 1..) = usize::try_from(bytes) else { break };
            marked += bytes / self.bytes;
            if bytes != batch * self.bytes {
                break;
            }
        }
        // SAFETY: the descriptor was opened above and is not used again.
        unsafe { libc::close(own as libc::c_int) };
        marked
    }
}
