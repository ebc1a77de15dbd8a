//! The sizes of a stack and its guard, in whole pages.

/// The smallest stack: enough for a panic to be reported.
pub(crate) const MIN_STACK_BYTES: usize = 16 * 1024;
/// The largest stack.
pub(crate) const MAX_STACK_BYTES: usize = 1 << 30;
/// The largest guard: a mark takes an entry of the page table for each of its pages.
pub(crate) const MAX_GUARD_BYTES: usize = 1 << 20;

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
        Layout {
            stack_bytes: stack_bytes.clamp(MIN_STACK_BYTES, MAX_STACK_BYTES).next_multiple_of(page),
            guard_bytes: guard_bytes.clamp(page, MAX_GUARD_BYTES).next_multiple_of(page),
        }
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
