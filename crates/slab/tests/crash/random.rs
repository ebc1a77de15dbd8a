//! Kills at random moments.

use std::time::{Duration, Instant};

use millstream_slab::Private;
use millstream_verify_random::{Random, seed, stress};

use crate::stage::{Death, Stage, Survivor, aftermath, contents};
use crate::workers::fork;

/// The number of kills, times the stress.
const KILLS: usize = 500;

/// Forks one or two children that randomly allocate, free, publish, claim and pack parcels, and kills them after a
/// while.
pub(crate) fn kills() -> usize {
    let seed = seed();
    let mut random = Random::new(seed);
    let mut killed = 0;
    while killed < KILLS * stress() as usize {
        let stage = Stage::new(8 + random.below(17));
        let children: Vec<_> = (0..1 + random.below(2))
            .map(|_| {
                let random = random.fork();
                fork(|| work(&stage, random))
            })
            .collect();
        let moment = Instant::now() + Duration::from_nanos(random.below(400_000));
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        for &child in &children {
            // SAFETY: the process is this one's own child and not reaped yet, so no other process has its PID.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                let mut status = 0;
                libc::waitpid(child, &raw mut status, 0);
                assert!(libc::WIFSIGNALED(status), "seed {seed}: a child ended by itself: {status:#x}");
            }
        }
        killed += children.len();
        let survivor = if random.below(2) == 0 { Survivor::Lives } else { Survivor::Dies };
        aftermath(stage, survivor, Death::Midway(children.len()), &format!("seed {seed}, about {killed} kills"));
    }
    killed
}

/// Returns only when a check has failed.
fn work(stage: &Stage, mut random: Random) {
    loop {
        let cache = stage.slab.cache().unwrap();
        let mut parcel = stage.slab.parcel().unwrap();
        let (mut objects, mut handles) = (Vec::new(), Vec::new());
        for _ in 0..random.below(200) {
            match random.below(11) {
                0 | 1 => objects.extend(cache.alloc(contents(random.below(1000)))),
                2 if !objects.is_empty() => {
                    let chosen = random.below(objects.len() as u64) as usize;
                    drop(objects.swap_remove(chosen));
                }
                3 => handles.extend(objects.pop().map(Private::publish)),
                4 => {
                    if let Some(handle) = handles.pop() {
                        cache.free(handle).unwrap();
                    }
                }
                5 => {
                    if let Some(object) = objects.pop() {
                        parcel.push(object).unwrap();
                    }
                }
                6 => objects.extend(parcel.pop(&cache).unwrap()),
                7 => drop(parcel.alloc(&cache, contents(random.below(1000)))),
                8 if random.below(8) == 0 => parcel.raw().clear(cache.raw()).unwrap(),
                9 if random.below(8) == 0 => parcel.raw().flush(cache.raw()).unwrap(),
                _ => {
                    // Both children may pick the same object.
                    let offered = stage.offered[random.below(2) as usize];
                    if let Ok(mut object) = cache.claim(offered) {
                        *object = contents(random.below(1000));
                        object.publish();
                    }
                }
            }
        }
        handles.into_iter().for_each(|handle| cache.free(handle).unwrap());
        if random.below(2) == 0 {
            parcel.raw().free(cache.raw()).unwrap();
        }
    }
}
