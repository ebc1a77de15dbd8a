//! Opening: whether others use the slab, and what is done about those who died.
//!
//! One process opens at a time. It writes its identity into the gate; if it dies there, the next one takes the gate over and
//! begins again, which is safe because every step may be repeated. Whoever registers a cache looks at the gate afterwards,
//! and whoever has entered the gate looks at the caches afterwards; so either the cache stands back, or the opener sees
//! it. (All four accesses are sequentially consistent: each side stores, then loads what the other stores.)

use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::process::{self, Identity};
use crate::rebuild;
use crate::recover::Recovered;
use crate::shared::Shared;

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
        let namespace = process::namespace()?;
        if others == Others::Watched {
            self.check_namespace(namespace)?;
        }
        self.enter(others)?;
        let in_use = others == Others::Watched && self.in_use();
        let rebuilt = if in_use { Ok(Recovered::default()) } else { rebuild::rebuild(self) };
        if !in_use && rebuilt.is_ok() {
            self.boot_word().store(self.boot, Ordering::Release);
            self.namespace_word().store(namespace, Ordering::Release);
        }
        self.gate().store(Identity::NOBODY, Ordering::SeqCst);
        if in_use { self.recover() } else { rebuilt }
    }

    /// Processes of another namespace cannot be watched.
    fn check_namespace(&self, expected: u64) -> Result<(), Error> {
        let found = self.namespace_word().load(Ordering::Acquire);
        let same_boot = self.boot_word().load(Ordering::Acquire) == self.boot;
        let somebody = || self.slots().iter().any(|slot| slot.owner.load(Ordering::Relaxed) != Identity::NOBODY);
        if same_boot && found != expected && somebody() {
            return Err(Error::Namespace { expected, found });
        }
        Ok(())
    }

    fn enter(&self, others: Others) -> Result<(), Error> {
        let own = Identity::own()?.word();
        let began = Instant::now();
        loop {
            let found = self.gate().load(Ordering::SeqCst);
            // Not `lives`: the one at the gate may be about to write the boot.
            let holder = Identity::read(found).filter(|holder| others == Others::Watched && holder.is_alive());
            match holder {
                Some(holder) if began.elapsed() > PATIENCE => {
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
                Some(slot) if self.gate().load(Ordering::SeqCst) == Identity::NOBODY => return Ok(slot as u16),
                Some(slot) => {
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
