//! A thread's membership in a collector.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::reclaim::registry::Entry;

use super::guard::{Guard, flush};
use super::member::{Member, resign};
use super::participant::EPOCH;
use super::shared::Shared;
use super::stats::Stalled;
use crate::primitive::{Ordering, try_heavy};

/// A member of a [`Collector`](super::Collector): one thread at a time may pin with it. It may be sent to another
/// thread when it has no guards.
pub struct Local {
    shared: Arc<Shared>,
    /// An entry of `shared`, which outlives it.
    member: *const Entry<Member>,
    /// Confines the local to one thread at a time, since its garbage is not synchronized.
    not_sync: PhantomData<std::cell::Cell<()>>,
}

// SAFETY: the member belongs to this local alone, its garbage is `Send`, and guards borrow the local, so none exists in
// a send.
unsafe impl Send for Local {}

impl Local {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let member = std::ptr::from_ref(shared.join());
        Local { shared, member, not_sync: PhantomData }
    }

    fn member(&self) -> &Entry<Member> {
        // SAFETY: entries live as long as `shared`, which `self` keeps alive.
        unsafe { &*self.member }
    }

    /// Protects all objects reachable from now on, until the guard is dropped.
    ///
    /// Wait-free. Cost: two loads, a store, a [light fence](millstream_fence::light); and a load and a store to leave.
    #[inline(always)]
    pub fn pin(&self) -> Guard<'_> {
        Guard::new(self.member(), &self.shared)
    }

    /// Ensures that this local may retire `objects` more and then has at most `limit` objects waiting. Call it *before*
    /// unlinking objects, while there is still a choice.
    ///
    /// Epochs cannot bound garbage by themselves: one reader that stops holds back every object retired after it
    /// entered. With this call the writer finds out in time, and may wait, shed load, or report the reader.
    ///
    /// Lock-free. If there is no room, passes a [heavy fence](millstream_fence::heavy), whatever the settings, and
    /// checks all members. The caller's own guards hold objects back, too.
    ///
    /// # Errors
    /// [`Stalled`], if readers hold back too much.
    ///
    /// ```
    /// use millstream_sync::reclaim::epoch::Collector;
    ///
    /// let collector = Collector::new();
    /// let local = collector.local();
    /// local.make_room(1, 10_000)?;
    /// local.pin().defer(|| ());
    /// # Ok::<(), millstream_sync::reclaim::epoch::Stalled>(())
    /// ```
    pub fn make_room(&self, objects: usize, limit: usize) -> Result<(), Stalled> {
        let fits = || self.member().garbage() + objects <= limit;
        if fits() {
            return Ok(());
        }
        self.member().seal(&self.shared);
        // If the fence is refused, the objects stay, and there is no room.
        let _passed = try_heavy();
        self.flush();
        if fits() {
            return Ok(());
        }
        let epoch = self.shared.epoch.load(Ordering::Relaxed);
        let behind = epoch.saturating_sub(self.shared.oldest()) / EPOCH;
        Err(Stalled { garbage: self.member().garbage(), limit, behind })
    }

    /// Closes the batch early, passes the fence if that takes no waiting, and frees all objects that may be freed.
    pub fn flush(&self) {
        flush(self.member(), &self.shared);
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // Guards borrow the local, so any that remain were leaked.
        self.member().participant.reset();
        resign(self.member(), &self.shared);
    }
}
