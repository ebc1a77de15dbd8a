//! The first page of a slab: its description, and the words that all its users change.
//!
//! Words of 64 bits, little-endian.
//!
//! | word | what | changes |
//! | --- | --- | --- |
//! | 0 | `MILLSLAB` | |
//! | 1 | major version in the upper half, minor in the lower | |
//! | 2 | bytes from one object to the next | |
//! | 3 | alignment of objects | |
//! | 4 | the maximum number of objects | |
//! | 5 | the maximum number of caches | |
//! | 6 | the maximum number of objects in a chain | |
//! | 7 | identity: 48 bits, 47 of them random, in every handle | |
//! | 8 | bit 0: objects begin at a multiple of 2 MiB and ask for huge pages; bit 1: there are owners (since 2.1) | |
//! | 9 | bytes of the file | |
//! | 10 | the application's tag for its type, 0 for none | |
//! | 11 | FNV-1a of words 0 to 10 | |
//! | 17 | boot: a digest of the machine's boot identifier | when a process opens the slab alone |
//! | 18 | PID namespace of its users (lower half), time namespace (upper half, 0 for the first) | when a process opens the slab alone |
//! | 20, 21 | rebuild lock: 0, or the process that rebuilds the free list, bit 63 once it has begun; digests of its boot (upper half) and its namespaces | when the list is rebuilt |
//! | 32 | capacity: objects below this number may be used | when it grows |
//! | 33 | fresh: objects below this number have been used, or are being taken | when the depot is empty |
//! | 48, 49 | the depot's head: first object, one more than the slot of the cache that exchanged it last (32 bits each); tag | per chain |
//!
//! All other words are zero. A new minor version may give a meaning only to words that were zero, and zero must keep
//! the old meaning, so this library opens older files; it refuses a file of a newer minor version.

use crate::mapped::error::Error;
use crate::mapped::geometry::Geometry;

/// `MILLSLAB`
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"MILLSLAB");
pub(crate) const MAJOR: u32 = 2;
/// Minor version 1 added owners.
pub(crate) const MINOR: u32 = 1;

/// The number of words that never change.
pub(crate) const FIXED: usize = 12;
pub(crate) const BOOT: usize = 17;
pub(crate) const NAMESPACE: usize = 18;
pub(crate) const REBUILD_LOCK: usize = 20;
pub(crate) const CAPACITY: usize = 32;
pub(crate) const FRESH: usize = 33;
pub(crate) const HEAD: usize = 48;

const FLAG_HUGE_PAGES: u64 = 1;
const FLAG_OWNERS: u64 = 2;
const FLAGS: u64 = FLAG_HUGE_PAGES | FLAG_OWNERS;

/// The description of a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) geometry: Geometry,
    pub(crate) identity: u64,
    pub(crate) tag: u64,
}

impl Header {
    /// The words of the header that never change.
    pub(crate) fn words(&self) -> [u64; FIXED] {
        let geometry = &self.geometry;
        let mut words = [
            MAGIC,
            u64::from(MAJOR) << 32 | u64::from(MINOR),
            geometry.object_bytes,
            geometry.align_bytes,
            geometry.max_objects,
            geometry.caches,
            geometry.chain,
            self.identity,
            if geometry.huge_pages { FLAG_HUGE_PAGES } else { 0 } | if geometry.owners { FLAG_OWNERS } else { 0 },
            geometry.file_bytes(),
            self.tag,
            0,
        ];
        words[FIXED - 1] = checksum(&words[..FIXED - 1]);
        words
    }

    /// Reads the fixed words of a file of this length.
    pub(crate) fn read(words: &[u64; FIXED], file_bytes: u64) -> Result<Header, Error> {
        if words[0] != MAGIC {
            return Err(Error::NotASlab { expected: MAGIC, found: words[0] });
        }
        let (major, minor) = ((words[1] >> 32) as u32, words[1] as u32);
        if major != MAJOR || minor > MINOR {
            return Err(Error::Version { major, minor, known_major: MAJOR, known_minor: MINOR });
        }
        let expected = checksum(&words[..FIXED - 1]);
        if words[FIXED - 1] != expected {
            return Err(Error::Checksum { expected, found: words[FIXED - 1] });
        }
        if words[8] & !FLAGS != 0 {
            return Err(Error::Geometry { what: "flags", expected: words[8] & FLAGS, found: words[8] });
        }
        if words[7] >> crate::mapped::handle::IDENTITY_BITS != 0 {
            return Err(Error::Geometry { what: "upper bits of the identity", expected: 0, found: words[7] });
        }
        let geometry = Geometry {
            object_bytes: words[2],
            align_bytes: words[3],
            max_objects: words[4],
            caches: words[5],
            chain: words[6],
            huge_pages: words[8] & FLAG_HUGE_PAGES != 0,
            owners: words[8] & FLAG_OWNERS != 0,
        };
        geometry.check()?;
        if words[9] != geometry.file_bytes() {
            let expected = geometry.file_bytes();
            return Err(Error::Geometry { what: "file_bytes", expected, found: words[9] });
        }
        if file_bytes < geometry.file_bytes() {
            return Err(Error::Truncated { expected: geometry.file_bytes(), found: file_bytes });
        }
        Ok(Header { geometry, identity: words[7], tag: words[10] })
    }
}

/// The 64-bit FNV-1a hash, by Fowler, Noll and Vo, of the words' bytes.
pub(crate) fn checksum(words: &[u64]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let geometry = Geometry {
            object_bytes: 64,
            align_bytes: 64,
            max_objects: 100,
            caches: 4,
            chain: 8,
            huge_pages: false,
            owners: false,
        };
        Header { geometry, identity: 42, tag: 7 }
    }

    fn sealed(mut words: [u64; FIXED]) -> [u64; FIXED] {
        words[FIXED - 1] = checksum(&words[..FIXED - 1]);
        words
    }

    #[test]
    fn a_written_header_reads_back() {
        assert_eq!(Header::read(&header().words(), 1 << 20).unwrap(), header());
    }

    #[test]
    fn every_flipped_bit_is_an_error() {
        for word in 0..FIXED {
            for bit in 0..64 {
                let mut words = header().words();
                words[word] ^= 1 << bit;
                assert!(Header::read(&words, 1 << 20).is_err(), "bit {bit} of word {word}");
            }
        }
    }

    #[test]
    fn an_older_minor_version_opens_and_a_newer_does_not() {
        let mut words = header().words();
        words[1] = u64::from(MAJOR) << 32;
        assert_eq!(Header::read(&sealed(words), 1 << 20).unwrap(), header());
        words[1] += u64::from(MINOR) + 1;
        assert!(matches!(Header::read(&sealed(words), 1 << 20), Err(Error::Version { .. })));
        words[1] = u64::from(MAJOR + 1) << 32;
        assert!(matches!(Header::read(&sealed(words), 1 << 20), Err(Error::Version { .. })));
    }

    #[test]
    fn inconsistent_numbers_are_errors_in_spite_of_their_checksum() {
        for (word, value) in
            [(2, 0), (4, 0), (4, u64::MAX), (5, 1 << 20), (6, 100), (7, 1 << 50), (8, 2), (8, 4), (9, 5)]
        {
            let mut words = header().words();
            words[word] = value;
            assert!(Header::read(&sealed(words), 1 << 20).is_err(), "word {word}");
        }
    }

    #[test]
    fn a_truncated_file_is_told_from_a_wrong_one() {
        let bytes = header().geometry.file_bytes();
        assert!(Header::read(&header().words(), bytes).is_ok());
        assert!(matches!(Header::read(&header().words(), bytes - 1), Err(Error::Truncated { .. })));
    }
}
