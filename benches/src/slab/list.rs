//! The free list of Nathan Taylor's talk: its head is a pointer and a generation, changed by a compare-and-swap of
//! 128 bits.
//!
//! uslab, the allocator of that talk, splits its memory among several such lists, one for each thread or processor.

use std::sync::atomic::{AtomicUsize, Ordering};

use portable_atomic::AtomicU128;

use super::heap::OBJECT_BYTES;

const WORDS: usize = OBJECT_BYTES / size_of::<usize>();
const NONE: usize = usize::MAX;

/// An object; its first word is the link while the object is free.
#[repr(align(64))]
struct Object([AtomicUsize; WORDS]);

/// A single list.
#[repr(align(128))]
pub struct Shared {
    /// The upper half is the generation, and the lower half the first object.
    head: AtomicU128,
    objects: Box<[Object]>,
}

impl Shared {
    /// A list of `objects` objects.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let objects = (0..count).map(|n| {
            let next = if n + 1 == count { NONE } else { n + 1 };
            Object(std::array::from_fn(|word| AtomicUsize::new(if word == 0 { next } else { 0 })))
        });
        Shared { head: AtomicU128::new(0), objects: objects.collect() }
    }

    /// Allocates an object.
    ///
    /// # Panics
    /// Panics if the list is empty.
    #[inline(always)]
    pub fn pop(&self) -> usize {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let first = head as usize;
            assert!(first != NONE, "the list is long enough");
            let next = self.objects[first].0[0].load(Ordering::Relaxed);
            let new = ((head >> 64) + 1) << 64 | next as u128;
            match self.head.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    self.objects[first].0[0].store(1, Ordering::Relaxed);
                    return first;
                }
                Err(found) => head = found,
            }
        }
    }

    /// Frees an object.
    #[inline(always)]
    pub fn push(&self, object: usize) {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            self.objects[object].0[0].store(head as usize & NONE, Ordering::Relaxed);
            let new = (head >> 64) << 64 | object as u128;
            match self.head.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(found) => head = found,
            }
        }
    }
}

/// A set of lists, one for each thread.
pub struct Split(Vec<Shared>);

impl Split {
    /// `lists` lists of `each` objects.
    #[must_use]
    pub fn new(lists: usize, each: usize) -> Self {
        Split((0..lists).map(|_| Shared::new(each)).collect())
    }

    /// The list of a thread.
    #[must_use]
    pub fn of(&self, thread: usize) -> &Shared {
        &self.0[thread]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_objects_are_allocated_again() {
        let list = Shared::new(3);
        let all = [list.pop(), list.pop(), list.pop()];
        assert_eq!(all, [0, 1, 2]);
        all.into_iter().for_each(|object| list.push(object));
        assert_eq!(list.pop(), 2);
    }
}
