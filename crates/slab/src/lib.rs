//! A slab of fixed-size objects in shared memory that survives `kill -9`.
//!
//! Many processes and threads allocate and free objects in one file, lock-free. An object may be freed by any process. After
//! a kill of any or all of them, at any instruction, every object that was published is there with its contents, every free
//! one is free, and what a dead process had in its hands is found by those who are left, or by whoever opens the file next.
//!
//! ```
//! use millstream_slab::Slab;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("sessions");
//! let slab = Slab::<[u64; 8]>::options(1_000_000).create(&path)?; // /dev/shm/sessions, for example
//! let cache = slab.cache()?;             // one for each thread
//! let mut object = cache.alloc([0; 8])?; // private: a box in shared memory
//! object[0] = 42;
//! let handle = object.publish();         // public: 16 bytes that name it in every process
//! assert_eq!(slab.read(handle)?[0], 42);
//! cache.free(handle)?;
//! assert!(cache.free(handle).is_err());  // a double free is an error, always
//! # Ok::<(), millstream_slab::Error>(())
//! ```
//!
//! # Which part do I want?
//!
//! | you have | use |
//! | --- | --- |
//! | objects of one type, [`bytemuck::Pod`] | [`Slab`], [`Cache`], [`Private`] |
//! | objects of so many bytes | [`RawSlab`], [`RawCache`], [`RawPrivate`] |
//! | objects for another thread of this process to free, or to go on with | [`Parcel`], [`RawParcel`] |
//! | a name for an object, to store or to send | [`Handle`] |
//! | a file, a memfd, memory of this process and its children | [`Options::create`], [`Options::memfd`], [`Options::private`] |
//! | a crash behind you | [`RawSlab::open_and_report`], [`RawSlab::live`], [`RawSlab::recover`] |
//! | a power failure before you | [`RawSlab::sync`], [`RawSlab::sync_object`] |
//! | a doubt | [`Inspection`], or `millstream slab check`; [`RawSlab::verify`] |
//! | workers that die, and someone who clears up after each | [`Options::owners`], [`RawSlab::owner`] |
//!
//! Where nothing has to outlive a process, an ordinary heap is simpler. Where objects vary in size, a slab for each size
//! class is needed.
//!
//! # How does it work?
//!
//! Each object has a word: its generation, and in whose hands it is: the depot's, free in
//! the cache of some slot, private to that cache, published, or orphaned. **That word alone decides.** An object changes
//! hands by one store or one compare-and-swap of its word, so a kill comes before it or after it, and there is nothing else
//! to be kept in step.
//!
//! - A *cache* has a magazine of free objects in its own process's memory. Only it changes the words of what it has, with plain
//!   stores: no atomic read-modify-write to allocate, nor to free what is private.
//! - A published object's word is changed by compare-and-swap; so of several that free it one succeeds, and a stale handle is
//!   noticed by its generation.
//! - The *depot* is a lock-free list of chains of free objects (Treiber's list with a generation, as in Nathan Taylor's
//!   talk). Before a cache moves a chain it announces that in its slot, so that a survivor can tell whether it was done.
//! - *Recovery* is to become the dead cache: take over its slot, complete what it announced, find its objects by their words, and
//!   give them up as it would have done. It takes no lock, so a survivor that is stopped keeps no other from recovering, opening or allocating.
//!
//! The file's layout, the argument for every instruction, and bounds are in `docs/slab.md`.
//!
//! # What is assumed
//!
//! - Whoever can write to the file is trusted not to write nonsense while others use it. What is read from it is checked
//!   before it is used as an index, so nonsense ends in errors; but objects can be lost to it.
//! - All users run on one machine and see each other's process numbers (one PID namespace, one time namespace); others are refused.
//! - A program that replaces itself (`exec`) drops its caches before. It goes on as the same process, so nobody recovers from it.
//! - The file is not cut off while it is mapped: the kernel would answer with SIGBUS. So files that others may write to are [refused](Error::Untrusted)
//!   unless the caller trusts them, and memfds are sealed. A full file system does the same when an object is first touched, unless space was
//!   [reserved](Options::reserve).
//! - In the child of a `fork`, what the parent's caches hold is the parent's. Caches and parcels answer [`Error::Forked`] there, and dropping a copy of an
//!   object frees nothing; but its bytes can be reached, and the child must not write to them. The slab itself may be used: the child makes caches of its own.
//!   (Children are told by `pthread_atfork`, of which `_Fork` and a bare `clone` know nothing.)
mod depot;
#[cfg(not(loom))]
mod mapped;
#[cfg(all(test, loom))]
mod model;
mod primitive;
mod slot;
mod word;

#[cfg(not(loom))]
pub use crate::mapped::{
    Cache, Error, Handle, Holder, Inspection, Live, Object, Options, Parcel, Private, RawCache, RawParcel, RawPrivate,
    RawSlab, Recovered, Report, Slab, Usage, Work,
};
