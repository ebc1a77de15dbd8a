//! Guarded stacks in reserved address space.
//!
//! A [`Chunk`](chunk::Chunk) reserves the address space of many stacks at once and installs a guard below each. Memory is
//! committed page by page as a stack is touched. A [`StackPool`] owns the chunks. Each worker has a [`StackCache`] with the
//! stacks that it used last: their pages are still in the processor's caches.
//!
//! ```text
//! low addresses                                                        high addresses
//! ┌───────┬──────────────────────┬───────┬──────────────────────┬─ ─ ─
//! │ guard │ stack ⇠ grows down   │ guard │ stack ⇠ grows down   │
//! └───────┴──────────────────────┴───────┴──────────────────────┴─ ─ ─
//! ▲ limit ▲ floor                ▲ top
//! ```
//!
//! The first touch of a page costs about 3 µs, and a guard costs 0.3 µs. Stacks are therefore reused as soon as possible, and by
//! the same worker. A pool keeps the pages of [`idle_stacks`](crate::Options::idle_stacks) idle stacks and returns the pages of
//! further ones to the kernel; their address space and guards stay.

mod cache;
mod chunk;
mod guard;
mod layout;
mod pool;
#[cfg(test)]
mod tests;

use corosensei::stack::StackPointer;

pub(crate) use cache::StackCache;
pub use guard::Guards;
pub(crate) use layout::{Layout, page_bytes};
pub(crate) use pool::StackPool;
pub use pool::StackReport;

/// An owned stack, on which code can run. The stack's pool must outlive its use.
#[derive(Debug)]
pub(crate) struct Stack {
    top: StackPointer,
    /// The lowest address of the guard.
    limit: StackPointer,
}

impl Stack {
    /// Returns the stack with this [span](Self::span).
    ///
    /// # Safety
    /// The span came from [`span`](Self::span) of a stack whose owner no longer uses it. The result is then the only owner.
    pub(crate) unsafe fn of(limit: usize, top: usize) -> Stack {
        let pointer = |address| StackPointer::new(address).expect("a mapped address is not zero");
        Stack { top: pointer(top), limit: pointer(limit) }
    }

    /// Returns the lowest address of the guard and the address above the stack.
    pub(crate) fn span(&self) -> (usize, usize) {
        (self.limit.get(), self.top.get())
    }
}

// SAFETY: the chunk installed a guard at `limit`, at least a page of usable memory lies between the guard and `top`, and both
// addresses are aligned to pages. The memory stays mapped until the pool is dropped, and the pool outlives every use of the
// stack.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        self.top
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}
