//! The header of the shared memory; the [module](super) documents the layout.

#[cfg(not(loom))]
use std::cell::UnsafeCell;

#[cfg(not(loom))]
use super::kind::Kind;
use super::sleep::Sleeper;
use crate::primitive::atomic::AtomicU64;

/// The header, in the documented layout.
#[repr(C, align(128))]
pub(super) struct Header {
    /// Read and written through the file, before the file is mapped.
    #[cfg(not(loom))]
    _kind: Line<UnsafeCell<[u8; Kind::BYTES]>>,
    pub(super) published: Line<AtomicU64>,
    pub(super) consumed: Line<AtomicU64>,
    /// The consumer sleeps on this word, and the producer wakes it.
    pub(super) arrivals: Line<Sleeper>,
    /// The producer sleeps on this word, and the consumer wakes it.
    pub(super) room: Line<Sleeper>,
}

#[repr(C, align(128))]
pub(super) struct Line<T>(pub(super) T);

#[cfg(not(loom))]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Header, published) == 128 && offset_of!(Header, consumed) == 256);
    assert!(offset_of!(Header, arrivals) == 384 && offset_of!(Header, room) == 512);
    assert!(size_of::<Header>() == 640 && size_of::<Sleeper>() == 8);
};

/// The header of a new ring. In a mapped file these words start as zero.
#[cfg(loom)]
impl Header {
    pub(super) fn new() -> Self {
        let [published, consumed] = [(); 2].map(|()| Line(AtomicU64::new(0)));
        let [arrivals, room] = [(); 2].map(|()| Line(Sleeper::new()));
        Header { published, consumed, arrivals, room }
    }
}
