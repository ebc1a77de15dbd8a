//! Zeroed pages, one per processor number, that cost memory only once they are touched.

use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use super::section::STRIDE;

/// The number of processor numbers on this machine: one more than the highest possible one.
pub(crate) fn processors() -> u32 {
    static COUNT: OnceLock<u32> = OnceLock::new();
    *COUNT.get_or_init(|| possible().or_else(configured).unwrap_or(1))
}

/// Parses `0-63` or `0,2-3`: the list ascends, so its last number is the highest.
fn possible() -> Option<u32> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok()?;
    let highest: u32 = list.trim().rsplit([',', '-']).next()?.parse().ok()?;
    highest.checked_add(1)
}

fn configured() -> Option<u32> {
    // SAFETY: `sysconf` has no preconditions and touches no memory of ours.
    u32::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).ok().filter(|&count| count > 0)
}

/// A private mapping of pages, [`STRIDE`] bytes each.
#[derive(Debug)]
pub(super) struct Pages {
    first: NonNull<u8>,
    count: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; its users synchronize their accesses to it.
unsafe impl Send for Pages {}
// SAFETY: a shared reference gives out only the address; its users synchronize their accesses to the memory.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps `count` pages.
    ///
    /// # Panics
    /// If the system has no memory or no addresses left.
    pub(super) fn new(count: usize) -> Self {
        const ACCESS: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
        const KIND: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: the mapping is new and replaces no other.
        let first = unsafe { libc::mmap(ptr::null_mut(), count * STRIDE, ACCESS, KIND, -1, 0) };
        if first == libc::MAP_FAILED {
            panic!("no memory for {count} pages: {}", std::io::Error::last_os_error());
        }
        Pages { first: NonNull::new(first.cast()).expect("the kernel maps nothing at address zero by itself"), count }
    }

    pub(super) fn first(&self) -> NonNull<u8> {
        self.first
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference to it outlives the value.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.count * STRIDE) };
    }
}
