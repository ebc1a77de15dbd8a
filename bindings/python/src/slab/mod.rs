//! `millstream.slab`: objects shared between processes, seen through Python's buffers.

mod entry;
mod error;
mod handle;
mod hands;
mod private;
mod shared;

pub(crate) use entry::Entry;
pub(crate) use error::SlabError;
pub(crate) use handle::Handle;
pub(crate) use private::Private;
pub(crate) use shared::Slab;
