//! The memory of control blocks, which later fibers reuse, and the list of all live fibers.
//!
//! A worker reuses the block that it freed last, as it does with stacks. Blocks pass between workers and this pool in batches. As
//! long as the pool exists, a block stays at its address, so the list of all blocks is also the list of all fibers. A block
//! counts as a live fiber while there are references to the fiber in it, so a fiber enters and leaves this list without a lock.
//!
//! A handle may outlive its runtime. The pool therefore lives until the runtime has ended and all blocks are returned.

use std::ptr::NonNull;
use std::sync::Arc;

use super::core::Core;
use super::core_ref::{Block, CoreRef};
use super::post::Post;
use crate::primitive::Mutex;

/// The number of blocks in the first chunk. Each further chunk is twice as large, up to `MAX_CHUNK`.
const FIRST_CHUNK: usize = if cfg!(loom) { 1 } else { 64 };
/// The number of blocks in the largest chunk.
const MAX_CHUNK: usize = 1024;
/// The number of blocks that move between a worker and the pool at once.
const BATCH: usize = 32;
/// The maximum number of blocks that a worker keeps.
const MAX_KEPT: usize = 64;

/// The control blocks of a runtime.
pub(crate) struct Blocks {
    state: Mutex<State>,
    /// Keeps the workers' posts alive as long as the blocks, because a wake-up uses the post of its fiber's worker.
    _posts: Box<[Arc<Post>]>,
}

#[derive(Default)]
struct State {
    chunks: Vec<Chunk>,
    idle: Vec<Idle>,
    /// The number of all blocks.
    count: usize,
    is_closed: bool,
}

/// The memory of some blocks. This is not a `Box`, because a `Box` claims unique access, and there are references into the
/// memory.
struct Chunk(NonNull<[Block]>);

/// An empty block.
pub(super) struct Idle(NonNull<Block>);

// SAFETY: the memory belongs to the pool. The counts in it are atomic, and only holders of a reference use the other fields.
unsafe impl Send for Chunk {}
// SAFETY: only the owner of an `Idle` uses its empty block.
unsafe impl Send for Idle {}

impl Idle {
    /// Puts a fiber into the block.
    pub(super) fn fill(self, core: Core) -> [CoreRef; 2] {
        // SAFETY: an idle block is empty, and this is the only `Idle` for it.
        unsafe { Block::fill(self.0, core) }
    }
}

/// A runtime's handle to its blocks.
pub(crate) struct Pool {
    blocks: NonNull<Blocks>,
}

// SAFETY: a mutex protects the state of `Blocks`.
unsafe impl Send for Pool {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pool {}

impl Pool {
    pub(super) fn new(posts: &[Arc<Post>]) -> Self {
        let blocks = Box::new(Blocks { state: Mutex::default(), _posts: posts.into() });
        Pool { blocks: NonNull::from(Box::leak(blocks)) }
    }

    fn blocks(&self) -> &Blocks {
        // SAFETY: the blocks are not freed before this pool has been dropped.
        unsafe { self.blocks.as_ref() }
    }

    /// Returns an empty block, which the caller now owns.
    pub(super) fn take(&self) -> Idle {
        let mut state = self.blocks().state.lock();
        state.refill(self.blocks);
        state.idle.pop().expect("there are idle blocks now")
    }

    /// Returns the live fibers.
    pub(crate) fn all(&self) -> Vec<CoreRef> {
        let state = self.blocks().state.lock();
        let all = state.chunks.iter().flat_map(Chunk::blocks);
        // The caller drops the references after the lock is released: the last reference to a fiber returns its block.
        all.filter_map(Block::get).collect()
    }

    /// Returns the live fiber with this number.
    pub(crate) fn get(&self, id: u64) -> Option<CoreRef> {
        self.all().into_iter().find(|fiber| fiber.id == id)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.blocks().state.lock();
        state.is_closed = true;
        let is_over = state.is_over();
        drop(state);
        if is_over {
            // SAFETY: the pool is closed and all blocks are returned, so no pointer to it is left.
            drop(unsafe { Box::from_raw(self.blocks.as_ptr()) });
        }
    }
}

impl Blocks {
    /// Returns empty blocks to the pool.
    ///
    /// # Safety
    /// The blocks come from this pool, are empty, and belong to the caller alone.
    pub(super) unsafe fn give_back(blocks: NonNull<Self>, empty: impl IntoIterator<Item = NonNull<Block>>) {
        // SAFETY: the caller's blocks are not returned yet, so the pool still exists.
        let mut state = unsafe { blocks.as_ref() }.state.lock();
        state.idle.extend(empty.into_iter().map(Idle));
        let is_over = state.is_over();
        drop(state);
        if is_over {
            // SAFETY: the pool is closed and all blocks are returned, so no pointer to it is left. Only the caller that returns
            // the last block gets here.
            drop(unsafe { Box::from_raw(blocks.as_ptr()) });
        }
    }
}

impl State {
    /// Makes sure that there is an idle block.
    fn refill(&mut self, blocks: NonNull<Blocks>) {
        if self.idle.is_empty() {
            let chunk: Box<[Block]> =
                (0..self.count.clamp(FIRST_CHUNK, MAX_CHUNK)).map(|_| Block::empty(blocks)).collect();
            self.count += chunk.len();
            let chunk = Chunk(NonNull::from(Box::leak(chunk)));
            // The pointer's provenance is exposed, because `CoreRef::from_raw` restores pointers into the chunk from addresses.
            chunk.0.as_ptr().expose_provenance();
            self.idle.extend(chunk.blocks().map(Idle));
            self.chunks.push(chunk);
        }
    }

    fn is_over(&self) -> bool {
        self.is_closed && self.idle.len() == self.count
    }
}

impl Chunk {
    fn blocks(&self) -> impl Iterator<Item = NonNull<Block>> + use<> {
        let first = self.0.cast::<Block>();
        // SAFETY: the index is within the chunk.
        (0..self.0.len()).map(move |index| unsafe { first.add(index) })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: the memory came from a box, and all of its blocks are empty and returned.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// The empty blocks of one worker. The block that was freed last is reused first.
#[derive(Default)]
pub(super) struct BlockCache {
    idle: Vec<Idle>,
}

impl BlockCache {
    /// Returns the block that was freed last, or a block of the pool.
    pub(super) fn take(&mut self, pool: &Pool) -> Idle {
        self.idle.pop().unwrap_or_else(|| self.fetch(pool))
    }

    #[cold]
    fn fetch(&mut self, pool: &Pool) -> Idle {
        let mut state = pool.blocks().state.lock();
        state.refill(pool.blocks);
        let rest = state.idle.len().saturating_sub(BATCH);
        self.idle.extend(state.idle.drain(rest..));
        self.idle.pop().expect("there are idle blocks now")
    }

    /// Stores an empty block of `pool`. If there are too many, those that were freed first are returned to the pool.
    pub(super) fn put(&mut self, block: NonNull<Block>, pool: &Pool) {
        self.idle.push(Idle(block));
        if self.idle.len() > MAX_KEPT {
            // SAFETY: the blocks are idle, and belong to the pool.
            unsafe { Blocks::give_back(pool.blocks, self.idle.drain(..BATCH).map(|idle| idle.0)) };
        }
    }

    /// Returns all blocks to the pool.
    pub(super) fn clear(&mut self, pool: &Pool) {
        // SAFETY: the blocks are idle, and belong to the pool.
        unsafe { Blocks::give_back(pool.blocks, self.idle.drain(..).map(|idle| idle.0)) };
    }
}

impl Pool {
    /// Returns whether these are the pool's blocks.
    pub(super) fn is_of(&self, blocks: NonNull<Blocks>) -> bool {
        self.blocks == blocks
    }
}
