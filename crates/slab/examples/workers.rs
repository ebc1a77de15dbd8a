//! Workers share jobs in a slab, one of them is killed, and a supervisor passes its jobs to the others.
//!
//! `cargo run --example workers -p millstream-slab`

use std::error::Error;
use std::process::{Child, Command};
use std::time::Duration;
use std::{env, fs, thread};

use bytemuck::{Pod, Zeroable};
use millstream_slab::{Cache, Options, Slab};

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Job {
    number: u64,
    /// Changed together with the result, in two stores: between them the job is half done.
    done: u64,
    result: u64,
}

const JOBS: u64 = 1000;

fn options() -> Options<Slab<Job>> {
    Slab::options(JOBS).owners()
}

fn main() -> Result<(), Box<dyn Error>> {
    match &env::args().collect::<Vec<_>>()[1..] {
        [path, worker] => work(path, worker.parse()?),
        _ => supervise(),
    }
}

/// Claims jobs, does them, and publishes them again, until all jobs are done.
fn work(path: &str, worker: u64) -> Result<(), Box<dyn Error>> {
    let slab = options().open_or_create(path)?;
    let cache = slab.cache()?;
    cache.set_owner(worker);
    while do_available_jobs(&slab, &cache)? > 0 {}
    Ok(())
}

/// Returns the number of jobs that this worker did in a pass over all of them.
fn do_available_jobs(slab: &Slab<Job>, cache: &Cache<Job>) -> Result<u64, Box<dyn Error>> {
    let mut did = 0;
    for object in slab.live() {
        // Another worker may be faster, and then the job belongs to that worker.
        let Ok(mut job) = cache.claim(object.handle) else { continue };
        if job.done == 0 {
            job.result = job.number * job.number;
            thread::sleep(Duration::from_micros(200));
            job.done = 1;
            did += 1;
        }
        job.publish();
    }
    Ok(did)
}

fn supervise() -> Result<(), Box<dyn Error>> {
    let path = env::temp_dir().join(format!("workers-{}", std::process::id()));
    let slab = options().open_or_create(&path)?;
    let cache = slab.cache()?;
    for number in 0..JOBS {
        cache.alloc(Job { number, done: 0, result: 0 })?.publish();
    }
    let start = |worker: u64| -> std::io::Result<Child> {
        Command::new(env::current_exe()?).arg(&path).arg(worker.to_string()).spawn()
    };
    let mut workers = [start(1)?, start(2)?, start(3)?];
    thread::sleep(Duration::from_millis(50));
    workers[0].kill()?;
    workers[0].wait()?;

    // The objects of the dead worker are orphans now, and name their owner.
    println!("{:?}", slab.raw().recover()?);
    let left: Vec<_> = slab.live().filter(|object| object.owner == 1).collect();
    println!("worker 1 was the last to have {} of {JOBS} jobs", left.len());
    for object in left {
        if let Ok(mut job) = cache.claim(object.handle) {
            // A half-done job starts over.
            if job.done == 0 {
                job.result = 0;
            }
            job.publish();
        }
    }
    for worker in &mut workers[1..] {
        worker.wait()?;
    }
    // The other workers skipped the dead worker's jobs, because these were still private to it.
    while do_available_jobs(&slab, &cache)? > 0 {}
    let jobs: Vec<Job> = slab.live().map(|object| slab.read(object.handle)).collect::<Result<_, _>>()?;
    assert_eq!(jobs.len() as u64, JOBS);
    assert!(jobs.iter().all(|job| job.done == 1 && job.result == job.number * job.number));
    println!("all {JOBS} jobs are done, each once: none is lost, and none is duplicated");
    drop((cache, slab));
    fs::remove_file(&path)?;
    Ok(())
}
