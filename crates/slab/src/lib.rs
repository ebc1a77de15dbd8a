//! A slab of fixed-size objects in shared memory that survives `kill -9`.
//!
//! Many processes and threads allocate and free objects in one file, lock-free. Any process may free any object. After
//! a kill of any or all of them, at any instruction, every published object still exists with its contents, and no free
//! object is lost. The surviving processes, or the next process that opens the file, recover the objects that belonged
//! to a dead process.
//!
//! ```
//! use millstream_slab::Slab;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("sessions");
//! let slab = Slab::<[u64; 8]>::options(1_000_000).create(&path)?; // for example /dev/shm/sessions
//! let cache = slab.cache()?;             // one for each thread
//! let mut object = cache.alloc([0; 8])?; // private, like a `Box` in shared memory
//! object[0] = 42;
//! let handle = object.publish();         // public: the 16 bytes name it in every process
//! assert_eq!(slab.read(handle)?[0], 42);
//! cache.free(handle)?;
//! assert!(cache.free(handle).is_err());  // a double free is always an error
//! # Ok::<(), millstream_slab::Error>(())
//! ```
//!
//! # Which part do I want?
//!
//! | task | use |
//! | --- | --- |
//! | store objects of one type, [`bytemuck::Pod`] | [`Slab`], [`Cache`], [`Private`] |
//! | store objects of a size chosen at run time | [`RawSlab`], [`RawCache`], [`RawPrivate`] |
//! | pass objects to another thread of this process | [`Parcel`], [`RawParcel`] |
//! | name an object, to store the name or to send it | [`Handle`] |
//! | choose the memory: a file, a memfd, memory of this process and its children | [`Options::create`], [`Options::memfd`], [`Options::private`] |
//! | recover after a crash | [`RawSlab::open_and_report`], [`RawSlab::live`], [`RawSlab::recover`] |
//! | make objects durable, against a power failure | [`RawSlab::sync`], [`RawSlab::sync_object`] |
//! | verify the integrity of a slab | [`Inspection`], or `millstream slab check`; [`RawSlab::verify`] |
//! | clean up after each worker that dies | [`Options::owners`], [`RawSlab::owner`] |
//!
//! Where no object outlives its process, an ordinary heap is simpler. Objects of varying sizes need one slab for each
//! size class.
//!
//! # How does it work?
//!
//! Each object has a word that contains its generation and its state: free in the depot, free in the cache of one slot,
//! private to that cache, published, or orphaned. **That word alone decides.** An object changes hands by one store or
//! one compare-and-swap of its word, so a kill comes before that instruction or after it, and no other data needs to
//! agree with it.
//!
//! - A *cache* has a magazine of free objects in its own process's memory. Only the cache changes the words of the
//!   objects that it has, with plain stores, so neither an allocation nor the free of a private object takes an atomic
//!   read-modify-write.
//! - A published object's word is changed by compare-and-swap. If several threads free the same object, only one of
//!   them succeeds, and the generation exposes a stale handle.
//! - The *depot* is a lock-free list of chains of free objects (a Treiber stack with a tag in its head, as in Nathan
//!   Taylor's allocator). Before a cache moves a chain it announces the move in its slot, so that a survivor can tell
//!   whether the move happened.
//! - *Recovery* means becoming the dead cache: the survivor takes over its slot, completes the announced move, finds
//!   the cache's objects by their words, and releases them as the cache would have done. Recovery takes no lock, so a
//!   stopped survivor keeps no other process from recovering, opening or allocating.
//!
//! `docs/slab.md` has the file's layout, the argument for every instruction, and the bounds.
//!
//! # Assumptions
//!
//! - Every process that can write to the file is trusted not to write garbage while others use it. A value read from
//!   the file is checked before it serves as an index, so garbage leads to errors, but it can also lose objects.
//! - All users run on one machine and see each other's PIDs (one PID namespace, one time namespace). Processes of other
//!   namespaces are refused.
//! - A program drops its caches before it replaces itself (`exec`). After an `exec` it is still the same process, so no
//!   survivor would recover its caches.
//! - The file is not truncated while it is mapped: an access would cause a SIGBUS. So a file that other users may write
//!   to is [refused](Error::Untrusted) unless the caller trusts those users, and memfds are sealed. A full file system
//!   causes the same signal at the first access to an object, unless space was [reserved](Options::reserve).
//! - In the child of a `fork`, the objects of the parent's caches still belong to the parent. There the parent's caches
//!   and parcels return [`Error::Forked`], and dropping a copy of an object frees nothing. But the child can access the
//!   object's bytes, and must not write to them. The child may use the slab itself, with caches that it makes.
//!   (`pthread_atfork` detects a child; `_Fork` and a bare `clone` bypass it.)
mod depot;
#[cfg(not(loom))]
mod mapped;
#[cfg(all(test, loom))]
mod model;
mod primitive;
mod slot;
mod word;

#[cfg(not(loom))]
pub use bytemuck;

#[cfg(not(loom))]
pub use crate::mapped::{
    Cache, Error, Handle, Holder, Inspection, Live, Object, Options, Parcel, Private, RawCache, RawParcel, RawPrivate,
    RawSlab, Recovered, Report, Slab, Usage, Work,
};
