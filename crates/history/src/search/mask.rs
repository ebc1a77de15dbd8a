//! The set of linearized open operations: a bit for each slot.

/// `64 * N` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mask<const N: usize>([u64; N]);

impl<const N: usize> Mask<N> {
    pub(super) const EMPTY: Self = Mask([0; N]);

    #[inline]
    pub(super) fn has(&self, slot: u32) -> bool {
        self.0[slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    #[inline]
    pub(super) fn set(&mut self, slot: u32) {
        self.0[slot as usize / 64] |= 1 << (slot % 64);
    }

    #[inline]
    pub(super) fn clear(&mut self, slot: u32) {
        self.0[slot as usize / 64] &= !(1 << (slot % 64));
    }
}
