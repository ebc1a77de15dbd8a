//! The rebuild lock: gives a process the slab to itself while it rebuilds the free list.
//!
//! A rebuild is rare: it happens only after a reboot, after use from another namespace, or if the list is damaged. All
//! other work (caches, allocation, recovery, opening while others use the slab) never takes the lock and only checks
//! that it is free.
//!
//! The lock's word says which process holds it, *and where*: a PID and a start time identify a process within one boot,
//! one PID namespace and one time namespace. The next process takes over the lock of a dead holder. It cannot watch a
//! holder of another namespace, so it waits for such a holder even if the holder is dead.
//!
//! A mark says that the list is half rebuilt. If the process that set it dies, the next holder rebuilds the list. The
//! lock is never free between the two holders, so no process has a cache until the list is rebuilt.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::mapped::attach::Others;
use crate::mapped::error::{Error, Work};
use crate::mapped::mapping::Mapping;
use crate::mapped::process::{self, Identity};
use crate::mapped::wait::Wait;

/// No process holds the lock.
pub(crate) const UNLOCKED: u128 = 0;
/// A bit of the holder's identity: the free list is half rebuilt.
const HALF_REBUILT: u128 = 1 << 63;

/// Whether the holder has begun to rebuild the free list.
pub(crate) fn is_half_rebuilt(word: u128) -> bool {
    word & HALF_REBUILT != 0
}

/// The lock, held by this process until the value is dropped.
pub(crate) struct RebuildLock<'s> {
    mapping: &'s Mapping,
    /// Whether the last holder died while it rebuilt the free list.
    pub(crate) must_rebuild: bool,
    /// Whether another process held the lock first.
    pub(crate) has_waited: bool,
    /// Whether the free list is half rebuilt.
    is_half_rebuilt: Cell<bool>,
}

impl<'s> RebuildLock<'s> {
    /// Waits until no other process holds the lock, and takes it.
    pub(crate) fn acquire(mapping: &'s Mapping, others: Others, patience: Duration) -> Result<Self, Error> {
        let place = mapping.place()?;
        let own = u128::from(place) << 64 | u128::from(Identity::own()?.word());
        let mut wait = Wait::new(patience);
        let mut has_waited = false;
        loop {
            let found = mapping.rebuild_lock().load(Ordering::SeqCst);
            if others == Others::Watched
                && let Some(holder) = Holder::read(found, place)
            {
                holder.wait(&mut wait, place)?;
                has_waited = true;
                continue;
            }
            let inherited = found & HALF_REBUILT;
            let lock = mapping.rebuild_lock();
            if lock.compare_exchange(found, own | inherited, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                let must_rebuild = inherited != 0;
                return Ok(RebuildLock { mapping, must_rebuild, has_waited, is_half_rebuilt: Cell::new(must_rebuild) });
            }
        }
    }

    /// Marks the free list as half rebuilt: if this process dies, the next holder rebuilds it.
    pub(crate) fn mark_half_rebuilt(&self) {
        let lock = self.mapping.rebuild_lock();
        // A plain store, because no process takes the lock from a live holder.
        lock.store(lock.load(Ordering::Relaxed) | HALF_REBUILT, Ordering::SeqCst);
        self.is_half_rebuilt.set(true);
    }

    /// Marks the free list as whole again.
    pub(crate) fn mark_whole(&self) {
        self.is_half_rebuilt.set(false);
    }
}

impl Drop for RebuildLock<'_> {
    fn drop(&mut self) {
        // A mark without a holder means the same as the mark of a dead holder: the next process rebuilds the list
        // before any process has a cache.
        let left = if self.is_half_rebuilt.get() { HALF_REBUILT } else { UNLOCKED };
        self.mapping.rebuild_lock().store(left, Ordering::SeqCst);
    }
}

/// A process that holds the lock and may be alive.
enum Holder {
    Watched(Identity),
    /// A process of another namespace, with the digest of that namespace.
    Foreign(u64),
}

impl Holder {
    /// Decodes the lock's word; `None` if the lock is free, or its holder is dead.
    fn read(word: u128, own_place: u64) -> Option<Holder> {
        let (place, identity) = ((word >> 64) as u64, Identity::read(word as u64)?);
        if process::boot_of(place) != process::boot_of(own_place) {
            // The holder died before this boot, whichever process has that PID and start time now.
            return None;
        }
        if place != own_place {
            return Some(Holder::Foreign(process::namespaces_of(place)));
        }
        // `lives` is of no use here: it compares the boot, which the holder may be about to write.
        identity.is_alive().then_some(Holder::Watched(identity))
    }

    fn wait(&self, wait: &mut Wait, own_place: u64) -> Result<(), Error> {
        match *self {
            Holder::Watched(holder) => wait.nap(holder, Work::Rebuilding),
            Holder::Foreign(_) if wait.nap_blindly() => Ok(()),
            Holder::Foreign(found) => Err(Error::Namespace { expected: process::namespaces_of(own_place), found }),
        }
    }
}
