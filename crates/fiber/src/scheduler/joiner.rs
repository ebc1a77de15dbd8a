//! The joiner of a fiber: the fiber or thread that waits for its end.
//!
//! A fiber's result has one owner, so there is at most one joiner at a time. It is stored in one word:
//!
//! | value | meaning |
//! | --- | --- |
//! | 0 | The fiber has not ended, and has no joiner. |
//! | an address | The fiber or thread at this address waits. For a thread, the word owns a reference. A fiber stays alive without one as long as it is in the word. |
//! | an address, pinned | The same, but another thread is using the joiner, so the joiner cannot leave now. |
//! | `ENDED` | The fiber has ended. |
//!
//! The words lead from a fiber to all fibers that wait for it, directly or through others. This is how a cycle of joins is
//! detected.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::core::Core;
use super::core_ref::CoreRef;
use super::local::Local;
use crate::primitive::{
    AtomicUsize, Mutex,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence, spin_loop,
};
use crate::waiter::ThreadWaiter;

const ENDED: usize = 1;
/// The tag of a joiner that is a thread.
const THREAD: usize = 2;
const PINNED: usize = 4;
const _: () = assert!(
    align_of::<Core>() > PINNED && align_of::<ThreadWaiter>() > PINNED,
    "the tag bits fit into the low bits of an address"
);

/// The number of attempts to change a pinned word after which a thread yields to other threads.
const SPINS: u32 = 64;

/// The maximum number of fibers followed in search of a cycle of joins.
const MAX_JOIN_CHAIN: usize = 1024;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Joiner(AtomicUsize);

impl Joiner {
    /// Returns whether the fiber has ended. If so, everything it wrote is visible.
    pub(crate) fn has_ended(&self) -> bool {
        // Acquire pairs with the release in `end`.
        self.0.load(Acquire) == ENDED
    }

    /// Enters `fiber` as the joiner, unless the joined fiber has ended. The joiner stays until that fiber ends, or until the
    /// joiner [leaves](Self::leave).
    pub(crate) fn enter(&self, fiber: &CoreRef) -> bool {
        self.enter_word(CoreRef::as_ptr(fiber).expose_provenance())
    }

    /// Enters a thread as the joiner, unless the joined fiber has ended.
    pub(crate) fn enter_thread(&self, thread: Arc<ThreadWaiter>) -> bool {
        let word = Arc::into_raw(thread).expose_provenance() | THREAD;
        let is_entered = self.enter_word(word);
        if !is_entered {
            drop(thread_of(word));
        }
        is_entered
    }

    fn enter_word(&self, word: usize) -> bool {
        // Release pairs with the acquire in `change`; on failure, acquire pairs with the release in `end`. The exchange is
        // sequentially consistent because of the search for cycles: the last fiber of a cycle to enter must find the entries of
        // all others.
        self.0.compare_exchange(0, word, SeqCst, Acquire).is_ok()
    }

    /// Removes the joiner, unless the joined fiber has ended.
    pub(crate) fn leave(&self) {
        let word = self.change(|word| if word == ENDED { ENDED } else { 0 }, |word| word != ENDED);
        if word != ENDED {
            drop(thread_of(word));
        }
    }

    /// Marks the end and wakes the joiner. Release: the joiner sees everything the fiber wrote.
    pub(crate) fn end(&self) {
        // The joiner is pinned before the end is stored: it may leave as soon as it sees the end, but must still exist for the
        // wake-up.
        let pinned = self.change(|word| if word == 0 { ENDED } else { word | PINNED }, |_| true);
        if pinned == 0 {
            return;
        }
        let word = pinned & !PINNED;
        if let Some(thread) = thread_of(word) {
            self.0.store(ENDED, Release);
            thread.end_wait();
            return;
        }
        // SAFETY: the joiner is a fiber, and stays while it is pinned.
        let fiber = ManuallyDrop::new(unsafe { CoreRef::from_raw(core_of(word)) });
        if Local::is_home_of(&fiber) {
            // The joiner runs on this worker, so it cannot leave before this function has returned.
            self.0.store(ENDED, Release);
            fiber.end_wait();
        } else {
            let fiber = (*fiber).clone();
            self.0.store(ENDED, Release);
            fiber.end_wait();
        }
    }

    /// Changes the word as soon as it is not pinned. Returns without a change if `may` returns `false` for the word. Returns
    /// the previous word.
    fn change(&self, to: impl Fn(usize) -> usize, may: impl Fn(usize) -> bool) -> usize {
        let mut word = self.0.load(Acquire);
        let mut tries = 0u32;
        while may(word) {
            if word & PINNED == 0 {
                // Acquire pairs with the release in `enter`. Release publishes everything that the fiber wrote or the joiner did.
                match self.0.compare_exchange(word, to(word), SeqCst, Acquire) {
                    Ok(_) => break,
                    Err(found) => word = found,
                }
            } else {
                // A pin lasts for a few instructions, unless the kernel preempts its thread.
                tries = tries.wrapping_add(1);
                if tries.is_multiple_of(SPINS) {
                    std::thread::yield_now();
                } else {
                    spin_loop();
                }
                word = self.0.load(Acquire);
            }
        }
        word
    }

    /// Returns the waiting fiber and pins it: it cannot leave before [`unpin`](Self::unpin).
    fn pin(&self) -> Option<&Core> {
        let is_fiber = |word: usize| word & (ENDED | THREAD) == 0 && word != 0;
        let word = self.change(|word| word | PINNED, is_fiber);
        // SAFETY: the joiner is a fiber, which stays until the caller unpins it.
        is_fiber(word).then(|| unsafe { &*core_of(word) })
    }

    fn unpin(&self) {
        self.0.store(self.0.load(Relaxed) & !PINNED, Release);
    }
}

/// A search holds this lock. Without it, two searches along the same cycle could each wait for the other to unpin a word.
#[cfg(not(loom))]
static SEARCH: Mutex<()> = Mutex::new(());
#[cfg(loom)]
loom::lazy_static! {
    static ref SEARCH: Mutex<()> = Mutex::new(());
}

/// Returns whether `target` waits for `fiber`, directly or through others. `fiber` has entered as the joiner of `target`.
///
/// Each fiber of a cycle first enters, and then follows the others. The last one to enter therefore follows the whole cycle
/// and finds it.
pub(crate) fn is_in_cycle(fiber: &Core, target: &Core) -> bool {
    // Only fibers are followed.
    let word = fiber.joiner.0.load(SeqCst);
    if word == 0 || word & THREAD != 0 {
        return false;
    }
    // If this fiber is the last of its cycle to enter, the other entries come before its own in the total order of sequentially
    // consistent accesses. They also come before this fence, so the loads below see them all.
    fence(SeqCst);
    let _alone = SEARCH.lock();
    let mut at = fiber;
    let Some(mut next) = at.joiner.pin() else { return false };
    let mut is_found = false;
    for _ in 0..MAX_JOIN_CHAIN {
        is_found = std::ptr::eq(next, target);
        if is_found {
            break;
        }
        if std::ptr::eq(next, at) {
            // `next` waits for itself, and its own search will find that.
            break;
        }
        // `next` is pinned and waits for `at`, so it neither ends nor leaves until the fiber behind it is pinned as well.
        let Some(behind) = next.joiner.pin() else { break };
        at.joiner.unpin();
        (at, next) = (next, behind);
    }
    at.joiner.unpin();
    is_found
}

fn core_of(word: usize) -> *const Core {
    std::ptr::with_exposed_provenance(word & !(THREAD | PINNED))
}

/// Returns the thread in a word, with the word's reference; `None` if the word has no thread.
fn thread_of(word: usize) -> Option<Arc<ThreadWaiter>> {
    let thread = std::ptr::with_exposed_provenance(word & !(THREAD | PINNED));
    // SAFETY: the caller has removed the word from the joiner, so the word's reference passes to the caller.
    (word & THREAD != 0).then(|| unsafe { Arc::from_raw(thread) })
}
