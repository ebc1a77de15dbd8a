//! An advance: bytes of the budget that a batch takes for payloads that will grow, so that they need not ask one by one.
//!
//! A payload that grows takes the flow's mutex, which costs as much as a short unit's whole run. The first growth of a batch
//! therefore asks for the others as well, if the budget is half free: the units of a batch are alike. What the advance
//! holds counts as in use for everything else that asks, so the cap holds; what is left of it is given back when the batch is
//! settled, and before that if a unit of the batch would have to wait.

use std::cell::Cell;

use crate::engine::units::record::Record;

/// The flow's byte budget, as an [`Advance`] queries it. Each query takes the flow's mutex.
pub(crate) trait Growth: Send + Sync + std::fmt::Debug {
    /// Accounts for a payload that grows while its unit runs, and ends the `advance` of its batch. Returns `false` if there is
    /// no room, and the unit can and should run again later; `may_wait` says whether it can. If there is plenty, `advance` is
    /// then a new one, for as many `alike` units.
    fn grow(
        &self,
        record: &mut Record,
        total_bytes: u64,
        may_wait: bool,
        advance: &mut AdvancedBytes,
        alike: u64,
    ) -> bool;
}

/// The bytes that a batch has in advance; see the [module](self).
#[derive(Debug)]
pub(crate) struct Advance<'a> {
    flow: &'a dyn Growth,
    /// The number of the batch's units.
    units: u64,
    bytes: Cell<AdvancedBytes>,
}

/// The bytes of an advance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AdvancedBytes {
    /// The bytes that no unit has grown by yet.
    pub(crate) left: u64,
    /// The bytes that units have grown by, which the budget has not heard of yet.
    pub(crate) used: u64,
}

impl<'a> Advance<'a> {
    /// The advance of a batch of `units`, which has none yet.
    pub(crate) fn new(flow: &'a dyn Growth, units: usize) -> Self {
        Advance { flow, units: units as u64, bytes: Cell::default() }
    }

    /// Accounts for a payload that grows while its unit runs. Returns `false` if there is no room, and the unit can and
    /// should run again later; `may_wait` says whether it can.
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
