//! The engine's record of a unit, apart from its payload.

use std::num::NonZeroU64;

use smallvec::SmallVec;

use super::column::{Column, Row};

/// A stage number that stands for no stage.
pub(crate) const NO_STAGE: u16 = u16::MAX;

/// The index of an instance of a resource: the resource itself, or one of its keys.
pub(crate) type InstanceId = u32;

/// A need of one unit as its stage's need functions computed it, before its key is looked up.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) resource: u16,
    pub(crate) until: u16,
    pub(crate) amount: u64,
    pub(crate) key: Option<Box<str>>,
}

/// A need with its key looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) instance: InstanceId,
    /// The stage after which the need is given back; [`NO_STAGE`]: after this run.
    pub(crate) until: u16,
    /// The need is a batch's permit rather than a unit's own.
    pub(crate) for_batch: bool,
    pub(crate) amount: u64,
}

/// A grant that a unit or a batch holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    pub(crate) instance: InstanceId,
    pub(crate) until: u16,
    /// The stage whose queue granted it.
    pub(crate) from: u16,
    pub(crate) amount: u64,
}

pub(crate) type Wants = SmallVec<[Want; 2]>;
pub(crate) type Grants = SmallVec<[Grant; 2]>;

/// The part of a unit's record that only stages with needs use.
#[derive(Debug, Default)]
pub(crate) struct UnitNeeds {
    /// The needs of this unit in its present stage (only of stages whose needs differ by unit).
    pub(crate) asks: Vec<Ask>,
    /// The same for the stage the unit goes to next, which may be this one again; swapped in when it gets there.
    pub(crate) next_asks: Vec<Ask>,
    pub(crate) held: Grants,
    /// The reason why the stage that the unit goes to or is in cannot run it.
    pub(crate) refused: Option<Box<str>>,
    /// The time at which the unit began to wait for a resource.
    pub(crate) parked_ns: u64,
    /// The number of wake-ups after which the unit still lacked something.
    pub(crate) bounces: u8,
    /// The amount that the unit waits for, where it stands in line.
    pub(crate) awaits: u64,
    /// The unit acquires one need after the other, in the flow's resource order (see `in_order`).
    pub(crate) in_order: bool,
    pub(crate) order: Vec<OrderedNeed>,
    pub(crate) next_in_order: usize,
}

impl UnitNeeds {
    /// Makes the needs of the next stage those of the present one.
    pub(crate) fn take_next_asks(&mut self) {
        std::mem::swap(&mut self.asks, &mut self.next_asks);
        self.next_asks.clear();
    }
}

/// A need of a unit that acquires them in order.
#[derive(Debug)]
pub(crate) struct OrderedNeed {
    pub(crate) resource: u16,
    pub(crate) key: Option<Box<str>>,
    /// The key's instance, once it is looked up; a need without a key knows it from the start.
    pub(crate) instance: Option<InstanceId>,
    pub(crate) until: u16,
    pub(crate) for_batch: bool,
    pub(crate) amount: u64,
}

/// The stamp that every unit gets when it is admitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    pub(crate) id: u64,
    admitted_ns: NonZeroU64,
}

impl Stamp {
    pub(crate) fn new(id: u64, now: u64) -> Self {
        Stamp { id, admitted_ns: NonZeroU64::new(now).unwrap_or(NonZeroU64::MIN) }
    }

    /// The stamp of the next unit that is admitted at the same time.
    pub(crate) fn next(self) -> Self {
        Stamp { id: self.id + 1, ..self }
    }

    pub(crate) fn admitted_ns(&self) -> u64 {
        self.admitted_ns.get()
    }
}

/// The engine's record of a unit that is not *plain*.
///
/// A plain unit weighs and holds nothing, needs nothing of its own, has no ticket and has not failed; units of a run
/// are plain together (see `queue`). Their records are as [`clear`](Unit::clear) leaves them, and the engine never
/// reads them: a million plain units touch a million payloads and nothing else.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// The time at which the unit entered its present queue; the queue keeps it until the unit's needs are looked at
    /// (see `queue`).
    pub(crate) queued_ns: u64,
    /// The payload bytes accounted to the unit.
    pub(crate) bytes: u64,
    /// The part of `bytes` that the unit had when it entered its stage: it falls back to this when an attempt fails. In
    /// a chain that may be less than is accounted to it, until the chain's end.
    pub(crate) base_bytes: u64,
    /// The pause before the unit's next stage.
    pub(crate) delay_ns: u64,
    /// The number of failed attempts in the unit's present stage.
    pub(crate) attempts: u32,
    /// The unit may exceed the byte budget, because nothing else in the flow can move.
    pub(crate) privileged: bool,
    /// The unit waited for memory, so its weight includes the bytes that it will reserve when it runs again.
    pub(crate) is_reserved: bool,
    /// A ticket for the unit's result may exist.
    pub(crate) ticketed: bool,
    pub(crate) needs: Option<Box<UnitNeeds>>,
}

impl Unit {
    pub(crate) fn needs(&mut self) -> &mut UnitNeeds {
        self.needs.get_or_insert_with(Box::default)
    }

    /// Whether the unit only has to be moved: it holds nothing, needs nothing of its own, does not pause, and has not
    /// failed here.
    #[inline]
    pub(crate) fn moves_on(&self) -> bool {
        let needs_nothing = |needs: &UnitNeeds| {
            needs.held.is_empty() && needs.asks.is_empty() && needs.next_asks.is_empty() && needs.refused.is_none()
        };
        self.needs.as_deref().is_none_or(needs_nothing) && self.delay_ns == 0 && self.attempts == 0 && !self.privileged
    }

    /// The reason why the unit's stage cannot run it, if there is one.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.needs.as_ref()?.refused.as_deref()
    }

    /// The unit's weight in its next stage: the weight that the stage computes, or else its weight in this stage, or
    /// the weight it has grown to. `before` is the weight accounted to it when it began to run.
    #[inline]
    pub(crate) fn next_bytes(&self, says: Option<u64>, before: u64) -> u64 {
        says.unwrap_or(if self.bytes == before && !self.is_reserved { self.base_bytes } else { self.bytes })
    }

    /// Gives the unit its weight when it is admitted.
    pub(crate) fn weigh(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.base_bytes = bytes;
    }

    /// Resets the record to that of a plain unit when its unit leaves, keeping its allocations.
    pub(crate) fn clear(&mut self) {
        let mut needs = self.needs.take();
        if let Some(needs) = &mut needs {
            debug_assert!(needs.held.is_empty(), "a unit left with what it holds");
            needs.asks.clear();
            needs.next_asks.clear();
            needs.refused = None;
            needs.order.clear();
            needs.in_order = false;
            needs.bounces = 0;
        }
        *self = Unit { needs, ..Unit::default() };
    }
}

/// The way to a unit's record from its stage's code, taken only to note something there.
pub struct UnitRef<'a> {
    column: &'a Column<Unit>,
    row: Row,
    /// The record may have changed.
    pub(crate) is_touched: bool,
}

/// The contents of a plain unit's record.
static PLAIN: Unit = Unit {
    queued_ns: 0,
    bytes: 0,
    base_bytes: 0,
    delay_ns: 0,
    attempts: 0,
    privileged: false,
    is_reserved: false,
    ticketed: false,
    needs: None,
};

impl std::fmt::Debug for UnitRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UnitRef").field(&self.row.number()).finish()
    }
}

impl<'a> UnitRef<'a> {
    /// # Safety
    /// As for [`Row::new`], except that `row` exists beside this handle; the caller uses `row` for other columns only,
    /// as long as this handle lives.
    pub(crate) unsafe fn new(column: &'a Column<Unit>, row: &Row) -> Self {
        // SAFETY: the caller promises to use the other handle for other columns only, so this row alone reaches the
        // record.
        UnitRef { column, row: unsafe { Row::new(row.number()) }, is_touched: false }
    }

    /// Turns this handle to another unit's record.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    #[inline]
    pub(crate) unsafe fn turn_to(&mut self, row: &Row) {
        // SAFETY: the caller promises to use the other handle for other columns only, so this row alone reaches the
        // record.
        self.row = unsafe { Row::new(row.number()) };
    }

    pub(crate) fn row(&self) -> &Row {
        &self.row
    }

    pub(crate) fn look(&self) -> &Unit {
        // SAFETY: the column of units is private to its flow's engine, which sees no rows but the flow's own. The
        // record changes only through `change`, which borrows this `UnitRef` exclusively.
        unsafe { self.column.peek(&self.row) }.unwrap_or(&PLAIN)
    }

    pub(crate) fn change(&mut self) -> &mut Unit {
        self.is_touched = true;
        self.column.unit(&mut self.row)
    }
}

impl Column<Stamp> {
    #[inline]
    pub(crate) fn stamp(&self, row: &Row) -> Stamp {
        // SAFETY: the column of stamps is private to its flow's engine, which sees no rows but the flow's own.
        *unsafe { self.peek(row) }.expect("a unit is stamped when it is pulled or admitted")
    }

    #[inline]
    pub(crate) fn set(&self, row: &mut Row, stamp: Stamp) {
        // SAFETY: the column of stamps is private to its flow's engine, which sees no rows but the flow's own.
        *unsafe { self.cell(row) } = Some(stamp);
    }
}

impl Column<Unit> {
    /// The row's record, made on first use.
    #[inline]
    pub(crate) fn unit<'a>(&'a self, row: &'a mut Row) -> &'a mut Unit {
        // SAFETY: the column of units is private to its flow's engine, which sees no rows but the flow's own.
        unsafe { self.cell(row) }.get_or_insert_with(Unit::default)
    }
}
