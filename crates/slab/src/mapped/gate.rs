//! The gate: gives a process the slab to itself while it rebuilds the free list.
//!
//! A rebuild is rare: after a reboot, after users of another namespace, and where the list is damaged. All other work
//! (caches, allocation, recovery, opening beside others) passes by the gate and only checks whether it is open.
//!
//! The word of the gate says which process is there, *and where*: a process number identifies a process within one
//! boot, one PID namespace and one time namespace. The next process takes over a gate whose holder is dead. A holder of
//! another namespace can't be watched, so the next process waits for it even if it is dead.
//!
//! A mark says that the list is half rebuilt. If the process that set it dies, the next one at the gate rebuilds the
//! list. The gate is shut all the time, so no process has a cache until then.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::mapped::attach::Others;
use crate::mapped::error::{Error, Work};
use crate::mapped::process::{self, Identity};
use crate::mapped::shared::Shared;
use crate::mapped::wait::Wait;

/// No process is at the gate.
pub(crate) const OPEN: u128 = 0;
/// A bit of the identity at the gate: the free list is half rebuilt.
const REMAKES: u128 = 1 << 63;

/// Whether the process at the gate has begun to rebuild the free list.
pub(crate) fn is_remaking(word: u128) -> bool {
    word & REMAKES != 0
}

/// The presence of this process at the gate; it ends on drop.
pub(crate) struct AtTheGate<'s> {
    shared: &'s Shared,
    /// Whether the last holder died while it rebuilt the free list.
    pub(crate) must_remake: bool,
    /// Whether another process was there first.
    pub(crate) has_waited: bool,
    /// Whether the free list is half rebuilt.
    is_half_made: Cell<bool>,
}

impl<'s> AtTheGate<'s> {
    /// Waits until no other process is at the gate, and enters it.
    pub(crate) fn enter(shared: &'s Shared, others: Others, patience: Duration) -> Result<Self, Error> {
        let place = shared.place()?;
        let own = u128::from(place) << 64 | u128::from(Identity::own()?.word());
        let mut wait = Wait::new(patience);
        let mut has_waited = false;
        loop {
            let found = shared.gate().load(Ordering::SeqCst);
            if others == Others::Watched
                && let Some(holder) = Holder::read(found, place)
            {
                holder.wait(&mut wait, place)?;
                has_waited = true;
                continue;
            }
            let inherited = found & REMAKES;
            let gate = shared.gate();
            if gate.compare_exchange(found, own | inherited, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                let must_remake = inherited != 0;
                return Ok(AtTheGate { shared, must_remake, has_waited, is_half_made: Cell::new(must_remake) });
            }
        }
    }

    /// Marks the free list as half rebuilt: if this process dies, the next one at the gate rebuilds it.
    pub(crate) fn remakes(&self) {
        let gate = self.shared.gate();
        // A plain store, since no process takes the gate from a live holder.
        gate.store(gate.load(Ordering::Relaxed) | REMAKES, Ordering::SeqCst);
        self.is_half_made.set(true);
    }

    /// Marks the free list as whole again.
    pub(crate) fn has_remade(&self) {
        self.is_half_made.set(false);
    }
}

impl Drop for AtTheGate<'_> {
    fn drop(&mut self) {
        // A mark alone means the same as a dead holder's: the next process rebuilds the list before any process has a
        // cache.
        self.shared.gate().store(if self.is_half_made.get() { REMAKES } else { OPEN }, Ordering::SeqCst);
    }
}

/// A process at the gate that may be alive.
enum Holder {
    Watched(Identity),
    /// A process of another namespace, by that namespace's digest.
    Foreign(u64),
}

impl Holder {
    /// Decodes the gate's word; `None` if the gate is open, or its holder is dead.
    fn read(word: u128, own_place: u64) -> Option<Holder> {
        let (place, identity) = ((word >> 64) as u64, Identity::read(word as u64)?);
        if process::boot_of(place) != process::boot_of(own_place) {
            // The holder died with its boot, whichever process has that number and start now.
            return None;
        }
        if place != own_place {
            return Some(Holder::Foreign(process::namespaces_of(place)));
        }
        // Not `lives`: the process at the gate may be about to write the boot.
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
