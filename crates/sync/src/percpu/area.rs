//! The area in which the kernel tells a thread where it runs.

use std::marker::PhantomData;
use std::sync::atomic::{
    AtomicIsize, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use super::{arch, own, source};

/// This thread's live rseq area: proof that the kernel restarts its sequences.
///
/// Each thread has its own, so it stays with its thread. It lives until the thread ends: do not keep one for use in
/// destructors of thread-local values, ask again there.
///
/// ```
/// use millstream_sync::percpu::Area;
///
/// match Area::current() {
///     Some(area) => println!("on processor {}, by {:?}", area.cpu(), Area::source()),
///     None => println!("no restartable sequences here"),
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Area {
    /// Bytes from the thread pointer.
    offset: isize,
    _of_this_thread: PhantomData<*const ()>,
}

/// Who registered the areas of this process's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The C library, when each thread started.
    Libc,
    /// This module, when a thread asked first.
    Own,
    /// Nobody: the kernel has no such call or forbids it, or `MILLSTREAM_RSEQ=off`.
    Nobody,
}

/// Where in an area the words are, in bytes: the kernel's interface.
pub(super) mod word {
    pub(in crate::percpu) const CPU: usize = 4;
    pub(in crate::percpu) const NODE: usize = 20;
    pub(in crate::percpu) const CONCURRENCY: usize = 24;
}

/// The offset of the C library's area, which is a multiple of 32, or one of the two below.
static PLACE: AtomicIsize = AtomicIsize::new(UNKNOWN);
const UNKNOWN: isize = 1;
/// Each thread asks [`own`].
const OWN: isize = 2;

/// Where in an area the number of a slot of private data is, once [`PLACE`] is known.
static PRIVATE: AtomicUsize = AtomicUsize::new(word::CPU);

impl Area {
    /// This thread's area; none if the kernel does not restart sequences of this thread.
    ///
    /// Wait-free, two loads and a branch where the C library registers threads (glibc since 2.35); otherwise a look
    /// at a thread-local value, and a system call the first time. The first call of a process reads the
    /// environment, and the first of a thread with an area of our own may allocate; all others may be made in signal handlers.
    #[inline]
    #[must_use]
    pub fn current() -> Option<Area> {
        // Acquire: who sees the place sees `PRIVATE`, too.
        let place = PLACE.load(Acquire);
        if place & (UNKNOWN | OWN) != 0 {
            return Area::look();
        }
        Area::at_common(place)
    }

    #[cold]
    #[inline(never)]
    fn look() -> Option<Area> {
        if PLACE.load(Relaxed) == UNKNOWN {
            let private = if has_concurrency_ids() { word::CONCURRENCY } else { word::CPU };
            // Every thread comes to the same conclusion, and one that does not see it yet concludes again. But two
            // threads must never count their slots differently; so this word comes first.
            PRIVATE.store(private, Relaxed);
            PLACE.store(source::libc_offset().unwrap_or(OWN), Release);
            return Area::current();
        }
        own::offset().map(Area::at)
    }

    /// The offset of all threads' areas, if it is one: where the C library registers them.
    pub(super) fn common_offset() -> Option<isize> {
        let place = PLACE.load(Acquire);
        (place & (UNKNOWN | OWN) == 0).then_some(place)
    }

    /// The area at the [common offset](Self::common_offset), if the C library registered this thread, too.
    #[inline(always)]
    pub(super) fn at_common(offset: isize) -> Option<Area> {
        let area = Area::at(offset);
        area.is_live().then_some(area)
    }

    /// Not if the C library tried to register this thread and failed: then the processor's number is negative.
    #[inline(always)]
    fn is_live(self) -> bool {
        self.cpu() as i32 >= 0
    }

    fn at(offset: isize) -> Area {
        Area { offset, _of_this_thread: PhantomData }
    }

    /// Who registers this process's threads; [`Nobody`](Source::Nobody) if this thread has no area.
    #[must_use]
    pub fn source() -> Source {
        match (Area::current(), PLACE.load(Relaxed)) {
            (None, _) => Source::Nobody,
            (Some(_), OWN) => Source::Own,
            (Some(_), _) => Source::Libc,
        }
    }

    /// The processor on which the thread runs now; it may be another one as soon as this returns.
    ///
    /// One load. Numbers are those of the whole machine and may have gaps.
    #[inline]
    #[must_use]
    pub fn cpu(self) -> u32 {
        self.read::<{ word::CPU }>()
    }

    /// The NUMA node of that processor, where the kernel tells (Linux ≥ 6.3).
    #[must_use]
    pub fn node(self) -> Option<u32> {
        has_concurrency_ids().then(|| self.read::<{ word::NODE }>())
    }

    /// A number that no other running thread *of this process* has, where the kernel gives one (Linux ≥ 6.3): smaller
    /// than both the number of the process's threads and of the processors it may use, as far as that is possible.
    ///
    /// Never an index into memory shared with other processes.
    #[must_use]
    pub fn concurrency_id(self) -> Option<u32> {
        has_concurrency_ids().then(|| self.read::<{ word::CONCURRENCY }>())
    }

    /// Bytes from the thread pointer (x86-64: base of `fs`; aarch64: `tpidr_el0`) to the area.
    #[inline]
    #[must_use]
    pub fn offset(self) -> isize {
        self.offset
    }

    /// What [`rseq_section!`](crate::rseq_section) takes as `{area}`: on x86-64 the [`offset`](Self::offset), on
    /// aarch64 the area's address.
    #[inline]
    #[must_use]
    pub fn operand(self) -> usize {
        arch::operand(self.offset)
    }

    /// Like [`operand`](Self::operand), of the word with the number of a slot of private data: the concurrency id where the kernel has it,
    /// otherwise the processor's number.
    #[inline]
    pub(super) fn private_index(self) -> usize {
        self.operand() + PRIVATE.load(Relaxed)
    }

    /// Like [`private_index`](Self::private_index), for data shared with other processes: always the processor's number.
    #[inline]
    pub(super) fn shared_index(self) -> usize {
        self.operand() + word::CPU
    }

    #[inline]
    fn read<const WORD: usize>(self) -> u32 {
        // SAFETY: the area is this thread's and lives as long; all words of it are readable.
        unsafe { arch::read::<WORD>(self.offset) }
    }
}

/// Whether the kernel fills in nodes and concurrency ids: it says so to every process that it starts.
fn has_concurrency_ids() -> bool {
    /// `AT_RSEQ_FEATURE_SIZE`: how many bytes of an area the kernel knows. Both ways to register an area give it
    /// 32 bytes, so that these words are within it.
    const FEATURE_SIZE: libc::c_ulong = 27;
    // SAFETY: looks into a table.
    unsafe { libc::getauxval(FEATURE_SIZE) as usize >= word::CONCURRENCY + size_of::<u32>() }
}
