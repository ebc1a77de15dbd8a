//! The sizes of a stack and its guard, in whole pages.

/// The minimum size of a stack, enough to report a panic.
pub(crate) const MIN_STACK_BYTES: usize = 16 * 1024;
/// The maximum size of a stack.
pub(crate) const MAX_STACK_BYTES: usize = 1 << 30;
/// The maximum size of a guard. A mark takes one page-table entry for each page of the guard.
pub(crate) const MAX_GUARD_BYTES: usize = 1 << 20;

/// The sizes of one stack with its guard; both are multiples of the page size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) stack_bytes: usize,
    pub(crate) guard_bytes: usize,
}

impl Layout {
    /// Rounds both sizes up to whole pages within the limits above. A guard has at least one page.
    pub(crate) fn new(stack_bytes: usize, guard_bytes: usize) -> Self {
        let page = page_bytes();
        Layout {
            stack_bytes: stack_bytes.clamp(MIN_STACK_BYTES, MAX_STACK_BYTES).next_multiple_of(page),
            guard_bytes: guard_bytes.clamp(page, MAX_GUARD_BYTES).next_multiple_of(page),
        }
    }

    /// Returns the distance from one stack to the next.
    pub(crate) fn stride(self) -> usize {
        self.stack_bytes + self.guard_bytes
    }
}

/// Returns the size of a page of memory.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: `sysconf` only reads a value.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("the page size is a positive number")
}
