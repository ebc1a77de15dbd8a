//! The process's own collector, which every thread is a member of once it pins.

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

/// One for each execution of a model, and leaked, for a model's threads may end after its statics.
#[cfg(loom)]
fn shared() -> &'static Shared {
    loom::lazy_static! {
        static ref SHARED: &'static Shared = Box::leak(Box::new(Shared::new(Settings::DEFAULT)));
    }
    *SHARED
}

#[cfg(not(loom))]
thread_local! {
    /// This thread's entry, or null. Has no destructor, so that reading it is one load.
    static MEMBER: Cell<*const Entry<Member>> = const { Cell::new(ptr::null()) };
    static AT_EXIT: AtExit = const { AtExit(Cell::new(None)) };
}

#[cfg(loom)]
loom::thread_local! {
    static MEMBER: Cell<*const Entry<Member>> = Cell::new(ptr::null());
    static AT_EXIT: AtExit = AtExit(Cell::new(None));
}

/// Protects what is reachable from now on in everything that the process's collector serves, until the guard is
/// dropped.
///
/// Wait-free, except that the first call of a thread makes it a member. Cost: as [`Local::pin`](super::Local::pin) and
/// a load from the thread's own storage.
///
/// ```
/// let guard = millstream_sync::reclaim::epoch::pin();
/// // Whatever is loaded now stays.
/// drop(guard);
/// ```
#[inline(always)]
#[must_use]
pub fn pin() -> Guard<'static> {
    let member = MEMBER.with(Cell::get);
    if member.is_null() {
        return first_pin();
    }
    // SAFETY: an entry of a list that is never dropped, acquired by this thread.
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
        // This thread's storage is being destroyed: a membership for this guard alone.
        member.participant.abandon();
    }
    guard
}

/// The process's collector at about one moment.
///
/// ```
/// let _guard = millstream_sync::reclaim::epoch::pin();
/// assert!(millstream_sync::reclaim::epoch::stats().pinned >= 1);
/// ```
#[must_use]
pub fn stats() -> Stats {
    shared().stats()
}

/// Closes this thread's batch early, passes the fence if that takes no waiting, and frees everything that may be freed;
/// see [`Guard::flush`].
///
/// ```
/// millstream_sync::reclaim::epoch::flush();
/// ```
pub fn flush() {
    let member = {
        let _guard = pin();
        MEMBER.with(Cell::get)
    };
    // Null while this thread's storage is being destroyed: then there is no garbage of its own.
    // SAFETY: as in `pin`.
    if let Some(member) = unsafe { member.as_ref() } {
        super::guard::flush(member, shared());
    }
}

/// Ends the thread's membership, or leaves that to a guard which outlives it.
struct AtExit(Cell<Option<(&'static Entry<Member>, &'static Shared)>>);

impl Drop for AtExit {
    fn drop(&mut self) {
        let Some((member, shared)) = self.0.get() else { return };
        // Fails only in a model, whose threads lose all storage at once.
        let _reset = MEMBER.try_with(|current| current.set(ptr::null()));
        if member.participant.abandon() == Left::TheThread {
            resign(member, shared);
        }
    }
}
