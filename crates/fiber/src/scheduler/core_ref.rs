//! References to control blocks, counted in the block.
//!
//! A fiber begins with two references, one for its queue and one for its handle, so a spawn need not change the count. The
//! queue's reference moves with the fiber: to the worker that runs the fiber, to the fiber itself while it waits, and to the
//! queue into which a wake-up puts the fiber.

use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, offset_of};
use std::ops::Deref;
use std::ptr::NonNull;

use super::blocks::Blocks;
use super::core::Core;
use super::inbox::Linked;
use super::local::Local;
use crate::primitive::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// The memory of a control block. It is used for nothing else as long as its [`Blocks`] exist, so any thread may read its count
/// at any time.
#[repr(C, align(64))]
pub(super) struct Block {
    /// The number of references; 0 means that there is no fiber in the block.
    references: AtomicUsize,
    blocks: NonNull<Blocks>,
    core: UnsafeCell<MaybeUninit<Core>>,
}

impl Block {
    pub(super) fn empty(blocks: NonNull<Blocks>) -> Self {
        Block { references: AtomicUsize::new(0), blocks, core: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Puts a fiber into an empty block, and returns its two references.
    ///
    /// # Safety
    /// The block is empty, and belongs to the caller alone.
    pub(super) unsafe fn fill(block: NonNull<Self>, core: Core) -> [CoreRef; 2] {
        // SAFETY: the block is allocated; its content belongs to the caller.
        let this = unsafe { block.as_ref() };
        // SAFETY: without a reference, no other thread reads the content.
        unsafe { (*this.core.get()).write(core) };
        // Release pairs with the acquire in `get`.
        this.references.store(2, Release);
        [CoreRef { block }, CoreRef { block }]
    }

    /// Returns a reference to the fiber in the block, if there is one.
    pub(super) fn get(block: NonNull<Self>) -> Option<CoreRef> {
        // SAFETY: the caller keeps the blocks alive.
        let references = unsafe { &block.as_ref().references };
        let more = |count: usize| (count > 0).then(|| count + 1);
        // Acquire pairs with the release in `fill`: a thread that adds a reference sees the fiber.
        references.fetch_update(Acquire, Relaxed, more).ok().map(|_| CoreRef { block })
    }
}

/// A counted reference to a fiber's control block.
pub(crate) struct CoreRef {
    block: NonNull<Block>,
}

// SAFETY: `Core` is `Send` and `Sync`, and the last reference may be dropped by any thread; see `Core`.
unsafe impl Send for CoreRef {}
// SAFETY: as for `Send`.
unsafe impl Sync for CoreRef {}

impl CoreRef {
    #[inline]
    pub(crate) fn as_ptr(this: &Self) -> *const Core {
        // SAFETY: the block is alive. The pointer's provenance still covers the whole block.
        unsafe { (&raw const (*this.block.as_ptr()).core).cast::<Core>() }
    }

    pub(crate) fn into_raw(this: Self) -> *const Core {
        let core = Self::as_ptr(&this);
        std::mem::forget(this);
        core
    }

    /// # Safety
    /// The pointer comes from [`into_raw`](Self::into_raw), and its reference passes to the result. A pointer from
    /// [`as_ptr`](Self::as_ptr) is also allowed if the result is never dropped.
    #[inline]
    pub(crate) unsafe fn from_raw(core: *const Core) -> Self {
        // The pointer may come from a reference to the fiber, whose provenance does not cover the rest of the block.
        let block = std::ptr::with_exposed_provenance_mut(core.addr() - offset_of!(Block, core));
        // SAFETY: the pointer points into a block, so the block's address is not zero.
        CoreRef { block: unsafe { NonNull::new_unchecked(block) } }
    }

    pub(crate) fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.block == other.block
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn count(this: &Self) -> usize {
        // SAFETY: this is a reference.
        unsafe { this.block.as_ref() }.references.load(Relaxed)
    }

    /// Destroys the fiber in a block whose last reference is gone, and returns the block to its worker or its pool.
    #[cold]
    #[inline(never)]
    fn empty(block: NonNull<Block>) {
        // SAFETY: the block is alive until it is returned.
        let this = unsafe { block.as_ref() };
        // SAFETY: there is no reference left, so only this thread uses the content.
        unsafe { (*this.core.get()).assume_init_drop() };
        if !Local::keep_block(this.blocks, block) {
            // SAFETY: the pool exists until all of its blocks are returned.
            unsafe { Blocks::give_back(this.blocks, [block]) };
        }
    }
}

impl Clone for CoreRef {
    #[inline]
    fn clone(&self) -> Self {
        // Relaxed: the caller has a reference, so the fiber exists. Even if references are leaked, a count of 64 bits takes
        // centuries to overflow. SAFETY: this is a reference.
        let count = unsafe { self.block.as_ref() }.references.fetch_add(1, Relaxed);
        debug_assert!(count > 0, "a reference is copied while it lives");
        CoreRef { block: self.block }
    }
}

impl Drop for CoreRef {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this is a reference.
        let references = unsafe { &self.block.as_ref().references };
        // Release pairs with the acquire of the thread that drops the last reference: all uses of the fiber happen before it is
        // destroyed.
        if references.fetch_sub(1, Release) == 1 {
            fence(Acquire);
            Self::empty(self.block);
        }
    }
}

impl Deref for CoreRef {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        // SAFETY: this is a reference, so there is a fiber in the block.
        unsafe { &*Self::as_ptr(self) }
    }
}

impl Linked for Core {
    type Ref = CoreRef;

    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }

    fn into_raw(this: CoreRef) -> *const Self {
        CoreRef::into_raw(this)
    }

    unsafe fn from_raw(core: *const Self) -> CoreRef {
        // SAFETY: the caller passes a pointer from `into_raw`, with its reference.
        unsafe { CoreRef::from_raw(core) }
    }
}
