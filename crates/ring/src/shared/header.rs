//! The words of the shared memory, see the layout in the [module's](super) docs.

use millstream_sync::eventcount::SharedEventCount;

use crate::primitive::atomic::{AtomicU32, AtomicU64};

/// What a file of this kind begins with.
#[cfg(not(loom))]
pub(super) const MAGIC: u64 = u64::from_ne_bytes(*b"MSTRING1");

/// The documented layout.
#[repr(C, align(128))]
pub(super) struct Header {
    #[cfg(not(loom))]
    pub(super) kind: Kind,
    pub(super) published: Line<AtomicU64>,
    pub(super) consumed: Line<AtomicU64>,
    pub(super) arrivals: Line<Sleeper>,
    pub(super) room: Line<Sleeper>,
}

/// What the file is, checked by all who attach.
#[cfg(not(loom))]
#[repr(C)]
pub(super) struct Kind {
    pub(super) magic: AtomicU64,
    pub(super) event_bytes: AtomicU32,
    pub(super) event_align: AtomicU32,
    pub(super) slots: AtomicU64,
}

#[repr(C, align(128))]
pub(super) struct Line<T>(pub(super) T);

/// One side's sleep; see [`sleep`](super::sleep).
#[repr(C)]
pub(super) struct Sleeper {
    pub(super) asleep: AtomicU32,
    pub(super) count: SharedEventCount,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Header>() == 640 && std::mem::offset_of!(Header, published) == 128);
