//! The encoding of numbers in a trace: little-endian base 128, with signed differences zigzag-encoded.

/// Appends a number, seven bits per byte; the highest bit is clear in the last byte.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends the difference `to - from`, computed modulo 2^64.
#[inline]
pub(crate) fn put_difference(out: &mut Vec<u8>, from: u64, to: u64) {
    let difference = to.wrapping_sub(from) as i64;
    put(out, ((difference << 1) ^ (difference >> 63)) as u64);
}

/// Reads the numbers of a slice from its beginning.
pub(crate) struct Numbers<'a>(pub(crate) &'a [u8]);

impl Numbers<'_> {
    /// Returns the next number; `None` if the slice ends within the number, or the number has more than 64 bits.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Returns the next number; `None` also if the number exceeds `most`.
    pub(crate) fn next_most(&mut self, most: u64) -> Option<u64> {
        self.next().filter(|&number| number <= most)
    }

    /// Returns the sum of `from` and the next difference.
    #[inline]
    pub(crate) fn next_from(&mut self, from: u64) -> Option<u64> {
        let folded = self.next()?;
        Some(from.wrapping_add(((folded >> 1) as i64 ^ -((folded & 1) as i64)) as u64))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the checksum of a chunk (FNV-1a, 64 bits).
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_differences_round_trip() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
        let mut out = Vec::new();
        let mut last = 0;
        for number in numbers {
            put(&mut out, number);
            put_difference(&mut out, last, number);
            last = number;
        }
        let mut read = Numbers(&out);
        let mut last = 0;
        for number in numbers {
            assert_eq!(read.next(), Some(number));
            last = read.next_from(last).unwrap();
            assert_eq!(last, number);
        }
        assert!(read.is_empty() && read.next().is_none());
    }

    #[test]
    fn numbers_that_are_cut_off_or_too_long_are_refused() {
        assert_eq!(Numbers(&[0x80]).next(), None);
        assert_eq!(Numbers(&[0xff; 11]).next(), None);
        assert_eq!(Numbers(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).next(), None);
        assert_eq!(Numbers(&[0x7f]).next_most(126), None);
    }
}
