//! The gate before admission: a ring of units that were sent while a worker was expected soon.
//!
//! Admitting one unit at a time would take the flow's mutex once per unit. So while the gate is *attended*,
//! [`send`](crate::service::Submitter::send) only puts a unit into the gate's ring. The next worker that finishes a
//! batch admits all units at the gate. The gate is attended while at least one shared worker has just been woken, or
//! runs a batch that should end within [`SOON_NS`](crate::engine::pace::SOON_NS). The expected end is computed from the
//! slowest recent unit of the batch's stage. If that worker takes longer after all, or goes on through further stages
//! in a chain, the timekeeper admits the units at the gate. A flow of long units never uses the gate, because the cost
//! of the mutex does not matter there.
//!
//! No unit is left behind. The sender puts its unit into the gate and *then* checks whether the gate is still attended.
//! A worker that ends the attendance publishes this end and *then* checks the gate. Each side has a full fence between
//! its two steps, and the side whose fence comes later sees the first step of the other side. So the worker sees the
//! unit, or the sender sees the end of the attendance and admits the unit itself.
//!
//! No unit enters too late. The gate is closed by one atomic operation on the ring's cursor. If a `send` has claimed
//! its slot by then, its unit is counted; otherwise the `send` returns the unit to its caller.
//!
//! The gate takes at most [`MAX_AT_GATE`] units, and a sixteenth of the byte budget. A sender that finds the ring full
//! waits for a free slot. Hundreds of senders may wait, and none of them is woken for a single slot. The worker that
//! ends the attendance polls the ring even if it is empty, which wakes a sender if none is awake. (A mutex with a line
//! of sleepers, in place of the ring, would wake a sender for each free slot, at a hundred times the cost.) The ring
//! wakes its senders in the order in which they came, but the first sender to find a free slot takes it.
//!
//! A sender whose unit has too many bytes for the gate waits for admission at the entrance. A submitter at the entrance
//! enters after the units that were at the gate when it came, and before units that came later.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use millstream_ring::channel::{self, Receiver, SendError, Sender, TryRecvError, TrySendError};
use millstream_ring::sequencer::{Multi, Single};

use super::candidate::Candidate;
use super::crossing::Crossing;
use super::waking::wake_before_blocking;
use crate::engine::settings::LiveSettings;
use crate::entry::Entry;

/// The maximum number of units that wait at the gate.
pub(crate) const MAX_AT_GATE: usize = 1024;

/// A unit on its way through the gate.
pub(crate) type Sent<In> = (Candidate, In);

pub(crate) struct TypedGate<In> {
    entry: Arc<Entry<In>>,
    sender: Sender<Sent<In>, Multi, Single>,
    /// The far end of the ring. Only the holder of the flow's mutex uses it, except to close it.
    far_end: Mutex<FarEnd<In>>,
    /// 1 if a unit was put back at the far end, else 0; written under the flow's mutex.
    put_back: AtomicUsize,
    bytes: AtomicU64,
    settings: Arc<LiveSettings>,
    /// The total time that senders have waited for a slot since this total was last read.
    waited_ns: AtomicU64,
}

/// The far end of the gate, where units leave it.
pub(crate) struct FarEnd<In> {
    receiver: Receiver<Sent<In>, Multi, Single>,
    /// The first unit at the far end, while there is no room for it in the flow.
    first: Option<Sent<In>>,
    /// A buffer for units on their way, kept for reuse.
    taken: Vec<Sent<In>>,
}

/// The result of putting a unit into the gate.
pub(crate) enum AtGate<In> {
    /// The unit waits at the gate.
    Here,
    /// The gate has no room for the unit.
    Full(Candidate, In),
    Closed(In),
}

impl<In: Send> TypedGate<In> {
    pub(crate) fn new(entry: Arc<Entry<In>>, settings: Arc<LiveSettings>) -> Self {
        let (sender, receiver) = channel::mpsc(MAX_AT_GATE);
        TypedGate {
            entry,
            sender,
            far_end: Mutex::new(FarEnd { receiver, first: None, taken: Vec::new() }),
            put_back: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            settings,
            waited_ns: AtomicU64::new(0),
        }
    }

    /// The entry of the stage that units enter first.
    #[inline]
    pub(crate) fn entry(&self) -> &Arc<Entry<In>> {
        &self.entry
    }

    // ---- the senders' side ----------------------------------------------------------------------------

    /// Puts a unit into the gate. If the ring is full, waits for a slot, provided that `may_wait` allows it.
    pub(crate) fn put(
        &self,
        candidate: Candidate,
        unit: In,
        may_wait: impl FnOnce() -> Option<Crossing>,
    ) -> AtGate<In> {
        let bytes = candidate.bytes();
        if !self.take_bytes(bytes) {
            return AtGate::Full(candidate, unit);
        }
        let refused = match self.sender.try_send((candidate, unit)) {
            Ok(()) => return AtGate::Here,
            Err(TrySendError::Full((candidate, unit))) => match may_wait() {
                Some(_crossing) => match self.wait_for_place((candidate, unit)) {
                    Ok(()) => return AtGate::Here,
                    Err(SendError((_, unit))) => AtGate::Closed(unit),
                },
                None => AtGate::Full(candidate, unit),
            },
            Err(TrySendError::Disconnected((_, unit))) => AtGate::Closed(unit),
        };
        self.give_bytes_back(bytes);
        refused
    }

    fn wait_for_place(&self, unit: Sent<In>) -> Result<(), SendError<Sent<In>>> {
        wake_before_blocking();
        let since = Instant::now();
        let sent = self.sender.send(unit);
        // Relaxed: the sum is a statistic and orders nothing.
        self.waited_ns.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
        sent
    }

    /// Relaxed is enough: the count of bytes publishes no data.
    fn take_bytes(&self, bytes: u64) -> bool {
        if bytes == 0 {
            return true;
        }
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let fit = before.saturating_add(bytes) <= self.settings.read().memory / 16;
        if !fit {
            self.give_bytes_back(bytes);
        }
        fit
    }

    // ---- the scheduler's side -------------------------------------------------------------------------

    /// The far end, for the holder of the flow's mutex.
    pub(crate) fn far_end(&self) -> MutexGuard<'_, FarEnd<In>> {
        self.far_end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of waiting units, including units that senders are still putting in. The caller must hold the flow's
    /// mutex.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.sender.len() + self.put_back.load(Ordering::Relaxed)
    }

    /// An upper bound on the bytes of all units that [`waiting`](Self::waiting) has counted.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        // Pairs with the release by which a sender claims its slot. The sender counts its bytes before it claims the
        // slot, so the bytes of every counted unit are included.
        fence(Ordering::Acquire);
        self.bytes.load(Ordering::Relaxed)
    }

    /// Subtracts the bytes of units that have left the gate.
    pub(crate) fn give_bytes_back(&self, bytes: u64) {
        if bytes > 0 {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Publishes whether a unit was put back at the far end.
    pub(crate) fn publish_put_back(&self, far_end: &FarEnd<In>) {
        // Relaxed: ordered by the flow's mutex.
        self.put_back.store(usize::from(far_end.first.is_some()), Ordering::Relaxed);
    }

    /// The time that senders have waited for a slot since the last call.
    pub(crate) fn take_waited_ns(&self) -> u64 {
        self.waited_ns.swap(0, Ordering::Relaxed)
    }
}

impl<In: Send> FarEnd<In> {
    /// Whether a unit waits at the far end because there was no room for it.
    pub(crate) fn has_first(&self) -> bool {
        self.first.is_some()
    }

    /// Takes up to `units` units at once.
    pub(crate) fn take_many(&mut self, units: usize) -> std::vec::Drain<'_, Sent<In>> {
        let FarEnd { receiver, taken, .. } = self;
        // One call may return fewer units than the ring has: only the units that the receiver has already seen. A
        // disconnected ring counts as empty.
        while taken.len() < units && receiver.try_recv_many(taken, units - taken.len()).is_ok_and(|more| more > 0) {}
        taken.drain(..)
    }

    /// Takes the next unit.
    pub(crate) fn take_next(&mut self) -> Option<Sent<In>> {
        self.first.take().or_else(|| self.receiver.try_recv().ok())
    }

    /// Puts back the unit that was taken last.
    pub(crate) fn put_back(&mut self, unit: Sent<In>) {
        self.first = Some(unit);
    }

    /// Closes the ring: a later sender gets its unit back.
    pub(crate) fn close(&mut self) {
        self.receiver.close();
    }

    /// Takes the next unit of a closed ring. Waits for a sender that has claimed its slot and is about to put its unit
    /// there. Returns `None` when all units have left.
    pub(crate) fn take_last(&mut self) -> Option<Sent<In>> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            match self.receiver.try_recv() {
                Ok(unit) => return Some(unit),
                Err(TryRecvError::Empty) => std::thread::yield_now(),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
    }
}
