//! The addition without a lock prefix.

use crate::primitive::{AtomicU32, AtomicU64};

/// The outcome of an addition without a lock prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// Neither the word nor the sum had the topmost bit.
    Quietly,
    /// The sum has the topmost bit, or lost it by wrapping around.
    Flagged,
    /// The word had the topmost bit before; nothing was added.
    NotYet,
}

/// Words to which x86-64 can add in one instruction.
pub trait AddUnlocked {
    /// Adds unless the word has its topmost bit set. The addition is one instruction, which an interrupt cannot divide,
    /// and the processor flags that it sets show whether the sum has the bit. To other cores it is a load and a store.
    ///
    /// The topmost bit of `n` is clear. Only one thread at a time may call this. Release, like every store of x86-64.
    fn add_unlocked(&self, n: u64) -> Added;
}

macro_rules! add_unlocked {
    ($width:ty, $atomic:ty, $word:literal, $n:literal, $wrapped:literal) => {
        impl AddUnlocked for $atomic {
            #[cfg(not(tsan))]
            #[inline(always)]
            fn add_unlocked(&self, n: u64) -> Added {
                // SAFETY: the pointer is that of a live, aligned atomic. To the compiler, the block may be a relaxed
                // load and, if the topmost bit is clear, another load and a release store of the sum. It touches
                // nothing else, and on x86-64 every store has release ordering. Without `nomem`, the compiler does not
                // move any access across it.
                unsafe {
                    std::arch::asm!(
                        concat!("cmp ", $word, ", 0"),
                        "js {not_yet}",
                        concat!("add ", $word, ", ", $n),
                        "js {flagged}",
                        $wrapped,
                        word = in(reg) self.as_ptr(),
                        n = in(reg) n as $width,
                        not_yet = label { return Added::NotYet },
                        flagged = label { return Added::Flagged },
                        options(nostack),
                    );
                }
                Added::Quietly
            }

            // ThreadSanitizer does not see assembly, so here a locked addition stands in for it.
            #[cfg(tsan)]
            fn add_unlocked(&self, n: u64) -> Added {
                use crate::primitive::Ordering;

                const TOP: $width = 1 << (<$width>::BITS - 1);
                if self.load(Ordering::Relaxed) & TOP != 0 {
                    return Added::NotYet;
                }
                let before = self.fetch_add(n as $width, Ordering::Release);
                if (before | before.wrapping_add(n as $width)) & TOP != 0 { Added::Flagged } else { Added::Quietly }
            }
        }
    };
}

// A flagged word that wraps around drops its flag into the carry. With 64 bits that takes a century, so the addition
// does not test the carry.
add_unlocked!(u32, AtomicU32, "dword ptr [{word}]", "{n:e}", "jc {flagged}");
add_unlocked!(u64, AtomicU64, "qword ptr [{word}]", "{n}", "");

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn the_sum_is_in_the_word() {
        let (narrow, wide) = (AtomicU32::new(40), AtomicU64::new(1 << 40));
        assert_eq!((narrow.add_unlocked(2), narrow.load(Relaxed)), (Added::Quietly, 42));
        assert_eq!((wide.add_unlocked(2), wide.load(Relaxed)), (Added::Quietly, (1 << 40) + 2));
    }

    #[test]
    fn nothing_is_added_to_a_flagged_word() {
        let (narrow, wide) = (AtomicU32::new(1 << 31 | 5), AtomicU64::new(1 << 63 | 5));
        assert_eq!((narrow.add_unlocked(2), narrow.load(Relaxed)), (Added::NotYet, 1 << 31 | 5));
        assert_eq!((wide.add_unlocked(2), wide.load(Relaxed)), (Added::NotYet, 1 << 63 | 5));
    }

    #[test]
    fn a_value_that_grows_into_the_flag_is_reported() {
        let narrow = AtomicU32::new(u32::MAX >> 1);
        assert_eq!((narrow.add_unlocked(1), narrow.load(Relaxed)), (Added::Flagged, 1 << 31));
    }
}
