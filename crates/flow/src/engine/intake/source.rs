//! The source of a flow's own units. When a worker chooses its next work, the source counts as farther from the exit
//! than every stage.
//!
//! Shared workers pull units from the source themselves when no unit in flight is more urgent. A worker then goes on
//! with the units it has just pulled, while they are in its core's cache. So the source needs no thread of its own. One
//! worker pulls at a time. It pulls units for about [`PULL_NS`](crate::engine::pace::PULL_NS), into rows that were
//! taken beforehand. The rows are admitted under the flow's mutex after the pull.
//!
//! A source may block at any unit. Units pulled earlier must not wait for the blocked pull, and the pull must not keep
//! a worker's slot. Pulled rows are therefore in the [`Staging`], where the holder of the flow's mutex can admit them.
//! When a pull takes longer than [`TURN_LASTS_NS`](crate::engine::pace::TURN_LASTS_NS) (see `source_state`), another
//! worker gets the puller's slot. The puller is told to [hurry](Staging::hurry): it must end its pull after the current
//! unit.
//!
//! When all workers are busy with long units, an additional thread pulls, so that the stages with threads of their own
//! do not starve.
//!
//! A separate thread for the source would be simpler, but it would be one more thread than there are cores. Moreover,
//! every unit would cross from that thread's core to a worker's core, which is two thirds of a short unit's cost. The
//! price of pulling is that a source must be `Send`. A source that is bound to a thread sends its units from there,
//! through a [`Submitter`](crate::service::Submitter).

use std::any::Any;
use std::sync::Arc;

use super::staging::Staging;
use crate::engine::units::column::{Column, Row};
use crate::engine::units::record::Record;
use crate::engine::units::stamp::Stamp;
use crate::entry::Entry;

/// How a source ended.
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

/// How a source ended during a pull. The payload of a panic is stored in the source's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullEnd {
    Exhausted,
    Closed,
    Panicked,
}

/// A source, with its types erased.
pub(crate) trait Source: Send {
    /// Fills `rows` with units, from the last row on, and pushes the filled rows to the staging. Stops when no row is
    /// left, the units weigh `max_bytes`, or the puller should hurry. Returns `false` if the source is exhausted.
    fn pull(&mut self, order: PullOrder, rows: &mut Vec<Row>, staging: &Staging) -> bool;
}

/// The limits of one pull.
#[derive(Clone, Copy)]
pub(crate) struct PullOrder {
    /// The maximum total weight of its units.
    pub(crate) max_bytes: u64,
    /// The stamp of the first unit; the units that follow have the next numbers.
    pub(crate) first: Stamp,
}

/// A source, with its types.
pub(crate) struct TypedSource<In, I> {
    units: I,
    entry: Arc<Entry<In>>,
    records: Arc<Column<Record>>,
    stamps: Arc<Column<Stamp>>,
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
            // `demand` runs user code, so it is called before the row is taken.
            let mut asks = Vec::new();
            let (bytes, refused) = match self.entry.demand(&value, &mut asks) {
                Ok(bytes) => (bytes.unwrap_or(0), None),
                Err(refused) => (0, Some(refused)),
            };
            let Some(mut row) = rows.pop() else { break };
            let plain = bytes == 0 && asks.is_empty() && refused.is_none();
            if !plain {
                let record = self.records.record(&mut row);
                record.weigh(bytes);
                record.set_asks(asks, refused);
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
    pub(crate) fn new(
        units: I,
        entry: Arc<Entry<In>>,
        records: Arc<Column<Record>>,
        stamps: Arc<Column<Stamp>>,
    ) -> Self {
        TypedSource { units, entry, records, stamps }
    }

    /// Pulls units that have no needs and no weight of their own.
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
