//! A lock-free queue without a bound.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use super::backoff::Backoff;
use super::scheme::sealed::Section;
use super::scheme::{Epochs, Scheme};
use crate::primitive::{AtomicPtr, Ordering};

/// A first-in, first-out queue for any number of threads, without a bound.
///
/// Lock-free: an operation starts over only if another operation has made progress. Linearizable. This queue is for
/// producers that must never be refused. For a bounded queue, use a channel of `millstream-ring`.
///
/// The algorithm is that of Michael and Scott (1996): a list whose first node is a dummy. `push` links a node behind
/// the last one, and then moves `tail`. A thread that finds `tail` behind the last node moves it, too.
///
/// ```
/// use millstream_sync::reclaim::Queue;
///
/// let queue = Queue::new();
/// queue.push('a');
/// queue.push('b');
/// assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some('a'), Some('b'), None));
/// ```
pub struct Queue<T, S: Scheme = Epochs> {
    head: Line<AtomicPtr<Node<T>>>,
    tail: Line<AtomicPtr<Node<T>>>,
    scheme: PhantomData<(T, S)>,
}

/// A word on cache lines of its own, so that the two ends do not slow each other down.
#[repr(align(128))]
struct Line<W>(W);

struct Node<T> {
    /// Uninitialized in the dummy; moved out by the `pop` that makes the node the dummy.
    value: UnsafeCell<MaybeUninit<T>>,
    next: AtomicPtr<Node<T>>,
}

impl<T> Node<T> {
    fn boxed(value: MaybeUninit<T>) -> *mut Self {
        Box::into_raw(Box::new(Node { value: UnsafeCell::new(value), next: AtomicPtr::new(ptr::null_mut()) }))
    }
}

// SAFETY: the queue moves values between threads, which `T: Send` allows.
unsafe impl<T: Send, S: Scheme> Send for Queue<T, S> {}
// SAFETY: shared access moves values in and out, which `T: Send` allows, and gives out no reference to a value.
unsafe impl<T: Send, S: Scheme> Sync for Queue<T, S> {}

impl<T> Queue<T> {
    /// An empty queue, protected by [`Epochs`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_scheme()
    }
}

impl<T, S: Scheme> Queue<T, S> {
    /// An empty queue.
    ///
    /// ```
    /// use millstream_sync::reclaim::{Hazards, Queue};
    ///
    /// let queue = Queue::<u64, Hazards>::with_scheme();
    /// queue.push(1);
    /// ```
    #[must_use]
    pub fn with_scheme() -> Self {
        let dummy = Node::boxed(MaybeUninit::uninit());
        let line = || Line(AtomicPtr::new(dummy));
        Queue { head: line(), tail: line(), scheme: PhantomData }
    }

    /// Appends `value`. Allocates a node. Release: the thread that pops the value sees everything written before.
    pub fn push(&self, value: T) {
        let node = Node::boxed(MaybeUninit::new(value));
        S::section(|section| {
            let mut backoff = Backoff::new();
            loop {
                let tail = section.protect(0, &self.tail.0);
                // SAFETY: the section protects `tail`, which is never null.
                let link = unsafe { &(*tail).next };
                let next = link.load(Ordering::Acquire);
                if !next.is_null() {
                    // The thread that linked `next` is about to move the tail. This thread pauses first, and then moves
                    // the tail if necessary.
                    backoff.spin();
                    if self.tail.0.load(Ordering::Relaxed) == tail {
                        self.move_tail(tail, next);
                    }
                    continue;
                }
                // Release pairs with the acquiring loads of `next`: they find the node initialized.
                let linked = link.compare_exchange(ptr::null_mut(), node, Ordering::Release, Ordering::Relaxed);
                if linked.is_ok() {
                    self.move_tail(tail, node);
                    return;
                }
                backoff.spin();
            }
        });
    }

    /// Removes the first value, if there is one. Retires a node, which may run two destructors of earlier objects; if
    /// one of them panics, the value is dropped.
    pub fn pop(&self) -> Option<T> {
        S::section(|section| {
            let mut backoff = Backoff::new();
            loop {
                let head = section.protect(0, &self.head.0);
                // SAFETY: the section protects `head`, which is never null.
                let next = section.protect(1, unsafe { &(*head).next });
                if next.is_null() {
                    return None;
                }
                // `tail` must not point to a retired node: a `push` could still read it, perhaps after the hazards have
                // been scanned.
                if self.tail.0.load(Ordering::Acquire) == head {
                    self.move_tail(head, next);
                }
                // Release: a thread that finds `next` as the head finds it initialized.
                if self.head.0.compare_exchange(head, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                    // SAFETY: `next` is protected, although `head` was not read again after the hazard of `next` was
                    // set. `next` can be retired only after it has been the head. A heavy fence after that comes after
                    // our light fence, because otherwise the exchange would have found another head. The thread that
                    // moves the head to `next` takes its value, once. The old dummy is unreachable: `head` and `tail`
                    // are past it.
                    unsafe {
                        // This is a `T` from here on, so it is dropped if a destructor that `retire` runs panics.
                        let value = ptr::read((*next).value.get()).assume_init();
                        section.retire(head);
                        return Some(value);
                    }
                }
                backoff.spin();
            }
        })
    }

    /// Whether the queue was empty at some moment of the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        S::section(|section| {
            let head = section.protect(0, &self.head.0);
            // SAFETY: the section protects `head`. If `head` is no longer the first node, it has a successor.
            unsafe { (*head).next.load(Ordering::Acquire).is_null() }
        })
    }

    /// Moves the tail to `next` unless another thread has moved it.
    fn move_tail(&self, from: *mut Node<T>, next: *mut Node<T>) {
        // Release: a thread that finds `next` as the tail finds it initialized. The exchange fails if the tail has
        // moved.
        let _moved = self.tail.0.compare_exchange(from, next, Ordering::Release, Ordering::Relaxed);
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: Scheme> Drop for Queue<T, S> {
    fn drop(&mut self) {
        // SAFETY: `drop` has the only reference to the queue; all nodes but the first hold their values.
        unsafe {
            let dummy = *Box::from_raw(self.head.0.load(Ordering::Relaxed));
            let mut node = dummy.next.load(Ordering::Relaxed);
            while !node.is_null() {
                let Node { value, next } = *Box::from_raw(node);
                drop(value.into_inner().assume_init());
                node = next.load(Ordering::Relaxed);
            }
        }
    }
}

impl<T, S: Scheme> fmt::Debug for Queue<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("is_empty", &self.is_empty()).finish()
    }
}

#[cfg(all(test, loom))]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// If the tail stayed on a retired node, a third thread could find that node just before it is freed.
    #[test]
    fn the_tail_never_stays_on_a_retired_node() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let queue = Arc::new(Queue::new());
            let pusher = {
                let queue = Arc::clone(&queue);
                loom::thread::spawn(move || queue.push(1))
            };
            let first = queue.head.0.load(Ordering::Relaxed);
            if queue.pop().is_some() {
                assert_ne!(queue.tail.0.load(Ordering::Acquire), first);
            }
            pusher.join().unwrap();
        });
    }
}
