//! Fences for programs without a known operating system. Both sides have full fences, unless the program sets a heavy fence.

use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering, compiler_fence, fence};

/// The heavy fence that the program has set, a `fn()`; null if there is none.
static HEAVY: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Sets the heavy fence of this program. From then on, [`light`] needs no fence instruction. With the feature `std`, this
/// function does nothing.
///
/// # Safety
/// Between each call of `heavy` and its return, every other thread of the program passes a full fence, or is
/// interrupted in an equivalent way. No thread has passed a fence of this crate before this call, and this call happens before
/// every later fence of any thread. This is the case if the other processors or threads are started afterwards.
///
/// ```ignore
/// fn interrupt_all_processors() { /* and wait until each has answered */ }
///
/// // SAFETY: the other processors are not started yet.
/// unsafe { millstream_fence::set_heavy_fence(interrupt_all_processors) };
/// ```
pub unsafe fn set_heavy_fence(heavy: fn()) {
    // Relaxed, like all accesses to `HEAVY`: the caller orders this store before all fences.
    HEAVY.store(heavy as *mut (), Ordering::Relaxed);
}

fn heavy_fence() -> Option<fn()> {
    let heavy = HEAVY.load(Ordering::Relaxed);
    // SAFETY: the pointer is null, which is `None`, or was made from a `fn()` in `set_heavy_fence`.
    unsafe { mem::transmute::<*mut (), Option<fn()>>(heavy) }
}

/// The hot side's fence: a compiler fence if the program has [set](set_heavy_fence) a heavy fence, otherwise a full fence.
#[inline]
pub fn light() {
    if is_asymmetric() {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// Returns whether [`light`] is free of fence instructions.
#[inline]
#[must_use]
pub fn is_asymmetric() -> bool {
    !HEAVY.load(Ordering::Relaxed).is_null()
}

/// The cold side's fence: the heavy fence that the program has [set](set_heavy_fence), otherwise a full fence.
pub fn heavy() {
    fence(Ordering::SeqCst);
    if let Some(heavy) = heavy_fence() {
        heavy();
        fence(Ordering::SeqCst);
    }
}

/// A kind of heavy fence. Without `std` there is only one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence(());

impl Fence {
    /// The heavy fence.
    pub const FAST: Fence = Fence(());

    /// Passes the fence, like [`heavy`].
    pub fn heavy(self) {
        heavy();
    }

    /// Returns a ticket for a heavy fence that begins after this call.
    #[must_use]
    pub fn ticket(self) -> Ticket {
        Ticket(())
    }
}

/// A future fence. The first call of [`is_done`](Ticket::is_done) passes the fence.
#[derive(Debug, Clone, Copy)]
pub struct Ticket(());

impl Ticket {
    /// Passes the fence, and returns `true`.
    #[must_use]
    pub fn is_done(&self) -> bool {
        heavy();
        true
    }
}
