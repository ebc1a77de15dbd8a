//! A worker's own idle stacks, used last in, first out, so that the next fiber finds warm pages.

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
    /// Takes the stack that was put back last, or one from the pool.
    pub(crate) fn take(&mut self, pool: &StackPool) -> Result<Stack, StackError> {
        if self.stacks.is_empty() {
            pool.acquire(&mut self.stacks, BATCH)?;
            // The pool returns its warmest stacks first.
            self.stacks.reverse();
        }
        Ok(self.stacks.pop().expect("the pool adds a stack or fails"))
    }

    /// Keeps an idle stack. When there are too many, the coldest go to the pool.
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
