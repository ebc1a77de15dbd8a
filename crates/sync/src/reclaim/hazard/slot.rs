//! The word in which a reader announces the object it uses, and the proof that it suffices.
//!
//! A reader reads a pointer, writes it to its slot (1), executes a [light](millstream_fence::light) fence, and reads
//! the pointer again (2). If the pointer has changed, the reader starts over. The reclaimer first unlinks the object
//! (3), executes a heavy fence (4), and scans all slots (5). For every reader that found the object's address at (2),
//! one of two cases applies:
//!
//! - The light fence comes before (4). Then the slot names the object at (5), and the object is kept, unless the reader
//!   has cleared the slot since.
//! - The light fence comes after (4). Then (2) sees (3), which removed the object. So the reader did not find the
//!   object at (2), or it found a new object at the same address, which is not freed before it is retired itself.
//!
//! A slot that is added after the scan began belongs to a reader whose light fence comes after (4).
//!
//! All stores to the slot are releasing: whichever value the scan reads with acquire, it comes after all uses of the
//! object that the slot named before.

use core::ptr;

use crate::primitive::{AtomicPtr, Ordering, light};

pub(super) struct Slot(AtomicPtr<()>);

impl Slot {
    pub(super) fn new() -> Self {
        Slot(AtomicPtr::new(ptr::null_mut()))
    }

    /// The value of `source`, protected from now on. Lock-free: takes another round only if `source` has changed.
    #[inline(always)]
    pub(super) fn protect<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        // Relaxed: this value is a guess, which `announce` confirms.
        let object = source.load(Ordering::Relaxed);
        let found = self.announce(object, source);
        if found == object { object } else { self.protect_changing(found, source) }
    }

    /// Further rounds are in a separate function, so that the first round contains no jump.
    #[cold]
    #[inline(never)]
    fn protect_changing<T>(&self, mut object: *mut T, source: &AtomicPtr<T>) -> *mut T {
        loop {
            let found = self.announce(object, source);
            if found == object {
                return object;
            }
            object = found;
        }
    }

    /// Steps (1), the light fence, and (2).
    #[inline(always)]
    fn announce<T>(&self, object: *mut T, source: &AtomicPtr<T>) -> *mut T {
        self.0.store(object.cast(), Ordering::Release);
        light();
        source.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(super) fn clear(&self) {
        self.0.store(ptr::null_mut(), Ordering::Release);
    }

    /// The object that the slot names, or null. Acquire pairs with the releasing stores of the reader.
    pub(super) fn protected(&self) -> *mut () {
        self.0.load(Ordering::Acquire)
    }
}
