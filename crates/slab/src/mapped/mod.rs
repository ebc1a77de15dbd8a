//! A slab in mapped memory: everything but the depot's algorithm, which also runs in loom models, where no memory can
//! be mapped.

mod attach;
mod cache;
mod check;
mod error;
mod file;
mod fork;
mod geometry;
mod handle;
mod header;
mod inspect;
mod live;
mod mapping;
mod memory;
mod options;
mod parcel;
mod private;
mod process;
mod raw;
mod rebuild;
mod rebuild_lock;
mod recover;
mod register;
mod typed;
mod wait;

pub use self::{
    cache::RawCache,
    check::{Report, Usage},
    error::{Error, Work},
    handle::Handle,
    inspect::Inspection,
    live::{Holder, Live, Object},
    options::Options,
    parcel::RawParcel,
    private::RawPrivate,
    raw::RawSlab,
    recover::Recovered,
    typed::{Cache, Parcel, Private, Slab},
};
