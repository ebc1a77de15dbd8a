//! A stack without locks.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr;

use super::backoff::Backoff;
use super::scheme::sealed::Section;
use super::scheme::{Epochs, Scheme};
use crate::primitive::{AtomicPtr, Ordering};

/// A last-in, first-out stack for any number of threads.
///
/// Lock-free: an operation begins anew only because another has succeeded. Linearizable, each operation at its successful
/// compare-and-swap (an empty `pop` at its load).
///
/// Treiber's algorithm (1986): nodes in a list, its top changed by compare-and-swap. A node that is popped is retired, since
/// others may still read it; that it is not reused before also rules out the ABA problem.
///
/// ```
/// use millstream_sync::reclaim::Stack;
///
/// let stack = Stack::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| stack.push(1));
///     scope.spawn(|| stack.push(2));
/// });
/// assert_eq!(stack.pop().unwrap() + stack.pop().unwrap(), 3);
/// assert_eq!(stack.pop(), None);
/// ```
pub struct Stack<T, S: Scheme = Epochs> {
    top: AtomicPtr<Node<T>>,
    scheme: PhantomData<(T, S)>,
}

struct Node<T> {
    /// Moved out by whoever pops the node.
    value: ManuallyDrop<T>,
    /// Written before the node is published, never again.
    below: *mut Node<T>,
}

// SAFETY: values are handed from thread to thread, never shared.
unsafe impl<T: Send, S: Scheme> Send for Stack<T, S> {}
// SAFETY: as above.
unsafe impl<T: Send, S: Scheme> Sync for Stack<T, S> {}

impl<T> Stack<T> {
    /// An empty stack, protected by [`Epochs`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_scheme()
    }
}

impl<T, S: Scheme> Stack<T, S> {
    /// An empty stack.
    ///
    /// ```
    /// use millstream_sync::reclaim::{Hazards, Stack};
    ///
    /// let stack = Stack::<u64, Hazards>::with_scheme();
    /// stack.push(1);
    /// ```
    #[must_use]
    pub fn with_scheme() -> Self {
        Stack { top: AtomicPtr::new(ptr::null_mut()), scheme: PhantomData }
    }

    /// Puts `value` on top. Allocates a node.
    pub fn push(&self, value: T) {
        // No protection: only the address of the top is used, and if another node has come to the same address, that one
        // is the top.
        let mut top = self.top.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { value: ManuallyDrop::new(value), below: top }));
        // Release: pairs with the acquiring load of whoever pops the node.
        let mut backoff = Backoff::new();
        while self.top.compare_exchange_weak(top, node, Ordering::Release, Ordering::Relaxed).is_err() {
            backoff.spin();
            top = self.top.load(Ordering::Relaxed);
            // SAFETY: not published yet, so it is still ours alone.
            unsafe { (*node).below = top };
        }
    }

    /// Takes the topmost value, if there is one.
    pub fn pop(&self) -> Option<T> {
        S::section(|section| {
            let mut backoff = Backoff::new();
            loop {
                let top = section.protect(0, &self.top);
                if top.is_null() {
                    return None;
                }
                // SAFETY: protected, and `below` does not change.
                let below = unsafe { (*top).below };
                // Relaxed: `below` was published by an earlier exchange of `top`, in whose release sequence this one is.
                if self.top.compare_exchange_weak(top, below, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                    // SAFETY: we took the node out, so the value is ours, and nobody else retires the node.
                    unsafe {
                        let value = ptr::read(&raw const (*top).value);
                        section.retire(top);
                        return Some(ManuallyDrop::into_inner(value));
                    }
                }
                backoff.spin();
            }
        })
    }

    /// Whether there was no value at the moment of the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.top.load(Ordering::Relaxed).is_null()
    }
}

impl<T> Default for Stack<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: Scheme> Drop for Stack<T, S> {
    fn drop(&mut self) {
        let mut node = self.top.load(Ordering::Relaxed);
        while !node.is_null() {
            // SAFETY: the nodes still in the list are in no other hands, and hold their values.
            let Node { value, below } = *unsafe { Box::from_raw(node) };
            drop(ManuallyDrop::into_inner(value));
            node = below;
        }
    }
}

impl<T, S: Scheme> fmt::Debug for Stack<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").field("is_empty", &self.is_empty()).finish()
    }
}
