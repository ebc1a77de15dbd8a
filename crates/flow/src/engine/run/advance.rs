//! An advance: bytes that a batch reserves for payloads that will grow, so that its units need not ask for bytes one by
//! one.
//!
//! When a payload grows, its worker must take the flow's mutex, which costs as much as a short unit's whole run. The
//! units of a batch are alike, so the first growth in a batch also asks for bytes for the other units, if half of the
//! budget is free. The bytes of an advance count as in use for all other requests, so the byte budget remains a hard
//! cap. The unused bytes are released when the batch is settled, or earlier if a unit of the batch would otherwise have
//! to wait.

use std::cell::Cell;

use crate::engine::units::record::Record;

/// The flow's byte budget, as an [`Advance`] uses it. Each call takes the flow's mutex.
pub(crate) trait Growth: Send + Sync + std::fmt::Debug {
    /// Charges the growth of a payload to the budget while the payload's unit runs, and ends the `advance` of the
    /// unit's batch. If half of the budget is free, `advance` becomes a new advance, for `alike` further units that
    /// grow by the same amount. Returns `false` if there is no room and the unit should run again later; `may_wait`
    /// says whether the unit can run again.
    fn grow(
        &self,
        record: &mut Record,
        total_bytes: u64,
        may_wait: bool,
        advance: &mut AdvancedBytes,
        alike: u64,
    ) -> bool;
}

/// The advance of a batch; see the [module](self).
#[derive(Debug)]
pub(crate) struct Advance<'a> {
    flow: &'a dyn Growth,
    /// The number of units in the batch.
    units: u64,
    bytes: Cell<AdvancedBytes>,
}

/// The bytes of an advance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AdvancedBytes {
    /// The bytes that no unit has used yet.
    pub(crate) left: u64,
    /// The bytes that growing units have used; the budget still counts these bytes as reserved.
    pub(crate) used: u64,
}

impl<'a> Advance<'a> {
    /// An empty advance, for a batch of `units`.
    pub(crate) fn new(flow: &'a dyn Growth, units: usize) -> Self {
        Advance { flow, units: units as u64, bytes: Cell::default() }
    }

    /// Charges the growth of a payload to the advance or the budget while the payload's unit runs. Returns `false` if
    /// there is no room and the unit should run again later; `may_wait` says whether the unit can run again.
    pub(crate) fn grow(&self, record: &mut Record, total_bytes: u64, may_wait: bool) -> bool {
        let AdvancedBytes { left, used } = self.bytes.get();
        let grows = total_bytes - record.bytes();
        if grows <= left {
            self.bytes.set(AdvancedBytes { left: left - grows, used: used + grows });
            record.reweigh(total_bytes);
            return true;
        }
        let mut bytes = self.bytes.take();
        let grown = self.flow.grow(record, total_bytes, may_wait, &mut bytes, self.units.saturating_sub(1));
        self.bytes.set(bytes);
        grown
    }

    /// The bytes of the advance, for the settlement of its batch.
    pub(crate) fn bytes(&self) -> AdvancedBytes {
        self.bytes.get()
    }
}
