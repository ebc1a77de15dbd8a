//! A lock that is held until it is taken away.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use super::raw::{self, ATTEMPTS, Outcome};
use super::remote::{Sections, restart};
use super::{Activity, Area, activity};

/// A lock whose holder loses it when it is preempted and somebody else wants it: nobody waits for a thread that does not run.
///
/// The holder reads as it likes, and writes through its [`Ownership`]: each store is made only if the lock is still its own, checked and stored in one
/// [section](super::raw). So a thread that takes the lock away restarts the sections of the others, and from then on every store of the former holder
/// fails. What the lock guards has to make sense after each single store: prepare a new version where nobody looks, and
/// publish it by one store. A thread that reads a version without the lock looks afterwards whether it was the current one all the while, at a word that is
/// never the same for two publications: its owner may have begun to write the next version over it.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// use millstream_sync::percpu::Revocable;
///
/// let (lock, version) = (Revocable::new(), AtomicU64::new(0));
/// let first = lock.try_own().unwrap();
/// assert!(first.store(&version, 1).is_ok());
/// let second = lock.revoke(); // now, whatever the first one does
/// assert!(first.store(&version, 2).is_err());
/// assert!(second.store(&version, 3).is_ok());
/// assert_eq!(version.load(Relaxed), 3);
/// ```
///
/// Where the kernel cannot restart sections, and for a store whose sections were aborted [`ATTEMPTS`] times, the holder *pins* the lock for the
/// length of one store: two atomic instructions. Who wants to take it away meanwhile waits for that one store.
///
/// # Source of the idea
/// Tim Harris and Keir Fraser, *Revocable locks for non-blocking programming* (2005); that restartable sequences are what they need,
/// and that they allow to hold a lock until one is preempted, is Paul Khuong's. `examples/flat_combining.rs` builds flat combining on it.
#[derive(Debug)]
pub struct Revocable {
    /// The token of the owner, with [`PINNED`] or not; zero if there is none. It names the owner's thread, so that who wonders whether the owner
    /// runs never looks at one that has the lock no more.
    owner: AtomicU64,
    by_sections: bool,
}

/// The owner is storing: nobody takes it away now.
const PINNED: u64 = 1;

/// The right to store, until somebody else takes it away.
///
/// For the thread that has it; giving it to another one would only make the lock look at the wrong thread.
#[derive(Debug)]
pub struct Ownership<'a> {
    lock: &'a Revocable,
    /// Even, and not in use.
    token: u64,
    /// Two threads that store at once would each take the other's pin for the loss of the lock.
    _of_one_thread: PhantomData<Cell<()>>,
}

/// The lock is somebody else's by now: start anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the lock was taken away")]
pub struct Revoked;

impl Revocable {
    /// Nobody's. One system call.
    #[must_use]
    pub fn new() -> Self {
        Revocable { owner: AtomicU64::new(0), by_sections: restart(Sections::All).is_ok() }
    }

    /// The lock, if it is nobody's. Wait-free; acquire.
    #[must_use]
    pub fn try_own(&self) -> Option<Ownership<'_>> {
        let token = new_token();
        self.owner.compare_exchange(0, token, Acquire, Relaxed).ok()?;
        Some(self.owned(token))
    }

    /// The lock: at once if it is nobody's or its holder does not run, else when one of these is so.
    ///
    /// Spins while the holder runs. Between looks at what the holder does, some two microseconds pass.
    #[must_use]
    pub fn own(&self) -> Ownership<'_> {
        const LOOKS: u32 = 100;
        loop {
            for _ in 0..LOOKS {
                if let Some(ownership) = self.try_own() {
                    return ownership;
                }
                std::hint::spin_loop();
            }
            match self.holder() {
                Activity::Running => {}
                _ => return self.revoke(),
            }
        }
    }

    /// The lock, whoever has it. Acquire. One system call that interrupts the other running threads, and a wait for one store if the lock is pinned.
    ///
    /// # Panics
    /// If the system does not restart sections any more, although it did.
    #[must_use]
    pub fn revoke(&self) -> Ownership<'_> {
        let token = new_token();
        loop {
            let owner = self.owner.load(Relaxed);
            if owner & PINNED != 0 {
                std::thread::yield_now();
                continue;
            }
            if self.owner.compare_exchange(owner, token, AcqRel, Relaxed).is_ok() {
                break;
            }
        }
        if self.by_sections {
            // A section that still saw the former owner's token commits before this returns, or never.
            restart(Sections::All).expect("sections were restarted when the lock was made");
        }
        self.owned(token)
    }

    /// What the holder does now: a guess, since it may change at any time. [`Ended`](Activity::Ended) if there is none.
    #[must_use]
    pub fn holder(&self) -> Activity {
        activity(thread_of(self.owner.load(Relaxed)))
    }

    fn owned(&self, token: u64) -> Ownership<'_> {
        Ownership { lock: self, token, _of_one_thread: PhantomData }
    }
}

impl Default for Revocable {
    fn default() -> Self {
        Self::new()
    }
}

impl Ownership<'_> {
    /// Stores `value`, if the lock is still ours. Release: who sees the value sees what we wrote before.
    ///
    /// # Errors
    /// [`Revoked`]: nothing was stored, and nothing will be.
    pub fn store(&self, place: &AtomicU64, value: u64) -> Result<(), Revoked> {
        if let Some(area) = Area::current().filter(|_| self.lock.by_sections) {
            for _ in 0..ATTEMPTS {
                let guard = self.lock.owner.as_ptr().cast_const();
                // SAFETY: both words live; who takes the lock away restarts sections before he goes on.
                match unsafe { raw::store_if(area, guard, self.token, place.as_ptr(), value) } {
                    Outcome::Done => return Ok(()),
                    Outcome::Different => return Err(Revoked),
                    _ => {}
                }
            }
        }
        self.store_pinned(place, value)
    }

    #[cold]
    fn store_pinned(&self, place: &AtomicU64, value: u64) -> Result<(), Revoked> {
        let owner = &self.lock.owner;
        owner.compare_exchange(self.token, self.token | PINNED, Acquire, Relaxed).map_err(|_| Revoked)?;
        place.store(value, Release);
        // Nobody changes it while it is pinned. Release: who takes the lock away sees the value.
        owner.store(self.token, Release);
        Ok(())
    }

    /// Whether the lock is still ours. It may be gone when this returns.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.lock.owner.load(Relaxed) == self.token
    }
}

impl Drop for Ownership<'_> {
    fn drop(&mut self) {
        // Release pairs with the acquire of the next owner. If it fails, somebody else has the lock.
        let _taken_away = self.lock.owner.compare_exchange(self.token, 0, Release, Relaxed);
    }
}

/// A thread's number has at most 22 bits.
const THREAD_BITS: u32 = 22;

/// A token: the sequence, the thread, the place for [`PINNED`]. Only a thread that still has an ownership from 2⁴¹ tokens ago, two days
/// of nothing else, could take its own new token for that one.
fn new_token() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // SAFETY: no arguments.
    let thread = u64::from(unsafe { libc::gettid() }.cast_unsigned());
    NEXT.fetch_add(1, Relaxed) << (THREAD_BITS + 1) | thread << 1
}

/// Whose token it is; zero for nobody's.
fn thread_of(owner: u64) -> i32 {
    (owner >> 1 & ((1 << THREAD_BITS) - 1)) as i32
}
