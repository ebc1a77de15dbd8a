//! Opening: whether others use the slab, and what is done about those who died.
//!
//! One process opens, or recovers, at a time: the one at the [gate](crate::mapped::gate). If it dies there, the next one takes the gate over and
//! begins again, which is safe because every step may be repeated. Whoever registers a cache looks at the gate afterwards,
//! and whoever has entered the gate looks at the caches afterwards; so either the cache stands back, or the opener sees
//! it. (All four accesses are sequentially consistent: each side stores, then loads what the other stores.)

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::mapped::error::Error;
use crate::mapped::gate::{AtTheGate, OPEN, PATIENCE};
use crate::mapped::process::{self, Identity};
use crate::mapped::rebuild;
use crate::mapped::recover::Recovered;
use crate::mapped::shared::Shared;

/// The owner of what is nobody's in particular.
pub(crate) const NO_OWNER: u64 = 0;

/// What is known of the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// Ask the kernel.
    Watched,
    /// There are none: the caller vouches for it.
    Absent,
}

impl Shared {
    /// Makes the slab whole: alone, from the objects' words; beside others, by acting for the dead among them.
    pub(crate) fn attach(&self, others: Others) -> Result<Recovered, Error> {
        self.make_whole(others, true)
    }

    fn make_whole(&self, others: Others, thoroughly: bool) -> Result<Recovered, Error> {
        let gate = AtTheGate::enter(self, others, PATIENCE)?;
        let namespace = process::namespace()?;
        if others == Others::Watched && !gate.must_remake {
            self.check_namespace(namespace)?;
            if self.in_use() {
                return self.recover_at_the_gate(thoroughly);
            }
        }
        self.remake(&gate, others, namespace)
    }

    /// Makes the free list anew. Nobody has a cache.
    fn remake(&self, gate: &AtTheGate<'_>, others: Others, namespace: u64) -> Result<Recovered, Error> {
        let rebuilt = rebuild::rebuild(self, others, || gate.remakes())?;
        self.namespace_word().store(namespace, Ordering::SeqCst);
        self.boot_word().store(self.boot, Ordering::Release);
        gate.has_remade();
        Ok(rebuilt)
    }

    /// Returns what dead processes had in their caches, and marks what they held and what was forgotten. Waits for whoever opens the slab or
    /// recovers.
    pub(crate) fn recover(&self) -> Result<Recovered, Error> {
        self.recover_within(PATIENCE, true)
    }

    /// The same for the dead alone, unless somebody else is at it.
    pub(crate) fn try_recover(&self) -> Result<Recovered, Error> {
        match self.recover_within(Duration::ZERO, false) {
            Err(Error::Busy { .. } | Error::Namespace { .. }) => Ok(Recovered::default()),
            recovered => recovered,
        }
    }

    fn recover_within(&self, patience: Duration, thoroughly: bool) -> Result<Recovered, Error> {
        let gate = AtTheGate::enter(self, Others::Watched, patience)?;
        let namespace = process::namespace()?;
        if gate.must_remake {
            return self.remake(&gate, Others::Watched, namespace);
        }
        // Those who have come since this process opened the slab, when nobody had a cache, may be of another namespace.
        self.check_namespace(namespace)?;
        self.recover_at_the_gate(thoroughly)
    }

    /// Where this process is, for the gate.
    pub(crate) fn place(&self) -> Result<u64, Error> {
        Ok(process::place(self.boot, process::namespace()?))
    }

    /// Processes of another namespace cannot be watched.
    fn check_namespace(&self, expected: u64) -> Result<(), Error> {
        let found = self.namespace_word().load(Ordering::Acquire);
        let same_boot = self.boot_word().load(Ordering::Acquire) == self.boot;
        let somebody = || self.slots().iter().any(|slot| slot.owner.load(Ordering::SeqCst) != Identity::NOBODY);
        if same_boot && found != expected && somebody() {
            return Err(Error::Namespace { expected, found });
        }
        Ok(())
    }

    /// Whether a living process has a cache.
    fn in_use(&self) -> bool {
        self.lives_of_caches().any(|lives| lives)
    }

    /// How many caches living processes have; `None` if they are of another namespace.
    pub(crate) fn living_caches(&self) -> Option<u64> {
        self.check_namespace(process::namespace().ok()?).ok()?;
        Some(self.lives_of_caches().filter(|&lives| lives).count() as u64)
    }

    /// Of each cache in use, whether its process lives; the kernel is asked once for each process.
    fn lives_of_caches(&self) -> impl Iterator<Item = bool> {
        let mut known: Vec<(Identity, bool)> = Vec::new();
        let owners = self.slots().iter().filter_map(|slot| Identity::read(slot.owner.load(Ordering::SeqCst)));
        owners.map(move |owner| match known.iter().find(|(process, _)| *process == owner) {
            Some(&(_, lives)) => lives,
            None => {
                let lives = self.lives(owner);
                known.push((owner, lives));
                lives
            }
        })
    }

    /// A slot for a new cache of this process.
    pub(crate) fn register(&self) -> Result<u16, Error> {
        let own = Identity::own()?.word();
        let mut recovered = false;
        loop {
            let free = self.slots().iter().position(|slot| {
                slot.owner.load(Ordering::Relaxed) == Identity::NOBODY
                    && slot.owner.compare_exchange(Identity::NOBODY, own, Ordering::SeqCst, Ordering::Relaxed).is_ok()
            });
            match free {
                Some(number) if self.gate().load(Ordering::SeqCst) == OPEN => {
                    let slot = &self.slots()[number];
                    // Somebody of another namespace may have opened the slab since this process did, when nobody had a cache; and
                    // may have taken this process for a dead one in between.
                    let (expected, found) = (process::namespace()?, self.namespace_word().load(Ordering::SeqCst));
                    if expected == found && slot.owner.load(Ordering::SeqCst) == own {
                        // Not before: what the last user left may have become orphans just now.
                        slot.user.store(NO_OWNER, Ordering::Relaxed);
                        return Ok(number as u16);
                    }
                    self.step_back(number, own);
                    if expected != found {
                        return Err(Error::Namespace { expected, found });
                    }
                }
                Some(number) => {
                    self.step_back(number, own);
                    // Waits for the opener, or finishes its work if it died.
                    self.make_whole(Others::Watched, false)?;
                }
                None if recovered => return Err(Error::NoCache { caches: self.header.geometry.caches }),
                None => {
                    recovered = true;
                    self.recover_within(PATIENCE, false)?;
                }
            }
        }
    }

    /// Gives a slot up that was just taken, unless it is somebody else's by now.
    fn step_back(&self, number: usize, own: u64) {
        let owner = &self.slots()[number].owner;
        let _ = owner.compare_exchange(own, Identity::NOBODY, Ordering::SeqCst, Ordering::Relaxed);
    }
}
