//! A bag into which any thread can put values, and from which any thread can take them.

use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::pages::processors;
use super::restart::{Sections, restart};
use super::section::{self, Here, MAX_ATTEMPTS, Numbers, Outcome};
use super::words::Words;

/// A bag of values, for example of reusable buffers. Each processor has a list, and a value is taken from the
/// processor's own list unless that list is empty.
///
/// Each put and each take is one [section](super), without atomic instructions. After four aborted sections, while a
/// thread [drains](Bag::drain) the bag, and where the kernel has no sections, the operation uses a list that all
/// processors share behind a mutex.
///
/// ```
/// use millstream_sync::percpu::Bag;
///
/// let buffers: Bag<Vec<u8>> = Bag::new();
/// buffers.put(Vec::with_capacity(4096));
/// let taken = buffers.take(); // `None` if this thread has moved to another processor meanwhile
/// let left = if taken.is_some() { 0 } else { 1 };
/// let buffer = taken.unwrap_or_default();
/// # drop(buffer);
/// std::thread::scope(|scope| drop(scope.spawn(|| buffers.put(Vec::new()))));
/// assert_eq!(buffers.drain()?.len(), left + 1); // from every processor
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Bag<T> {
    /// For each processor, the first node of its list, and whether the list is closed to sections.
    lists: Words,
    rest: Mutex<Vec<T>>,
    /// Whether other threads' sections can be restarted; if not, the bag uses no sections.
    by_sections: bool,
}

#[repr(C)]
struct Node<T> {
    next: u64,
    value: T,
}

const HEAD: usize = 0;
const FROZEN: usize = 1;

// SAFETY: the bag moves values between threads, which `T: Send` allows, and has no tie to a thread itself.
unsafe impl<T: Send> Send for Bag<T> {}
// SAFETY: shared access moves values between threads, which `T: Send` allows, and gives no reference to a value in the
// bag.
unsafe impl<T: Send> Sync for Bag<T> {}

impl<T> Bag<T> {
    /// An empty bag. Makes one system call.
    #[must_use]
    pub fn new() -> Self {
        Bag { lists: Words::new(2), rest: Mutex::new(Vec::new()), by_sections: restart(Sections::All).is_ok() }
    }

    /// Puts a value in. Allocates a node; otherwise wait-free, unless the operation uses the shared list and its mutex
    /// (see [`Bag`]). Release: the thread that takes the value sees everything written before.
    pub fn put(&self, value: T) {
        let node = Box::into_raw(Box::new(Node { next: 0, value }));
        // SAFETY: each processor has two words, all sections here use the same slot numbering, and this thread owns the
        // node until it is in the list.
        let outcome =
            self.attempt(|here| unsafe { (section::list_push(here, self.lists.word(HEAD).slots(), node.cast()), ()) });
        if outcome.is_none() {
            // SAFETY: the node comes from the box above, and no section put it into a list.
            let node = unsafe { Box::from_raw(node) };
            self.rest().push(node.value);
        }
    }

    /// Takes a value out: from this processor's list, or from the shared one. `None` if both are empty, even if other
    /// processors' lists have values. Frees the value's node; otherwise its progress is that of [`put`](Self::put).
    pub fn take(&self) -> Option<T> {
        // SAFETY: each processor has two words, all sections here use the same slot numbering, and nodes in a list are
        // alive.
        let node = self.attempt(|here| unsafe { section::list_pop(here, self.lists.word(HEAD).slots()) });
        match node {
            // SAFETY: `put` made the node, and it is no longer in any list; the kernel has aborted every section that
            // read it before.
            Some(node) => Some(unsafe { Box::from_raw(node.cast::<Node<T>>()) }.value),
            None => self.rest().pop(),
        }
    }

    /// Takes all values out, from all processors.
    ///
    /// Closes the lists to sections, restarts the sections in progress, and takes the lists. During that time, some
    /// microseconds, other threads use the shared list. Blocking; one system call that interrupts the other running
    /// threads.
    ///
    /// # Errors
    /// If the system no longer restarts sections, although it did when the bag was made. Then the bag keeps all its
    /// values.
    pub fn drain(&self) -> io::Result<Vec<T>> {
        // The guard excludes other drains.
        let mut rest = self.rest();
        let mut lists = Vec::new();
        if self.by_sections {
            let frozen = |value| (0..processors()).for_each(|i| self.lists.word(FROZEN).copy(i).store(value, Release));
            frozen(1);
            let restarted = restart(Sections::All);
            if restarted.is_ok() {
                // All earlier commits are visible, and no section commits now. Acquire, for the nodes behind the heads.
                lists.extend((0..processors()).map(|i| self.lists.word(HEAD).copy(i).load(Acquire)));
                (0..processors()).for_each(|i| self.lists.word(HEAD).copy(i).store(0, Relaxed));
            }
            // Release: a section that finds the list open finds it empty.
            frozen(0);
            restarted?;
        }
        let mut values = mem::take(&mut *rest);
        drop(rest);
        for node in lists {
            // SAFETY: `put` made the nodes, and the loop above took them out of their lists.
            unsafe { Self::empty(node, &mut values) };
        }
        Ok(values)
    }

    /// The result of a section, or `None` if none of its attempts changed the list.
    #[inline]
    fn attempt<R>(&self, section: impl Fn(Here) -> (Outcome, R)) -> Option<R> {
        let here = Here::current(Numbers::Private).filter(|_| self.by_sections)?;
        for _ in 0..MAX_ATTEMPTS {
            match section(here) {
                (Outcome::Done, result) => return Some(result),
                (Outcome::Aborted, _) => {}
                _ => break,
            }
        }
        None
    }

    fn rest(&self) -> MutexGuard<'_, Vec<T>> {
        // Poison is harmless: a panic of a destructor or an allocation never leaves the list half changed.
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the values of a chain of nodes into `values`.
    ///
    /// # Safety
    /// `put` made the node and its successors, and none of them is in a list.
    unsafe fn empty(node: u64, values: &mut Vec<T>) {
        let mut node: *mut Node<T> = ptr::with_exposed_provenance_mut(node as usize);
        while !node.is_null() {
            // SAFETY: the caller promises that `put` allocated the node as a box and that it is in no list.
            let Node { next, value } = *unsafe { Box::from_raw(node) };
            values.push(value);
            node = ptr::with_exposed_provenance_mut(next as usize);
        }
    }
}

impl<T> Default for Bag<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Bag<T> {
    fn drop(&mut self) {
        let mut values = Vec::new();
        for i in 0..processors() {
            let head = self.lists.word(HEAD).copy(i).swap(0, Relaxed);
            // SAFETY: `drop` has the only reference to the bag, and `put` made the nodes of its lists.
            unsafe { Self::empty(head, &mut values) };
        }
    }
}
