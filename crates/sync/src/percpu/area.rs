//! The area in which the kernel stores the number of the processor on which a thread is running.

use std::marker::PhantomData;
use std::sync::atomic::{
    AtomicIsize, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use super::{arch, registration};

/// This thread's live rseq area: proof that the kernel restarts the thread's sequences.
///
/// Each thread has its own area, so this value stays with its thread. The area lives until the thread ends: a
/// destructor of a thread-local value must not use a stored area, but call [`current`](Self::current) again.
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
    /// Distance from the thread pointer in bytes.
    offset: isize,
    _of_this_thread: PhantomData<*const ()>,
}

/// The code that registers the areas of this process's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The C library registered each thread when it started.
    Libc,
    /// This module registers each thread when it first asks for its area.
    Own,
    /// There are no areas: the kernel has no such call or forbids it, or `MILLSTREAM_RSEQ=off`.
    None,
}

/// Offsets of the words in an area, in bytes: the kernel's interface.
pub(super) mod word {
    pub(in crate::percpu) const CPU: usize = 4;
    pub(in crate::percpu) const CONCURRENCY: usize = 24;
}

/// The common offset of all areas that the C library registered, which is a multiple of 32, or one of the two constants
/// below.
static COMMON_OFFSET: AtomicIsize = AtomicIsize::new(UNKNOWN);
const UNKNOWN: isize = 1;
/// The C library registers no areas, so each thread has an [own offset](registration::own_offset).
const OWN: isize = 2;

/// Offset in an area of the word that numbers the slots of private data, valid once [`COMMON_OFFSET`] is known.
static PRIVATE: AtomicUsize = AtomicUsize::new(word::CPU);

impl Area {
    /// This thread's area; `None` if the kernel does not restart sequences of this thread.
    ///
    /// Wait-free, two loads and a branch where the C library registers threads (glibc since 2.35); otherwise a check of
    /// a thread-local value, and a system call the first time. The first call of a process reads the environment, and
    /// the first call of a thread with an area of our own may allocate; all other calls are safe in signal handlers.
    #[inline]
    #[must_use]
    pub fn current() -> Option<Area> {
        match Area::common_offset() {
            Some(offset) => Area::at_common(offset),
            None => Area::find(),
        }
    }

    #[cold]
    #[inline(never)]
    fn find() -> Option<Area> {
        if COMMON_OFFSET.load(Relaxed) == UNKNOWN {
            let private = if has_concurrency_ids() { word::CONCURRENCY } else { word::CPU };
            // Several threads may determine the offset; all of them find the same offset. But two threads must never
            // number their slots differently, so this word is stored before the offset.
            PRIVATE.store(private, Relaxed);
            COMMON_OFFSET.store(registration::libc_offset().unwrap_or(OWN), Release);
            return Area::current();
        }
        registration::own_offset().map(Area::at)
    }

    /// The common offset of all threads' areas; there is such an offset only where the C library registers the areas.
    #[inline(always)]
    pub(super) fn common_offset() -> Option<isize> {
        // Acquire pairs with the release in `find`: a thread that sees the offset sees `PRIVATE`, too.
        let offset = COMMON_OFFSET.load(Acquire);
        (offset & (UNKNOWN | OWN) == 0).then_some(offset)
    }

    /// The area at the [common offset](Self::common_offset), if the C library registered this thread, too.
    #[inline(always)]
    pub(super) fn at_common(offset: isize) -> Option<Area> {
        let area = Area::at(offset);
        area.is_live().then_some(area)
    }

    /// Whether the C library succeeded in registering this thread; if it failed, the processor's number is negative.
    #[inline(always)]
    fn is_live(self) -> bool {
        self.cpu() as i32 >= 0
    }

    fn at(offset: isize) -> Area {
        Area { offset, _of_this_thread: PhantomData }
    }

    /// The code that registers this process's threads; [`None`](Source::None) if this thread has no area. Costs what
    /// [`current`](Self::current) costs.
    #[must_use]
    pub fn source() -> Source {
        match (Area::current(), COMMON_OFFSET.load(Relaxed)) {
            (None, _) => Source::None,
            (Some(_), OWN) => Source::Own,
            (Some(_), _) => Source::Libc,
        }
    }

    /// The processor on which the thread is running. The thread may leave it as soon as this call returns.
    ///
    /// One load. The numbers are those of the whole machine and may have gaps.
    #[inline]
    #[must_use]
    pub fn cpu(self) -> u32 {
        self.read::<{ word::CPU }>()
    }

    /// The operand `{area}` of [`rseq_section!`](crate::rseq_section): on x86-64 the area's distance from the base of
    /// `fs` in bytes, on aarch64 its address.
    #[inline]
    #[must_use]
    pub fn operand(self) -> usize {
        arch::operand(self.offset)
    }

    /// Like [`operand`](Self::operand), for the word that numbers the slots of private data: the concurrency id if the
    /// kernel has it (Linux ≥ 6.3), otherwise the processor's number.
    ///
    /// No other running thread *of this process* has the same concurrency id. As far as possible, it is smaller than
    /// the number of the process's threads, and smaller than the number of processors that the process may use.
    #[inline]
    pub(super) fn private_index(self) -> usize {
        self.operand() + PRIVATE.load(Relaxed)
    }

    /// Like [`private_index`](Self::private_index), for data shared with other processes: always the processor's
    /// number.
    #[inline]
    pub(super) fn shared_index(self) -> usize {
        self.operand() + word::CPU
    }

    #[inline]
    fn read<const WORD: usize>(self) -> u32 {
        // SAFETY: the area belongs to this thread, lives as long as the thread, and all its words are readable.
        unsafe { arch::read::<WORD>(self.offset) }
    }
}

/// Whether the kernel fills in concurrency ids. The kernel tells every process at start-up.
fn has_concurrency_ids() -> bool {
    /// `AT_RSEQ_FEATURE_SIZE`: the number of an area's bytes that the kernel knows. Both ways to register an area give
    /// it 32 bytes, so these words are within it.
    const FEATURE_SIZE: libc::c_ulong = 27;
    // SAFETY: `getauxval` only reads a table that the kernel made at the start of the process.
    unsafe { libc::getauxval(FEATURE_SIZE) as usize >= word::CONCURRENCY + size_of::<u32>() }
}
