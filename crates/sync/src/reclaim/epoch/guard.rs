//! The guard that a reader holds while it reads.

use std::marker::PhantomData;

use crate::primitive::{AtomicPtr, Ordering};
use crate::reclaim::registry::Entry;
use crate::reclaim::retired::Retired;

use super::collector::Shared;
use super::member::{Member, resign};
use super::participant::Left;

/// Keeps alive every object that was reachable when the guard was made. Guards of one thread nest, in any order.
///
/// Hold it briefly: no object that is retired while the guard lives is freed before it is dropped. A long reading
/// section should [`refresh`](Guard::refresh) between steps.
pub struct Guard<'l> {
    member: &'l Entry<Member>,
    shared: &'l Shared,
    /// Confines the guard to its thread, to which the member belongs.
    not_send: PhantomData<*mut ()>,
}

impl<'l> Guard<'l> {
    #[inline(always)]
    pub(super) fn new(member: &'l Entry<Member>, shared: &'l Shared) -> Self {
        member.participant.enter(&shared.epoch);
        Guard { member, shared, not_send: PhantomData }
    }

    /// The object to which `source` points, valid as long as the guard lives and is not refreshed; `None` for null.
    ///
    /// Wait-free; an acquiring load.
    ///
    /// # Safety
    /// Every value of `source` is null or points to a `T` that is retired by this collector, and only once no shared
    /// pointer leads to it.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicPtr, Ordering::AcqRel};
    /// use millstream_sync::reclaim::epoch;
    ///
    /// let shared = AtomicPtr::new(Box::into_raw(Box::new(1)));
    ///
    /// // A reader:
    /// let guard = epoch::pin();
    /// // SAFETY: every object taken out of `shared` is retired below, by the same collector.
    /// let number = unsafe { guard.load(&shared) }.unwrap();
    ///
    /// // A writer, at the same time:
    /// let old = shared.swap(Box::into_raw(Box::new(2)), AcqRel);
    /// // SAFETY: the object comes from a box, is unreachable now, and is retired once.
    /// unsafe { epoch::pin().retire(old) };
    ///
    /// assert_eq!(*number, 1, "as long as the guard lives");
    /// # drop(guard);
    /// # unsafe { epoch::pin().retire(shared.into_inner()) };
    /// ```
    #[inline(always)]
    pub unsafe fn load<'g, T>(&'g self, source: &AtomicPtr<T>) -> Option<&'g T> {
        // SAFETY: the caller promises that the pointer is null or leads to an object that this collector retires, and
        // `participant` proves that such an object is not freed while the guard lives.
        unsafe { source.load(Ordering::Acquire).as_ref() }
    }

    /// Frees the box behind `object` when all guards alive now are gone.
    ///
    /// Lock-free, amortised constant time. A call pushes to a vector of the thread and frees up to two objects of an
    /// earlier batch; once per batch it also executes the collector's fence and reads the state of each thread. A panic
    /// of a destructor that runs here propagates to the caller.
    ///
    /// # Safety
    /// `object` came from [`Box::into_raw`], no shared pointer leads to it, and it is retired once. Its destructor may
    /// run on any thread, at any later time.
    #[inline]
    pub unsafe fn retire<T>(&self, object: *mut T) {
        // SAFETY: the caller promises that the object came from a box, that nothing else frees it, and that any thread
        // may free it at any later time.
        self.member.retire(self.shared, unsafe { Retired::boxed(object) });
    }

    /// Calls `free(object)` when all guards alive now are gone. Like [`retire`](Guard::retire), for objects that are
    /// not boxes.
    ///
    /// # Safety
    /// No shared pointer leads to the object, and `free(object)` may run once, on any thread, at any later time.
    #[inline]
    pub unsafe fn retire_with(&self, object: *mut (), free: unsafe fn(*mut ())) {
        // SAFETY: the caller promises that `free(object)` may run once, on any thread at any later time.
        self.member.retire(self.shared, unsafe { Retired::with(object, free) });
    }

    /// Calls `action` when all guards alive now are gone, on any thread. Like [`retire`](Guard::retire), but allocates.
    ///
    /// ```
    /// use millstream_sync::reclaim::epoch;
    ///
    /// epoch::pin().defer(|| println!("every reader of that time has left"));
    /// ```
    pub fn defer(&self, action: impl FnOnce() + Send + 'static) {
        self.member.retire(self.shared, Retired::closure(action));
    }

    /// Has the effect of dropping the guard and making a new one: objects loaded before are no longer protected, and
    /// the guard no longer holds back objects retired before. Does nothing while the thread has other guards.
    ///
    /// Wait-free: two loads and a store, and no fence.
    #[inline]
    pub fn refresh(&mut self) {
        self.member.participant.refresh(&self.shared.epoch);
    }

    /// Closes this thread's batch early, executes the fence unless that would require waiting, and frees all objects
    /// that may be freed. Objects retired under this guard wait at least until it is dropped.
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
