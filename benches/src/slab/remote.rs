//! Freeing by another thread, and by another process: one side allocates, the other frees.
//!
//! Objects are passed in batches, through rings whose ends never sleep. With a channel that sleeps, waking threads
//! would take most of the time.

use std::fs::File;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use millstream_ring::shared::{Consumer, Producer};
use millstream_slab::{Handle, RawCache, RawParcel, RawSlab};
#[cfg(feature = "allocators")]
use mimalloc::MiMalloc;
#[cfg(feature = "allocators")]
use tikv_jemallocator::Jemalloc;

use super::heap::{Local, OBJECT_BYTES, Published, slab};
use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;

const OBJECTS: usize = 4_000_000;
const QUICK_OBJECTS: usize = 20_000;
/// Objects per batch.
const BATCH: usize = 256;
/// Limit on batches in transit.
const DEPTH: usize = 8;

/// Prints the table.
///
/// # Errors
/// Fails when an object was lost.
pub fn run(args: &Args) -> Result<(), Error> {
    let n = if args.quick { QUICK_OBJECTS } else { OBJECTS };
    println!("### remote: one thread allocates, another frees, {n} objects\n");
    let slab = slab(2, BATCH * (DEPTH + 3));
    let comparison = alternate("ns per object", 1, args.rounds, competitors(&slab, n))?;
    println!("{}\n", comparison.render());
    println!("### remote: one process allocates, another frees, {n} objects\n");
    let took = (0..args.rounds).map(|_| between_processes(n)).collect::<Result<Vec<f64>, Error>>()?;
    let median = crate::compare::median(&took);
    println!("slab: {median:.1} ns per object, median of {} rounds; no peer can do this.\n", took.len());
    Ok(())
}

fn competitors(slab: &RawSlab, n: usize) -> Vec<Competitor<'_>> {
    let cache = || slab.cache().expect("there are enough caches");
    let parcel = || slab.parcel().expect("there are enough caches");
    let nothing_left = |took: f64| match slab.usage().allocated() {
        0 => Ok(took),
        allocated => Err(Error::new(format!("{allocated} objects are still allocated"))),
    };
    // The freed objects remain in the parcel, or go to the cache of the freeing thread.
    let by_parcel = move |free: fn(&mut RawParcel, &RawCache) -> Result<(), millstream_slab::Error>| {
        let fill = || {
            let cache = cache();
            move |batch: &mut RawParcel| {
                batch.fill(&cache, BATCH, |object| object[0] = 1).expect("the slab is large enough");
            }
        };
        let empty = || {
            let cache = cache();
            move |batch: &mut RawParcel| free(batch, &cache).expect("it is the same slab")
        };
        nothing_left(hand_over(n, parcel, fill, empty))
    };
    vec![
        Competitor::new("slab, parcels to and fro", Role::Ours, move || by_parcel(RawParcel::clear)),
        Competitor::new("slab, by parcel", Role::Ours, move || by_parcel(RawParcel::free)),
        Competitor::new("slab, published", Role::Ours, move || nothing_left(one_by_one(n, || Published(cache())))),
        #[cfg(feature = "allocators")]
        Competitor::new("jemalloc", Role::Peer, move || Ok(one_by_one(n, || super::heap::Global(Jemalloc)))),
        #[cfg(feature = "allocators")]
        Competitor::new("mimalloc", Role::Peer, move || Ok(one_by_one(n, || super::heap::Global(MiMalloc)))),
    ]
}

/// The figure of [`hand_over`], with vectors of objects as batches.
fn one_by_one<O: Send + 'static, L: for<'l> Local<Object<'l> = O> + 'static>(
    n: usize,
    local: impl Fn() -> L + Sync,
) -> f64 {
    let fill = || {
        let local = local();
        move |batch: &mut Vec<O>| batch.extend((0..BATCH).map(|_| local.alloc()))
    };
    let empty = || {
        let local = local();
        move |batch: &mut Vec<O>| batch.drain(..).for_each(|object| local.free(black_box(object)))
    };
    hand_over(n, || Vec::with_capacity(BATCH), fill, empty)
}

/// Nanoseconds per object, allocation and freeing included. One thread fills batches, and the other empties them.
fn hand_over<B: Send, F: FnMut(&mut B), E: FnMut(&mut B)>(
    n: usize,
    batch: impl Fn() -> B,
    fill: impl Fn() -> F,
    empty: impl Fn() -> E + Sync,
) -> f64 {
    let (mut full, mut to_free) = rtrb::RingBuffer::<B>::new(DEPTH);
    let (mut emptied, mut to_fill) = rtrb::RingBuffer::<B>::new(DEPTH);
    for _ in 0..DEPTH {
        assert!(emptied.push(batch()).is_ok(), "the ring has room for every batch");
    }
    thread::scope(|scope| {
        let empty = &empty;
        let freeing = scope.spawn(move || {
            let mut empty = empty();
            for _ in 0..n / BATCH {
                let mut batch = soon(|| to_free.pop().ok());
                empty(&mut batch);
                assert!(emptied.push(batch).is_ok(), "the ring has room for every batch");
            }
            Instant::now()
        });
        let mut fill = fill();
        let began = Instant::now();
        for _ in 0..n / BATCH {
            let mut batch = soon(|| to_fill.pop().ok());
            fill(&mut batch);
            assert!(full.push(batch).is_ok(), "the ring has room for every batch");
        }
        let ended = freeing.join().expect("the freeing thread does not panic");
        (ended - began).as_nanos() as f64 / (n / BATCH * BATCH) as f64
    })
}

/// The time without progress after which one side treats the other as dead.
const PATIENCE: Duration = Duration::from_secs(120);

/// Polls until `look` returns a value. Yields occasionally, because the other side may need the core.
///
/// # Panics
/// Panics after a long silence, because the other side must have failed.
fn soon<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let mut gives_up = None;
    loop {
        for _ in 0..1000 {
            if let Some(found) = look() {
                return found;
            }
            std::hint::spin_loop();
        }
        let gives_up = *gives_up.get_or_insert_with(|| Instant::now() + PATIENCE);
        assert!(Instant::now() < gives_up, "the other side of the slab benchmark has sent nothing for {PATIENCE:?}");
        thread::yield_now();
    }
}

/// Handles in transit to another process, as plain numbers. A batch of zeros is the last.
type Sent = [u64; 2 * BATCH];

/// The path of the ring that belongs to a slab.
fn ring(slab: &Path) -> PathBuf {
    slab.with_extension("ring")
}

/// Nanoseconds per object if another process frees the objects. Handles go to that process through a ring in shared
/// memory.
fn between_processes(n: usize) -> Result<f64, Error> {
    let fail = |error: &dyn std::fmt::Display| Error::new(error.to_string());
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).map_err(|error| fail(&error))?;
    let path = folder.path().join("slab");
    let objects = (BATCH * (DEPTH + 6)) as u64;
    let slab = RawSlab::options(OBJECT_BYTES as u64, objects).chain(64).create(&path).map_err(|error| fail(&error))?;
    let file =
        File::options().read(true).write(true).create_new(true).open(ring(&path)).map_err(|error| fail(&error))?;
    let mut sent = Producer::<Sent>::attach(&file, DEPTH).map_err(|error| fail(&error))?;
    let program = std::env::current_exe().map_err(|error| fail(&error))?;
    let mut child = Command::new(program).args(["slab", "--frees"]).arg(&path).spawn().map_err(|error| fail(&error))?;
    let cache = Published(slab.cache().map_err(|error| fail(&error))?);
    let mut send = |batch: &[Handle; BATCH]| soon(|| sent.try_send(bytemuck::cast(*batch)).then_some(()));
    let batch = || std::array::from_fn(|_| cache.alloc());
    // The loop sends one batch more than fits into the ring, so its end means that the other process has started.
    (0..=DEPTH).for_each(|_| send(&batch()));
    let began = Instant::now();
    (0..n / BATCH).for_each(|_| send(&batch()));
    let took = began.elapsed().as_nanos() as f64 / (n / BATCH * BATCH) as f64;
    send(&[Handle::default(); BATCH]);
    let status = child.wait().map_err(|error| fail(&error))?;
    let allocated = slab.usage().allocated();
    if status.success() && allocated == 0 {
        Ok(took)
    } else {
        Err(Error::new(format!("{allocated} objects are still allocated, and the other process ended with {status}")))
    }
}

/// Runs the other process: frees the handles that arrive through the ring next to the slab.
///
/// # Errors
/// Fails when the slab refuses a handle.
pub fn frees(path: &Path) -> Result<(), Error> {
    let fail = |error: &dyn std::fmt::Display| Error::new(error.to_string());
    let slab = RawSlab::open(path).map_err(|error| fail(&error))?;
    let cache = slab.cache().map_err(|error| fail(&error))?;
    let file = File::options().read(true).write(true).open(ring(path)).map_err(|error| fail(&error))?;
    let mut sent = Consumer::<Sent>::attach(&file, DEPTH).map_err(|error| fail(&error))?;
    loop {
        let freed = soon(|| {
            sent.try_handle(|handles| {
                let handles: &[Handle] = bytemuck::cast_slice(handles);
                let is_last = handles[0] == Handle::default();
                let free = || handles.iter().try_for_each(|&handle| cache.free(handle));
                if is_last { Ok(false) } else { free().map(|()| true) }
            })
        });
        if !freed.map_err(|error| fail(&error))? {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_competitor_frees_every_object() {
        let slab = slab(2, BATCH * (DEPTH + 3));
        for mut competitor in competitors(&slab, 10 * BATCH) {
            assert!((competitor.run)().unwrap() > 0.0, "{}", competitor.name);
        }
    }
}
