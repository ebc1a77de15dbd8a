//! A lock that its holder keeps until another thread takes it away.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use super::restart::{Sections, restart};
use super::section::{self, MAX_ATTEMPTS, Outcome};
use super::{Activity, Area, activity};

/// A lock that another thread may take from its holder when the holder is preempted: no thread waits for a thread that
/// is not running.
///
/// The holder reads without restriction, and writes through its [`Ownership`]: each store happens only if the lock is
/// still the holder's own, and one [section](super) both checks and stores. A thread that takes the lock away restarts
/// the sections of all other threads, and from then on every store of the former holder fails. The guarded data must
/// make sense after each single store: prepare a new version out of the readers' sight, and publish it by one store. A
/// thread that reads a version without the lock checks afterwards whether that version stayed current throughout,
/// because the owner may have begun to overwrite it with the next version. The check compares a word that has a
/// different value for each publication.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// use millstream_sync::percpu::Revocable;
///
/// let (lock, version) = (Revocable::new(), AtomicU64::new(0));
/// let first = lock.try_own().unwrap();
/// assert!(first.store(&version, 1).is_ok());
/// let second = lock.revoke(); // at once, whatever the first owner does
/// assert!(first.store(&version, 2).is_err());
/// assert!(second.store(&version, 3).is_ok());
/// assert_eq!(version.load(Relaxed), 3);
/// ```
///
/// Where the kernel cannot restart sections, and for a store whose sections were aborted four times, the holder
/// *pins* the lock for the length of one store: two atomic instructions. A thread that wants to take the lock away
/// during that time waits for that one store.
///
/// # Source of the idea
/// Tim Harris and Keir Fraser, *Revocable locks for non-blocking programming* (2005); Paul Khuong for the observations
/// that restartable sequences suit these locks, and that they allow a thread to hold a lock until it is preempted.
/// `examples/flat_combining.rs` builds flat combining on it.
#[derive(Debug)]
pub struct Revocable {
    /// The token of the owner, with or without [`PINNED`]; zero if there is none. It names the owner's thread, so that
    /// a waiter never checks the activity of a thread that no longer has the lock.
    owner: AtomicU64,
    by_sections: bool,
}

/// Set while the owner stores; during that time, the lock cannot be taken away.
const PINNED: u64 = 1;

/// The right to store, until another thread takes it away.
///
/// An ownership belongs to the thread that acquired it. If another thread used it, waiters would check the activity of
/// the wrong thread.
#[derive(Debug)]
pub struct Ownership<'a> {
    lock: &'a Revocable,
    /// An even number that no other ownership in use has.
    token: u64,
    /// Confines the value to one thread: if two threads stored at once, each would mistake the other's pin for the loss
    /// of the lock.
    _of_one_thread: PhantomData<Cell<()>>,
}

/// Another thread has taken the lock away; the former owner must start over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the lock was taken away")]
pub struct Revoked;

impl Revocable {
    /// A free lock. Makes one system call.
    #[must_use]
    pub fn new() -> Self {
        Revocable { owner: AtomicU64::new(0), by_sections: restart(Sections::All).is_ok() }
    }

    /// Takes the lock if it is free. Wait-free; acquire.
    #[must_use]
    pub fn try_own(&self) -> Option<Ownership<'_>> {
        let token = new_token();
        self.owner.compare_exchange(0, token, Acquire, Relaxed).ok()?;
        Some(self.owned(token))
    }

    /// Takes the lock as soon as it is free or its holder is not running.
    ///
    /// Blocks, by spinning, while the holder runs; some two microseconds pass between checks of the holder's activity.
    /// Acquire: everything the previous holder wrote is visible. Taking the lock away costs what
    /// [`revoke`](Self::revoke) costs.
    ///
    /// # Panics
    /// Panics as [`revoke`](Self::revoke) does.
    #[must_use]
    pub fn own(&self) -> Ownership<'_> {
        const TRIES_PER_CHECK: u32 = 100;
        loop {
            for _ in 0..TRIES_PER_CHECK {
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

    /// Takes the lock from any holder. Acquire. One system call that interrupts the other running threads, and a wait
    /// for one store if the lock is pinned.
    ///
    /// # Panics
    /// If the system no longer restarts sections, although it did when the lock was made.
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
            // A section that still saw the former owner's token commits before this returns, or not at all.
            restart(Sections::All).expect("sections were restarted when the lock was made");
        }
        self.owned(token)
    }

    /// The current activity of the holder, which may change at any time; [`Ended`](Activity::Ended) if no thread holds
    /// the lock.
    fn holder(&self) -> Activity {
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
    /// Stores `value` if this is still the owner. Release: a thread that sees the value sees everything the owner wrote
    /// before. Wait-free: a section of a few instructions, or two atomic instructions.
    ///
    /// # Errors
    /// [`Revoked`]: the value was not stored, and no later store will succeed.
    pub fn store(&self, target: &AtomicU64, value: u64) -> Result<(), Revoked> {
        if let Some(area) = Area::current().filter(|_| self.lock.by_sections) {
            for _ in 0..MAX_ATTEMPTS {
                let guard = self.lock.owner.as_ptr().cast_const();
                // SAFETY: both references are live, and a thread that takes the lock away restarts sections before it
                // goes on, in `revoke`.
                match unsafe { section::store_if(area, guard, self.token, target.as_ptr(), value) } {
                    Outcome::Done => return Ok(()),
                    Outcome::Different => return Err(Revoked),
                    _ => {}
                }
            }
        }
        self.store_pinned(target, value)
    }

    #[cold]
    fn store_pinned(&self, target: &AtomicU64, value: u64) -> Result<(), Revoked> {
        let owner = &self.lock.owner;
        owner.compare_exchange(self.token, self.token | PINNED, Acquire, Relaxed).map_err(|_| Revoked)?;
        target.store(value, Release);
        // A pinned lock does not change hands, so a store suffices. Release: a thread that takes the lock away sees the
        // value.
        owner.store(self.token, Release);
        Ok(())
    }

    /// Whether this is still the owner. Another thread may have taken the lock away when this returns. Wait-free, one
    /// load.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.lock.owner.load(Relaxed) == self.token
    }
}

impl Drop for Ownership<'_> {
    fn drop(&mut self) {
        // Release pairs with the acquire of the next owner. The exchange fails if another thread has the lock.
        let _taken_away = self.lock.owner.compare_exchange(self.token, 0, Release, Relaxed);
    }
}

/// The width of a thread id, which is below 2²².
const THREAD_BITS: u32 = 22;

/// A new token: a sequence number, the thread, a bit for [`PINNED`]. Only a thread that still has an ownership from 2⁴¹
/// tokens ago (two days of back-to-back draws) could mistake its own new token for the old one.
fn new_token() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // SAFETY: `gettid` has no preconditions and touches no memory.
    let thread = u64::from(unsafe { libc::gettid() }.cast_unsigned());
    NEXT.fetch_add(1, Relaxed) << (THREAD_BITS + 1) | thread << 1
}

/// The thread whose token this is; zero if there is no owner.
fn thread_of(owner: u64) -> i32 {
    (owner >> 1 & ((1 << THREAD_BITS) - 1)) as i32
}
