//! Zeroed pages, one for each number of a processor, that cost memory when they are touched.

use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use super::raw::STRIDE;

/// How many numbers processors of this machine can have: the highest possible one and one more.
#[must_use]
pub fn processors() -> u32 {
    static COUNT: OnceLock<u32> = OnceLock::new();
    *COUNT.get_or_init(|| possible().or_else(configured).unwrap_or(1))
}

/// `0-63`, or `0,2-3`: ascending, so the last number is the highest.
fn possible() -> Option<u32> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok()?;
    let highest: u32 = list.trim().rsplit([',', '-']).next()?.parse().ok()?;
    highest.checked_add(1)
}

fn configured() -> Option<u32> {
    // SAFETY: a question.
    u32::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).ok().filter(|&count| count > 0)
}

/// Pages of the process, [`STRIDE`] bytes each.
#[derive(Debug)]
pub(super) struct Pages {
    first: NonNull<u8>,
    count: usize,
}

// SAFETY: a piece of memory; who may touch it when is its users' matter.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// # Panics
    /// If the system has no memory left, or no addresses.
    pub(super) fn new(count: usize) -> Self {
        const ACCESS: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
        const KIND: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, where there is none.
        let first = unsafe { libc::mmap(ptr::null_mut(), count * STRIDE, ACCESS, KIND, -1, 0) };
        if first == libc::MAP_FAILED {
            panic!("no memory for {count} pages: {}", std::io::Error::last_os_error());
        }
        Pages { first: NonNull::new(first.cast()).expect("a mapping of the system's choice is not at zero"), count }
    }

    pub(super) fn first(&self) -> NonNull<u8> {
        self.first
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: ours, and nobody uses them any more.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.count * STRIDE) };
    }
}
