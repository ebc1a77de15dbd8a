//! The peers: the same stack and queue on crossbeam-epoch.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crossbeam_epoch::{Atomic, Owned, Shared, pin, unprotected};

/// A Treiber stack.
#[derive(Debug)]
pub struct Stack<T> {
    top: Atomic<StackNode<T>>,
}

#[derive(Debug)]
struct StackNode<T> {
    value: MaybeUninit<T>,
    below: Atomic<StackNode<T>>,
}

impl<T> Stack<T> {
    /// An empty stack.
    #[must_use]
    pub fn new() -> Self {
        Stack { top: Atomic::null() }
    }

    /// Pushes `value` on top.
    pub fn push(&self, value: T) {
        // SAFETY: `push` dereferences no shared pointer, so it needs no pin.
        let guard = unsafe { unprotected() };
        let mut node = Owned::new(StackNode { value: MaybeUninit::new(value), below: Atomic::null() });
        loop {
            let top = self.top.load(Relaxed, guard);
            node.below.store(top, Relaxed);
            match self.top.compare_exchange_weak(top, node, Release, Relaxed, guard) {
                Ok(_) => return,
                Err(failed) => node = failed.new,
            }
        }
    }

    /// Pops the topmost value.
    pub fn pop(&self) -> Option<T> {
        let guard = pin();
        loop {
            let top = self.top.load(Acquire, &guard);
            // SAFETY: the guard was pinned before the load, so the node stays allocated.
            let node = unsafe { top.as_ref() }?;
            let below = node.below.load(Relaxed, &guard);
            if self.top.compare_exchange_weak(top, below, Relaxed, Relaxed, &guard).is_ok() {
                // SAFETY: this thread's exchange unlinked the node, so only this thread reads its value, once.
                unsafe {
                    let value = ptr::read(&raw const node.value).assume_init();
                    guard.defer_destroy(top);
                    return Some(value);
                }
            }
        }
    }
}

impl<T> Default for Stack<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Stack<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

/// A Michael–Scott queue with its two ends on separate cache lines.
#[derive(Debug)]
pub struct Queue<T> {
    head: Line<Atomic<QueueNode<T>>>,
    tail: Line<Atomic<QueueNode<T>>>,
}

#[derive(Debug)]
#[repr(align(128))]
struct Line<W>(W);

#[derive(Debug)]
struct QueueNode<T> {
    value: MaybeUninit<T>,
    next: Atomic<QueueNode<T>>,
}

impl<T> Queue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        let queue = Queue { head: Line(Atomic::null()), tail: Line(Atomic::null()) };
        let dummy = Owned::new(QueueNode { value: MaybeUninit::uninit(), next: Atomic::null() });
        // SAFETY: no other thread has the queue yet.
        let dummy = dummy.into_shared(unsafe { unprotected() });
        queue.head.0.store(dummy, Relaxed);
        queue.tail.0.store(dummy, Relaxed);
        queue
    }

    /// Appends `value`.
    pub fn push(&self, value: T) {
        let guard = pin();
        let node = Owned::new(QueueNode { value: MaybeUninit::new(value), next: Atomic::null() }).into_shared(&guard);
        loop {
            let tail = self.tail.0.load(Acquire, &guard);
            // SAFETY: the guard keeps the node allocated, and the tail is never null.
            let link = unsafe { &tail.deref().next };
            let next = link.load(Acquire, &guard);
            if !next.is_null() {
                let _moved = self.tail.0.compare_exchange(tail, next, Release, Relaxed, &guard);
                continue;
            }
            if link.compare_exchange(Shared::null(), node, Release, Relaxed, &guard).is_ok() {
                let _moved = self.tail.0.compare_exchange(tail, node, Release, Relaxed, &guard);
                return;
            }
        }
    }

    /// Removes the first value.
    pub fn pop(&self) -> Option<T> {
        let guard = pin();
        loop {
            let head = self.head.0.load(Acquire, &guard);
            // SAFETY: the guard keeps the node allocated, and the head is never null.
            let next = unsafe { head.deref() }.next.load(Acquire, &guard);
            // SAFETY: the guard keeps the node allocated.
            let node = unsafe { next.as_ref() }?;
            if self.tail.0.load(Acquire, &guard) == head {
                let _moved = self.tail.0.compare_exchange(head, next, Release, Relaxed, &guard);
            }
            if self.head.0.compare_exchange(head, next, AcqRel, Relaxed, &guard).is_ok() {
                // SAFETY: only the thread that moves the head to a node reads its value, once; the old dummy is now
                // unreachable for threads that pin later.
                unsafe {
                    let value = ptr::read(&raw const node.value).assume_init();
                    guard.defer_destroy(head);
                    return Some(value);
                }
            }
        }
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
        // SAFETY: `&mut self` excludes other threads, and the dummy belongs to the queue.
        unsafe { drop(self.head.0.load(Relaxed, unprotected()).into_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_behave_as_a_stack_and_a_queue() {
        let (stack, queue) = (Stack::new(), Queue::new());
        for number in 0..100 {
            stack.push(number);
            queue.push(number);
        }
        assert!((0..50).all(|number| stack.pop() == Some(99 - number) && queue.pop() == Some(number)));
    }
}
