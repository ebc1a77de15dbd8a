//! One incrementer on x86-64: the count and its flag in one word, incremented without a lock prefix.

use super::kind::{Announced, Kind, SoleKind};
use super::scope::{Overlooks, Scope};
use super::sleep::Sleeping;
use super::word::{Width, Word};
use super::x86_64::{AddUnlocked, Added};
use crate::primitive::Ordering;

/// The kind with one incrementer that adds by a plain `add` to memory (x86-64 only).
///
/// The word is the value with the flag in its topmost bit. The increment is one instruction that reads, adds and
/// writes, but not atomically; the sign of the sum shows the flag. If the flag was set before the increment, the
/// increment is a store of the next value without the flag.
///
/// # What can go wrong, and what cannot
/// In the x86-TSO model a store waits in its core's store buffer before it reaches memory, and the core itself reads
/// its buffer first. So the incrementer always sees its own latest value, on whichever core it runs, and because no
/// other thread changes the value, no increment is lost. A waiter sets the flag by a locked instruction, which acts on
/// memory at one moment. One thing can go wrong: the flag may be set after the `add` has read the word, or while an
/// earlier sum still waits in the buffer. Then the sum reaches memory after the flag and *overwrites it*, and the
/// incrementer does not wake the waiter.
///
/// # When a waiter may sleep without limit
/// A waiter of this kind sets the flag, executes a [heavy fence](millstream_fence::heavy), and falls asleep only if the
/// kernel then still finds the value on which it waits. The fence interrupts each core that runs the process:
///
/// - An interrupt comes between two instructions, never inside one, so each `add` is wholly before or wholly after it.
///   The interrupt drains the sum of an earlier `add` to memory, so the waiter finds another value and does not sleep.
///   A later `add` reads the word with the flag, and the incrementer wakes the waiter.
/// - An incrementer that did not run during the fence executed a full barrier when its core switched to another thread.
///   The kernel checks which cores run the process only after the waiter's flag is in memory. So the incrementer's
///   earlier sums are in memory, as above, and its instructions after the switch back see the flag.
///
/// This protects only the flag that was set *during the fence*. Suppose that flag were cleared, and another waiter set
/// it again for the same value. Until that waiter has executed its own fence, its flag may be overwritten, although the
/// first waiter relies on it. Therefore the flag is cleared only together with a change of the value. When the
/// incrementer finds the flag only by the sign of its sum, it wakes the waiters and leaves the flag set; the next
/// increment clears it, which costs one more system call. As a consequence, the kernel needs to compare only the value,
/// and the flag may be outside the futex word.
///
/// Without such a fence, the waiter sleeps for short, growing times and checks again after each. If the value is still
/// the same a second after the waiter saw the flag, it sleeps without limit. Interrupts drain each core's buffer, and
/// the scheduler's tick alone comes 100 times a second or more. This assumes that a core takes an interrupt at least
/// once a second. A core isolated for one thread (`nohz_full`, no interrupts routed to it) may take none.
///
/// The model in `verify/tso` checks the argument: it enumerates all executions of the x86-TSO machine. It finds a lost
/// wake-up if the fence or the second check is left out, if an interrupt could divide the addition, or if the flag is
/// cleared without a change of the value.
///
/// # Source
/// The single-producer form of Paul Khuong's event counts in Concurrency Kit. This version differs in three ways: it
/// uses the fence instead of a one-second wait, the flag stays as long as its value even if no waiter is left, and the
/// sign of a 64-bit word is tested directly. Concurrency Kit uses an `xadd` for that test, which costs five times as
/// much.
#[repr(transparent)]
#[derive(Debug)]
pub struct Unlocked<W: Width>(W::Atomic);

impl<W: Width> Unlocked<W> {
    /// The topmost bit, set while there may be waiters.
    const FLAG: u64 = 1 << (W::BITS - 1);

    /// Adds to a word whose flag is set, and clears the flag.
    #[cold]
    fn add_flagged(&self, n: u64) {
        let n = Self::number(n);
        if n == 0 {
            // The value does not change, so the flag must stay.
            return;
        }
        // Waiters only set the flag, and it is set already, so no other thread writes. Relaxed: this thread wrote the
        // value.
        let value = self.0.load(Ordering::Relaxed);
        // Release pairs with the acquire of `value`: everything written before the increment is visible with it.
        self.0.store(Self::number(value.wrapping_add(n)), Ordering::Release);
    }

    /// The value in a word, without the flag.
    fn number(word: u64) -> u64 {
        word & (Self::FLAG - 1)
    }
}

impl<W: Width> SoleKind for Unlocked<W> {
    /// There is no copy: the instruction reads the count in memory.
    type Cached = ();

    fn cache(&self) {}

    #[inline(always)]
    unsafe fn add_cached<S: Scope>(&self, (): &mut (), n: u64) -> bool {
        // SAFETY: the caller keeps the contract.
        unsafe { self.add::<S>(n) }
    }
}

impl<W: Width> Kind for Unlocked<W> {
    const ZERO: Self = Unlocked(W::Atomic::ZERO);

    const OVERLOOKS: Overlooks = Overlooks::Overwritten;

    fn starting_at(value: u64) -> Self {
        Unlocked(W::Atomic::new(Self::number(value)))
    }

    #[inline(always)]
    fn value(&self) -> u64 {
        // Acquire pairs with the release of `add`: everything written before the counted increments is visible.
        Self::number(self.0.load(Ordering::Acquire))
    }

    #[inline(always)]
    fn wrap(number: u64) -> u64 {
        Self::number(number)
    }

    #[inline(always)]
    unsafe fn add<S: Scope>(&self, n: u64) -> bool {
        match self.0.add_unlocked(Self::number(n)) {
            Added::Quietly => false,
            Added::Flagged => true,
            Added::NotYet => {
                self.add_flagged(n);
                true
            }
        }
    }

    unsafe fn settle(&self, most: usize, wake: impl Fn(usize) -> usize) {
        // There may be more sleepers, whose flag the increment may have cleared. Only the incrementer reads the flag,
        // so setting it again before the next increment is early enough.
        if wake(most) == most {
            self.0.fetch_or(Self::FLAG, Ordering::Relaxed);
        }
    }

    fn announce(&self, value: u64) -> Announced {
        let flagged = value | Self::FLAG;
        // Acquire on failure: the caller reports the changed value as seen. On success there is no new value to see.
        match self.0.compare_exchange(value, flagged, Ordering::Relaxed, Ordering::Acquire) {
            Ok(_) => Announced::Newly,
            Err(found) if found == flagged => Announced::Already,
            Err(_) => Announced::Changed,
        }
    }

    fn sleep(&self, value: u64, sleeping: &Sleeping<'_>) {
        sleeping.sleep(&self.0, value | Self::FLAG);
    }

    fn wake(&self, most: usize, sleeping: &Sleeping<'_>) -> usize {
        sleeping.wake(&self.0, most)
    }
}
