//! The idle stacks of a worker. The stack that was freed last is reused first, because its pages are still in the processor's
//! caches.

use super::{Stack, StackPool};
use crate::error::StackError;

/// The maximum number of stacks that a worker keeps.
const MAX_KEPT: usize = 64;
/// The number of stacks that move between a worker and the pool at once.
const BATCH: usize = 32;

/// The idle stacks of one worker.
#[derive(Debug, Default)]
pub(crate) struct StackCache {
    stacks: Vec<Stack>,
}

impl StackCache {
    /// Returns the stack that was freed last, or a stack of the pool.
    pub(crate) fn take(&mut self, pool: &StackPool) -> Result<Stack, StackError> {
        if self.stacks.is_empty() {
            pool.acquire(&mut self.stacks, BATCH)?;
            // The pool returns its warmest stacks first; this cache uses its last stack first.
            self.stacks.reverse();
        }
        Ok(self.stacks.pop().expect("the pool adds a stack or fails"))
    }

    /// Stores an idle stack. If there are too many, those that were freed first are returned to the pool.
    pub(crate) fn put(&mut self, stack: Stack, pool: &StackPool) {
        self.stacks.push(stack);
        if self.stacks.len() > MAX_KEPT {
            pool.release(self.stacks.drain(..BATCH));
        }
    }

    /// Returns all stacks to the pool.
    pub(crate) fn clear(&mut self, pool: &StackPool) {
        pool.release(self.stacks.drain(..));
    }
}
