//! Making a slab.

use std::ffi::c_char;

use ::millstream_slab::{Error, Options, RawSlab};
use bytemuck::{Pod, Zeroable};

use crate::slab::millstream_slab;
use crate::status::{Failure, answer, file_path};

/// What a new slab is like:
/// `millstream_slab_options options = {.struct_bytes = sizeof options, .object_bytes = 64, .max_objects = 1000};`
/// These three have to be set. All others may be 0, which leaves them to the library.
// `Pod` has no padding: every byte is one that the caller has set, or zero.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_slab_options {
    /// sizeof(millstream_slab_options), by which the library knows of which options the program knows.
    pub struct_bytes: u64,
    /// The bytes of an object, a multiple of 8.
    pub object_bytes: u64,
    /// The most objects there can be.
    pub max_objects: u64,
    /// How many objects may be used at first; the number doubles when it is needed. 0: all of them.
    pub capacity: u64,
    /// How many caches there can be at once, in all processes, at most 16384. 0: 64.
    pub caches: u64,
    /// How many objects move between a cache and the others at once, at most 64. A cache keeps up to twice as many to
    /// itself. 0: 64, or less for a small slab.
    pub chain: u64,
    /// A number that tells this program's objects from those of others; see millstream_slab_tag.
    pub tag: u64,
    /// Not 0: asks the kernel for huge pages. A matter of speed only.
    pub huge_pages: u32,
    /// Not 0: has every object backed by the file system before it can be handed out, so that a full device is an error and
    /// not a SIGBUS. Only for those that may be used at first, and for what this slab is made to grow by.
    pub reserve: u32,
    /// Not 0: keeps for each object who had it last; see millstream_slab_set_owner. 8 bytes an object.
    pub owners: u32,
    /// The file's permissions, at most 0777, of which the umask is taken away. 0: 0600.
    pub mode: u32,
}

impl millstream_slab_options {
    /// Those of the first version of this struct; a later one has more.
    const LEAST_BYTES: u64 = 72;
    /// No version will have more: this is not a size.
    const MOST_BYTES: u64 = 4096;

    /// The options of a program whose header may be older than this library, or younger.
    ///
    /// # Safety
    /// `options` is NULL, or points to as many bytes as its first word says.
    unsafe fn read(options: *const Self) -> Result<Self, Failure> {
        if options.is_null() {
            return Err(Failure::Null { what: "options" });
        }
        let (least, most) = (Self::LEAST_BYTES, Self::MOST_BYTES);
        // SAFETY: not NULL, and the caller's promise.
        let found = unsafe { options.cast::<u64>().read() };
        if !(least..=most).contains(&found) {
            let what = "struct_bytes, the sizeof of millstream_slab_options,";
            return Err(Error::OutOfRange { what, found, least, most }.into());
        }
        // SAFETY: the caller's promise.
        let given = unsafe { std::slice::from_raw_parts(options.cast::<u8>(), found as usize) };
        let mut known = Self::zeroed();
        let (known_to_both, new) = given.split_at(given.len().min(size_of::<Self>()));
        bytemuck::bytes_of_mut(&mut known)[..known_to_both.len()].copy_from_slice(known_to_both);
        if new.iter().any(|&byte| byte != 0) {
            let (what, most) =
                ("struct_bytes, with options that this library is too old for,", size_of::<Self>() as u64);
            return Err(Error::OutOfRange { what, found, least, most }.into());
        }
        Ok(known)
    }

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
    // Rust rounds up; here the caller's buffers would be too short.
    if !object_bytes.is_multiple_of(8) || !(8..=LARGEST).contains(&object_bytes) {
        let what = "object_bytes, a multiple of 8,";
        return Err(Error::OutOfRange { what, found: object_bytes, least: 8, most: LARGEST }.into());
    }
    Ok(RawSlab::options(object_bytes, max_objects))
}

/// Makes a slab of at most `max_objects` objects of `object_bytes` bytes, a multiple of 8, in a new file.
/// MILLSTREAM_SLAB_EXISTS if there is a file already: open that.
///
/// The file appears whole or not at all. In /dev/shm it outlives its processes but not a reboot.
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
        // SAFETY: the caller's promise.
        let path = unsafe { file_path(path) }?;
        Ok(millstream_slab::give(sized(object_bytes, max_objects)?.create(path)?))
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// millstream_slab_create with all that can be said of a slab.
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
        // SAFETY: the caller's promise.
        let (path, options) = unsafe { (file_path(path)?, millstream_slab_options::read(options)?) };
        Ok(millstream_slab::give(options.build()?.create(path)?))
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Makes a slab in memory that has a descriptor, millstream_slab_fd, but no name: for children of a fork, and for processes
/// that are handed the descriptor. It is gone with the last of them.
///
/// # Safety
/// `options` points to options whose `struct_bytes` is their size; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_create_memfd(
    options: *const millstream_slab_options,
    out: *mut *mut millstream_slab,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let options = unsafe { millstream_slab_options::read(options) }?;
        Ok(millstream_slab::give(options.build()?.memfd()?))
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}
