//! The stack on which a worker handles signals, since the fiber's own stack may be full.

use std::ptr;

/// The size of a signal stack. It is large enough for this crate's handler, and for the previous handler, which may print a
/// backtrace.
const BYTES: usize = 128 * 1024;

/// A thread's signal stack. The thread uses it until the value is dropped. The stack has a guard page below it.
pub(crate) struct SignalStack {
    mapping: *mut libc::c_void,
    mapped_bytes: usize,
    before: libc::stack_t,
}

impl SignalStack {
    /// Gives the thread a signal stack. Returns `None` if there is no memory; the thread then keeps its current one.
    pub(crate) fn install() -> Option<Self> {
        let guard_bytes = crate::stack::page_bytes();
        let mapped_bytes = guard_bytes + BYTES;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: this is a fresh mapping, whose lowest page becomes the guard. The kernel fills `before`, for which zeros are
        // a valid value, and uses the rest of the mapping as the thread's signal stack until `drop`.
        unsafe {
            let mapping = libc::mmap(ptr::null_mut(), mapped_bytes, rights, kind, -1, 0);
            if mapping == libc::MAP_FAILED {
                return None;
            }
            libc::mprotect(mapping, guard_bytes, libc::PROT_NONE);
            let stack = libc::stack_t { ss_sp: mapping.wrapping_byte_add(guard_bytes), ss_flags: 0, ss_size: BYTES };
            let mut before: libc::stack_t = std::mem::zeroed();
            if libc::sigaltstack(&raw const stack, &raw mut before) != 0 {
                libc::munmap(mapping, mapped_bytes);
                return None;
            }
            Some(SignalStack { mapping, mapped_bytes, before })
        }
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        // SAFETY: the value is dropped on its own thread, outside a handler. The kernel uses the previous signal stack from
        // then on, so the mapping is unused.
        unsafe {
            if libc::sigaltstack(&raw const self.before, ptr::null_mut()) == 0 {
                libc::munmap(self.mapping, self.mapped_bytes);
            }
        }
    }
}
