//! The layout of the file.
//!
//! | offset | bytes | what |
//! | --- | --- | --- |
//! | 0 | 4096 | the [header](crate::mapped::header) |
//! | 4096 | 128 × caches | the slots of the caches |
//! | next page | 8 × max_objects | the words of the objects |
//! | next page | 8 × max_objects | their links |
//! | next page | 8 × max_objects, or none | their owners, if the slab keeps them |
//! | next page, or multiple of 2 MiB with huge pages | object_bytes × max_objects | the objects |
//!
//! Five numbers and two flags of the header determine this layout, so the header stores no offset that could be wrong.

use crate::mapped::error::Error;
use crate::word::MAX_CACHES;

/// Every part begins at a multiple of this; with huge pages, the objects begin at a multiple of [`HUGE_PAGE`].
pub(crate) const PAGE: u64 = 4096;
pub(crate) const HUGE_PAGE: u64 = 2 << 20;
/// The maximum number of objects: an index has 32 bits, and one value stands for no object.
pub(crate) const MAX_OBJECTS: u64 = u32::MAX as u64;
/// The size of the largest object.
pub(crate) const MAX_OBJECT_BYTES: u64 = 1 << 30;
/// The maximum number of objects in a chain, and half the capacity of a magazine.
pub(crate) const MAX_CHAIN: u64 = 64;
/// The size of the largest file: as much as a process can map in addition to everything else.
const MAX_FILE_BYTES: u64 = 1 << 46;
const SLOT_BYTES: u64 = size_of::<crate::slot::Slot>() as u64;

/// The numbers that determine the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// The distance from the start of one object to the next.
    pub(crate) object_bytes: u64,
    pub(crate) align_bytes: u64,
    pub(crate) max_objects: u64,
    pub(crate) caches: u64,
    pub(crate) chain: u64,
    pub(crate) huge_pages: bool,
    /// Whether the slab keeps the application's number for each object's last holder.
    pub(crate) owners: bool,
}

impl Geometry {
    /// Checks that the numbers describe a slab.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let within = |what, found, least, most| {
            if (least..=most).contains(&found) { Ok(()) } else { Err(Error::OutOfRange { what, found, least, most }) }
        };
        within("object_bytes", self.object_bytes, 8, MAX_OBJECT_BYTES)?;
        within("align_bytes", self.align_bytes, 8, PAGE)?;
        within("max_objects", self.max_objects, 1, MAX_OBJECTS)?;
        within("caches", self.caches, 1, MAX_CACHES)?;
        within("chain", self.chain, 1, MAX_CHAIN)?;
        within("align_bytes without its lowest set bit", self.align_bytes & (self.align_bytes - 1), 0, 0)?;
        within("the remainder of object_bytes divided by align_bytes", self.object_bytes % self.align_bytes, 0, 0)?;
        within("file_bytes", self.file_bytes(), 1, MAX_FILE_BYTES)
    }

    pub(crate) fn slots(&self) -> u64 {
        PAGE
    }

    pub(crate) fn words(&self) -> u64 {
        (self.slots() + SLOT_BYTES * self.caches).next_multiple_of(PAGE)
    }

    pub(crate) fn links(&self) -> u64 {
        (self.words() + 8 * self.max_objects).next_multiple_of(PAGE)
    }

    pub(crate) fn owners(&self) -> u64 {
        (self.links() + 8 * self.max_objects).next_multiple_of(PAGE)
    }

    pub(crate) fn objects(&self) -> u64 {
        let page = if self.huge_pages { HUGE_PAGE } else { PAGE };
        let owners = if self.owners { 8 * self.max_objects } else { 0 };
        (self.owners() + owners).next_multiple_of(page)
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        // At most 2^32 objects of 2^30 bytes, and less for the other parts: this can't overflow.
        (self.objects() + self.object_bytes * self.max_objects).next_multiple_of(PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap() {
        for max_objects in [1, 511, 512, 513, 100_000] {
            for huge_pages in [false, true] {
                let object_bytes = 24;
                let owners = max_objects % 2 == 0;
                let geometry =
                    Geometry { object_bytes, align_bytes: 8, max_objects, caches: 3, chain: 4, huge_pages, owners };
                geometry.check().unwrap();
                assert!(geometry.slots() + 3 * SLOT_BYTES <= geometry.words());
                assert!(geometry.words() + 8 * max_objects <= geometry.links());
                assert!(geometry.links() + 8 * max_objects <= geometry.owners());
                assert!(geometry.owners() + if owners { 8 * max_objects } else { 0 } <= geometry.objects());
                assert!(geometry.objects() + object_bytes * max_objects <= geometry.file_bytes());
            }
        }
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let sound = Geometry {
            object_bytes: 64,
            align_bytes: 64,
            max_objects: 1,
            caches: 1,
            chain: 1,
            huge_pages: false,
            owners: false,
        };
        for (wrong, name) in [
            (Geometry { object_bytes: 0, ..sound }, "object_bytes"),
            (Geometry { align_bytes: 3, ..sound }, "align_bytes"),
            (Geometry { align_bytes: 24, ..sound }, "align_bytes"),
            (Geometry { object_bytes: 72, ..sound }, "object_bytes"),
            (Geometry { max_objects: 0, ..sound }, "max_objects"),
            (Geometry { caches: MAX_CACHES + 1, ..sound }, "caches"),
            (Geometry { chain: 65, ..sound }, "chain"),
            (Geometry { object_bytes: 1 << 30, max_objects: MAX_OBJECTS, ..sound }, "file_bytes"),
        ] {
            let error = wrong.check().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
