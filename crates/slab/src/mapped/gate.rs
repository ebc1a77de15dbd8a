//! The gate: one process at a time opens the slab, or recovers.
//!
//! Who is there has written who it is *and where*: a process number means something within one boot, one PID namespace and one time
//! namespace. Whoever finds the gate shut by a dead process takes it over. One of another namespace can't be watched and is waited
//! for, even if it is dead.
//!
//! A mark says that whoever is at the gate makes the free list anew. If that one dies, it must be made anew again before anybody has a cache:
//! the list is half made, and nobody else's slot says so. The gate was shut all the time, so nobody has a cache.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::mapped::attach::Others;
use crate::mapped::error::Error;
use crate::mapped::process::{self, Identity};
use crate::mapped::shared::Shared;

/// How long a process waits for another one that opens the slab.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
const NAP: Duration = Duration::from_micros(200);

/// Nobody is at the gate.
pub(crate) const OPEN: u128 = 0;
/// Of the identity at the gate: it makes the free list anew.
const REMAKES: u128 = 1 << 63;

/// Whether whoever is at the gate is making the free list anew.
pub(crate) fn is_remaking(word: u128) -> bool {
    word & REMAKES != 0
}

/// Being at the gate; ends when dropped.
pub(crate) struct AtTheGate<'s> {
    shared: &'s Shared,
    /// Whether the one before died while it made the free list anew.
    pub(crate) must_remake: bool,
    /// Whether the free list is half made.
    is_half_made: Cell<bool>,
}

impl<'s> AtTheGate<'s> {
    /// Waits until nobody else is there.
    pub(crate) fn enter(shared: &'s Shared, others: Others, patience: Duration) -> Result<Self, Error> {
        let place = shared.place()?;
        let own = u128::from(place) << 64 | u128::from(Identity::own()?.word());
        let began = Instant::now();
        loop {
            let found = shared.gate().load(Ordering::SeqCst);
            let holder = if others == Others::Absent { None } else { Holder::read(found, place) };
            match holder {
                Some(holder) if began.elapsed() >= patience => return Err(holder.is_in_the_way(place, began.elapsed())),
                Some(_) => sleep(NAP),
                None => {
                    let inherited = found & REMAKES;
                    let gate = shared.gate();
                    if gate.compare_exchange(found, own | inherited, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                        let must_remake = inherited != 0;
                        return Ok(AtTheGate { shared, must_remake, is_half_made: Cell::new(must_remake) });
                    }
                }
            }
        }
    }

    /// From here on whoever takes the gate over makes the free list anew.
    pub(crate) fn remakes(&self) {
        let gate = self.shared.gate();
        // Ours: nobody takes it from a living process that it can watch, and nobody from one that it can't.
        gate.store(gate.load(Ordering::Relaxed) | REMAKES, Ordering::SeqCst);
        self.is_half_made.set(true);
    }

    /// The free list is whole again.
    pub(crate) fn has_remade(&self) {
        self.is_half_made.set(false);
    }
}

impl Drop for AtTheGate<'_> {
    fn drop(&mut self) {
        // A mark alone is as a dead process's: whoever comes next makes the list anew, before anybody has a cache.
        self.shared.gate().store(if self.is_half_made.get() { REMAKES } else { OPEN }, Ordering::SeqCst);
    }
}

/// Somebody at the gate who may live.
enum Holder {
    Watched(Identity),
    /// One of another namespace, by its digest.
    Foreign(u64),
}

impl Holder {
    /// `None` if the gate is open, or whoever is there is dead.
    fn read(word: u128, own_place: u64) -> Option<Holder> {
        let (place, identity) = ((word >> 64) as u64, Identity::read(word as u64)?);
        if process::boot_of(place) != process::boot_of(own_place) {
            // It died with its boot, whoever has that number and start now.
            return None;
        }
        if place != own_place {
            return Some(Holder::Foreign(process::namespaces_of(place)));
        }
        // Not `lives`: the one at the gate may be about to write the boot.
        identity.is_alive().then_some(Holder::Watched(identity))
    }

    fn is_in_the_way(&self, own_place: u64, waited: Duration) -> Error {
        match *self {
            Holder::Watched(holder) => Error::Busy { pid: holder.pid(), waited_ms: waited.as_millis() as u64 },
            Holder::Foreign(found) => Error::Namespace { expected: process::namespaces_of(own_place), found },
        }
    }
}
