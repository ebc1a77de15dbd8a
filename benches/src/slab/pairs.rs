//! Allocation and freeing by the same thread: one at a time, and 64 at a time.

use std::hint::black_box;

use millstream_slab::RawSlab;
#[cfg(feature = "allocators")]
use mimalloc::MiMalloc;
#[cfg(feature = "allocators")]
use tikv_jemallocator::Jemalloc;

use super::crew::together;
use super::heap::{Global, Listed, Local, OBJECT_BYTES, Private, Published, slab, split};
use super::list::Shared;
use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;
use crate::picture::{self, curves::Curves};

const PAIRS: u64 = 8_000_000;
const QUICK_PAIRS: u64 = 10_000;

/// Prints the tables and draws a picture for each size of batch.
///
/// # Errors
/// Fails when the slab is not sound after the work, or when a picture cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    for (batch, name) in [(1, "slab-pairs-1"), (64, "slab-pairs-64")] {
        let mut curves = Curves::default();
        for threads in [1, 2, 4] {
            let n = if args.quick { QUICK_PAIRS } else { PAIRS } / threads as u64;
            println!("### pairs: allocate {batch}, free {batch}, {threads} thread(s)\n");
            let comparison = alternate("ns per pair", 1, args.rounds, competitors(threads, batch, n))?;
            println!("{}\n", comparison.render());
            curves.add(threads, &comparison, |ns| 1e3 / ns);
        }
        picture::save(args.pictures.as_deref(), name, || {
            let title = format!("Allocate {batch}, free {batch}: objects of {OBJECT_BYTES} bytes");
            curves.draw(&title, "Vertical: millions of pairs a second, all threads together.")
        })?;
    }
    Ok(())
}

fn competitors(threads: usize, batch: usize, n: u64) -> Vec<Competitor<'static>> {
    let ours = move |name: &str, work: fn(&RawSlab, usize, usize, u64) -> f64| {
        let slab = slab(threads, batch);
        Competitor::new(name, Role::Ours, move || {
            let took = work(&slab, threads, batch, n);
            let report = slab.verify();
            if report.is_sound() && report.usage.allocated() == 0 {
                Ok(took)
            } else {
                Err(Error::new(format!("the slab is not sound: {report:?}")))
            }
        })
    };
    let lists = split(threads, batch);
    let list = Shared::new(threads * (batch + 64));
    vec![
        ours("slab, private", |slab, threads, batch, n| {
            pairs(threads, batch, n, |_| Private(slab.cache().expect("there are enough caches")))
        }),
        ours("slab, published", |slab, threads, batch, n| {
            pairs(threads, batch, n, |_| Published(slab.cache().expect("there are enough caches")))
        }),
        #[cfg(feature = "allocators")]
        Competitor::new("mimalloc", Role::Peer, move || Ok(pairs(threads, batch, n, |_| Global(MiMalloc)))),
        #[cfg(feature = "allocators")]
        Competitor::new("jemalloc", Role::Peer, move || Ok(pairs(threads, batch, n, |_| Global(Jemalloc)))),
        Competitor::new("glibc", Role::Peer, move || Ok(pairs(threads, batch, n, |_| Global(std::alloc::System)))),
        Competitor::new("list a thread, as uslab", Role::Peer, move || {
            Ok(pairs(threads, batch, n, |thread| Listed(lists.of(thread))))
        }),
        Competitor::new("one list, wide CAS", Role::Peer, move || Ok(pairs(threads, batch, n, |_| Listed(&list)))),
    ]
}

/// Nanoseconds per pair, all threads together.
fn pairs<L: Local>(threads: usize, batch: usize, n: u64, local: impl Fn(usize) -> L + Sync) -> f64 {
    together(threads, n / batch as u64 * batch as u64, |thread| {
        let local = local(thread);
        move |n| {
            if batch == 1 {
                for _ in 0..n {
                    let object = local.alloc();
                    black_box(&raw const object);
                    local.free(object);
                }
            } else {
                let mut objects = Vec::with_capacity(batch);
                for _ in 0..n / batch as u64 {
                    objects.extend((0..batch).map(|_| local.alloc()));
                    black_box(&objects);
                    objects.drain(..).for_each(|object| local.free(object));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_competitor_does_the_work() {
        for batch in [1, 64] {
            for mut competitor in competitors(2, batch, 1000) {
                assert!((competitor.run)().unwrap() > 0.0, "{}", competitor.name);
            }
        }
    }
}
