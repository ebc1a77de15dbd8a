//! Creating a slab.

use std::ffi::c_char;

use ::millstream_slab::{Error, Options, RawSlab};
use bytemuck::{Pod, Zeroable};

use crate::extensible::{self, Extensible};
use crate::slab::millstream_slab;
use crate::status::{Failure, answer, file_path};

/// The properties of a new slab: `millstream_slab_options options = {.struct_bytes = sizeof options, .object_bytes =
/// 64, .max_objects = 1000};` These three members are required. Every other member may be 0: the library then chooses a
/// value.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_slab_options {
    /// sizeof(millstream_slab_options): it shows the library with which options the program was compiled.
    pub struct_bytes: u64,
    /// The size of an object in bytes, a multiple of 8.
    pub object_bytes: u64,
    /// The largest number of objects.
    pub max_objects: u64,
    /// How many objects are usable at first. The number doubles on demand. 0 means all objects.
    pub capacity: u64,
    /// The largest number of simultaneous caches of all processes, at most 16384. 0 means 64.
    pub caches: u64,
    /// How many objects move together between a cache and the other caches, at most 64. A cache retains up to twice
    /// this number. 0 means 64, or less for a small slab.
    pub chain: u64,
    /// A number that distinguishes this program's slabs from those of other programs; see millstream_slab_tag.
    pub tag: u64,
    /// Not 0: requests huge pages from the kernel, which affects only the speed.
    pub huge_pages: u32,
    /// Not 0: reserves space in the file system for every object before it is allocated, so that a full device causes
    /// an error and not a SIGBUS. The reservation covers the objects that are usable at first, and those by which the
    /// slab grows later.
    pub reserve: u32,
    /// Not 0: records the last owner of each object; see millstream_slab_set_owner. This takes 8 bytes per object.
    pub owners: u32,
    /// The permissions of the file, at most 0777, further limited by the umask. 0: 0600.
    pub mode: u32,
}

// SAFETY: `Pod` rules out padding, and the first member is the size.
unsafe impl Extensible for millstream_slab_options {
    const NAME: &'static str = "millstream_slab_options";
    const FIRST_BYTES: u64 = 72;
}

impl millstream_slab_options {
    fn build(&self) -> Result<Options, Failure> {
        let mut options = sized(self.object_bytes, self.max_objects)?.tag(self.tag);
        if self.capacity != 0 {
            options = options.capacity(self.capacity);
        }
        if self.caches != 0 {
            options = options.caches(self.caches);
        }
        if self.chain != 0 {
            options = options.chain(self.chain);
        }
        if self.huge_pages != 0 {
            options = options.huge_pages();
        }
        if self.reserve != 0 {
            options = options.reserve();
        }
        if self.owners != 0 {
            options = options.owners();
        }
        if self.mode != 0 {
            options = options.mode(self.mode);
        }
        Ok(options)
    }
}

fn sized(object_bytes: u64, max_objects: u64) -> Result<Options, Failure> {
    const LARGEST: u64 = 1 << 30;
    // The Rust library rounds the size up, but here the caller's buffers would then be too short.
    if !object_bytes.is_multiple_of(8) || !(8..=LARGEST).contains(&object_bytes) {
        let what = "object_bytes, a multiple of 8,";
        return Err(Error::OutOfRange { what, found: object_bytes, least: 8, most: LARGEST }.into());
    }
    Ok(RawSlab::options(object_bytes, max_objects))
}

/// Creates a slab in a new file: at most `max_objects` objects of `object_bytes` bytes, which must be a multiple of 8.
/// Returns MILLSTREAM_SLAB_EXISTS if the file already exists: open that file.
///
/// The file appears atomically, with a complete slab. In /dev/shm it outlives its processes, but not a reboot.
///
/// # Safety
/// `path` is a C string; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_create(
    path: *const c_char,
    object_bytes: u64,
    max_objects: u64,
    out: *mut *mut millstream_slab,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `path` is NULL or a C string.
        let path = unsafe { file_path(path) }?;
        Ok(millstream_slab::give(sized(object_bytes, max_objects)?.create(path)?))
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Creates a slab like millstream_slab_create, with all options.
///
/// # Safety
/// `path` is a C string; `options` points to options whose `struct_bytes` is their size; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_create_with(
    path: *const c_char,
    options: *const millstream_slab_options,
    out: *mut *mut millstream_slab,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `path` is NULL or a C string, and that `options` is NULL or as large as
        // its first member says.
        let (path, options) = unsafe { (file_path(path)?, extensible::read("options", options)?) };
        Ok(millstream_slab::give(options.build()?.create(path)?))
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Creates a slab in memory without a name, for the children of a fork and for processes that receive the descriptor;
/// see millstream_slab_fd. The slab is gone when the last of these processes ends.
///
/// # Safety
/// `options` points to options whose `struct_bytes` is their size; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_create_memfd(
    options: *const millstream_slab_options,
    out: *mut *mut millstream_slab,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `options` is NULL or as large as its first member says.
        let options = unsafe { extensible::read("options", options) }?;
        Ok(millstream_slab::give(options.build()?.memfd()?))
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}
