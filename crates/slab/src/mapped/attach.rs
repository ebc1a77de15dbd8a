//! Opening: whether others use the slab, and what is done about those who died.
//!
//! One process opens, or recovers, at a time. It writes its identity into the gate; if it dies there, the next one takes the gate over and
//! begins again, which is safe because every step may be repeated. Whoever registers a cache looks at the gate afterwards,
//! and whoever has entered the gate looks at the caches afterwards; so either the cache stands back, or the opener sees
//! it. (All four accesses are sequentially consistent: each side stores, then loads what the other stores.)

use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::mapped::error::Error;
use crate::mapped::process::{self, Identity};
use crate::mapped::rebuild;
use crate::mapped::recover::Recovered;
use crate::mapped::shared::Shared;

/// How long a process waits for another one that opens the slab.
const PATIENCE: Duration = Duration::from_secs(10);
const NAP: Duration = Duration::from_micros(200);

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
        self.enter(others, PATIENCE)?;
        let outcome = self.make_whole(others);
        self.leave();
        outcome
    }

    /// The same, by who is at the gate.
    fn make_whole(&self, others: Others) -> Result<Recovered, Error> {
        let namespace = process::namespace()?;
        if others == Others::Watched {
            self.check_namespace(namespace)?;
            if self.in_use() {
                return self.recover_at_the_gate();
            }
        }
        let rebuilt = rebuild::rebuild(self, others)?;
        self.namespace_word().store(namespace, Ordering::SeqCst);
        self.boot_word().store(self.boot, Ordering::Release);
        Ok(rebuilt)
    }

    /// Returns what dead processes had in their caches, and marks what they held. Waits for whoever opens the slab or recovers.
    pub(crate) fn recover(&self) -> Result<Recovered, Error> {
        self.enter(Others::Watched, PATIENCE)?;
        let recovered = self.recover_at_the_gate();
        self.leave();
        recovered
    }

    /// The same, unless somebody else is at it.
    pub(crate) fn try_recover(&self) -> Result<Recovered, Error> {
        match self.enter(Others::Watched, Duration::ZERO) {
            Err(Error::Busy { .. }) => return Ok(Recovered::default()),
            entered => entered?,
        }
        let recovered = self.recover_at_the_gate();
        self.leave();
        recovered
    }

    fn leave(&self) {
        self.gate().store(Identity::NOBODY, Ordering::SeqCst);
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

    fn enter(&self, others: Others, patience: Duration) -> Result<(), Error> {
        let own = Identity::own()?.word();
        let began = Instant::now();
        loop {
            let found = self.gate().load(Ordering::SeqCst);
            // Not `lives`: the one at the gate may be about to write the boot.
            let holder = Identity::read(found).filter(|holder| others == Others::Watched && holder.is_alive());
            match holder {
                Some(holder) if began.elapsed() >= patience => {
                    return Err(Error::Busy { pid: holder.pid(), waited_ms: began.elapsed().as_millis() as u64 });
                }
                Some(_) => sleep(NAP),
                None if self.gate().compare_exchange(found, own, Ordering::SeqCst, Ordering::SeqCst).is_ok() => {
                    return Ok(());
                }
                None => {}
            }
        }
    }

    /// Whether a living process has a cache.
    fn in_use(&self) -> bool {
        let mut known_dead = Vec::new();
        self.slots().iter().any(|slot| {
            let Some(owner) = Identity::read(slot.owner.load(Ordering::SeqCst)) else { return false };
            if known_dead.contains(&owner) {
                return false;
            }
            let lives = self.lives(owner);
            if !lives {
                known_dead.push(owner);
            }
            lives
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
                Some(slot) if self.gate().load(Ordering::SeqCst) == Identity::NOBODY => {
                    // Somebody of another namespace may have opened the slab since this process did, when nobody had a cache.
                    let (expected, found) = (process::namespace()?, self.namespace_word().load(Ordering::SeqCst));
                    if expected == found {
                        return Ok(slot as u16);
                    }
                    self.slots()[slot].owner.store(Identity::NOBODY, Ordering::SeqCst);
                    return Err(Error::Namespace { expected, found });
                }
                Some(slot) => {
                    // Ours to give up: nobody else clears the slot of a process that lives.
                    self.slots()[slot].owner.store(Identity::NOBODY, Ordering::SeqCst);
                    // Waits for the opener, or finishes its work if it died.
                    self.attach(Others::Watched)?;
                }
                None if recovered => return Err(Error::NoCache { caches: self.header.geometry.caches }),
                None => {
                    recovered = true;
                    self.recover()?;
                }
            }
        }
    }
}
