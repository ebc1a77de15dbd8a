//! The engine's record of a unit, apart from its payload.

use std::num::NonZeroU32;

use super::column::{Column, Row};
use crate::engine::claims::{Ask, Grant, GrantList, NO_STAGE, Step, Want};

/// The engine's record of a unit that is not *plain*.
///
/// A plain unit weighs and holds nothing, needs nothing of its own, has no ticket and has not failed. Its record is in
/// the state that [`clear`](Record::clear) leaves. Each list of units, which is a batch or an arrival in a queue, has a
/// flag. If the flag is set, all units of the list are plain; otherwise some of them may not be. The engine never reads
/// the records of a list whose flag is set, so it touches only the payloads of plain units.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// The time at which the unit entered its current queue. Until the unit's needs are checked, only the queue has
    /// this time.
    queued_ns: u64,
    /// The payload bytes charged to the unit.
    bytes: u64,
    /// The part of `bytes` that the unit had when it entered its stage. When an attempt fails, the unit's weight
    /// returns to this value. In a chain, more bytes than this may be charged to the unit until the chain ends.
    base_bytes: u64,
    /// The pause before the unit's next stage.
    delay_ns: u64,
    /// The number of failed attempts in the unit's current stage.
    attempts: u32,
    /// The unit may exceed the byte budget, because nothing else in the flow can move.
    privileged: bool,
    /// The unit waited for memory, so its weight includes the bytes that it will reserve when it runs again.
    is_reserved: bool,
    /// A ticket for the unit's result may exist.
    ticketed: bool,
    /// The unit that was split into this unit and its siblings.
    parent: Option<Parent>,
    needs: Option<Box<Needs>>,
}

/// The parent of a unit, as the unit's record names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parent {
    /// The number of the parent's row. The parent keeps the row until its last child has left.
    pub(crate) row: u32,
    /// The parent's unit number.
    pub(crate) id: u64,
    /// The number of the child's ancestors.
    pub(crate) depth: NonZeroU32,
}

/// The part of a unit's record that only stages with needs use.
#[derive(Debug, Default)]
struct Needs {
    /// The unit's needs in its current stage, if needs there differ by unit.
    asks: Vec<Ask>,
    /// The needs in the unit's next stage, which may be the current stage again. These needs replace `asks` when the
    /// unit gets there.
    next_asks: Vec<Ask>,
    held: GrantList,
    /// The reason why the unit's current or next stage cannot run it.
    refused: Option<Box<str>>,
    /// The number of wake-ups after which the unit still lacked something.
    bounces: u8,
    /// The unit acquires its needs one after the other, in the flow's resource order.
    in_order: bool,
    steps: Vec<Step>,
    next_step: usize,
}

/// The contents of a plain unit's record.
static PLAIN: Record = Record {
    queued_ns: 0,
    bytes: 0,
    base_bytes: 0,
    delay_ns: 0,
    attempts: 0,
    privileged: false,
    is_reserved: false,
    ticketed: false,
    parent: None,
    needs: None,
};

// ---- weight and time ----------------------------------------------------------------------------------

impl Record {
    #[inline]
    pub(crate) fn queued_ns(&self) -> u64 {
        self.queued_ns
    }

    #[inline]
    pub(crate) fn set_queued_ns(&mut self, queued_ns: u64) {
        self.queued_ns = queued_ns;
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes that the unit had when it entered its stage.
    #[inline]
    pub(crate) fn base_bytes(&self) -> u64 {
        self.base_bytes
    }

    /// Gives the unit its weight when it is admitted.
    #[inline]
    pub(crate) fn weigh(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.base_bytes = bytes;
    }

    /// Changes the weight that is charged to the unit. Returns the former weight.
    #[inline]
    pub(crate) fn reweigh(&mut self, bytes: u64) -> u64 {
        std::mem::replace(&mut self.bytes, bytes)
    }

    /// The unit's weight in its next stage. It is `says` if the next stage computes a weight. Otherwise, it is the
    /// weight to which the unit has grown or, if it has not grown, its weight in this stage. `before` is the weight
    /// charged to the unit when it began to run.
    #[inline]
    pub(crate) fn next_bytes(&self, says: Option<u64>, before: u64) -> u64 {
        says.unwrap_or(if self.bytes == before && !self.is_reserved { self.base_bytes } else { self.bytes })
    }

    /// The weight of the unit itself; in a chain, more bytes may be charged to the unit.
    #[inline]
    pub(crate) fn own_bytes(&self) -> u64 {
        if self.is_reserved { self.bytes } else { self.base_bytes }
    }

    /// Whether the unit may exceed the byte budget.
    pub(crate) fn is_privileged(&self) -> bool {
        self.privileged
    }

    /// Lets a unit that waited for memory run again. `grows` counts the bytes that it will reserve; `privileged` says
    /// that the budget has no room for them.
    pub(crate) fn reserve(&mut self, grows: u64, privileged: bool) {
        self.privileged |= privileged;
        self.is_reserved = true;
        self.bytes += grows;
    }

    #[inline]
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    #[inline]
    pub(crate) fn is_ticketed(&self) -> bool {
        self.ticketed
    }

    pub(crate) fn set_ticketed(&mut self, ticketed: bool) {
        self.ticketed = ticketed;
    }

    /// The unit that was split into this unit and its siblings.
    #[inline]
    pub(crate) fn parent(&self) -> Option<Parent> {
        self.parent
    }

    pub(crate) fn set_parent(&mut self, parent: Option<Parent>) {
        self.parent = parent;
    }

    /// The number of the unit's ancestors.
    pub(crate) fn depth(&self) -> u32 {
        self.parent.map_or(0, |parent| parent.depth.get())
    }

    /// The pause that the stage's code has requested before the unit's next stage.
    #[cfg(feature = "trace")]
    pub(crate) fn delay_ns(&self) -> u64 {
        self.delay_ns
    }

    /// Allows the unit to exceed the caps, because nothing else in the flow can move.
    pub(crate) fn privilege(&mut self) {
        self.privileged = true;
    }

    /// Sets the pause before the unit's next stage.
    pub(crate) fn delay(&mut self, pause_ns: u64) {
        self.delay_ns = pause_ns;
    }
}

// ---- from stage to stage ------------------------------------------------------------------------------

impl Record {
    /// Whether the unit only needs to be moved: it holds nothing, needs nothing of its own, does not pause, and has not
    /// failed in this stage.
    #[inline]
    pub(crate) fn moves_on(&self) -> bool {
        let needs_nothing = |needs: &Needs| {
            needs.held.is_empty() && needs.asks.is_empty() && needs.next_asks.is_empty() && needs.refused.is_none()
        };
        self.needs.as_deref().is_none_or(needs_nothing) && self.delay_ns == 0 && self.attempts == 0 && !self.privileged
    }

    /// Begins the unit's next stage. Returns the pause before it.
    pub(crate) fn go_on(&mut self) -> u64 {
        self.attempts = 0;
        self.base_bytes = self.bytes;
        self.privileged = false;
        self.is_reserved = false;
        self.take_next_asks();
        std::mem::take(&mut self.delay_ns)
    }

    /// Clears the pause and the reservation that a failed attempt has set.
    pub(crate) fn fall_back(&mut self) {
        self.delay_ns = 0;
        self.is_reserved = false;
    }

    /// Resets the record after a run that split the unit without failure; the unit stays in its stage. Once the unit
    /// has `begun` to split, its failed attempts no longer count.
    pub(crate) fn unfold(&mut self, begun: bool) {
        if begun {
            self.attempts = 0;
        }
        self.privileged = false;
        self.is_reserved = false;
        self.delay_ns = 0;
    }

    /// Puts to rest a unit that holds a group open. The unit's ticket has already been told of the group.
    pub(crate) fn rest(&mut self) {
        self.attempts = 0;
        self.ticketed = false;
        self.privileged = false;
        self.is_reserved = false;
        self.delay_ns = 0;
    }

    /// Notes why the unit's current stage cannot run it.
    pub(crate) fn refuse(&mut self, refused: Box<str>) {
        self.needs().refused = Some(refused);
    }

    /// Counts a failed attempt.
    pub(crate) fn count_attempt(&mut self) {
        self.attempts += 1;
    }

    /// Begins the unit's current stage again, with the needs and the weight that were computed last.
    pub(crate) fn ask_again(&mut self) {
        self.base_bytes = self.bytes;
        self.privileged = false;
        self.take_next_asks();
    }

    /// Resets the record to that of a plain unit when the unit leaves. Keeps the record's allocations.
    pub(crate) fn clear(&mut self) {
        let mut needs = self.needs.take();
        if let Some(needs) = &mut needs {
            debug_assert!(needs.held.is_empty(), "a unit left with grants that it holds");
            needs.asks.clear();
            needs.next_asks.clear();
            needs.refused = None;
            needs.steps.clear();
            needs.in_order = false;
            needs.bounces = 0;
        }
        *self = Record { needs, ..Record::default() };
    }
}

// ---- needs --------------------------------------------------------------------------------------------

impl Record {
    fn needs(&mut self) -> &mut Needs {
        self.needs.get_or_insert_with(Box::default)
    }

    /// The unit's needs in its current stage, if needs there differ by unit.
    pub(crate) fn asks(&self) -> &[Ask] {
        self.needs.as_deref().map_or(&[], |needs| &needs.asks)
    }

    /// Notes the needs of an admitted unit in the entry stage, or the reason why that stage cannot run it.
    pub(crate) fn set_asks(&mut self, asks: Vec<Ask>, refused: Option<Box<str>>) {
        // Most units have neither, so they need no box.
        if !asks.is_empty() {
            self.needs().asks = asks;
        }
        if refused.is_some() {
            self.needs().refused = refused;
        }
    }

    /// The list of the unit's needs in its next stage, for the caller to fill.
    pub(crate) fn next_asks(&mut self) -> &mut Vec<Ask> {
        &mut self.needs().next_asks
    }

    /// Notes why the unit's next stage cannot run it.
    pub(crate) fn refuse_next(&mut self, refused: Box<str>) {
        let needs = self.needs();
        needs.next_asks.clear();
        needs.refused = Some(refused);
    }

    /// The reason why the unit's stage cannot run it, if there is one.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.needs.as_ref()?.refused.as_deref()
    }

    /// Replaces the needs of the current stage with the needs of the next stage.
    fn take_next_asks(&mut self) {
        if let Some(needs) = &mut self.needs {
            std::mem::swap(&mut needs.asks, &mut needs.next_asks);
            needs.next_asks.clear();
        }
    }

    /// The grants that the unit holds.
    pub(crate) fn held(&self) -> &[Grant] {
        self.needs.as_deref().map_or(&[], |needs| &needs.held)
    }

    /// Notes grants that the unit holds.
    pub(crate) fn hold(&mut self, grants: impl IntoIterator<Item = Grant>) {
        let mut grants = grants.into_iter().peekable();
        if grants.peek().is_some() {
            self.needs().held.extend(grants);
        }
    }

    /// Removes the grants that `which` selects, and passes them to `take`.
    pub(crate) fn release(&mut self, which: impl Fn(&Grant) -> bool, mut take: impl FnMut(Grant)) {
        let Some(needs) = &mut self.needs else { return };
        needs.held.retain(|grant| {
            let gives = which(grant);
            if gives {
                take(*grant);
            }
            !gives
        });
    }

    /// Counts a wake-up after which the unit still lacks something. Returns the number of such wake-ups.
    pub(crate) fn count_bounce(&mut self) -> u8 {
        let needs = self.needs();
        needs.bounces = needs.bounces.saturating_add(1);
        needs.bounces
    }

    /// Forgets the bounces, because the unit has all it needs.
    pub(crate) fn forget_bounces(&mut self) {
        if let Some(needs) = &mut self.needs {
            needs.bounces = 0;
        }
    }
}

// ---- needs in order -----------------------------------------------------------------------------------

impl Record {
    /// Begins the acquisition of needs in the order of `steps`.
    pub(crate) fn begin_in_order(&mut self, steps: Vec<Step>) {
        let needs = self.needs();
        needs.steps = steps;
        needs.next_step = 0;
        needs.in_order = true;
    }

    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        self.needs.as_ref().is_some_and(|needs| needs.in_order)
    }

    /// The first need that the unit has not acquired yet.
    pub(crate) fn next_step(&self) -> Option<&Step> {
        let needs = self.needs.as_ref()?;
        needs.steps.get(needs.next_step)
    }

    pub(crate) fn steps_mut(&mut self) -> &mut [Step] {
        &mut self.needs().steps
    }

    /// Moves past the next step, whose instance must be known. Returns the step's need.
    pub(crate) fn pass_step(&mut self) -> Option<Want> {
        let needs = self.needs();
        let want = needs.steps.get(needs.next_step)?.want()?;
        needs.next_step += 1;
        Some(want)
    }

    /// Ends the acquisition. Returns the permits that the unit has acquired for a batch: the grants that come from no
    /// stage and end with the run.
    pub(crate) fn end_in_order(&mut self) -> GrantList {
        let needs = self.needs();
        needs.in_order = false;
        needs.bounces = 0;
        needs.steps.clear();
        let mut permits = GrantList::new();
        needs.held.retain(|grant| {
            let is_permit = grant.from == NO_STAGE && grant.until == NO_STAGE;
            permits.extend(is_permit.then_some(*grant));
            !is_permit
        });
        permits
    }
}

/// A handle to a unit's record. The code of the unit's stage uses it only to write notes into the record.
pub struct UnitRef<'a> {
    column: &'a Column<Record>,
    row: Row,
    /// The record may have changed.
    is_touched: bool,
}

impl std::fmt::Debug for UnitRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UnitRef").field(&self.row.number()).finish()
    }
}

impl<'a> UnitRef<'a> {
    /// # Safety
    /// The requirements of [`Row::new`] apply, except that `row` exists in addition to this handle. As long as this
    /// handle lives, the caller uses `row` for other columns only.
    #[inline]
    pub(crate) unsafe fn new(column: &'a Column<Record>, row: &Row) -> Self {
        // SAFETY: the caller promises to use the other handle for other columns only, so this row alone reaches the
        // record.
        UnitRef { column, row: unsafe { Row::new(row.number()) }, is_touched: false }
    }

    /// Points this handle at another unit's record.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    #[inline]
    pub(crate) unsafe fn turn_to(&mut self, row: &Row) {
        // SAFETY: the caller promises to use the other handle for other columns only, so this row alone reaches the
        // record.
        self.row = unsafe { Row::new(row.number()) };
    }

    #[inline]
    pub(crate) fn row(&self) -> &Row {
        &self.row
    }

    #[inline]
    pub(crate) fn look(&self) -> &Record {
        // SAFETY: the column of records is private to its flow's engine, which sees no rows but the flow's own. The
        // record changes only through `change`, which borrows this `UnitRef` exclusively.
        unsafe { self.column.peek(&self.row) }.unwrap_or(&PLAIN)
    }

    #[inline]
    pub(crate) fn change(&mut self) -> &mut Record {
        self.is_touched = true;
        self.column.record(&mut self.row)
    }

    /// Whether the record may have changed.
    #[inline]
    pub(crate) fn is_touched(&self) -> bool {
        self.is_touched
    }

    /// Whether the record may have changed since the last call of this method.
    #[inline]
    pub(crate) fn take_touched(&mut self) -> bool {
        // The flag is written only if it is set, so for most units its cache line stays clean.
        let touched = self.is_touched;
        if touched {
            self.is_touched = false;
        }
        touched
    }

    /// Sets the weight in the next stage for a unit that only moves on.
    pub(crate) fn set_next_bytes(&mut self, bytes: u64) {
        if self.look().is_reserved {
            self.change().is_reserved = false;
        }
        if self.look().base_bytes != bytes {
            self.change().base_bytes = bytes;
        }
    }
}

impl Column<Record> {
    /// The row's record, for reading.
    pub(crate) fn look<'a>(&'a self, row: &'a Row) -> &'a Record {
        // SAFETY: the column of records is private to its flow's engine, which sees no rows but the flow's own. A
        // record changes only through a row that is borrowed mutably, and this row is borrowed for as long as the
        // result lives.
        unsafe { self.peek(row) }.unwrap_or(&PLAIN)
    }

    /// The row's record, made on first use.
    #[inline]
    pub(crate) fn record<'a>(&'a self, row: &'a mut Row) -> &'a mut Record {
        // SAFETY: the column of records is private to its flow's engine, which sees no rows but the flow's own.
        unsafe { self.cell(row) }.get_or_insert_with(Record::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(resource: u16) -> Ask {
        Ask { resource, until: NO_STAGE, amount: 1, key: None }
    }

    fn grant(instance: u32, from: u16, until: u16) -> Grant {
        Grant { instance, until, from, amount: 1 }
    }

    #[test]
    fn the_next_stage_s_needs_become_the_current_ones_when_the_unit_goes_on() {
        let mut record = Record::default();
        record.set_asks(vec![ask(1)], None);
        record.next_asks().push(ask(2));
        record.delay(7);
        assert_eq!(record.go_on(), 7);
        assert_eq!(record.asks().iter().map(|ask| ask.resource).collect::<Vec<_>>(), [2]);
        assert!(record.go_on() == 0 && record.asks().is_empty());
    }

    #[test]
    fn a_unit_releases_the_selected_grants_and_keeps_the_others() {
        let mut record = Record::default();
        record.hold([grant(1, 0, NO_STAGE), grant(2, 0, 3), grant(3, 1, 3)]);
        let mut given = Vec::new();
        record.release(|grant| grant.from == 0, |grant| given.push(grant.instance));
        record.release(|_| true, |grant| given.push(grant.instance));
        assert_eq!(given, [1, 2, 3]);
    }

    #[test]
    fn permits_are_told_from_the_unit_s_own_grants() {
        let mut record = Record::default();
        record.begin_in_order(vec![Step::asked(&ask(4))]);
        assert!(record.is_in_order() && record.pass_step().is_some_and(|want| want.instance == 4));
        assert!(record.next_step().is_none());
        record.hold([grant(4, 0, NO_STAGE), grant(5, NO_STAGE, NO_STAGE), grant(6, NO_STAGE, 2)]);
        assert_eq!(record.end_in_order().iter().map(|permit| permit.instance).collect::<Vec<_>>(), [5]);
        assert!(!record.is_in_order());
    }

    #[test]
    fn a_cleared_record_is_that_of_a_plain_unit() {
        let mut record = Record::default();
        record.weigh(9);
        record.set_ticketed(true);
        record.count_attempt();
        record.refuse_next("no".into());
        record.count_bounce();
        record.clear();
        assert!(record.moves_on() && record.bytes() == 0 && !record.is_ticketed() && record.refused().is_none());
    }
}
