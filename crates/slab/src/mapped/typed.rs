//! The typed interface: objects of one plain type.

use std::fs::File;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::path::Path;

use bytemuck::Pod;

use crate::mapped::cache::RawCache;
use crate::mapped::error::Error;
use crate::mapped::handle::Handle;
use crate::mapped::live::Live;
use crate::mapped::options::Options;
use crate::mapped::parcel::RawParcel;
use crate::mapped::private::RawPrivate;
use crate::mapped::raw::RawSlab;

/// A slab of objects of type `T`, shared by threads and processes.
///
/// `T` is plain old data in the sense of [`bytemuck::Pod`] (`#[derive(bytemuck::Pod, bytemuck::Zeroable)]`): every bit
/// pattern is a valid value, so any bytes that another process leaves in an object are a valid value. References to
/// other objects are [`Handle`]s.
///
/// ```
/// use millstream_slab::{Error, Slab};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("points.slab");
/// let slab = Slab::<[f64; 2]>::options(1000).create(&path)?;
/// let cache = slab.cache()?;
///
/// // Private, like a `Box`: changed in place, freed when dropped.
/// let mut point = cache.alloc([1.0, 2.0])?;
/// point[0] = 3.0;
///
/// // Published: any thread of any process reaches it by its handle.
/// let handle = point.publish();
/// let other = Slab::<[f64; 2]>::open(&path)?;
/// assert_eq!(other.read(handle)?, [3.0, 2.0]);
/// other.cache()?.free(handle)?;
///
/// // Freed: the handle is an error from now on, even once the memory is used again.
/// assert!(matches!(slab.read(handle), Err(Error::Stale { .. })));
/// # Ok::<(), Error>(())
/// ```
pub struct Slab<T> {
    raw: RawSlab,
    objects: PhantomData<fn(T) -> T>,
}

impl<T: Pod> Slab<T> {
    const ALIGN: u64 = if align_of::<T>() < 8 { 8 } else { align_of::<T>() as u64 };

    /// The distance from one object to the next.
    const BYTES: u64 = if size_of::<T>() == 0 { 8 } else { (size_of::<T>() as u64).next_multiple_of(Self::ALIGN) };

    /// The options of a new slab of at most `max_objects` objects.
    #[must_use]
    pub fn options(max_objects: u64) -> Options<Slab<T>> {
        Options::new(Self::BYTES, Self::ALIGN, max_objects)
    }

    /// Opens the slab in a file; see [`RawSlab::open`].
    ///
    /// # Errors
    /// As [`RawSlab::open`], and [`Error::OtherObjects`] when the objects have another size or alignment.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::try_from(RawSlab::open(path)?)
    }

    /// Opens the slab in an open file; see [`RawSlab::open_file`].
    ///
    /// # Errors
    /// As [`open`](Slab::open).
    pub fn open_file(file: File) -> Result<Self, Error> {
        Self::try_from(RawSlab::open_file(file)?)
    }

    /// Makes a cache for a thread of this process; see [`RawSlab::cache`].
    ///
    /// # Errors
    /// As [`RawSlab::cache`].
    pub fn cache(&self) -> Result<Cache<T>, Error> {
        Ok(Cache { raw: self.raw.cache()?, objects: PhantomData })
    }

    /// Makes an empty parcel, to carry private objects from one thread of this process to another; see
    /// [`RawSlab::parcel`].
    ///
    /// # Errors
    /// As [`RawSlab::parcel`].
    pub fn parcel(&self) -> Result<Parcel<T>, Error> {
        Ok(Parcel { raw: self.raw.parcel()?, objects: PhantomData })
    }

    /// Copies a published object, or an orphan; see [`RawSlab::read`].
    ///
    /// # Errors
    /// [`Error::Stale`]; [`Error::Foreign`]; [`Error::Held`].
    pub fn read(&self, handle: Handle) -> Result<T, Error> {
        let mut copy = T::zeroed();
        self.raw.read_beginning(handle, bytemuck::bytes_of_mut(&mut copy))?;
        Ok(copy)
    }

    /// Iterates over all allocated objects; see [`RawSlab::live`].
    #[must_use]
    pub fn live(&self) -> Live<'_> {
        self.raw.live()
    }

    /// The underlying slab, for all operations that do not depend on the type.
    #[must_use]
    pub fn raw(&self) -> &RawSlab {
        &self.raw
    }
}

impl<T> Clone for Slab<T> {
    fn clone(&self) -> Self {
        Slab { raw: self.raw.clone(), objects: PhantomData }
    }
}

impl<T> std::fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Slab").field(&self.raw).finish()
    }
}

impl<T: Pod> TryFrom<RawSlab> for Slab<T> {
    type Error = Error;

    /// The same slab, if its objects have this type's size and alignment.
    fn try_from(raw: RawSlab) -> Result<Self, Error> {
        for (what, expected, found) in
            [("size", Self::BYTES, raw.object_bytes()), ("alignment", Self::ALIGN, raw.align_bytes())]
        {
            if expected != found {
                return Err(Error::OtherObjects { what, expected, found });
            }
        }
        Ok(Slab { raw, objects: PhantomData })
    }
}

/// A thread's access to a [`Slab`]; see [`RawCache`].
pub struct Cache<T> {
    raw: RawCache,
    objects: PhantomData<fn(T) -> T>,
}

impl<T: Pod> Cache<T> {
    /// Allocates an object with this value, private to the cache until it is published; see [`RawCache::alloc`].
    ///
    /// # Errors
    /// [`Error::Full`]; [`Error::Damaged`].
    #[inline]
    pub fn alloc(&self, value: T) -> Result<Private<'_, T>, Error> {
        let mut object = Private { raw: self.raw.alloc()?, objects: PhantomData };
        *object = value;
        Ok(object)
    }

    /// Frees a published object, or an orphan; see [`RawCache::free`].
    ///
    /// # Errors
    /// As [`RawCache::free`].
    #[inline]
    pub fn free(&self, handle: Handle) -> Result<(), Error> {
        self.raw.free(handle)
    }

    /// Makes a published object, or an orphan, private to this cache; see [`RawCache::claim`].
    ///
    /// # Errors
    /// As [`RawCache::claim`].
    ///
    /// ```
    /// use millstream_slab::Slab;
    ///
    /// let slab = Slab::<u64>::options(10).private()?;
    /// let cache = slab.cache()?;
    /// let handle = cache.alloc(1)?.publish();
    ///
    /// let mut object = cache.claim(handle)?;
    /// *object += 1;
    /// assert_eq!(object.publish(), handle);
    /// assert_eq!(slab.read(handle)?, 2);
    /// # Ok::<(), millstream_slab::Error>(())
    /// ```
    #[inline]
    pub fn claim(&self, handle: Handle) -> Result<Private<'_, T>, Error> {
        Ok(Private { raw: self.raw.claim(handle)?, objects: PhantomData })
    }

    /// Sets the application's number for the user of this cache; see [`RawCache::set_owner`].
    pub fn set_owner(&self, owner: u64) {
        self.raw.set_owner(owner);
    }

    /// The underlying cache.
    #[must_use]
    pub fn raw(&self) -> &RawCache {
        &self.raw
    }
}

impl<T> std::fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cache").field(&self.raw).finish()
    }
}

/// An allocated object that only its holder can reach, like a `Box` in shared memory; see [`RawPrivate`].
#[must_use = "dropped at once, it is freed at once"]
pub struct Private<'c, T> {
    raw: RawPrivate<'c>,
    objects: PhantomData<T>,
}

impl<T: Pod> Private<'_, T> {
    /// Makes the object public; see [`RawPrivate::publish`].
    #[inline]
    pub fn publish(self) -> Handle {
        self.raw.publish()
    }

    /// The handle that the object will have when it is published.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.raw.handle()
    }
}

impl<T: Pod> Deref for Private<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the objects of a slab of this type have its size and alignment, every bit pattern is a valid value of
        // it, and while the object is private only this value reaches it.
        unsafe { &*self.raw.as_ptr().cast() }
    }
}

impl<T: Pod> DerefMut for Private<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the objects of a slab of this type have its size and alignment, every bit pattern is a valid value of
        // it, and while the object is private only this value, which is exclusively borrowed, reaches it.
        unsafe { &mut *self.raw.as_mut_ptr().cast() }
    }
}

impl<T: Pod + std::fmt::Debug> std::fmt::Debug for Private<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Private").field(&**self).finish()
    }
}

/// Private objects on their way to another thread of this process; see [`RawParcel`].
///
/// ```
/// use millstream_slab::Slab;
///
/// let slab = Slab::<u64>::options(10).private()?;
/// let mut parcel = slab.parcel()?;
/// parcel.push(slab.cache()?.alloc(7)?)?;
/// let other = slab.cache()?; // of another thread
/// assert_eq!(parcel.pop(&other)?.map(|object| *object), Some(7));
/// # Ok::<(), millstream_slab::Error>(())
/// ```
pub struct Parcel<T> {
    raw: RawParcel,
    objects: PhantomData<fn(T) -> T>,
}

impl<T: Pod> Parcel<T> {
    /// Puts an object in; see [`RawParcel::push`].
    ///
    /// # Errors
    /// As [`RawParcel::push`].
    #[inline]
    pub fn push(&mut self, object: Private<'_, T>) -> Result<(), Error> {
        self.raw.push(object.raw)
    }

    /// Allocates an object with this value straight into the parcel; see [`RawParcel::alloc`].
    ///
    /// # Errors
    /// As [`RawParcel::alloc`].
    #[inline]
    pub fn alloc(&mut self, cache: &Cache<T>, value: T) -> Result<(), Error> {
        self.raw.alloc(&cache.raw)?[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        Ok(())
    }

    /// Allocates an object for each value straight into the parcel; see [`RawParcel::fill`].
    ///
    /// # Errors
    /// As [`RawParcel::fill`].
    #[inline]
    pub fn extend(&mut self, cache: &Cache<T>, values: impl IntoIterator<Item = T>) -> Result<(), Error> {
        values.into_iter().try_for_each(|value| self.alloc(cache, value))
    }

    /// Takes out the object that was put in last; see [`RawParcel::pop`].
    ///
    /// # Errors
    /// As [`RawParcel::pop`].
    #[inline]
    pub fn pop<'c>(&mut self, cache: &'c Cache<T>) -> Result<Option<Private<'c, T>>, Error> {
        Ok(self.raw.pop(&cache.raw)?.map(|raw| Private { raw, objects: PhantomData }))
    }

    /// The underlying parcel, for all operations that do not depend on the type.
    #[must_use]
    pub fn raw(&mut self) -> &mut RawParcel {
        &mut self.raw
    }
}

impl<T> std::fmt::Debug for Parcel<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Parcel").field(&self.raw).finish()
    }
}
