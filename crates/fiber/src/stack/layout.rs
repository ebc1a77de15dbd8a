//! The sizes of a stack and its guard, in whole pages.

/// The smallest stack: enough for a panic to be reported.
pub(crate) const MIN_STACK_BYTES: usize = 16 * 1024;
/// The largest stack, and the largest guard.
pub(crate) const MAX_STACK_BYTES: usize = 1 << 30;

/// The sizes of one stack with its guard; both are multiples of the page size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) stack_bytes: usize,
    pub(crate) guard_bytes: usize,
}

impl Layout {
    /// Rounds both sizes up to whole pages, within the limits above; a guard has at least one page.
    pub(crate) fn new(stack_bytes: usize, guard_bytes: usize) -> Self {
        let page = page_bytes();
        let whole = |bytes: usize, min: usize| bytes.clamp(min, MAX_STACK_BYTES).next_multiple_of(page);
        Layout { stack_bytes: whole(stack_bytes, MIN_STACK_BYTES), guard_bytes: whole(guard_bytes, page) }
    }

    /// The distance from one stack to the next.
    pub(crate) fn stride(self) -> usize {
        self.stack_bytes + self.guard_bytes
    }
}

/// The size of a page of memory.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: `sysconf` only reads a value.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("the page size is a positive number")
}
