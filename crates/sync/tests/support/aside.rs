//! Freed memory is poisoned and kept aside for a while, so that whoever uses it shows.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// So many blocks, of so many bytes at most.
const BLOCKS: usize = 4096;
const BYTES_MOST: usize = 512;
const POISON: u8 = 0xA5;

#[global_allocator]
static ALLOCATOR: Aside = Aside(Mutex::new(Blocks { blocks: [None; BLOCKS], next: 0 }));

struct Aside(Mutex<Blocks>);

/// A ring of blocks, the oldest of which makes room for the latest.
struct Blocks {
    blocks: [Option<(*mut u8, Layout)>; BLOCKS],
    next: usize,
}

// SAFETY: the blocks are in nobody else's hands.
unsafe impl Send for Blocks {}

// SAFETY: the system's allocator; blocks are only given back later.
unsafe impl GlobalAlloc for Aside {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let mut oldest = Some((block, layout));
        if layout.size() <= BYTES_MOST {
            // SAFETY: the caller gives the block up.
            unsafe { ptr::write_bytes(block, POISON, layout.size()) };
            let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let next = blocks.next;
            oldest = std::mem::replace(&mut blocks.blocks[next], oldest);
            blocks.next = (next + 1) % BLOCKS;
        }
        if let Some((block, layout)) = oldest {
            // SAFETY: allocated above, by this layout.
            unsafe { System.dealloc(block, layout) };
        }
    }
}
