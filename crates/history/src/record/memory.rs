//! Memory that the kernel has given before it is needed.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// Where pages are of 4 KiB; elsewhere huge ones are of another size, and advice for them comes to nothing.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// No kernel has smaller pages.
const PAGE_BYTES: usize = 4096;

/// So much of what was used once is kept.
const KEPT_BYTES_MOST: usize = 256 << 20;

/// Memory that was used and let go of. A test records again and again, and what the kernel has cleared and given for one recording it need not
/// clear for the next.
static KEPT: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// Memory, aligned to 8 bytes at least. What is in it is anybody's guess.
///
/// The kernel clears what it gives, and does that several times as fast for one huge page as for 512 small ones. So more than half a
/// huge page is made whole ones; and those are kept for the next who asks for as much.
pub(super) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: owns its memory, which is plain bytes.
unsafe impl Send for Memory {}

impl Memory {
    /// No bytes, aligned like the others.
    pub(super) const NONE: Memory = Memory { start: NonNull::<u64>::dangling().cast(), layout: Layout::new::<()>() };

    /// So many bytes or more.
    ///
    /// # Panics
    /// If no address space holds as many.
    pub(super) fn of(bytes: usize) -> Self {
        let align = if bytes > HUGE_PAGE_BYTES / 2 { HUGE_PAGE_BYTES } else { align_of::<u64>() };
        let layout = Layout::from_size_align(bytes, align).expect("as much as an address space holds").pad_to_align();
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

    /// What the allocator has; its layout has a size.
    fn unpopulated(layout: Layout) -> Self {
        debug_assert!(layout.size() > 0);
        // SAFETY: the size is not zero.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        Memory { start, layout }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.layout.size()
    }

    fn is_huge(&self) -> bool {
        self.layout.align() == HUGE_PAGE_BYTES
    }

    /// The pages that it lies in, which are therefore mapped: where they start, and how many bytes they are.
    fn pages(&self) -> (*mut libc::c_void, usize) {
        // SAFETY: sysconf has no preconditions.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(PAGE_BYTES);
        let first = self.start.as_ptr().map_addr(|address| address / page * page);
        (first.cast(), (self.start.addr().get() + self.bytes()).next_multiple_of(page) - first.addr())
    }

    /// Asks the kernel for all of it at once; whether it did (Linux 5.14 and later).
    fn populate(&self) -> bool {
        let (first, bytes) = self.pages();
        // SAFETY: these pages are mapped, and their contents stay as they are.
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
            // SAFETY: within the allocation, which nobody else knows.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.is_huge() {
            let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.iter().map(Memory::bytes).sum::<usize>() + self.bytes() <= KEPT_BYTES_MOST {
                kept.push(Memory { start: self.start, layout: self.layout });
                return;
            }
        }
        if self.layout.size() > 0 {
            // SAFETY: allocated with this layout, and nobody has kept it.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}

/// Memory of this layout that was used before.
fn kept(layout: Layout) -> Option<Memory> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = kept.iter().rposition(|memory| memory.layout == layout)?;
    Some(kept.swap_remove(fits))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of the memory that the kernel has not given.
    fn missing(memory: &Memory) -> usize {
        let (first, bytes) = memory.pages();
        let mut resident = vec![0_u8; bytes / PAGE_BYTES];
        // SAFETY: the pages are mapped, and there is a byte for each of them, however large they are.
        let refused = unsafe { libc::mincore(first, bytes, resident.as_mut_ptr()) };
        assert_eq!(refused, 0, "{}", std::io::Error::last_os_error());
        resident.iter().filter(|&&byte| byte & 1 == 0).count()
    }

    /// Memory that nothing has been done to.
    fn fresh(bytes: usize) -> Memory {
        let layout = Layout::from_size_align(bytes, HUGE_PAGE_BYTES).unwrap().pad_to_align();
        let fresh = Memory::unpopulated(layout);
        assert!(missing(&fresh) > 0, "the allocator had it already");
        fresh
    }

    #[test]
    fn the_kernel_has_given_all_of_it() {
        for bytes in [1, 100, 1 << 16, 1 << 20, (1 << 20) + 8, 3 << 20] {
            let memory = Memory::of(bytes);
            assert!(memory.bytes() >= bytes);
            assert_eq!(missing(&memory), 0, "{bytes}");
        }
    }

    #[test]
    fn either_way_to_ask_for_it_does() {
        let touched = fresh(80 << 20);
        touched.touch();
        assert_eq!(missing(&touched), 0);
        let populated = fresh(82 << 20);
        // Refused by a kernel that is too old.
        if populated.populate() {
            assert_eq!(missing(&populated), 0);
        }
    }

    #[test]
    fn what_was_let_go_of_is_given_again_and_to_one_only_and_is_bounded() {
        // No other test asks for so much.
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

        // But no more is kept than the bound.
        drop(Memory::of(KEPT_BYTES_MOST + 1));
        drop([Memory::of(100 << 20), Memory::of(100 << 20), Memory::of(100 << 20)]);
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(kept.iter().map(Memory::bytes).sum::<usize>() <= KEPT_BYTES_MOST);
        assert!(!kept.is_empty());
    }
}
