//! The process's own collector, of which every thread becomes a member when it first pins.

use std::cell::Cell;
use std::ptr;

use crate::reclaim::registry::Entry;
use crate::reclaim::settings::Settings;

use super::guard::Guard;
use super::member::{Member, resign};
use super::participant::Left;
use super::shared::Shared;
use super::stats::Stats;

#[cfg(not(loom))]
#[inline(always)]
pub(super) fn shared() -> &'static Shared {
    static SHARED: Shared = Shared::new(Settings::DEFAULT);
    &SHARED
}

/// One collector for each execution of a model; it is leaked, since a model's threads may end after its statics.
#[cfg(loom)]
fn shared() -> &'static Shared {
    loom::lazy_static! {
        static ref SHARED: &'static Shared = Box::leak(Box::new(Shared::new(Settings::DEFAULT)));
    }
    *SHARED
}

#[cfg(not(loom))]
thread_local! {
    /// This thread's entry, or null. It has no destructor, so that reading it is one load.
    static MEMBER: Cell<*const Entry<Member>> = const { Cell::new(ptr::null()) };
    static AT_EXIT: AtExit = const { AtExit(Cell::new(None)) };
}

#[cfg(loom)]
loom::thread_local! {
    static MEMBER: Cell<*const Entry<Member>> = Cell::new(ptr::null());
    static AT_EXIT: AtExit = AtExit(Cell::new(None));
}

/// Protects all objects reachable from now on in the structures of the process's collector, until the guard is dropped.
///
/// Wait-free, except that the first call of a thread makes it a member. Cost: as [`Local::pin`](super::Local::pin) and
/// a load from the thread's own storage.
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
    // SAFETY: this thread has acquired the entry, and its list is never dropped.
    Guard::new(unsafe { &*member }, shared())
}

#[cold]
#[inline(never)]
fn first_pin() -> Guard<'static> {
    let shared = shared();
    let member = shared.join();
    #[cfg(not(loom))]
    {
        super::fork::prepare();
        member.set_thread(super::fork::this_thread());
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

/// Closes this thread's batch early, passes the fence if that takes no waiting, and frees all objects that may be
/// freed; see [`Guard::flush`].
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
    // SAFETY: this thread has acquired the entry, and its list is never dropped.
    if let Some(member) = unsafe { member.as_ref() } {
        super::guard::flush(member, shared());
    }
}

/// Ends the thread's membership, or leaves that to a guard that outlives it.
struct AtExit(Cell<Option<(&'static Entry<Member>, &'static Shared)>>);

impl Drop for AtExit {
    fn drop(&mut self) {
        let Some((member, shared)) = self.0.get() else { return };
        // This fails only in a model, whose threads lose all storage at once.
        let _reset = MEMBER.try_with(|current| current.set(ptr::null()));
        if member.participant.abandon() == Left::TheThread {
            resign(member, shared);
        }
    }
}
