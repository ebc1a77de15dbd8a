//! A chunk: a range of address space for many stacks.

use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;

use corosensei::stack::StackPointer;

use super::Stack;
use super::guard::{Guards, Row};
use super::layout::{Layout, page_bytes};

/// A mapping with `stacks` stacks, each above its guard.
#[derive(Debug)]
pub(super) struct Chunk {
    base: NonNull<u8>,
    layout: Layout,
    pub(super) stacks: usize,
    reserved_bytes: usize,
}

// SAFETY: a chunk owns its mapping; its methods pass addresses to the kernel and touch no memory themselves.
unsafe impl Send for Chunk {}

impl Chunk {
    /// Reserves the address space of `stacks` stacks and guards them. If the kernel refuses further guards midway, the
    /// chunk has fewer stacks.
    ///
    /// # Errors
    /// Returns the kernel's error if it cannot provide even one stack.
    pub(super) fn map(layout: Layout, stacks: usize, guards: Guards) -> io::Result<Chunk> {
        let reserved_bytes = stacks.checked_mul(layout.stride()).ok_or(io::ErrorKind::OutOfMemory)?;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        // SAFETY: the kernel chooses the address of the new mapping, so it does not replace another mapping.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), reserved_bytes, rights, kind, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).expect("the kernel maps nothing at address zero unasked");
        let mut chunk = Chunk { base, layout, stacks, reserved_bytes };
        // SAFETY: the advice concerns the fresh mapping alone. It keeps the first touch of a stack from committing a huge page. A
        // kernel without huge pages returns an error, which does no harm.
        unsafe { libc::madvise(base.as_ptr().cast(), reserved_bytes, libc::MADV_NOHUGEPAGE) };
        let row = Row { first: base.as_ptr(), stride: layout.stride(), bytes: layout.guard_bytes };
        // SAFETY: the guards are in the fresh mapping, which nothing uses yet.
        if let Err((guarded, error)) = unsafe { row.install(guards, stacks) } {
            chunk.stacks = guarded;
            if guarded == 0 {
                return Err(error);
            }
        }
        Ok(chunk)
    }

    /// Returns the stack at `index`. The pool calls this once for each stack.
    pub(super) fn stack(&self, index: usize) -> Stack {
        assert!(index < self.stacks, "the chunk has {} stacks", self.stacks);
        let limit = self.base.as_ptr() as usize + index * self.layout.stride();
        let pointer = |address| StackPointer::new(address).expect("a mapped address is not zero");
        Stack { top: pointer(limit + self.layout.stride()), limit: pointer(limit) }
    }

    /// Returns the greatest depth of the chunk's stacks, in bytes: for each stack, the depth to which it has been touched since
    /// it was last trimmed.
    pub(super) fn deepest(&self) -> usize {
        (0..self.stacks).map(|index| used_bytes(self.stack(index).span(), self.layout)).max().unwrap_or(0)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: this chunk owns the mapping, and the pool is dropped only when no stack is in use.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.reserved_bytes) };
    }
}

/// Returns an error if the kernel cannot map `bytes` more bytes for this process.
pub(super) fn probe(bytes: usize) -> io::Result<()> {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the kernel chooses the address of the new mapping, so it does not replace another mapping, and nothing uses it.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, kind, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: unmaps the mapping that was made above.
    unsafe { libc::munmap(base, bytes) };
    Ok(())
}

/// Returns the depth to which a stack has been touched since it was last trimmed, in bytes, rounded up to pages. The first
/// argument is the stack's [span](Stack::span). Makes one system call for every 256 pages.
///
/// The stack may be in use meanwhile. Pages in swap are not counted, so on a machine with swap the depth is a lower
/// bound.
pub(super) fn used_bytes((limit, top): (usize, usize), layout: Layout) -> usize {
    let page = page_bytes();
    let mut floor = limit + layout.guard_bytes;
    let mut present = [0u8; 256];
    while floor < top {
        let pages = present.len().min((top - floor) / page);
        // SAFETY: the span is in the chunk's mapping, and `present` has a byte for each of its pages. The call reads only the
        // page table, not the memory.
        let result = unsafe { libc::mincore(floor as *mut c_void, pages * page, present.as_mut_ptr()) };
        if result != 0 {
            return 0;
        }
        if let Some(first) = present[..pages].iter().position(|byte| byte & 1 == 1) {
            return top - floor - first * page;
        }
        floor += pages * page;
    }
    0
}

/// Returns the pages of an idle stack to the kernel. The guard stays.
pub(super) fn trim(stack: &Stack, layout: Layout) {
    let (limit, top) = stack.span();
    let floor = limit + layout.guard_bytes;
    // SAFETY: the stack is idle, so its pages contain no live object; they read as zeros afterwards.
    unsafe { libc::madvise(floor as *mut c_void, top - floor, libc::MADV_DONTNEED) };
}
