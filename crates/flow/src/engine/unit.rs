//! What the engine knows of a unit besides its payload.

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
    /// The stage after which it is given back; [`NO_STAGE`]: after this run.
    pub(crate) until: u16,
    /// Part of a batch's permits rather than of a unit's needs.
    pub(crate) for_batch: bool,
    pub(crate) amount: u64,
}

/// Something a unit or a batch holds.
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

/// The part of a unit that only stages with needs use.
#[derive(Debug, Default)]
pub(crate) struct UnitNeeds {
    /// What the present stage needs for this unit (only of stages whose needs differ by unit).
    pub(crate) asks: Vec<Ask>,
    /// The same for the stage the unit goes to next, which may be this one again; swapped in when it gets there.
    pub(crate) next_asks: Vec<Ask>,
    pub(crate) held: Grants,
    /// Why the stage it goes to or is in can't run it.
    pub(crate) refused: Option<Box<str>>,
    /// When the unit began to wait for a resource.
    pub(crate) parked_ns: u64,
    /// How often it was woken and could still not have everything.
    pub(crate) bounces: u8,
    /// How much it waits for, where it stands in line.
    pub(crate) awaits: u64,
    /// Acquires one need after the other, in the flow's resource order (see `in_order`).
    pub(crate) in_order: bool,
    pub(crate) order: Vec<OrderedNeed>,
    pub(crate) next_in_order: usize,
}

impl UnitNeeds {
    /// The unit goes where its next needs are asked for.
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
    /// The key's instance, once it is looked up; known from the start without a key.
    pub(crate) instance: Option<InstanceId>,
    pub(crate) until: u16,
    pub(crate) for_batch: bool,
    pub(crate) amount: u64,
}

/// What the engine notes of every unit when it is admitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    pub(crate) id: u64,
    admitted_ns: NonZeroU64,
}

impl Stamp {
    pub(crate) fn new(id: u64, now: u64) -> Self {
        Stamp { id, admitted_ns: NonZeroU64::new(now).unwrap_or(NonZeroU64::MIN) }
    }

    /// That of a unit that is admitted at the same time, after this one.
    pub(crate) fn next(self) -> Self {
        Stamp { id: self.id + 1, ..self }
    }

    pub(crate) fn admitted_ns(&self) -> u64 {
        self.admitted_ns.get()
    }
}

/// The engine's record of a unit that is not *plain*.
///
/// A plain unit weighs and holds nothing, needs nothing of its own, has no ticket and has not failed; units of
/// a run are plain together (see `queue`). Their records are as [`clear`](Unit::clear) leaves them, and nobody
/// looks at them: a million plain units touch a million payloads and nothing else.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// When it entered its present queue; kept there until its needs are looked at (see `queue`).
    pub(crate) queued_ns: u64,
    /// Payload bytes accounted to it.
    pub(crate) bytes: u64,
    /// Of these, what it had when it entered its stage: it falls back to this when an attempt fails. In a chain
    /// that may be less than is accounted to it, until the chain's end.
    pub(crate) base_bytes: u64,
    /// How long it waits before its next stage.
    pub(crate) delay_ns: u64,
    /// Failed attempts in its present stage.
    pub(crate) attempts: u32,
    /// May exceed the byte budget: nothing else in the flow can move.
    pub(crate) privileged: bool,
    /// It waited for memory, so its weight counts what it will reserve when it runs again.
    pub(crate) is_reserved: bool,
    /// Somebody holds a ticket for its result.
    pub(crate) ticketed: bool,
    pub(crate) needs: Option<Box<UnitNeeds>>,
}

impl Unit {
    pub(crate) fn needs(&mut self) -> &mut UnitNeeds {
        self.needs.get_or_insert_with(Box::default)
    }

    /// Whether its going on takes no more than moving it: it holds nothing, needs nothing of its own, does not
    /// pause, and has not failed here.
    #[inline]
    pub(crate) fn moves_on(&self) -> bool {
        let needs_nothing = |needs: &UnitNeeds| {
            needs.held.is_empty() && needs.asks.is_empty() && needs.next_asks.is_empty() && needs.refused.is_none()
        };
        self.needs.as_deref().is_none_or(needs_nothing) && self.delay_ns == 0 && self.attempts == 0 && !self.privileged
    }

    /// Why its stage can't run it, if that is so.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.needs.as_ref()?.refused.as_deref()
    }

    /// What it will weigh in its next stage: what the stage says, or as much as in this one, or what it has grown
    /// to. `before`: what was accounted to it when it began to run.
    #[inline]
    pub(crate) fn next_bytes(&self, says: Option<u64>, before: u64) -> u64 {
        says.unwrap_or(if self.bytes == before && !self.is_reserved { self.base_bytes } else { self.bytes })
    }

    /// Gives the unit its weight when it is admitted.
    pub(crate) fn weigh(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.base_bytes = bytes;
    }

    /// Makes the record that of a plain unit, keeping its allocations, when its unit leaves.
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

/// The way to a unit's record from its stage's code, taken only when something is to be noted there.
pub struct UnitRef<'a> {
    column: &'a Column<Unit>,
    row: Row,
    /// The record may have changed.
    pub(crate) is_touched: bool,
}

/// What the record of a plain unit says.
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
    /// As for [`Row::new`], but that the row this is a second handle of is used for other columns only, as
    /// long as this lives.
    pub(crate) unsafe fn new(column: &'a Column<Unit>, row: &Row) -> Self {
        // SAFETY: the caller keeps to the columns of payloads with the other handle.
        UnitRef { column, row: unsafe { Row::new(row.number()) }, is_touched: false }
    }

    /// Makes this the way to another unit's record.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    #[inline]
    pub(crate) unsafe fn turn_to(&mut self, row: &Row) {
        // SAFETY: the caller vouches for it.
        self.row = unsafe { Row::new(row.number()) };
    }

    pub(crate) fn row(&self) -> &Row {
        &self.row
    }

    pub(crate) fn look(&self) -> &Unit {
        // SAFETY: the column of units is private to its flow's engine, and so are all the rows it sees; the
        // record changes by `change` only, which needs this `UnitRef` for itself.
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
        // SAFETY: the column of stamps is private to its flow's engine, and so are all the rows it sees.
        *unsafe { self.peek(row) }.expect("a unit is stamped when it is pulled or admitted")
    }

    #[inline]
    pub(crate) fn set(&self, row: &mut Row, stamp: Stamp) {
        // SAFETY: as above.
        *unsafe { self.cell(row) } = Some(stamp);
    }
}

impl Column<Unit> {
    /// The row's unit, which exists from the moment its row was made.
    #[inline]
    pub(crate) fn unit<'a>(&'a self, row: &'a mut Row) -> &'a mut Unit {
        // SAFETY: the column of units is private to its flow's engine, and so are all the rows it sees.
        unsafe { self.cell(row) }.get_or_insert_with(Unit::default)
    }
}
