//! The operations of all competitors: allocating and freeing objects of one size.

use std::alloc::{GlobalAlloc, Layout};

use millstream_slab::{Handle, RawCache, RawPrivate, RawSlab};

use super::list::{Shared, Split};

/// Size of the measured objects.
pub const OBJECT_BYTES: usize = 64;
const LAYOUT: Layout = match Layout::from_size_align(OBJECT_BYTES, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("64 bytes aligned to 8 are a valid layout"),
};

/// A thread's access to a heap.
pub trait Local {
    /// An allocated object.
    type Object<'l>
    where
        Self: 'l;

    /// Allocates an object and writes its first word.
    fn alloc(&self) -> Self::Object<'_>;

    /// Frees an object.
    fn free<'l>(&'l self, object: Self::Object<'l>);
}

/// The slab, with objects that belong to their thread, like boxes.
pub struct Private(pub RawCache);

impl Local for Private {
    type Object<'l> = RawPrivate<'l>;

    #[inline(always)]
    fn alloc(&self) -> RawPrivate<'_> {
        let mut object = self.0.alloc().expect("the slab is large enough");
        object[0] = 1;
        object
    }

    #[inline(always)]
    fn free<'l>(&'l self, object: RawPrivate<'l>) {
        drop(object);
    }
}

/// The slab, with objects that are published and freed by their handles.
pub struct Published(pub RawCache);

impl Local for Published {
    type Object<'l> = Handle;

    #[inline(always)]
    fn alloc(&self) -> Handle {
        let mut object = self.0.alloc().expect("the slab is large enough");
        object[0] = 1;
        object.publish()
    }

    #[inline(always)]
    fn free(&self, handle: Handle) {
        self.0.free(handle).expect("each handle is freed once");
    }
}

/// A private heap of the process. An object is represented by its address, which may go to another thread.
pub struct Global<A>(pub A);

impl<A: GlobalAlloc> Local for Global<A> {
    type Object<'l>
        = usize
    where
        A: 'l;

    #[inline(always)]
    fn alloc(&self) -> usize {
        // SAFETY: the layout is not empty, and the word that is written is in the object.
        unsafe {
            let object = self.0.alloc(LAYOUT);
            object.write(1);
            object.expose_provenance()
        }
    }

    #[inline(always)]
    fn free(&self, object: usize) {
        // SAFETY: `alloc` allocated the object with this layout, and it is freed once.
        unsafe { self.0.dealloc(std::ptr::with_exposed_provenance_mut(object), LAYOUT) }
    }
}

/// A free list, which all threads share or which belongs to one thread.
pub struct Listed<'a>(pub &'a Shared);

impl Local for Listed<'_> {
    type Object<'l>
        = usize
    where
        Self: 'l;

    #[inline(always)]
    fn alloc(&self) -> usize {
        self.0.pop()
    }

    #[inline(always)]
    fn free(&self, object: usize) {
        self.0.push(object);
    }
}

/// A slab for `threads` threads, each with up to `each` objects.
///
/// # Panics
/// Panics if memory runs out.
#[must_use]
pub fn slab(threads: usize, each: usize) -> RawSlab {
    let objects = (threads * (each + 256)) as u64;
    RawSlab::options(OBJECT_BYTES as u64, objects).chain(64).memfd().expect("memory suffices for the slab")
}

/// A free list for each of `threads` threads, as in uslab.
#[must_use]
pub fn split(threads: usize, each: usize) -> Split {
    Split::new(threads, each + 64)
}
