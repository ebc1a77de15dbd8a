//! What the engine knows of a unit besides its payload.

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
    /// The same for the stage the unit goes to next; swapped in when it gets there.
    pub(crate) next_asks: Vec<Ask>,
    pub(crate) held: Grants,
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

/// The engine's record of a unit; one cache line.
#[derive(Debug, Default)]
pub struct Unit {
    pub(crate) id: u64,
    pub(crate) admitted_ns: u64,
    /// When it entered its present queue; kept there until its needs are looked at (see `queue`).
    pub(crate) queued_ns: u64,
    /// Payload bytes accounted to it.
    pub(crate) bytes: u64,
    /// Of these, what it had when it entered its stage: it falls back to this when an attempt fails.
    pub(crate) base_bytes: u64,
    /// How long it waits before its next stage.
    pub(crate) delay_ns: u64,
    /// Failed attempts in its present stage.
    pub(crate) attempts: u32,
    /// May exceed the byte budget: nothing else in the flow can move.
    pub(crate) privileged: bool,
    /// Somebody holds a ticket for its result.
    pub(crate) ticketed: bool,
    pub(crate) needs: Option<Box<UnitNeeds>>,
}

impl Unit {
    pub(crate) fn needs(&mut self) -> &mut UnitNeeds {
        self.needs.get_or_insert_with(Box::default)
    }

    /// Whether its going on takes no more than moving it: it holds nothing, its weight is settled, it does
    /// not pause, and it has not failed here.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        let needs_nothing =
            |needs: &UnitNeeds| needs.held.is_empty() && needs.asks.is_empty() && needs.next_asks.is_empty();
        self.needs.as_deref().is_none_or(needs_nothing)
            && self.bytes == self.base_bytes
            && self.delay_ns == 0
            && self.attempts == 0
    }

    /// Makes the record ready for a new unit, keeping its allocations.
    pub(crate) fn reset(&mut self, id: u64, now: u64, bytes: u64) {
        let mut needs = self.needs.take();
        if let Some(needs) = &mut needs {
            needs.asks.clear();
            needs.next_asks.clear();
            needs.order.clear();
            needs.in_order = false;
            needs.bounces = 0;
        }
        *self = Unit { id, admitted_ns: now, queued_ns: now, bytes, base_bytes: bytes, needs, ..Unit::default() };
        debug_assert!(self.needs.as_ref().is_none_or(|needs| needs.held.is_empty()));
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
