//! What a reader holds while it reads.

use std::marker::PhantomData;

use crate::primitive::{AtomicPtr, Ordering};
use crate::reclaim::registry::Entry;
use crate::reclaim::retired::Retired;

use super::member::{Member, resign};
use super::participant::Left;
use super::shared::Shared;

/// Keeps everything alive that was reachable when it was made. Guards of one thread nest, in any order.
///
/// Hold it briefly: while it lives, nothing that is retired meanwhile is freed. A long reading section should
/// [`refresh`](Guard::refresh) between steps.
pub struct Guard<'l> {
    member: &'l Entry<Member>,
    shared: &'l Shared,
    /// The member is its thread's.
    not_send: PhantomData<*mut ()>,
}

impl<'l> Guard<'l> {
    #[inline(always)]
    pub(super) fn new(member: &'l Entry<Member>, shared: &'l Shared) -> Self {
        member.participant.enter(&shared.epoch);
        Guard { member, shared, not_send: PhantomData }
    }

    /// What `source` points to, for as long as the guard lives and is not refreshed; `None` for null.
    ///
    /// Wait-free; an acquiring load.
    ///
    /// # Safety
    /// Whatever `source` may hold is null or points to a `T` that is retired by this collector, and only after no
    /// shared pointer leads to it any more.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicPtr, Ordering::AcqRel};
    /// use millstream_sync::reclaim::epoch;
    ///
    /// let shared = AtomicPtr::new(Box::into_raw(Box::new(1)));
    ///
    /// // A reader:
    /// let guard = epoch::pin();
    /// // SAFETY: what is taken out of `shared` is retired below, by the same collector.
    /// let number = unsafe { guard.load(&shared) }.unwrap();
    ///
    /// // A writer, at the same time:
    /// let old = shared.swap(Box::into_raw(Box::new(2)), AcqRel);
    /// // SAFETY: made by a box, not reachable any more, retired once.
    /// unsafe { epoch::pin().retire(old) };
    ///
    /// assert_eq!(*number, 1, "as long as the guard lives");
    /// # drop(guard);
    /// # unsafe { epoch::pin().retire(shared.into_inner()) };
    /// ```
    #[inline(always)]
    pub unsafe fn load<'g, T>(&'g self, source: &AtomicPtr<T>) -> Option<&'g T> {
        // SAFETY: the caller's promise, and `participant` for why it is not freed meanwhile.
        unsafe { source.load(Ordering::Acquire).as_ref() }
    }

    /// Frees the box behind `object` when every guard that is alive now is gone.
    ///
    /// Lock-free, amortised constant time. It pushes to a vector of the thread and frees up to two objects of an earlier
    /// batch; once a batch it also passes the collector's fence and reads the state of each thread.
    ///
    /// # Safety
    /// `object` came from [`Box::into_raw`]; no shared pointer leads to it any more; it is retired once. Its destructor may
    /// run on any thread, at any later time.
    #[inline]
    pub unsafe fn retire<T>(&self, object: *mut T) {
        // SAFETY: the caller's promise.
        self.member.retire(self.shared, unsafe { Retired::boxed(object) });
    }

    /// Calls `free(object)` when every guard that is alive now is gone. As [`retire`](Guard::retire), for what is
    /// not a box.
    ///
    /// # Safety
    /// No shared pointer leads to the object any more, and `free(object)` may run once, on any thread, at any later time.
    #[inline]
    pub unsafe fn retire_with(&self, object: *mut (), free: unsafe fn(*mut ())) {
        // SAFETY: the caller's promise.
        self.member.retire(self.shared, unsafe { Retired::with(object, free) });
    }

    /// Calls `action` when every guard that is alive now is gone. As [`retire`](Guard::retire), and allocates.
    ///
    /// ```
    /// use millstream_sync::reclaim::epoch;
    ///
    /// epoch::pin().defer(|| println!("nobody reads any more what could be read then"));
    /// ```
    pub fn defer(&self, action: impl FnOnce() + Send + 'static) {
        self.member.retire(self.shared, Retired::closure(action));
    }

    /// As if the guard were dropped and made anew: what was loaded before is not protected any more, and nothing is held
    /// back any more on its account. Does nothing while the thread has other guards.
    ///
    /// Wait-free: two loads and a store, and no fence.
    #[inline]
    pub fn refresh(&mut self) {
        self.member.participant.refresh(&self.shared.epoch);
    }

    /// Closes this thread's batch early, passes the fence if that takes no waiting, and frees everything that may be freed.
    /// What was retired under this guard has to wait at least until it is dropped.
    pub fn flush(&self) {
        flush(self.member, self.shared);
    }
}

pub(super) fn flush(member: &Entry<Member>, shared: &Shared) {
    member.seal(shared);
    member.collect(shared);
    member.free(usize::MAX);
}

impl Drop for Guard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.member.participant.leave() == Left::TheThread {
            resign(self.member, self.shared);
        }
    }
}
