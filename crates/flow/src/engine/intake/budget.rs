//! The budget of admission: units and bytes in flight, and their caps.

pub(crate) struct Budget {
    max_in_flight: u64,
    max_bytes: u64,
    /// The number of stages that split units.
    splits: u64,
    in_flight: u64,
    /// The number of units at rest, which wait only for other units: they hold a group open, or are parents whose own
    /// work has ended. They hold no resources, and the cap does not count them.
    at_rest: u64,
    /// The room that running splits have reserved for children, in units and bytes.
    reserved: (u64, u64),
    /// Payload bytes in flight. The sum is exact: 2^32 weights of at most `MAX_AMOUNT` fit.
    bytes: u128,
    /// The number that the next unit will get.
    next_id: u64,
    peaks: Peaks,
    /// The number of units so far that were larger than the whole budget.
    oversize: u64,
}

/// The largest use of the caps so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Peaks {
    in_flight: u64,
    bytes: u128,
}

impl Budget {
    pub(crate) fn new(max_in_flight: u64, max_bytes: u64) -> Self {
        Budget {
            max_in_flight,
            max_bytes,
            splits: 0,
            in_flight: 0,
            at_rest: 0,
            reserved: (0, 0),
            bytes: 0,
            next_id: 0,
            peaks: Peaks::default(),
            oversize: 0,
        }
    }

    /// Adopts new caps.
    pub(crate) fn follow(&mut self, max_in_flight: u64, max_bytes: u64) {
        (self.max_in_flight, self.max_bytes) = (max_in_flight, max_bytes);
    }

    #[inline]
    pub(crate) fn max_in_flight(&self) -> u64 {
        self.max_in_flight
    }

    #[inline]
    pub(crate) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(crate) fn bytes(&self) -> u64 {
        u64::try_from(self.bytes).unwrap_or(u64::MAX)
    }

    pub(crate) fn peak_in_flight(&self) -> u64 {
        self.peaks.in_flight
    }

    pub(crate) fn peak_bytes(&self) -> u64 {
        u64::try_from(self.peaks.bytes).unwrap_or(u64::MAX)
    }

    pub(crate) fn peaks(&self) -> Peaks {
        self.peaks
    }

    /// Restores peaks that were read earlier, as if nothing had happened since.
    pub(crate) fn restore_peaks(&mut self, peaks: Peaks) {
        self.peaks = peaks;
    }

    pub(crate) fn oversize(&self) -> u64 {
        self.oversize
    }

    /// Shares the cap between admission and this many stages that split.
    pub(crate) fn share_with_splits(&mut self, splits: u64) {
        self.splits = splits;
    }

    /// The part of the cap on units in flight that admission may fill. The other part is reserved for children. With
    /// `n` stages that split, admission may fill `1 / (n + 1)` of the cap. Each of these stages, in order from the
    /// entry, may fill the same amount in addition.
    #[inline]
    pub(crate) fn admission_cap(&self) -> u64 {
        if self.splits == 0 { self.max_in_flight } else { self.cap_of_split(0) }
    }

    /// The part of the cap that admission and the splitting stages up to the `nth` from the entry may fill together. If
    /// `nth` is 0, this is the part of admission alone.
    fn cap_of_split(&self, nth: u64) -> u64 {
        let share = u128::from(self.max_in_flight) * u128::from(nth + 1) / u128::from(self.splits + 1);
        (share as u64).max(1)
    }

    /// The number of units in flight that the cap counts.
    #[inline]
    fn active(&self) -> u64 {
        self.in_flight - self.at_rest
    }

    /// Notes the number of units at rest.
    #[inline]
    pub(crate) fn set_at_rest(&mut self, units: u64) {
        self.at_rest = units;
        self.peaks.in_flight = self.peaks.in_flight.max(self.active());
    }

    /// The number of units that may still enter.
    #[inline]
    pub(crate) fn room(&self) -> u64 {
        self.admission_cap().saturating_sub(self.active() + self.reserved.0)
    }

    /// The number of children that the `nth` splitting stage may still produce.
    pub(crate) fn room_for_children(&self, nth: u64) -> u64 {
        self.cap_of_split(nth).saturating_sub(self.active() + self.reserved.0)
    }

    /// Whether half of the byte budget is free, and also half of the part of the cap that the `nth` splitting stage may
    /// fill.
    pub(crate) fn is_half_free(&self, nth: u64) -> bool {
        self.room_for_children(nth) >= self.cap_of_split(nth).div_ceil(2)
            && self.room_for_bytes() >= self.max_bytes.div_ceil(2)
    }

    /// Whether the flow has exactly one unit, and no child can be on its way into the flow.
    pub(crate) fn has_one_unit(&self) -> bool {
        self.in_flight + self.reserved.0 == 1
    }

    /// The number of children that runs in progress may still produce.
    pub(crate) fn reserved_units(&self) -> u64 {
        self.reserved.0
    }

    /// Reserves room for children that a run may produce.
    pub(crate) fn reserve(&mut self, units: u64, bytes: u64) {
        self.reserved.0 += units;
        self.reserved.1 += bytes;
    }

    /// Releases room that a run had reserved.
    pub(crate) fn unreserve(&mut self, units: u64, bytes: u64) {
        self.reserved.0 -= units;
        self.reserved.1 -= bytes;
    }

    /// Reserves room for payloads that will grow by `bytes`: at most an eighth of the free bytes, and only if half of
    /// the byte budget is free. Returns the reserved bytes.
    pub(crate) fn advance(&mut self, bytes: u64) -> u64 {
        let room = self.room_for_bytes();
        let bytes = if room >= self.max_bytes.div_ceil(2) { bytes.min(room / 8) } else { 0 };
        self.reserve(0, bytes);
        bytes
    }

    /// The number of bytes that may still enter.
    pub(crate) fn room_for_bytes(&self) -> u64 {
        let room = u128::from(self.max_bytes).saturating_sub(self.bytes + u128::from(self.reserved.1));
        u64::try_from(room).unwrap_or(u64::MAX)
    }

    /// Whether this many bytes fit in addition to the bytes in flight.
    #[inline]
    pub(crate) fn fits(&self, bytes: u128) -> bool {
        self.bytes + u128::from(self.reserved.1) + bytes <= self.max_bytes.into()
    }

    /// Whether this many units, with this many bytes in total, can certainly enter.
    #[inline]
    pub(crate) fn has_room_for_all(&self, units: usize, bytes: u64) -> bool {
        units as u64 <= self.room() && self.fits(bytes.into())
    }

    /// Whether a unit of `bytes` could enter. A unit larger than the whole budget enters when nothing else is in flight
    /// except units at rest.
    #[inline]
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.room() > 0 && (self.fits(bytes.into()) || self.active() == 0)
    }

    /// Whether a unit of `bytes` could enter instead of a unit of `their_bytes`.
    pub(crate) fn has_room_instead_of(&self, their_bytes: u64, bytes: u64) -> bool {
        let left = self.bytes - u128::from(their_bytes);
        self.active() + self.reserved.0 <= self.admission_cap()
            && (left + u128::from(bytes) <= self.max_bytes.into() || self.active() == 1)
    }

    /// Counts units that enter the flow.
    #[inline]
    pub(crate) fn add_units(&mut self, units: u64) {
        self.in_flight += units;
        self.peaks.in_flight = self.peaks.in_flight.max(self.active());
    }

    /// Counts units as having left the flow.
    #[inline]
    pub(crate) fn subtract_units(&mut self, units: u64) {
        self.in_flight -= units;
    }

    /// Adds the bytes of a unit that is admitted.
    pub(crate) fn admit_bytes(&mut self, bytes: u64) {
        self.add_bytes(bytes);
        self.oversize += u64::from(bytes > self.max_bytes);
    }

    /// Adds the growth of a unit's payload from `before` to `after` bytes.
    pub(crate) fn grow(&mut self, before: u64, after: u64) {
        self.oversize += u64::from(after > self.max_bytes && before <= self.max_bytes);
        self.add_bytes(after - before);
    }

    /// Adds bytes that enter the flow.
    #[inline]
    pub(crate) fn add_bytes(&mut self, bytes: u64) {
        self.bytes += u128::from(bytes);
        self.peaks.bytes = self.peaks.bytes.max(self.bytes);
    }

    /// Subtracts bytes that leave the flow.
    #[inline]
    pub(crate) fn subtract_bytes(&mut self, bytes: u64) {
        self.bytes -= u128::from(bytes);
    }

    /// The number that the next unit will get.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Takes numbers for this many units. Returns the first number.
    #[inline]
    pub(crate) fn take_ids(&mut self, units: u64) -> u64 {
        let first = self.next_id;
        self.next_id += units;
        first
    }

    /// Takes back the `unused` numbers before `next`, unless later numbers have been taken meanwhile.
    pub(crate) fn give_ids_back(&mut self, next: u64, unused: u64) {
        if next == self.next_id {
            self.next_id -= unused;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_larger_than_the_budget_enters_alone() {
        let mut budget = Budget::new(3, 100);
        assert!(budget.has_room(1000));
        budget.add_units(1);
        budget.admit_bytes(60);
        assert!(!budget.has_room(41) && budget.has_room(40));
        assert!(budget.has_room_instead_of(60, 100) && budget.room_for_bytes() == 40);
        budget.admit_bytes(1000);
        assert_eq!((budget.oversize(), budget.room_for_bytes()), (1, 0));
    }

    #[test]
    fn splits_keep_room_for_children() {
        let mut budget = Budget::new(9, 100);
        budget.share_with_splits(2);
        assert_eq!((budget.room(), budget.room_for_children(1), budget.room_for_children(2)), (3, 6, 9));
        budget.add_units(3);
        assert!(!budget.has_room(0) && !budget.has_room_for_all(1, 0));
        assert!(budget.is_half_free(1) && !budget.is_half_free(0));
        budget.reserve(2, 30);
        assert!(!budget.is_half_free(1) && !budget.is_half_free(2));
        assert_eq!((budget.room_for_children(1), budget.room_for_bytes()), (1, 70));
        budget.unreserve(2, 30);
        assert_eq!((budget.room_for_children(1), budget.room_for_bytes()), (3, 100));
    }

    #[test]
    fn an_advance_is_a_part_of_the_free_bytes_while_half_of_the_cap_is_free() {
        let mut budget = Budget::new(9, 160);
        assert_eq!((budget.advance(5), budget.advance(1000)), (5, 19));
        assert!(budget.fits(136) && !budget.fits(137) && budget.peak_bytes() == 0);
        budget.admit_bytes(57);
        assert_eq!(budget.advance(1), 0);
        budget.unreserve(0, 24);
        assert_eq!(budget.advance(1), 1);
    }

    #[test]
    fn units_that_wait_for_others_leave_their_room_to_them() {
        let mut budget = Budget::new(2, 100);
        budget.add_units(2);
        budget.admit_bytes(90);
        assert_eq!(budget.room(), 0);
        budget.set_at_rest(2);
        assert!(budget.room() == 2 && budget.has_room(1000), "nothing else is in flight");
        budget.add_units(1);
        assert!(budget.room() == 1 && !budget.has_room(1000) && budget.has_room(10));
    }

    #[test]
    fn a_cap_of_one_admits_a_unit_that_is_split() {
        let mut budget = Budget::new(1, 100);
        budget.share_with_splits(3);
        assert!(budget.has_room(0) && budget.room_for_children(1) == 1);
        budget.add_units(1);
        assert!(budget.room_for_children(3) == 0);
    }

    #[test]
    fn a_cap_below_the_units_in_flight_leaves_no_room() {
        let mut budget = Budget::new(3, 100);
        budget.add_units(3);
        budget.follow(2, 100);
        assert!(budget.room() == 0 && !budget.has_room(0));
        budget.subtract_units(2);
        assert!(budget.room() == 1 && budget.peak_in_flight() == 3);
    }

    #[test]
    fn unused_numbers_are_given_out_again_unless_a_later_one_is_in_use() {
        let mut budget = Budget::new(3, 100);
        assert_eq!((budget.take_ids(10), budget.take_ids(1)), (0, 10));
        budget.give_ids_back(10, 4);
        assert_eq!(budget.take_ids(5), 11);
        budget.give_ids_back(16, 2);
        assert_eq!(budget.take_ids(1), 14);
    }
}
