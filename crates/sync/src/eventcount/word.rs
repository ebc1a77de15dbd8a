//! Both widths of a control word behind one interface, which uses `u64`.

use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// A width of event counts: `u32` or `u64`.
///
/// With 32 bits the whole count is the futex word. With 64 bits the futex word is the lower half of the count, and a
/// wrap-around takes centuries.
pub trait Width: Send + Sync + 'static {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    type Atomic: Word + super::x86_64::AddUnlocked;
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    type Atomic: Word;
    const BITS: u32;
}

/// The operations that event counts need from an atomic integer. A `u32` wraps around as usual.
pub trait Word: Send + Sync {
    #[cfg(not(loom))]
    const ZERO: Self;
    fn new(value: u64) -> Self;
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    fn fetch_add(&self, value: u64, order: Ordering) -> u64;
    fn fetch_and(&self, value: u64, order: Ordering) -> u64;
    fn fetch_or(&self, value: u64, order: Ordering) -> u64;
    fn compare_exchange(&self, old: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64>;
    /// The low half, which the kernel compares.
    #[cfg(not(loom))]
    fn futex(&self) -> *const u32;
}

macro_rules! word {
    ($width:ty, $atomic:ty) => {
        impl Width for $width {
            type Atomic = $atomic;
            const BITS: u32 = <$width>::BITS;
        }

        impl Word for $atomic {
            #[cfg(not(loom))]
            const ZERO: Self = <$atomic>::new(0);

            fn new(value: u64) -> Self {
                <$atomic>::new(value as $width)
            }

            #[inline(always)]
            fn load(&self, order: Ordering) -> u64 {
                self.load(order) as u64
            }

            #[inline(always)]
            fn store(&self, value: u64, order: Ordering) {
                self.store(value as $width, order);
            }

            #[inline(always)]
            fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
                self.fetch_add(value as $width, order) as u64
            }

            #[inline(always)]
            fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
                self.fetch_and(value as $width, order) as u64
            }

            #[inline(always)]
            fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
                self.fetch_or(value as $width, order) as u64
            }

            #[inline(always)]
            fn compare_exchange(&self, old: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
                let outcome = self.compare_exchange(old as $width, new as $width, success, failure);
                outcome.map(|old| old as u64).map_err(|found| found as u64)
            }

            #[cfg(not(loom))]
            #[inline(always)]
            fn futex(&self) -> *const u32 {
                let low = if cfg!(target_endian = "little") { 0 } else { size_of::<$width>() / 4 - 1 };
                self.as_ptr().cast::<u32>().cast_const().wrapping_add(low)
            }
        }
    };
}

word!(u32, AtomicU32);
word!(u64, AtomicU64);
