//! A lock-free stack.

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
/// Lock-free: an operation starts over only if another operation has succeeded. Linearizable, each operation at its
/// successful compare-and-swap (an empty `pop` at its load).
///
/// Treiber's algorithm (1986): nodes in a list, whose top is changed by compare-and-swap. A popped node is retired,
/// because other threads may still read it. Its memory is not reused before they are done, which also rules out the ABA
/// problem.
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
    /// Moved out by the `pop` that takes the node.
    value: ManuallyDrop<T>,
    /// The next node. It is written before this node is published, and does not change afterwards.
    below: *mut Node<T>,
}

// SAFETY: the stack moves values between threads, which `T: Send` allows.
unsafe impl<T: Send, S: Scheme> Send for Stack<T, S> {}
// SAFETY: shared access moves values in and out, which `T: Send` allows, and gives out no reference to a value.
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

    /// Pushes `value` onto the top. Allocates a node. Release: the thread that pops the value sees everything written
    /// before.
    pub fn push(&self, value: T) {
        // The top needs no protection: only its address is used. If a new node has the same address by then, that node
        // is the top.
        let mut top = self.top.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { value: ManuallyDrop::new(value), below: top }));
        // Release pairs with the acquiring load in `pop`, which finds the node initialized.
        let mut backoff = Backoff::new();
        while self.top.compare_exchange_weak(top, node, Ordering::Release, Ordering::Relaxed).is_err() {
            backoff.spin();
            top = self.top.load(Ordering::Relaxed);
            // SAFETY: the node is not published yet, so this thread is the only one that has it.
            unsafe { (*node).below = top };
        }
    }

    /// Removes the topmost value, if there is one. Retires a node, which may run two destructors of earlier objects; if
    /// one of them panics, the value is dropped.
    pub fn pop(&self) -> Option<T> {
        S::section(|section| {
            let mut backoff = Backoff::new();
            loop {
                let top = section.protect(0, &self.top);
                if top.is_null() {
                    return None;
                }
                // SAFETY: the section protects `top`, and `below` is constant.
                let below = unsafe { (*top).below };
                // Relaxed: an earlier exchange of `top` published `below`, and this exchange continues its release
                // sequence.
                if self.top.compare_exchange_weak(top, below, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                    // SAFETY: this thread took the node out, so it owns the value, and no other thread retires the
                    // node.
                    unsafe {
                        // This is a `T` from here on, so it is dropped if a destructor that `retire` runs panics.
                        let value = ManuallyDrop::into_inner(ptr::read(&raw const (*top).value));
                        section.retire(top);
                        return Some(value);
                    }
                }
                backoff.spin();
            }
        })
    }

    /// Whether the stack was empty at the moment of the call.
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
            // SAFETY: `drop` has the only reference to the stack, and its nodes hold their values.
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
