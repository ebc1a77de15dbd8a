//! The registry: all fibers that have not ended, by number.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::core::Core;

/// The number of maps over which the fibers are spread, so that workers rarely contend for one mutex.
const SHARDS: usize = 16;

/// The live fibers of a runtime.
#[derive(Default)]
pub(crate) struct Registry {
    shards: [Mutex<FxHashMap<u64, Arc<Core>>>; SHARDS],
}

impl Registry {
    fn shard(&self, id: u64) -> &Mutex<FxHashMap<u64, Arc<Core>>> {
        &self.shards[(id % SHARDS as u64) as usize]
    }

    pub(super) fn insert(&self, fiber: Arc<Core>) {
        self.shard(fiber.id).lock().insert(fiber.id, fiber);
    }

    pub(super) fn remove(&self, id: u64) -> Option<Arc<Core>> {
        self.shard(id).lock().remove(&id)
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Core>> {
        self.shard(id).lock().get(&id).cloned()
    }

    /// Returns the live fibers, locking one shard at a time.
    pub(crate) fn all(&self) -> Vec<Arc<Core>> {
        self.shards.iter().flat_map(|shard| shard.lock().values().cloned().collect::<Vec<_>>()).collect()
    }
}
