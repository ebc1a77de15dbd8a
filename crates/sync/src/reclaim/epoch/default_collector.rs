//! The process's own collector. A thread becomes a member when it first pins.

use std::cell::Cell;
use std::ptr;

use crate::reclaim::registry::Entry;
use crate::reclaim::{at_the_end_of_a_thread, process_wide};

use super::collector::{Shared, Stats};
use super::guard::Guard;
use super::member::{Member, resign};
use super::participant::Left;

process_wide! {
    /// This thread's entry, or null. It has no destructor, so that reading it is one load.
    static MEMBER: Entry<Member>;
}

/// Protects all objects reachable from now on in the structures of the process's collector, until the guard is dropped.
///
/// Wait-free, except that the first call of a thread makes it a member. Costs what [`Local::pin`](super::Local::pin)
/// costs, and a load from the thread's own storage.
///
/// ```
/// let guard = millstream_sync::reclaim::epoch::pin();
/// // Every object loaded now stays alive.
/// drop(guard);
/// ```
#[inline(always)]
#[must_use]
pub fn pin() -> Guard<'static> {
    let member = MEMBER.with(Cell::get);
    if member.is_null() {
        return first_pin();
    }
    // SAFETY: this thread has acquired the entry, and the process's collector is never dropped.
    Guard::new(unsafe { &*member }, shared())
}

#[cold]
#[inline(never)]
fn first_pin() -> Guard<'static> {
    let shared = shared();
    let member = shared.join();
    #[cfg(not(loom))]
    {
        fork::prepare();
        member.set_thread(fork::this_thread());
    }
    let guard = Guard::new(member, shared);
    if AT_EXIT.try_with(|at_exit| at_exit.0.set(Some((member, shared)))).is_ok() {
        MEMBER.with(|current| current.set(member));
    } else {
        // This thread's storage is being destroyed, so the membership lasts only as long as this guard.
        member.participant.abandon();
    }
    guard
}

/// The state of the process's collector at about one moment.
///
/// ```
/// let _guard = millstream_sync::reclaim::epoch::pin();
/// assert!(millstream_sync::reclaim::epoch::stats().pinned >= 1);
/// ```
#[must_use]
pub fn stats() -> Stats {
    shared().stats()
}

/// Closes this thread's batch early, executes the fence unless that would require waiting, and frees all objects that
/// may be freed; see [`Guard::flush`].
///
/// ```
/// millstream_sync::reclaim::epoch::flush();
/// ```
pub fn flush() {
    let member = {
        let _guard = pin();
        MEMBER.with(Cell::get)
    };
    // The pointer is null while this thread's storage is being destroyed; then the thread has no garbage of its own.
    // SAFETY: the pointer is null, or points to an entry that this thread has acquired in the process's collector,
    // which is never dropped.
    if let Some(member) = unsafe { member.as_ref() } {
        super::guard::flush(member, shared());
    }
}

/// Ends the thread's membership when the thread ends, or when a guard that outlives this value is dropped.
struct AtExit(Cell<Option<(&'static Entry<Member>, &'static Shared)>>);

impl Drop for AtExit {
    fn drop(&mut self) {
        let Some((member, shared)) = self.0.get() else { return };
        // This fails only in a model, whose threads lose all storage at once.
        let _reset = MEMBER.try_with(|current| current.set(ptr::null()));
        if member.participant.abandon() == Left::TheThread {
            at_the_end_of_a_thread(|| resign(member, shared));
        }
    }
}

/// Guards in a child of `fork`, which has one thread and copies of the states of all its parent's threads.
///
/// A thread that was pinned at the fork never leaves in the child, and would hold back every object retired there. So
/// the child forgets the guards of other threads. It does not touch their garbage, because a thread may have been in
/// the middle of changing it.
#[cfg(not(loom))]
mod fork {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::shared;

    /// A number that identifies the calling thread, and still does so in a child of fork.
    pub(super) fn this_thread() -> usize {
        // SAFETY: `pthread_self` has no preconditions and touches no memory of ours.
        unsafe { libc::pthread_self() as usize }
    }

    /// Makes children of fork forget the guards of other threads.
    pub(super) fn prepare() {
        // This takes no lock, because a child could inherit it locked. Two threads may both register the handler;
        // forgetting twice is harmless.
        static IS_PREPARED: AtomicBool = AtomicBool::new(false);
        if !IS_PREPARED.load(Ordering::Acquire) {
            // Registration fails only for lack of memory; then children hold back objects on behalf of other threads'
            // guards.
            // SAFETY: the handler only loads and stores atomics, which is allowed in a child of fork.
            let _refused = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
            // Release pairs with the acquire above: a thread that finds the flag set has the handler registered.
            IS_PREPARED.store(true, Ordering::Release);
        }
    }

    extern "C" fn in_the_child() {
        let this = this_thread();
        shared().members().filter(|member| member.thread() != this).for_each(|member| member.participant.reset());
    }
}
