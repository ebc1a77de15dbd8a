//! The inbox of a worker: fibers that other threads made ready, and the bell that ends the worker's sleep.
//!
//! The inbox is a stack. Any thread may push to it; only the worker empties it, all at once, by one exchange. This avoids the
//! ABA problem, and the worker reverses the stack to get the order of arrival. The links are stored in the fibers: a fiber is
//! in at most one inbox, because only one wake-up per wait puts the fiber into an inbox.
//!
//! Source of the idea: R. K. Treiber, "Systems Programming: Coping with Parallelism", 1986.

use std::ptr;

use super::bell::{Alarm, Bell};
use crate::primitive::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

/// An object that can be in an inbox, because it contains the link.
pub(crate) trait Linked: Sized {
    /// A reference that keeps the object alive.
    type Ref;

    /// Returns the link, which only the inbox writes.
    fn link(&self) -> &AtomicPtr<Self>;

    /// Turns a reference into a pointer, which then owns the reference.
    fn into_raw(this: Self::Ref) -> *const Self;

    /// Turns a pointer back into the reference.
    ///
    /// # Safety
    /// The pointer comes from [`into_raw`](Self::into_raw), and its reference passes to the result.
    unsafe fn from_raw(this: *const Self) -> Self::Ref;
}

/// A queue with many senders, which its one receiver empties all at once.
#[derive(Debug)]
pub(crate) struct Inbox<T, A> {
    newest: AtomicPtr<T>,
    /// The bell that is rung after an arrival. The receiver takes a snapshot of the bell, then checks the inbox, and then sleeps
    /// with the snapshot.
    pub(crate) bell: Bell<A>,
}

impl<T: Linked, A: Alarm> Inbox<T, A> {
    pub(crate) fn new(alarm: A) -> Self {
        Inbox { newest: AtomicPtr::new(ptr::null_mut()), bell: Bell::new(alarm) }
    }

    /// Adds an item, and wakes the receiver if it sleeps. The item must not be in any inbox.
    ///
    /// Only a sender that finds the inbox empty rings the bell. If there is an earlier item that the receiver has not taken yet,
    /// that item's sender rings. Lock-free.
    pub(crate) fn send(&self, item: T::Ref) {
        if self.push(item) {
            self.bell.ring();
        }
    }

    /// Adds an item and returns whether the inbox was empty.
    fn push(&self, item: T::Ref) -> bool {
        let item = T::into_raw(item).cast_mut();
        let mut newest = self.newest.load(Relaxed);
        loop {
            // SAFETY: the pointer comes from `into_raw`, and the inbox owns its reference until the receiver takes the item.
            unsafe { (*item).link().store(newest, Relaxed) };
            // Release pairs with the receiver's acquire: the receiver sees the link and everything written before the push.
            match self.newest.compare_exchange_weak(newest, item, Release, Relaxed) {
                Ok(_) => return newest.is_null(),
                Err(found) => newest = found,
            }
        }
    }

    /// Returns whether the inbox is empty. Only the receiver calls it; it may miss an item that is being pushed.
    pub(crate) fn is_empty(&self) -> bool {
        self.newest.load(Relaxed).is_null()
    }

    /// Takes all items and passes them to `each`, oldest first. Only the receiver calls it. Wait-free apart from the
    /// calls of `each`.
    pub(crate) fn take(&self, mut each: impl FnMut(T::Ref)) {
        if self.is_empty() {
            return;
        }
        // Acquire pairs with the release of every push below: a push is a read-modify-write, which continues the
        // release sequence of the pushes before it.
        let mut item = self.newest.swap(ptr::null_mut(), Acquire);
        let mut oldest: *mut T = ptr::null_mut();
        while !item.is_null() {
            // SAFETY: the exchange gave the receiver the whole chain, including a reference to each item.
            let link = unsafe { (*item).link() };
            let older = link.load(Relaxed);
            link.store(oldest, Relaxed);
            oldest = item;
            item = older;
        }
        while !oldest.is_null() {
            let item = oldest;
            // SAFETY: the chain belongs to the receiver; the link is read before the item is passed on.
            oldest = unsafe { (*item).link() }.load(Relaxed);
            // SAFETY: the pointer came from `into_raw` in `push`.
            each(unsafe { T::from_raw(item) });
        }
    }
}

impl<T, A> Drop for Inbox<T, A> {
    fn drop(&mut self) {
        // A worker exits only after all fibers have ended, and a fiber that has ended is in no inbox.
        debug_assert!(self.newest.load(Relaxed).is_null());
    }
}
