//! Memory that the kernel has populated before its use.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// The size of a huge page where pages have 4 KiB; elsewhere huge pages have another size, and the advice has no
/// effect.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The smallest page size of any kernel.
const PAGE_BYTES: usize = 4096;

/// The maximum amount of used memory that is kept.
const MAX_KEPT_BYTES: usize = 256 << 20;

/// Memory of finished recordings. A test records again and again, and the kernel need not clear for the next recording
/// the memory that it has cleared and populated for an earlier one.
static KEPT: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// Memory, aligned to at least 8 bytes, with arbitrary contents.
///
/// The kernel clears the memory that it gives, several times as fast for one huge page as for 512 small ones. So a
/// request for more than half a huge page is rounded up to whole huge pages, which are kept for the next request of the
/// same size.
pub(crate) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the value owns its memory, plain bytes that belong to no thread.
unsafe impl Send for Memory {}

impl Memory {
    /// No bytes, aligned like all other memory.
    pub(crate) const NONE: Memory = Memory { start: NonNull::<u64>::dangling().cast(), layout: Layout::new::<()>() };

    /// At least this many bytes.
    ///
    /// # Panics
    /// If no address space is that large.
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

    /// Memory straight from the allocator; the layout's size is not zero.
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

    /// The pages that contain the memory, and are therefore mapped: their start, and their size in bytes.
    fn pages(&self) -> (*mut libc::c_void, usize) {
        // SAFETY: sysconf has no preconditions.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(PAGE_BYTES);
        let first = self.start.as_ptr().map_addr(|address| address / page * page);
        (first.cast(), (self.start.addr().get() + self.bytes()).next_multiple_of(page) - first.addr())
    }

    /// Asks the kernel to populate all of it at once; returns whether it did (Linux 5.14 and later).
    fn populate(&self) -> bool {
        let (first, bytes) = self.pages();
        // SAFETY: these pages are mapped, and the advice leaves their contents as they are.
        unsafe {
            if self.is_huge() {
                // A kernel without huge pages refuses, and gives small ones.
                libc::madvise(first, bytes, libc::MADV_HUGEPAGE);
            }
            libc::madvise(first, bytes, libc::MADV_POPULATE_WRITE) == 0
        }
    }

    /// Writes to every page.
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

/// Kept memory of this layout.
fn kept(layout: Layout) -> Option<Memory> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = kept.iter().rposition(|memory| memory.layout == layout)?;
    Some(kept.swap_remove(fits))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the pages of the memory that the kernel has not populated.
    fn missing(memory: &Memory) -> usize {
        let (first, bytes) = memory.pages();
        let mut resident = vec![0_u8; bytes / PAGE_BYTES];
        // SAFETY: the pages are mapped, and `resident` has a byte for each of them, whatever their size.
        let refused = unsafe { libc::mincore(first, bytes, resident.as_mut_ptr()) };
        assert_eq!(refused, 0, "{}", std::io::Error::last_os_error());
        resident.iter().filter(|&&byte| byte & 1 == 0).count()
    }

    /// Memory that was never touched.
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
        // An older kernel refuses.
        if populated.populate() {
            assert_eq!(missing(&populated), 0);
        }
    }

    #[test]
    fn kept_memory_is_reused_once_and_bounded() {
        // No other test requests that much.
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
