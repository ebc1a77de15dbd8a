//! Garbage: one bag that fills, sealed bags (the closed batches) that wait for their grace period, and the bags of
//! threads that have ended. The next thread that reclaims takes over the bags of ended threads.

use std::collections::VecDeque;
use std::ptr;

use crate::primitive::{AtomicPtr, Ordering, Ticket, const_fn};
use crate::reclaim::retired::Retired;

/// Objects that were all unlinked before the epoch began and before the ticket was taken.
pub(super) struct Sealed {
    pub(super) objects: Vec<Retired>,
    pub(super) epoch: u64,
    pub(super) ticket: Ticket,
}

/// Objects whose grace period is not over.
#[derive(Default)]
pub(super) struct Bags {
    pub(super) filling: Vec<Retired>,
    pub(super) sealed: VecDeque<Sealed>,
}

impl Bags {
    /// The number of bags at the front whose fence has completed. The call executes a fence unless that would require
    /// waiting.
    pub(super) fn fenced(&self) -> usize {
        self.sealed.iter().take_while(|bag| bag.ticket.is_done()).count()
    }

    /// Removes those of the first `fenced` bags whose readers have all left, and returns their objects. No reader is in
    /// an epoch before `oldest`.
    pub(super) fn expired(&mut self, fenced: usize, oldest: u64) -> impl Iterator<Item = Vec<Retired>> {
        let expired = self.sealed.iter().take(fenced).take_while(|bag| bag.epoch <= oldest).count();
        self.sealed.drain(..expired).map(|bag| bag.objects)
    }
}

/// The garbage of threads that have ended: a stack that is only ever taken as a whole, so its nodes need no reclamation
/// scheme. Lock-free.
pub(super) struct Orphans<G> {
    latest: AtomicPtr<Orphan<G>>,
}

struct Orphan<G> {
    garbage: G,
    earlier: *mut Orphan<G>,
}

impl<G> Orphans<G> {
    const_fn! {
        pub(super) fn new() -> Self {
            Orphans { latest: AtomicPtr::new(ptr::null_mut()) }
        }
    }

    pub(super) fn leave(&self, garbage: G) {
        let mut earlier = self.latest.load(Ordering::Relaxed);
        let orphan = Box::into_raw(Box::new(Orphan { garbage, earlier }));
        // Release pairs with the acquire in `adopt`, which sees the garbage complete.
        while let Err(found) = self.latest.compare_exchange(earlier, orphan, Ordering::Release, Ordering::Relaxed) {
            earlier = found;
            // SAFETY: the orphan is not published yet, so this thread is the only one that has it.
            unsafe { (*orphan).earlier = earlier };
        }
    }

    /// Passes all garbage left so far to `take`.
    pub(super) fn adopt(&self, mut take: impl FnMut(G)) {
        if self.latest.load(Ordering::Relaxed).is_null() {
            return;
        }
        let mut orphan = self.latest.swap(ptr::null_mut(), Ordering::Acquire);
        while !orphan.is_null() {
            // SAFETY: `leave` made the orphan by `Box::into_raw`, and the swap took it out of the list for this thread
            // alone.
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
    fn an_adopter_sees_garbage_as_its_leaver_left_it() {
        loom::model(|| {
            let orphans = Arc::new(Orphans::new());
            let leaver = {
                let orphans = Arc::clone(&orphans);
                loom::thread::spawn(move || {
                    for number in 1..3 {
                        let garbage = UnsafeCell::new(0);
                        // SAFETY: the garbage has not been left yet, so this thread owns it. Loom watches this write.
                        garbage.with_mut(|place| unsafe { *place = number });
                        orphans.leave(garbage);
                    }
                })
            };
            let mut adopted = Vec::new();
            while adopted.len() < 2 {
                // SAFETY: `adopt` hands the garbage over to this thread alone, which loom checks.
                orphans.adopt(|garbage| adopted.push(garbage.with(|number| unsafe { *number })));
                loom::thread::yield_now();
            }
            leaver.join().unwrap();
            adopted.sort_unstable();
            assert_eq!(adopted, [1, 2], "garbage was lost or handed over twice");
        });
    }
}
