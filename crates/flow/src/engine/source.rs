//! The source: the stage farthest from the exit.
//!
//! Shared workers pull units from the source themselves, when no unit in flight needs them more: a worker then goes on
//! with the units it has just made, while they are in its core's cache, and the flow needs no thread beside its
//! workers. One worker pulls at a time, a chunk that lasts about [`PULL_NS`], into rows that were taken for it
//! beforehand; the rows are admitted under the flow's mutex when the chunk is done.
//!
//! A source may block at any unit. The units it gave before must not wait for that, and it must not keep a worker's
//! place. Pulled rows therefore lie in the [`Staging`], where the holder of the flow's mutex can admit them. When a
//! pull lasts for a timer's tick (see `State::watch`), another worker gets its place and the puller is told to
//! [hurry](Staging::hurry): from then on it hands over every unit at once.
//!
//! When all workers are busy with long units, an additional thread pulls, so that other stages do not starve.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use millstream_sync::eventcount::EventCount;

use super::chain::TURN_LASTS_NS;
use super::column::{Column, Row};
use super::shared::Shared;
use super::staging::Staging;
use super::state::State;
use super::unit::{Stamp, Unit};
use crate::contain::contain;
use crate::exit::Entry;
use crate::snapshot::Phase;

/// The intended duration of one pull.
const PULL_NS: u64 = 100_000;

/// Units of a pull that lasts longer than this get a new stamp when they are admitted.
const SLOW_NS: u64 = 400_000;

/// A pull that lasts longer than this is blocked, and the end of the flow does not wait for it.
const PULL_GRACE_NS: u64 = 100_000_000;

/// The way in which a source ended.
pub enum SourceEnd {
    /// The source has no more units.
    Exhausted,
    /// The flow was stopped or abandoned before the source was exhausted.
    Closed,
    /// The source panicked with this payload, and the flow was abandoned.
    Panicked(Box<dyn Any + Send>),
}

impl std::fmt::Debug for SourceEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SourceEnd::Exhausted => "Exhausted",
            SourceEnd::Closed => "Closed",
            SourceEnd::Panicked(_) => "Panicked(…)",
        })
    }
}

/// The end of a source as the pull found it. The payload of a panic lies in [`Shared::source_panic`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullEnd {
    Exhausted,
    Closed,
    Panicked,
}

/// A source, its types hidden.
pub(crate) trait Source: Send {
    /// Fills `rows` from the last one on with units and pushes them to the staging, until no row is left, the units
    /// weigh enough, or the puller should hurry. Returns `false` if the source is exhausted.
    fn pull(&mut self, order: PullOrder, rows: &mut Vec<Row>, staging: &Staging) -> bool;
}

/// The limits of one pull.
#[derive(Clone, Copy)]
pub(crate) struct PullOrder {
    /// The maximum weight of all its units together.
    pub(crate) max_bytes: u64,
    /// The stamp of the first unit; the units that follow have the next numbers.
    pub(crate) first: Stamp,
}

/// A source with its types.
pub(crate) struct TypedSource<In, I> {
    pub(crate) units: I,
    pub(crate) entry: Arc<Entry<In>>,
    pub(crate) headers: Arc<Column<Unit>>,
    pub(crate) stamps: Arc<Column<Stamp>>,
}

impl<In, I> Source for TypedSource<In, I>
where
    In: Send,
    I: Iterator<Item = In> + Send,
{
    fn pull(&mut self, order: PullOrder, rows: &mut Vec<Row>, staging: &Staging) -> bool {
        if self.entry.is_plain() {
            return self.pull_plain(order.first, rows, staging);
        }
        let mut stamp = order.first;
        let mut weight: u64 = 0;
        while !rows.is_empty() {
            let Some(value) = self.units.next() else { return false };
            // `demand` runs the user's code, so it comes before the row is taken.
            let mut asks = Vec::new();
            let (bytes, refused) = match self.entry.demand(&value, &mut asks) {
                Ok(bytes) => (bytes.unwrap_or(0), None),
                Err(refused) => (0, Some(refused)),
            };
            let Some(mut row) = rows.pop() else { break };
            let plain = bytes == 0 && asks.is_empty() && refused.is_none();
            if !plain {
                let unit = self.headers.unit(&mut row);
                unit.weigh(bytes);
                let needs = unit.needs();
                (needs.asks, needs.refused) = (asks, refused);
            }
            // SAFETY: the entry's column and the row belong to the flow whose source this is, so the row is a row of
            // that column.
            *unsafe { self.entry.column.cell(&mut row) } = Some(value);
            weight = weight.saturating_add(bytes);
            self.stamps.set(&mut row, stamp);
            stamp = stamp.next();
            if staging.push(row, plain) || weight >= order.max_bytes {
                break;
            }
        }
        true
    }
}

impl<In, I: Iterator<Item = In>> TypedSource<In, I> {
    /// Pulls units that need and weigh nothing of their own.
    fn pull_plain(&mut self, mut stamp: Stamp, rows: &mut Vec<Row>, staging: &Staging) -> bool {
        while !rows.is_empty() {
            let Some(value) = self.units.next() else { return false };
            let Some(mut row) = rows.pop() else { break };
            // SAFETY: the entry's column and the row belong to the flow whose source this is, so the row is a row of
            // that column.
            *unsafe { self.entry.column.cell(&mut row) } = Some(value);
            self.stamps.set(&mut row, stamp);
            stamp = stamp.next();
            if staging.push(row, true) {
                break;
            }
        }
        true
    }
}

/// The source as the scheduler sees it.
pub(crate) struct SourceState {
    pub(crate) staging: Arc<Staging>,
    /// The source may have more units, and the flow wants them.
    pub(crate) open: bool,
    pub(crate) pulling: Option<Pulling>,
    /// The source's time for a unit, as a running mean; 0 before the first one.
    unit_ns: u64,
    last_pull_ns: u64,
    /// The number after the numbers of the last pull.
    next_id: u64,
    /// The listener was told of the source's end, or is about to be.
    told: bool,
    /// The last pull took so long that the time of its beginning is not the time of its units' admission.
    slow: bool,
    /// The time since which there has been no room for the source's units.
    held_up_since: Option<u64>,
}

/// A pull in progress.
pub(crate) struct Pulling {
    since_ns: u64,
    /// The pull will end soon.
    soon: bool,
    /// The pull takes a shared worker's place.
    pub(crate) seated: bool,
}

impl SourceState {
    pub(crate) fn new() -> Self {
        SourceState {
            staging: Arc::new(Staging::new()),
            open: true,
            pulling: None,
            unit_ns: 0,
            last_pull_ns: 0,
            next_id: 0,
            told: false,
            slow: false,
            held_up_since: None,
        }
    }
}

impl State {
    /// Whether no pulled unit waits for admission.
    pub(crate) fn source_is_empty(&self) -> bool {
        self.source.as_ref().is_none_or(|source| source.staging.len() == 0)
    }

    pub(crate) fn is_pulling(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.pulling.is_some())
    }

    /// Whether a pull is in progress that should be over in a moment. Its units so far are left for the puller to go on
    /// with, because they are in its core's cache.
    fn pull_ends_soon(&self) -> bool {
        self.source.as_ref().and_then(|source| source.pulling.as_ref()).is_some_and(|pull| pull.soon)
    }

    /// The number of pulls that take a shared worker's place: 0 or 1.
    pub(crate) fn seated_pulls(&self) -> usize {
        let seated = self.source.as_ref().and_then(|source| source.pulling.as_ref()).is_some_and(|pull| pull.seated);
        usize::from(seated)
    }

    /// Whether a worker may pull: there is room for the units it would bring.
    pub(crate) fn can_pull(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.open && source.pulling.is_none() && source.staging.len() == 0)
            && self.phase == Phase::Running
            && self.has_room(1)
            // A pull must not pass a waiting submitter.
            && self.entrance.len() == 0
    }

    /// The time since the last pull.
    pub(crate) fn not_pulled_for(&self, now: u64) -> u64 {
        self.source.as_ref().map_or(0, |source| now.saturating_sub(source.last_pull_ns))
    }

    /// The work that a source that can be pulled is worth, where its time for a unit is known.
    pub(crate) fn source_backlog_ns(&self, unit_in_flow_ns: u64) -> u64 {
        /// A source that has just given a unit is expected to have this many more.
        const MORE: u64 = 1024;
        match &self.source {
            Some(source) if source.unit_ns > 0 && self.can_pull() => {
                MORE.saturating_mul(source.unit_ns.saturating_add(unit_in_flow_ns))
            }
            _ => 0,
        }
    }

    /// Begins a pull that pushes to `staging`, and fills `rows` with free rows for it.
    pub(crate) fn begin_pull(
        &mut self,
        rows: &mut Vec<Row>,
        staging: &Arc<Staging>,
        seated: bool,
        now: u64,
    ) -> Option<PullOrder> {
        let batch = self.stages[usize::from(self.entry)].batch_target();
        let source = self.source.as_mut()?;
        // The staging of the pull before is empty, or `can_pull` would have refused this one.
        source.staging = staging.clone();
        let chunk = match source.unit_ns {
            0 => 1,
            unit_ns => (PULL_NS / unit_ns).clamp(1, (4 * batch).min(Staging::CAPACITY) as u64),
        };
        let soon = seated && source.unit_ns > 0;
        source.pulling = Some(Pulling { since_ns: now, soon, seated });
        source.staging.calm_down();
        self.busy_shared += 1;
        self.busy_soon += usize::from(soon);
        let places = self.entry_place.map_or(usize::MAX, |place| self.units_for(place.into(), 1));
        let units = chunk.min(self.settings.inflight - self.in_flight).min(places as u64);
        while (rows.len() as u64) < units {
            let row = self.free_row();
            rows.push(row);
        }
        self.watch(now);
        let first = Stamp::new(self.next_id, now);
        self.next_id += units;
        if let Some(source) = &mut self.source {
            source.next_id = self.next_id;
        }
        let room = u128::from(self.settings.memory).saturating_sub(self.bytes);
        Some(PullOrder { max_bytes: u64::try_from(room).unwrap_or(u64::MAX).max(1), first })
    }

    /// Ends a pull: takes back the unused rows and admits the units it brought.
    pub(crate) fn end_pull(&mut self, rows: &mut Vec<Row>, open: bool, now: u64) {
        // Unused numbers are taken back, too, unless a later one is in use meanwhile.
        if self.source.as_ref().is_some_and(|source| source.next_id == self.next_id) {
            self.next_id -= rows.len() as u64;
        }
        self.keep_rows(rows.drain(..));
        let Some(source) = &mut self.source else { return };
        if let Some(pull) = source.pulling.take() {
            self.busy_shared -= 1;
            self.busy_soon -= usize::from(pull.soon);
            let pulled = source.staging.len().max(1);
            source.slow = now - pull.since_ns > SLOW_NS;
            let sample = ((now - pull.since_ns) / pulled).max(1);
            source.unit_ns = if source.unit_ns == 0 { sample } else { (source.unit_ns * 3 + sample) / 4 }.max(1);
        }
        source.last_pull_ns = now;
        source.open &= open;
        // The worker tells the listener how the source ended.
        source.told |= !open;
        self.flow_on(now);
        self.note_room(now);
    }

    /// Admits pulled units while there is room. Returns whether it admitted any.
    pub(crate) fn admit_pulled(&mut self, now: u64) -> bool {
        if self.finished || self.source_is_empty() || self.pull_ends_soon() {
            return false;
        }
        let Some(mut source) = self.source.take() else { return false };
        let mut run = self.pocket.spares.take();
        let mut all_plain = true;
        let staged = source.staging.len();
        let room_for_plain = self.has_room_for_all(staged as usize, 0);
        let mut left = staged;
        if room_for_plain && !source.slow {
            left -= self.admit_plain_rows(&mut source, staged, now);
        }
        for _ in 0..left {
            let (mut row, plain) = source.staging.first();
            let has_room = self.has_room(if plain { 0 } else { self.units.unit(&mut row).bytes });
            if !has_room {
                break;
            }
            source.staging.advance();
            self.restamp(&mut row, now);
            all_plain &= self.admit_row(row, plain, 0, &mut run, now);
        }
        self.source = Some(source);
        let admitted = left < staged || !run.is_empty();
        self.enter(run, all_plain, now);
        admitted
    }

    /// Admits plain units with the stamps of their pull; there must be room for all of them. Returns their number.
    fn admit_plain_rows(&mut self, source: &mut SourceState, staged: u64, now: u64) -> u64 {
        let batch = self.stages[usize::from(self.entry)].batch_target();
        let mut left = staged as usize;
        while left > 0 {
            // Each list holds one batch, so dispatch need not take it apart.
            let mut run = self.pocket.spares.take();
            run.extend(std::iter::from_fn(|| source.staging.next_plain()).take(left.min(batch)));
            let units = run.len();
            self.enter(run, true, now);
            left -= units;
            if units < batch {
                break;
            }
        }
        let units = staged - left as u64;
        self.admitted += units;
        self.in_flight += units;
        self.peak_in_flight = self.peak_in_flight.max(self.in_flight);
        units
    }

    fn restamp(&self, row: &mut Row, now: u64) {
        let id = self.stamps.stamp(row).id;
        self.stamps.set(row, Stamp::new(id, now));
    }

    /// Admits all pulled units when a flow is abandoned, whether or not there is room: they are counted as left.
    pub(crate) fn admit_all_pulled(&mut self, now: u64) {
        let Some(source) = self.source.take() else { return };
        let mut run = self.pocket.spares.take();
        for _ in 0..source.staging.len() {
            let (mut row, plain) = source.staging.first();
            source.staging.advance();
            self.restamp(&mut row, now);
            self.admit_row(row, plain, 0, &mut run, now);
        }
        self.source = Some(source);
        self.enter(run, false, now);
    }

    /// Ends the source, after the flow was closed. Returns whether the listener is to be told now: a pull in progress
    /// may still end in another way, unless it blocks.
    pub(crate) fn close_source(&mut self) -> bool {
        let Some(source) = &mut self.source else { return false };
        if std::mem::take(&mut source.open) && source.pulling.is_some() {
            source.staging.hurry_up();
        }
        let seated = source.pulling.as_ref().is_some_and(|pull| pull.seated);
        !seated && !std::mem::replace(&mut source.told, true)
    }

    /// Takes the place of a pull that lasts, so that other workers go on without it.
    pub(crate) fn watch_pull(&mut self, now: u64) {
        let Some(source) = &mut self.source else { return };
        let Some(pull) = source.pulling.as_mut().filter(|pull| now.saturating_sub(pull.since_ns) > TURN_LASTS_NS)
        else {
            return;
        };
        self.busy_soon -= usize::from(std::mem::take(&mut pull.soon));
        pull.seated = false;
        source.staging.hurry_up();
    }

    /// The time for which the end of the flow should still wait for a pull that has lost its seat. Perhaps its thread
    /// was only kept from running, and the units it has taken from the source would be lost.
    pub(crate) fn pull_grace_remaining(&self, now: u64) -> Option<Duration> {
        let pull = self.source.as_ref()?.pulling.as_ref().filter(|_| self.phase != Phase::Abandoned)?;
        let left = (pull.since_ns + PULL_GRACE_NS).saturating_sub(now);
        (left > 0).then(|| Duration::from_nanos(left))
    }

    /// Whether the timekeeper should check on the source in a while: a pull may block, or no worker may come by for it.
    pub(crate) fn source_needs_watch(&self) -> bool {
        let Some(source) = self.source.as_ref().filter(|_| self.watch_at.is_none()) else { return false };
        match &source.pulling {
            Some(pull) => pull.seated,
            None => !self.stalled && self.can_pull(),
        }
    }

    /// Accounts for the time in which the source could have been pulled, had there been room.
    pub(crate) fn note_room(&mut self, now: u64) {
        let Some(source) = &self.source else { return };
        let held_up = source.open && source.pulling.is_none() && !self.has_room(1);
        let since = source.held_up_since;
        if held_up != since.is_some() {
            self.room_waited_ns += since.map_or(0, |since| now.saturating_sub(since));
            if let Some(source) = &mut self.source {
                source.held_up_since = held_up.then_some(now);
            }
        }
    }
}

impl Shared {
    /// Gives the flow its source. `ended` is called once with the end of the source, on any thread, without the flow's
    /// mutex.
    pub(crate) fn attach(self: &Arc<Self>, source: Box<dyn Source>, ended: impl FnOnce(SourceEnd) + Send + 'static) {
        self.source.put(source);
        *self.source_ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(ended));
        let mut state = self.lock();
        state.source = Some(SourceState::new());
        state.follow_settings();
        self.release(state);
    }

    /// Waits for a pull in progress, and takes the source back, so that no worker uses it any more.
    pub(crate) fn detach(&self) {
        let source = self.source.take_back();
        contain(|| drop(source));
    }

    /// Pulls a chunk. Returns the end of the source, if it has ended.
    pub(crate) fn pull(&self, order: PullOrder, rows: &mut Vec<Row>, staging: &Staging) -> Option<PullEnd> {
        let Some(mut source) = self.source.lend() else { return Some(PullEnd::Closed) };
        let end = match catch_unwind(AssertUnwindSafe(|| source.pull(order, rows, staging))) {
            Ok(true) => {
                source.give_back();
                return None;
            }
            Ok(false) => PullEnd::Exhausted,
            Err(panic) => {
                // The source is still lent, so `take_back` waits until the panic is stored.
                *self.source_panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
                PullEnd::Panicked
            }
        };
        drop(source);
        Some(end)
    }

    /// Takes the payload of the source's panic, if it panicked and no listener was told.
    pub(crate) fn take_source_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.source_panic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Tells the listener how the source ended, unless it was told before.
    pub(crate) fn tell_source_ended(&self, end: PullEnd) {
        let Some(ended) = self.source_ended.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let end = match end {
            PullEnd::Exhausted => SourceEnd::Exhausted,
            PullEnd::Closed => SourceEnd::Closed,
            PullEnd::Panicked => SourceEnd::Panicked(self.take_source_panic().expect("the pull stored its panic")),
        };
        contain(|| ended(end));
    }
}

/// The place of the source between pulls. The slot lends it to the worker that pulls, so it runs and ends without a
/// lock.
#[derive(Default)]
pub(crate) struct SourceSlot {
    slot: Mutex<Slot>,
    /// The event count that changes when the source is no longer lent.
    back: EventCount,
}

#[derive(Default)]
struct Slot {
    source: Option<Box<dyn Source>>,
    is_lent: bool,
}

impl SourceSlot {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, source: Box<dyn Source>) {
        self.slot().source = Some(source);
    }

    /// Lends the source for one pull. Returns `None` if it was taken back.
    fn lend(&self) -> Option<Lent<'_>> {
        let mut slot = self.slot();
        let source = slot.source.take()?;
        slot.is_lent = true;
        Some(Lent { slot: self, source: Some(source) })
    }

    /// Waits for a pull in progress, and takes the source, unless it has ended.
    fn take_back(&self) -> Option<Box<dyn Source>> {
        loop {
            let key = self.back.snapshot();
            let mut slot = self.slot();
            if !slot.is_lent {
                return slot.source.take();
            }
            drop(slot);
            self.back.wait(key);
        }
    }
}

/// A source that is being pulled.
struct Lent<'a> {
    slot: &'a SourceSlot,
    source: Option<Box<dyn Source>>,
}

impl Lent<'_> {
    fn pull(&mut self, order: PullOrder, rows: &mut Vec<Row>, staging: &Staging) -> bool {
        self.source.as_mut().is_some_and(|source| source.pull(order, rows, staging))
    }

    /// Returns the source for the next pull.
    fn give_back(mut self) {
        self.slot.slot().source = self.source.take();
    }
}

impl Drop for Lent<'_> {
    /// Ends the source, unless it was given back.
    fn drop(&mut self) {
        let source = self.source.take();
        contain(|| drop(source));
        self.slot.slot().is_lent = false;
        self.slot.back.increment();
    }
}
