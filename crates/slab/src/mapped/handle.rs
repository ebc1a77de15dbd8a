//! The name of a published object.

use bytemuck::{Pod, Zeroable};

use crate::word::Generation;

/// The name of a published object, the same in every process: it says which slab, which object, and which of the
/// object's lives.
///
/// A handle is plain data of 16 bytes. It may be sent to another process, or stored in an object of the slab to make
/// lists and trees. Every use checks it: a handle whose object was freed, or that belongs to another slab, is an error
/// and never reaches memory. A handle of zeros belongs to no slab.
///
/// Reuse can't defeat the check: a generation has 48 bits, and an object whose generations are used up is retired. Two
/// slabs have the same identity with a probability of 2⁻⁴⁷. A copy of a slab's file, however, has the identity of the
/// original, and accepts its handles.
///
/// ```text
/// low:   identity, upper 32 bits │ index, 32 bits
/// high:  generation, 48 bits     │ identity, lower 16 bits
/// ```
///
/// ```
/// use millstream_slab::{Handle, Slab};
///
/// let slab = Slab::<u64>::options(10).private()?;
/// let handle = slab.cache()?.alloc(7)?.publish();
/// let sent: [u8; 16] = bytemuck::cast(handle);
/// assert_eq!(slab.read(bytemuck::cast(sent))?, 7);
/// assert!(slab.read(Handle::default()).is_err());
/// # Ok::<(), millstream_slab::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Handle {
    low: u64,
    high: u64,
}

/// The lower bits of the identity, which share a word with the generation.
const IDENTITY_LOW: u64 = 0xffff;
const INDEX: u64 = 0xffff_ffff;

/// The number of bits of a slab's identity.
pub(crate) const IDENTITY_BITS: u32 = 48;

impl Handle {
    #[inline]
    pub(crate) fn new(identity: u64, index: u64, generation: Generation) -> Self {
        Handle { low: identity >> 16 << 32 | index, high: generation.free() | identity & IDENTITY_LOW }
    }

    /// The index of the object in its slab.
    #[must_use]
    #[inline]
    pub fn index(self) -> u64 {
        self.low & INDEX
    }

    /// The number of times that the object was freed before, plus one.
    #[must_use]
    pub fn generation(self) -> u64 {
        self.in_place().number()
    }

    #[inline]
    pub(crate) fn in_place(self) -> Generation {
        Generation::from_number(self.high >> 16)
    }

    #[inline]
    pub(crate) fn belongs_to(self, identity: u64) -> bool {
        (self.low >> 32 == identity >> 16) & (self.high & IDENTITY_LOW == identity & IDENTITY_LOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_parts_are_kept_apart() {
        let identity = 0xfedc_ba98_7654;
        let handle = Handle::new(identity, u64::from(u32::MAX), Generation::from_number((1 << 48) - 1));
        assert_eq!(handle.index(), u64::from(u32::MAX));
        assert_eq!(handle.generation(), (1 << 48) - 1);
        assert!(handle.belongs_to(identity));
        for bit in 0..IDENTITY_BITS {
            assert!(!handle.belongs_to(identity ^ 1 << bit));
        }
    }
}
