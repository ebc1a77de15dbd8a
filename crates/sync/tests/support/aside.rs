//! An allocator that poisons freed memory and keeps it aside for a while, so that a use after free shows.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// The number of blocks kept aside, and the size of the largest in bytes.
const BLOCKS: usize = 4096;
const MAX_BYTES: usize = 512;
const POISON: u8 = 0xA5;

#[global_allocator]
static ALLOCATOR: Aside = Aside(Mutex::new(Blocks { blocks: [None; BLOCKS], next: 0 }));

struct Aside(Mutex<Blocks>);

/// A ring of blocks, in which the newest replaces the oldest.
struct Blocks {
    blocks: [Option<(*mut u8, Layout)>; BLOCKS],
    next: usize,
}

// SAFETY: the ring owns its blocks, because their users have given them up.
unsafe impl Send for Blocks {}

// SAFETY: this is the system's allocator, except that it returns blocks later.
unsafe impl GlobalAlloc for Aside {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let mut oldest = Some((block, layout));
        if layout.size() <= MAX_BYTES {
            // SAFETY: the caller gives up the block, which has `layout.size()` bytes.
            unsafe { ptr::write_bytes(block, POISON, layout.size()) };
            let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let next = blocks.next;
            oldest = std::mem::replace(&mut blocks.blocks[next], oldest);
            blocks.next = (next + 1) % BLOCKS;
        }
        if let Some((block, layout)) = oldest {
            // SAFETY: `alloc` above got the block from the system by this layout.
            unsafe { System.dealloc(block, layout) };
        }
    }
}
