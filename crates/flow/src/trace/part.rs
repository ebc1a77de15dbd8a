//! The part of a batch that is recorded.

use super::ranges::Ranges;
use super::sampling;
use crate::engine::run::witness::Ran;
use crate::engine::units::column::Row;
use crate::engine::units::record::UnitRef;

/// The units of a batch, and which of them are recorded. Both are determined once, even if the batch runs through
/// several stages.
#[derive(Default)]
pub(super) struct Part {
    all: Ranges,
    /// Whether all units are recorded.
    is_whole: bool,
    /// If not all units are recorded: the indices of the recorded units, in ascending order.
    places: Vec<usize>,
    /// If not all units are recorded: the numbers of the recorded units.
    ids: Ranges,
}

/// The indices of the units that are recorded.
pub(super) enum Places<'a> {
    All,
    /// The units at these indices, in ascending order.
    Some(&'a [usize]),
    None,
}

impl Part {
    /// Sets the units of a batch, and chooses which to record. The first `whole` units of a run are all
    /// recorded; of the later units, only a sample is. If `whole` is 0, all units are recorded.
    pub(super) fn choose(&mut self, ran: &Ran<'_>, whole: u64) {
        let id_of = |row: &Row| ran.site.stamps().id(row);
        self.all.refill(ran.rows.iter().map(id_of));
        self.is_whole = whole == 0 || self.all.end() <= whole;
        self.places.clear();
        if self.is_whole {
            return;
        }
        if ran.plain {
            // A plain unit has no parent, so each block is recorded either completely or not at all.
            let mut place = 0;
            self.all.each_block(|first, units| {
                let units = units as usize;
                if sampling::is_recorded(first, whole) {
                    self.places.extend(place..place + units);
                }
                place += units;
            });
        } else {
            let recorded = |&place: &usize| sampling::is_recorded(root_of(ran, &ran.rows[place]), whole);
            self.places.extend((0..ran.rows.len()).filter(recorded));
        }
        self.is_whole = self.places.len() == ran.rows.len();
        self.ids.refill(self.places.iter().map(|&place| id_of(&ran.rows[place])));
    }

    /// The units that are recorded.
    pub(super) fn places(&self) -> Places<'_> {
        match &*self.places {
            _ if self.is_whole => Places::All,
            [] => Places::None,
            places => Places::Some(places),
        }
    }

    /// The numbers of the units that are recorded.
    pub(super) fn ids(&self) -> &Ranges {
        if self.is_whole { &self.all } else { &self.ids }
    }

    /// The numbers of all units.
    pub(super) fn all(&self) -> &Ranges {
        &self.all
    }
}

/// The number of the unit's parent, or the unit's own number if it has no parent.
fn root_of(ran: &Ran<'_>, row: &Row) -> u64 {
    // SAFETY: the worker that ran the batch has its rows, and no other handle reaches their records in the meantime.
    let unit = unsafe { UnitRef::new(ran.site.records(), row) };
    unit.look().parent().map_or_else(|| ran.site.stamps().id(row), |parent| parent.id)
}
