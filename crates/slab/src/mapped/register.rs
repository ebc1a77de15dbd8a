//! Registration: a new cache takes a slot.

use std::sync::atomic::Ordering;

use crate::mapped::attach::NO_OWNER;
use crate::mapped::error::{Error, Work};
use crate::mapped::mapping::Mapping;
use crate::mapped::process::{self, Identity};
use crate::mapped::rebuild_lock::UNLOCKED;
use crate::mapped::wait::{PATIENCE, Wait};

impl Mapping {
    /// Takes a slot for a new cache of this process.
    pub(crate) fn register(&self) -> Result<u16, Error> {
        // This comes before a slot is taken, because an error afterwards would leak the slot.
        let (own, namespace) = (Identity::own()?.word(), process::namespace()?);
        let mut wait = Wait::new(PATIENCE);
        let mut has_recovered = false;
        loop {
            if let Some(number) = self.take_free_slot(own) {
                if self.confirm(number, own, namespace)? {
                    return Ok(number);
                }
                // Waits for the process that rebuilds, or finishes its work if it died.
                self.outwait_rebuild()?;
            } else if self.recover_dead_caches()? == 0 {
                match self.recoverer() {
                    Some(other) => wait.nap(other, Work::Recovering)?,
                    None if has_recovered => return Err(Error::NoCache { caches: self.header.geometry.caches }),
                    None => has_recovered = true,
                }
            }
        }
    }

    fn take_free_slot(&self, own: u64) -> Option<u16> {
        let number = self.slots().iter().position(|slot| {
            slot.owner.load(Ordering::Relaxed) == Identity::NONE
                && slot.owner.compare_exchange(Identity::NONE, own, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        });
        number.map(|number| number as u16)
    }

    /// Whether this process, of the namespace `expected`, may keep the slot that it has just taken; otherwise gives the
    /// slot up.
    fn confirm(&self, number: u16, own: u64, expected: u64) -> Result<bool, Error> {
        let slot = &self.slots()[usize::from(number)];
        let is_unlocked = self.rebuild_lock().load(Ordering::SeqCst) == UNLOCKED;
        // Since this process opened the slab, users of another namespace may have opened it, at a time when no process
        // had a cache. They may have taken this process for a dead one.
        let found = self.namespace_word().load(Ordering::SeqCst);
        if is_unlocked && expected == found && slot.owner.load(Ordering::SeqCst) == own {
            // The number is reset only now, because a recovery may just have marked objects as orphans of the slot's
            // last user.
            slot.user.store(NO_OWNER, Ordering::Relaxed);
            return Ok(true);
        }
        // The exchange fails if the slot belongs to another cache by now.
        let _ = slot.owner.compare_exchange(own, Identity::NONE, Ordering::SeqCst, Ordering::Relaxed);
        if is_unlocked && expected != found {
            return Err(Error::Namespace { expected, found });
        }
        Ok(false)
    }
}
