//! The gate before admission: it holds units that were sent while a worker was about to come by.
//!
//! Admitting one unit at a time would take the flow's mutex once for each. So while the gate is *attended*,
//! [`send`](crate::Submitter::send) only puts a unit into the gate's ring, and the next worker that finishes a batch
//! admits all that have come. The gate is attended while at least one shared worker has a batch that will end within
//! [`SOON_NS`] by the slowest recent unit of its stage, or has just been woken. If that worker takes longer after all,
//! the timekeeper comes by (see `watch`). In a flow of longer units the gate is never used: there the mutex costs
//! nothing.
//!
//! No unit is left behind. The sender puts its unit into the gate and *then* checks whether the gate is still attended;
//! a worker that ends the attendance publishes that and *then* checks the gate; each has a full fence in between. The
//! side whose fence comes later sees what the other side wrote before its own: the worker sees the unit, or the sender
//! sees the end of the attendance and admits the unit itself.
//!
//! No unit enters too late. Closing the gate is one atomic operation on the ring's cursor: a `send` has either claimed
//! its place before it, and then its unit is counted, or gets its unit back.
//!
//! The gate holds at most [`MAX_STAGED`] units and a sixteenth of the byte budget. A sender that finds the ring full
//! waits in the ring: hundreds may, and none of them is woken for a single unit. A sender whose unit has too many bytes
//! waits for admission, at the entrance. A submitter at the entrance goes in after the units that were before the gate
//! when it came, and before those that came later. The senders in the ring have no order: the first to find a free
//! place takes it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use millstream_ring::channel::{self, Receiver, SendError, Sender, TryRecvError, TrySendError};
use millstream_ring::sequencer::{Multi, Single};

use super::admit::Candidate;
use super::column::Row;
use super::crossing::Crossing;
use super::settings::LiveSettings;
use super::state::State;
use super::waking::wake_before_blocking;
use crate::exit::Entry;

/// The maximum number of units that wait before the gate.
pub(crate) const MAX_STAGED: usize = 1024;

/// A worker whose batch ends within this time attends the gate.
pub(crate) const SOON_NS: u64 = 200_000;

/// The gate, its payload type hidden.
pub(crate) trait Gate: Send + Sync {
    /// Admits units in the order of their arrival, as long as there is room and no submitter at the entrance came
    /// before them. Unless `surely` is set, checks without the gate's mutex first.
    fn admit_staged(&self, state: &mut State, now: u64, surely: bool);
    /// Closes the gate and admits all units when a flow ends, whether or not there is room: they are counted as left.
    fn admit_all(&self, state: &mut State, now: u64);
    /// Closes the gate, and tells the senders that wait.
    fn close(&self);
    /// The number of waiting units, including those that are just being put here. The caller must hold the flow's
    /// mutex.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

type Unit<In> = (Candidate, In);

pub(crate) struct TypedGate<In> {
    pub(crate) entry: Arc<Entry<In>>,
    sender: Sender<Unit<In>, Multi, Single>,
    /// The far end of the ring. Except for `close`, only the holder of the flow's mutex uses it.
    exit: Mutex<Exit<In>>,
    /// Whether the far end holds a unit; written under the flow's mutex.
    held: AtomicUsize,
    bytes: AtomicU64,
    settings: Arc<LiveSettings>,
    /// The time that senders have waited for a place since it was last read.
    waited_ns: AtomicU64,
}

/// The far end of the gate, where units leave it.
struct Exit<In> {
    receiver: Receiver<Unit<In>, Multi, Single>,
    /// The first unit, while there is no room for it.
    held: Option<Unit<In>>,
    /// Memory for units on their way.
    taken: Vec<Unit<In>>,
}

/// The result of bringing a unit to the gate.
pub(crate) enum Staged<In> {
    /// The unit waits at the gate.
    Here,
    /// The gate has no place for the unit.
    Full(Candidate, In),
    Closed(In),
}

impl<In: Send> TypedGate<In> {
    pub(crate) fn new(entry: Arc<Entry<In>>, settings: Arc<LiveSettings>) -> Self {
        let (sender, receiver) = channel::mpsc(MAX_STAGED);
        TypedGate {
            entry,
            sender,
            exit: Mutex::new(Exit { receiver, held: None, taken: Vec::new() }),
            held: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            settings,
            waited_ns: AtomicU64::new(0),
        }
    }

    fn exit(&self) -> MutexGuard<'_, Exit<In>> {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a unit into the gate. If all places are taken, waits for one if `may_wait` lets it.
    pub(crate) fn stage(
        &self,
        candidate: Candidate,
        unit: In,
        may_wait: impl FnOnce() -> Option<Crossing>,
    ) -> Staged<In> {
        let bytes = candidate.bytes;
        if !self.take_bytes(bytes) {
            return Staged::Full(candidate, unit);
        }
        let refused = match self.sender.try_send((candidate, unit)) {
            Ok(()) => return Staged::Here,
            Err(TrySendError::Full((candidate, unit))) => match may_wait() {
                Some(_crossing) => match self.wait_for_place((candidate, unit)) {
                    Ok(()) => return Staged::Here,
                    Err(SendError((_, unit))) => Staged::Closed(unit),
                },
                None => Staged::Full(candidate, unit),
            },
            Err(TrySendError::Disconnected((_, unit))) => Staged::Closed(unit),
        };
        self.give_bytes_back(bytes);
        refused
    }

    fn wait_for_place(&self, unit: Unit<In>) -> Result<(), SendError<Unit<In>>> {
        wake_before_blocking();
        let since = Instant::now();
        let sent = self.sender.send(unit);
        // Relaxed: the sum is a statistic and orders nothing.
        self.waited_ns.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
        sent
    }

    /// The gate counts bytes and does not hand them over, so relaxed is enough.
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

    fn give_bytes_back(&self, bytes: u64) {
        if bytes > 0 {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Admits a unit into a row of its own. Returns whether it is plain.
    pub(crate) fn admit_one(
        &self,
        state: &mut State,
        candidate: Candidate,
        unit: In,
        run: &mut std::collections::VecDeque<Row>,
        now: u64,
        place: impl FnOnce(&mut Row),
    ) -> bool {
        state.admit(candidate, run, now, |row| {
            place(row);
            // SAFETY: a flow has one gate, so the entry's column and the row belong to the same flow.
            *unsafe { self.entry.column.cell(row) } = Some(unit);
        })
    }
}

impl<In: Send> Gate for TypedGate<In> {
    fn admit_staged(&self, state: &mut State, now: u64, surely: bool) {
        if !surely && self.is_empty() {
            return;
        }
        state.room_waited_ns += self.waited_ns.swap(0, Ordering::Relaxed);
        let mut exit = self.exit();
        let Exit { receiver, held, taken } = &mut *exit;
        let most = state.may_leave_the_gate();
        let units = self.len().min(most);
        if units == 0 {
            return;
        }
        // Pairs with the release of a sender that took its place after its bytes: the bytes of every counted unit are
        // counted, too.
        fence(Ordering::Acquire);
        let mut run = state.pocket.spares.take();
        let (mut bytes, mut plain, mut admitted) = (0, true, 0);
        if held.is_none() && state.has_room_for_all(units, self.bytes.load(Ordering::Relaxed)) {
            // One call may return only the units that an earlier look has seen. A disconnected ring is no different
            // from an empty one here.
            while taken.len() < units && receiver.try_recv_many(taken, units - taken.len()).is_ok_and(|more| more > 0) {
            }
            admitted = taken.len();
            for (candidate, unit) in taken.drain(..) {
                bytes += candidate.bytes;
                plain &= self.admit_one(state, candidate, unit, &mut run, now, |_| ());
            }
        } else {
            while admitted < most
                && let Some((candidate, unit)) = held.take().or_else(|| receiver.try_recv().ok())
            {
                if !state.has_room(candidate.bytes) {
                    *held = Some((candidate, unit));
                    break;
                }
                admitted += 1;
                bytes += candidate.bytes;
                plain &= self.admit_one(state, candidate, unit, &mut run, now, |_| ());
            }
            // Relaxed: ordered by the flow's mutex.
            self.held.store(usize::from(held.is_some()), Ordering::Relaxed);
        }
        self.give_bytes_back(bytes);
        state.left_the_gate += admitted as u64;
        state.enter(run, plain, now);
    }

    fn admit_all(&self, state: &mut State, now: u64) {
        let mut exit = self.exit();
        exit.receiver.close();
        state.room_waited_ns += self.waited_ns.swap(0, Ordering::Relaxed);
        let mut run = state.pocket.spares.take();
        let mut next = exit.held.take().map(Ok);
        self.held.store(0, Ordering::Relaxed);
        loop {
            match next.take().unwrap_or_else(|| exit.receiver.try_recv()) {
                Ok((candidate, unit)) => {
                    self.admit_one(state, candidate, unit, &mut run, now, |_| ());
                }
                // A sender has claimed its place and is about to put its unit there.
                Err(TryRecvError::Empty) => std::thread::yield_now(),
                Err(TryRecvError::Disconnected) => break,
            }
        }
        state.enter(run, false, now);
    }

    fn close(&self) {
        self.exit().receiver.close();
    }

    fn len(&self) -> usize {
        self.sender.len() + self.held.load(Ordering::Relaxed)
    }
}
