//! Workers that share jobs in a slab, one of which is killed, and a supervisor that gives its jobs to others.
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
    /// Changed with the result, in two stores: between them the job is half done.
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

/// Takes jobs that nobody has, does them, and puts them back, until all are done.
fn work(path: &str, worker: u64) -> Result<(), Box<dyn Error>> {
    let slab = options().open_or_create(path)?;
    let cache = slab.cache()?;
    cache.set_owner(worker);
    while do_what_is_there(&slab, &cache)? > 0 {}
    Ok(())
}

/// How many jobs this worker did in a pass over all.
fn do_what_is_there(slab: &Slab<Job>, cache: &Cache<Job>) -> Result<u64, Box<dyn Error>> {
    let mut did = 0;
    for object in slab.live() {
        // Another worker may be faster: then it is his.
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

    // What the dead one held is an orphan now, and says whose it was.
    println!("{:?}", slab.raw().recover()?);
    let left: Vec<_> = slab.live().filter(|object| object.owner == 1).collect();
    println!("worker 1 was the last to have {} of {JOBS} jobs", left.len());
    for object in left {
        if let Ok(mut job) = cache.claim(object.handle) {
            // Half done is not done.
            if job.done == 0 {
                job.result = 0;
            }
            job.publish();
        }
    }
    for worker in &mut workers[1..] {
        worker.wait()?;
    }
    // The jobs that the dead one had were out of reach when the others passed them.
    while do_what_is_there(&slab, &cache)? > 0 {}
    let jobs: Vec<Job> = slab.live().map(|object| slab.read(object.handle)).collect::<Result<_, _>>()?;
    assert_eq!(jobs.len() as u64, JOBS);
    assert!(jobs.iter().all(|job| job.done == 1 && job.result == job.number * job.number));
    println!("all {JOBS} jobs are done, each once: nothing is lost and nothing is there twice");
    drop((cache, slab));
    fs::remove_file(&path)?;
    Ok(())
}
