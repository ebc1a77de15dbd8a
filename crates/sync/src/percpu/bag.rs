//! Things that any thread puts in and any thread takes out.

use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::raw::{self, ATTEMPTS, Here, Numbers, Outcome};
use super::remote::{Sections, restart};
use super::{Words, processors};

/// A bag of values, for example of buffers that can be used again: each processor has a list, and what is put in is taken out where it was put
/// in, as long as it lasts.
///
/// Putting in and taking out are a [section](super::raw) each, without atomic instructions. After [`ATTEMPTS`] aborted ones, while somebody
/// [drains](Bag::drain), and where the kernel cannot do it, a list that all share behind a mutex takes their place.
///
/// ```
/// use millstream_sync::percpu::Bag;
///
/// let buffers: Bag<Vec<u8>> = Bag::new();
/// buffers.put(Vec::with_capacity(4096));
/// let taken = buffers.take(); // `None` if this thread was moved to another processor meanwhile
/// let left = if taken.is_some() { 0 } else { 1 };
/// let buffer = taken.unwrap_or_default();
/// # drop(buffer);
/// std::thread::scope(|scope| drop(scope.spawn(|| buffers.put(Vec::new()))));
/// assert_eq!(buffers.drain()?.len(), left + 1); // from every processor
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Bag<T> {
    /// A list's first node, and whether sections have to keep away.
    lists: Words,
    rest: Mutex<Vec<T>>,
    /// Whether sections can be restarted from elsewhere; otherwise none run here.
    by_sections: bool,
}

#[repr(C)]
struct Node<T> {
    next: u64,
    value: T,
}

const HEAD: usize = 0;
const FROZEN: usize = 1;

// SAFETY: values go from thread to thread.
unsafe impl<T: Send> Send for Bag<T> {}
// SAFETY: as above; nobody sees a value while it is in the bag.
unsafe impl<T: Send> Sync for Bag<T> {}

impl<T> Bag<T> {
    /// An empty one. One system call.
    #[must_use]
    pub fn new() -> Self {
        Bag { lists: Words::new(2), rest: Mutex::new(Vec::new()), by_sections: restart(Sections::All).is_ok() }
    }

    /// Puts a value in. Allocates; otherwise wait-free, but for the mutex in the cases named above.
    pub fn put(&self, value: T) {
        let node = Box::into_raw(Box::new(Node { next: 0, value }));
        // SAFETY: two words are there, all sections here count alike, and the node is ours until it is taken out.
        let outcome =
            self.attempt(|here| unsafe { (raw::list_push(here, self.lists.word(HEAD).slots(), node.cast()), ()) });
        if outcome.is_none() {
            // SAFETY: made above, and not in any list.
            let node = unsafe { Box::from_raw(node) };
            self.rest().push(node.value);
        }
    }

    /// Takes a value out: from this processor's list, or from the one that all share. `None` if both are empty, although other processors may have some.
    pub fn take(&self) -> Option<T> {
        // SAFETY: two words are there, all sections here count alike, and nodes live while they are in a list.
        let node = self.attempt(|here| unsafe { raw::list_pop(here, self.lists.word(HEAD).slots()) });
        match node {
            // SAFETY: made by `put`, and in no list any more. Who read it before us in a section was aborted.
            Some(node) => Some(unsafe { Box::from_raw(node.cast::<Node<T>>()) }.value),
            None => self.rest().pop(),
        }
    }

    /// Takes everything out, from all processors.
    ///
    /// Tells sections to keep away, restarts those that are under way, and takes the lists. Meanwhile others use the shared one, for
    /// some microseconds. Blocking; one system call that interrupts the other running threads.
    ///
    /// # Errors
    /// If the system does not restart sections any more, although it did. Then everything is still there.
    pub fn drain(&self) -> io::Result<Vec<T>> {
        // The guard keeps other drains away.
        let mut rest = self.rest();
        let mut lists = Vec::new();
        if self.by_sections {
            let frozen = |value| (0..processors()).for_each(|i| self.lists.word(FROZEN).copy(i).store(value, Release));
            frozen(1);
            let restarted = restart(Sections::All);
            if restarted.is_ok() {
                // Whoever committed before is visible, and nobody commits now. Acquire, for the nodes that come with it.
                lists.extend((0..processors()).map(|i| self.lists.word(HEAD).copy(i).load(Acquire)));
                (0..processors()).for_each(|i| self.lists.word(HEAD).copy(i).store(0, Relaxed));
            }
            // Release: who finds the list open finds it empty.
            frozen(0);
            restarted?;
        }
        let mut values = mem::take(&mut *rest);
        drop(rest);
        for node in lists {
            // SAFETY: made by `put`, and taken out above.
            unsafe { Self::empty(node, &mut values) };
        }
        Ok(values)
    }

    /// What a section took or did, or `None` if it did nothing.
    #[inline]
    fn attempt<R>(&self, section: impl Fn(Here) -> (Outcome, R)) -> Option<R> {
        let here = Here::current(Numbers::Private).filter(|_| self.by_sections)?;
        for _ in 0..ATTEMPTS {
            match section(here) {
                (Outcome::Done, result) => return Some(result),
                (Outcome::Aborted, _) => {}
                _ => break,
            }
        }
        None
    }

    fn rest(&self) -> MutexGuard<'_, Vec<T>> {
        // Nothing is half-done under it when a value's destructor or an allocation panics.
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Safety
    /// The node and those behind it were made by `put`, and are in no list.
    unsafe fn empty(node: u64, values: &mut Vec<T>) {
        let mut node: *mut Node<T> = ptr::with_exposed_provenance_mut(node as usize);
        while !node.is_null() {
            // SAFETY: the caller's promise.
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
            // SAFETY: nobody else uses the bag any more.
            unsafe { Self::empty(head, &mut values) };
        }
    }
}
