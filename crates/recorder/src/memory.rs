//! Memory whose pages the kernel has populated before the memory is used.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// The size of a huge page on machines whose pages have 4 KiB. On other machines, huge pages have another size, and the advice
/// has no effect.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The smallest page size of any Linux kernel.
const PAGE_BYTES: usize = 4096;

/// The maximum number of bytes of used memory that are kept.
const MAX_KEPT_BYTES: usize = 256 << 20;

/// Memory of finished recordings. A test usually makes many recordings. If they reuse memory, the kernel need not clear and
/// populate new memory for each.
static KEPT: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// Memory, aligned to at least 8 bytes, with arbitrary contents.
///
/// The kernel clears memory before a program gets it. It clears one huge page several times faster than the same amount in 512
/// small pages. A request for more than half a huge page is therefore rounded up to whole huge pages. After use, the memory is
/// kept for the next request of the same size.
pub(crate) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the value owns its memory, which consists of plain bytes and is not bound to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Memory whose size is 0, aligned like all other memory.
    pub(crate) const NONE: Memory = Memory { start: NonNull::<u64>::dangling().cast(), layout: Layout::new::<()>() };

    /// Returns memory of at least this many bytes.
    ///
    /// # Panics
    /// Panics if no address space is that large.
    pub(crate) fn of(bytes: usize) -> Self {
        let align = if bytes > HUGE_PAGE_BYTES / 2 { HUGE_PAGE_BYTES } else { align_of::<u64>() };
        let layout =
            Layout::from_size_align(bytes, align).expect("a size that fits into an address space").pad_to_align();
        if layout.size() == 0 {
            return Memory::NONE;
        }
        kept(layout).unwrap_or_else(|| {
            let memory = Memory::unpopulated(layout);
            if !memory.populate() {
                memory.touch();
            }
            memory
        })
    }

    /// Returns new memory from the allocator. The size of the layout must not be zero.
    fn unpopulated(layout: Layout) -> Self {
        debug_assert!(layout.size() > 0);
        // SAFETY: the layout's size is not zero, as `alloc` requires.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        Memory { start, layout }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn bytes(&self) -> usize {
        self.layout.size()
    }

    fn is_huge(&self) -> bool {
        self.layout.align() == HUGE_PAGE_BYTES
    }

    /// Returns the start and the size in bytes of the pages that contain the memory. All of them are mapped.
    fn pages(&self) -> (*mut libc::c_void, usize) {
        // SAFETY: sysconf has no preconditions.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(PAGE_BYTES);
        let first = self.start.as_ptr().map_addr(|address| address / page * page);
        (first.cast(), (self.start.addr().get() + self.bytes()).next_multiple_of(page) - first.addr())
    }

    /// Asks the kernel to populate all pages at once (Linux 5.14 and later). Returns whether the kernel did.
    fn populate(&self) -> bool {
        let (first, bytes) = self.pages();
        // SAFETY: these pages are mapped, and the advice leaves their contents as they are.
        unsafe {
            if self.is_huge() {
                // A kernel without huge pages refuses this advice, and the memory gets small pages.
                libc::madvise(first, bytes, libc::MADV_HUGEPAGE);
            }
            libc::madvise(first, bytes, libc::MADV_POPULATE_WRITE) == 0
        }
    }

    /// Writes to every page, so that the kernel populates it.
    fn touch(&self) {
        for offset in (0..self.bytes()).step_by(PAGE_BYTES) {
            // SAFETY: the byte is within the allocation, which only this value owns.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.is_huge() {
            let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.iter().map(Memory::bytes).sum::<usize>() + self.bytes() <= MAX_KEPT_BYTES {
                kept.push(Memory { start: self.start, layout: self.layout });
                return;
            }
        }
        if self.layout.size() > 0 {
            // SAFETY: the memory was allocated with this layout, and `KEPT` does not have it.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}

/// Takes memory of this layout out of the kept memory, if there is any.
fn kept(layout: Layout) -> Option<Memory> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = kept.iter().rposition(|memory| memory.layout == layout)?;
    Some(kept.swap_remove(fits))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of the memory's pages that the kernel has not populated.
    fn missing(memory: &Memory) -> usize {
        let (first, bytes) = memory.pages();
        let mut resident = vec![0_u8; bytes / PAGE_BYTES];
        // SAFETY: the pages are mapped, and `resident` has a byte for each of them, whatever their size.
        let refused = unsafe { libc::mincore(first, bytes, resident.as_mut_ptr()) };
        assert_eq!(refused, 0, "{}", std::io::Error::last_os_error());
        resident.iter().filter(|&&byte| byte & 1 == 0).count()
    }

    /// Returns memory that was never touched.
    fn fresh(bytes: usize) -> Memory {
        let layout = Layout::from_size_align(bytes, HUGE_PAGE_BYTES).unwrap().pad_to_align();
        let fresh = Memory::unpopulated(layout);
        assert!(missing(&fresh) > 0, "the allocator had it already");
        fresh
    }

    #[test]
    fn memory_is_populated() {
        for bytes in [1, 100, 1 << 16, 1 << 20, (1 << 20) + 8, 3 << 20] {
            let memory = Memory::of(bytes);
            assert!(memory.bytes() >= bytes);
            assert_eq!(missing(&memory), 0, "{bytes}");
        }
    }

    #[test]
    fn touching_and_populating_are_equivalent() {
        let touched = fresh(80 << 20);
        touched.touch();
        assert_eq!(missing(&touched), 0);
        let populated = fresh(82 << 20);
        // An older kernel cannot populate memory at once.
        if populated.populate() {
            assert_eq!(missing(&populated), 0);
        }
    }

    #[test]
    fn kept_memory_is_reused_once_and_bounded() {
        // No other test requests this much memory, so the kept memory is that of this test.
        let bytes = 20 << 20;
        let (one, other) = (Memory::of(bytes), Memory::of(bytes));
        let mut starts = [one.start, other.start];
        assert_ne!(one.start, other.start);
        drop((one, other));
        let (one, other) = (Memory::of(bytes), Memory::of(bytes));
        let mut again = [one.start, other.start];
        starts.sort();
        again.sort();
        assert_eq!(starts, again);
        drop((one, other));

        // The amount kept stays within the bound.
        drop(Memory::of(MAX_KEPT_BYTES + 1));
        drop([Memory::of(100 << 20), Memory::of(100 << 20), Memory::of(100 << 20)]);
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(kept.iter().map(Memory::bytes).sum::<usize>() <= MAX_KEPT_BYTES);
        assert!(!kept.is_empty());
    }
}
