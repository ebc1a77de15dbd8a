//! Opening: finds out whether other processes use the slab, recovers dead caches, and ensures that the free list is
//! whole.
//!
//! A process that opens a slab recovers dead caches while live caches continue; any process may do so at any time. If
//! no process uses the slab, it also checks the free list, and rebuilds a damaged one. It takes the [rebuild
//! lock](crate::mapped::rebuild_lock) only in this case, and after a reboot.
//!
//! A process that registers a cache, or takes over the slot of a dead cache, checks the lock afterwards. A process that
//! has taken the lock checks the slots afterwards. So either the first process *steps back* (it gives the slot up), or
//! the second process sees the first. (All four accesses are sequentially consistent: each side stores, then loads the
//! word that the other side stores.)

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::mapped::check;
use crate::mapped::error::{Error, Work};
use crate::mapped::mapping::Mapping;
use crate::mapped::process::{self, Identity};
use crate::mapped::rebuild;
use crate::mapped::rebuild_lock::{RebuildLock, UNLOCKED};
use crate::mapped::recover::{Passage, Recovered};
use crate::mapped::wait::{PATIENCE, Wait};

/// The owner of an object whose holder has set no number.
pub(crate) const NO_OWNER: u64 = 0;

/// Whether other processes may be using the slab.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// There may be other processes; the kernel tells whether they live.
    Watched,
    /// There are no others, as the caller guarantees.
    Absent,
}

impl Mapping {
    /// Makes the slab whole, and waits for other processes that recover, unless they are stopped.
    pub(crate) fn attach(&self, others: Others) -> Result<Recovered, Error> {
        let mut recovered = self.make_whole(others, true)?;
        // If another process's recovery does not end, some objects stay out of reach, but the slab can still be opened.
        let _ = self.outwait_recoveries(&mut recovered);
        Ok(recovered)
    }

    fn make_whole(&self, others: Others, thoroughly: bool) -> Result<Recovered, Error> {
        let mut recovered = Recovered::default();
        loop {
            if others == Others::Watched
                && let Some(found) = self.recover_beside(thoroughly, Passage::Unlocked)?
            {
                recovered += found;
                if self.in_use() || found.damaged == 0 && check::is_whole(self) {
                    return Ok(recovered);
                }
            }
            let lock = RebuildLock::acquire(self, others, PATIENCE)?;
            if !lock.has_waited || lock.must_rebuild {
                recovered += self.make_whole_at(&lock, others, thoroughly)?;
                return Ok(recovered);
            }
            // The process that held the lock first has usually done the work.
        }
    }

    /// Rebuilds the free list, unless other processes use it.
    fn make_whole_at(&self, lock: &RebuildLock<'_>, others: Others, thoroughly: bool) -> Result<Recovered, Error> {
        let namespace = process::namespace()?;
        if others == Others::Watched && !lock.must_rebuild {
            self.check_namespace(namespace)?;
            if self.in_use() {
                return Ok(self.recover_beside(thoroughly, Passage::Locked)?.unwrap_or_default());
            }
        }
        let rebuilt = rebuild::rebuild(self, others, || lock.mark_half_rebuilt())?;
        // The boot is written last: a process that finds its own boot there trusts the list and the namespace.
        self.namespace_word().store(namespace, Ordering::SeqCst);
        self.boot_word().store(self.boot, Ordering::Release);
        lock.mark_whole();
        Ok(rebuilt)
    }

    /// Recovers dead caches and forgotten objects. Waits for other processes that recover.
    pub(crate) fn recover(&self) -> Result<Recovered, Error> {
        let mut recovered = self.recover_within(PATIENCE, true)?;
        self.outwait_recoveries(&mut recovered)?;
        Ok(recovered)
    }

    /// Recovers dead caches only, and skips those that another process is recovering.
    pub(crate) fn try_recover(&self) -> Result<Recovered, Error> {
        match self.recover_within(Duration::ZERO, false) {
            Err(Error::Busy { .. } | Error::Namespace { .. }) => Ok(Recovered::default()),
            recovered => recovered,
        }
    }

    /// Recovers dead caches to free their slots; returns their number.
    pub(crate) fn recover_dead_caches(&self) -> Result<u64, Error> {
        Ok(self.recover_within(PATIENCE, false)?.caches)
    }

    fn recover_within(&self, patience: Duration, thoroughly: bool) -> Result<Recovered, Error> {
        if let Some(recovered) = self.recover_beside(thoroughly, Passage::Unlocked)? {
            return Ok(recovered);
        }
        let lock = RebuildLock::acquire(self, Others::Watched, patience)?;
        if lock.must_rebuild {
            return self.make_whole_at(&lock, Others::Watched, thoroughly);
        }
        Ok(self.recover_beside(thoroughly, Passage::Locked)?.unwrap_or_default())
    }

    /// Waits until the rebuild lock is free, and completes the rebuild of a holder that died.
    pub(crate) fn outwait_rebuild(&self) -> Result<(), Error> {
        if self.rebuild_lock().load(Ordering::SeqCst) == UNLOCKED {
            return Ok(());
        }
        let lock = RebuildLock::acquire(self, Others::Watched, PATIENCE)?;
        if lock.must_rebuild {
            self.make_whole_at(&lock, Others::Watched, false)?;
        }
        Ok(())
    }

    /// Waits until no other process or thread recovers dead caches, and takes over the recovery from those that die
    /// meanwhile.
    fn outwait_recoveries(&self, recovered: &mut Recovered) -> Result<(), Error> {
        let mut wait = Wait::new(PATIENCE);
        while let Some(other) = self.recoverer() {
            wait.nap(other, Work::Recovering)?;
            *recovered += self.recover_within(PATIENCE, false)?;
        }
        Ok(())
    }

    /// A live process that recovers dead caches.
    pub(crate) fn recoverer(&self) -> Option<Identity> {
        let owners = self.slots().iter().filter_map(|slot| Identity::read(slot.owner.load(Ordering::SeqCst)));
        owners.filter(|owner| owner.is_recovering()).find(|&owner| self.lives(owner))
    }

    /// The digest of this process's boot and namespaces, for the rebuild lock.
    pub(crate) fn place(&self) -> Result<u64, Error> {
        Ok(process::place(self.boot, process::namespace()?))
    }

    /// Refuses a slab in use by processes of another namespace, which cannot be watched.
    pub(crate) fn check_namespace(&self, expected: u64) -> Result<(), Error> {
        let found = self.namespace_word().load(Ordering::Acquire);
        let same_boot = self.boot_word().load(Ordering::Acquire) == self.boot;
        let any_user = || self.slots().iter().any(|slot| slot.owner.load(Ordering::SeqCst) != Identity::NONE);
        if same_boot && found != expected && any_user() {
            return Err(Error::Namespace { expected, found });
        }
        Ok(())
    }

    /// Whether the free list belongs to this boot and this namespace, and no process is rebuilding it.
    pub(crate) fn is_ready(&self, namespace: u64) -> bool {
        self.rebuild_lock().load(Ordering::SeqCst) == UNLOCKED
            && self.namespace_word().load(Ordering::SeqCst) == namespace
            && self.boot_word().load(Ordering::SeqCst) == self.boot
    }

    /// Whether a live process has a cache.
    fn in_use(&self) -> bool {
        self.lives_of_caches().any(|lives| lives)
    }

    /// The number of caches of live processes; `None` if the processes are of another namespace.
    pub(crate) fn living_caches(&self) -> Option<u64> {
        self.check_namespace(process::namespace().ok()?).ok()?;
        Some(self.lives_of_caches().filter(|&lives| lives).count() as u64)
    }

    /// For each cache in use, whether its process lives; asks the kernel once for each process.
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
}
