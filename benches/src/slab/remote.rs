//! Free by another thread, and by another process: one allocates, the other frees.

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use millstream_slab::{Handle, RawSlab};
use mimalloc::MiMalloc;
use tikv_jemallocator::Jemalloc;

use super::heap::{Global, Local, OBJECT_BYTES, Published, slab};
use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;

const OBJECTS: usize = 4_000_000;
const QUICK_OBJECTS: usize = 20_000;
/// Objects that change hands at once.
const BATCH: usize = 256;
/// Batches that are on their way.
const DEPTH: usize = 8;

/// Prints the table.
///
/// # Errors
/// When an object was lost.
pub fn run(args: &Args) -> Result<(), Error> {
    let n = if args.quick { QUICK_OBJECTS } else { OBJECTS };
    println!("### remote: one thread allocates, another frees, {n} objects\n");
    let slab = slab(2, BATCH * (DEPTH + 3));
    let comparison = alternate("ns per object", 1, args.rounds, competitors(&slab, n))?;
    println!("{}\n", comparison.render());
    println!("### remote: one process allocates, another frees, {n} objects\n");
    let took = (0..args.rounds).map(|_| between_processes(n)).collect::<Result<Vec<f64>, Error>>()?;
    let median = crate::compare::median(&took);
    println!("slab: {median:.1} ns per object, median of {} rounds; no peer can do it.\n", took.len());
    Ok(())
}

fn competitors(slab: &RawSlab, n: usize) -> Vec<Competitor<'_>> {
    let cache = || Published(slab.cache().expect("there are enough caches"));
    vec![
        Competitor::new("slab, published", Role::Ours, move || {
            let took = hand_over(n, cache);
            let allocated = slab.usage().allocated();
            if allocated == 0 { Ok(took) } else { Err(Error::new(format!("{allocated} objects are left"))) }
        }),
        Competitor::new("jemalloc", Role::Peer, move || Ok(hand_over(n, || Global(Jemalloc)))),
        Competitor::new("mimalloc", Role::Peer, move || Ok(hand_over(n, || Global(MiMalloc)))),
    ]
}

/// Nanoseconds for an object from its allocation to its free.
fn hand_over<O: Send + 'static, L: for<'l> Local<Object<'l> = O> + 'static>(
    n: usize,
    local: impl Fn() -> L + Sync,
) -> f64 {
    let (full, to_free) = std::sync::mpsc::sync_channel::<Vec<O>>(DEPTH);
    let (empty, to_fill) = std::sync::mpsc::sync_channel::<Vec<O>>(DEPTH + 2);
    for _ in 0..DEPTH {
        empty.send(Vec::with_capacity(BATCH)).expect("the other end is here");
    }
    thread::scope(|scope| {
        let local = &local;
        let freeing = scope.spawn(move || {
            let local = local();
            for mut batch in to_free {
                batch.drain(..).for_each(|object| local.free(black_box(object)));
                // The allocating thread may have gone.
                drop(empty.send(batch));
            }
            Instant::now()
        });
        let local = local();
        let began = Instant::now();
        for _ in 0..n / BATCH {
            let mut batch = to_fill.recv().expect("the freeing thread lives");
            batch.extend((0..BATCH).map(|_| local.alloc()));
            full.send(batch).expect("the freeing thread lives");
        }
        drop(full);
        let ended = freeing.join().expect("the freeing thread does not panic");
        (ended - began).as_nanos() as f64 / (n / BATCH * BATCH) as f64
    })
}

/// The same with the freeing thread in another process, by handles through a pipe.
fn between_processes(n: usize) -> Result<f64, Error> {
    let folder = tempfile::tempdir().map_err(|error| Error::new(error.to_string()))?;
    let path = folder.path().join("slab");
    let fail = |error: &dyn std::fmt::Display| Error::new(error.to_string());
    let objects = (BATCH * 4096).min(n + 1024) as u64;
    let slab = RawSlab::options(OBJECT_BYTES as u64, objects).chain(64).create(&path).map_err(|error| fail(&error))?;
    let program = std::env::current_exe().map_err(|error| fail(&error))?;
    let mut child = Command::new(program)
        .args(["slab", "--frees"])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| fail(&error))?;
    let mut pipe = child.stdin.take().expect("it was asked for");
    let cache = slab.cache().map_err(|error| fail(&error))?;
    let began = Instant::now();
    let mut batch = Vec::with_capacity(BATCH);
    for _ in 0..n / BATCH {
        while batch.len() < BATCH {
            match cache.alloc() {
                Ok(mut object) => {
                    object[0] = 1;
                    batch.push(object.publish());
                }
                // The other process is behind.
                Err(millstream_slab::Error::Full { .. }) => thread::yield_now(),
                Err(error) => return Err(fail(&error)),
            }
        }
        std::io::Write::write_all(&mut pipe, bytemuck::cast_slice(&batch)).map_err(|error| fail(&error))?;
        batch.clear();
    }
    drop(pipe);
    let status = child.wait().map_err(|error| fail(&error))?;
    let took = began.elapsed().as_nanos() as f64 / n as f64;
    let allocated = slab.usage().allocated();
    if status.success() && allocated == 0 {
        Ok(took)
    } else {
        Err(Error::new(format!("{allocated} objects are left, and the other process ended with {status}")))
    }
}

/// The other process: frees what comes through standard input.
///
/// # Errors
/// When a handle is refused.
pub fn frees(path: &std::path::Path) -> Result<(), Error> {
    let fail = |error: &dyn std::fmt::Display| Error::new(error.to_string());
    let slab = RawSlab::open(path).map_err(|error| fail(&error))?;
    let cache = slab.cache().map_err(|error| fail(&error))?;
    let mut input = std::io::stdin().lock();
    let mut batch = vec![Handle::default(); BATCH];
    while std::io::Read::read_exact(&mut input, bytemuck::cast_slice_mut(&mut batch)).is_ok() {
        for &handle in &batch {
            cache.free(handle).map_err(|error| fail(&error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left() {
        let slab = slab(2, BATCH * (DEPTH + 3));
        for mut competitor in competitors(&slab, 10 * BATCH) {
            assert!((competitor.run)().unwrap() > 0.0, "{}", competitor.name);
        }
    }
}
