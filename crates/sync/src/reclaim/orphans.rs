//! What threads leave behind when they end, for whoever reclaims next.

use alloc::boxed::Box;
use core::ptr;

use crate::primitive::{AtomicPtr, Ordering};

/// A stack that is only ever taken whole, so its nodes need no reclamation of their own. Lock-free.
pub(super) struct Orphans<G> {
    latest: AtomicPtr<Orphan<G>>,
}

struct Orphan<G> {
    garbage: G,
    earlier: *mut Orphan<G>,
}

impl<G> Orphans<G> {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Orphans { latest: AtomicPtr::new(ptr::null_mut()) }
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Orphans { latest: AtomicPtr::new(ptr::null_mut()) }
    }

    pub(super) fn leave(&self, garbage: G) {
        let mut earlier = self.latest.load(Ordering::Relaxed);
        let orphan = Box::into_raw(Box::new(Orphan { garbage, earlier }));
        // Release: pairs with the acquire in `adopt`.
        while let Err(found) = self.latest.compare_exchange(earlier, orphan, Ordering::Release, Ordering::Relaxed) {
            earlier = found;
            // SAFETY: not published yet, so it is still ours alone.
            unsafe { (*orphan).earlier = earlier };
        }
    }

    /// Hands all of it over.
    pub(super) fn adopt(&self, mut take: impl FnMut(G)) {
        if self.latest.load(Ordering::Relaxed).is_null() {
            return;
        }
        let mut orphan = self.latest.swap(ptr::null_mut(), Ordering::Acquire);
        while !orphan.is_null() {
            // SAFETY: made by `Box::into_raw` in `leave`, and taken out of the list by us alone.
            let Orphan { garbage, earlier } = *unsafe { Box::from_raw(orphan) };
            take(garbage);
            orphan = earlier;
        }
    }
}

impl<G> Drop for Orphans<G> {
    fn drop(&mut self) {
        self.adopt(drop);
    }
}

#[cfg(all(test, loom))]
mod tests {
    use std::sync::Arc;

    use loom::cell::UnsafeCell;

    use super::*;

    #[test]
    fn what_was_done_to_garbage_before_it_was_left_is_visible_to_who_adopts_it() {
        loom::model(|| {
            let orphans = Arc::new(Orphans::new());
            let leaver = {
                let orphans = Arc::clone(&orphans);
                loom::thread::spawn(move || {
                    for number in 1..3 {
                        let garbage = UnsafeCell::new(0);
                        // SAFETY: not left yet. Loom watches this write.
                        garbage.with_mut(|place| unsafe { *place = number });
                        orphans.leave(garbage);
                    }
                })
            };
            let mut adopted = Vec::new();
            while adopted.len() < 2 {
                // SAFETY: it is ours; loom checks that.
                orphans.adopt(|garbage| adopted.push(garbage.with(|number| unsafe { *number })));
                loom::thread::yield_now();
            }
            leaver.join().unwrap();
            adopted.sort_unstable();
            assert_eq!(adopted, [1, 2], "each was handed over once");
        });
    }
}
