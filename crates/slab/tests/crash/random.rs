//! Kills at random moments.

use std::time::{Duration, Instant};

use millstream_slab::Private;

use crate::harness::stress;
use crate::stage::{Death, Stage, Survivor, aftermath, contents};
use crate::workers::fork;

const KILLS: usize = 1500;

/// xorshift64*, by Marsaglia and Vigna.
pub(crate) struct Random(u64);

impl Random {
    /// Prints the seed, so that a run can be repeated.
    pub(crate) fn seeded(name: &str) -> Self {
        let seed = std::env::var("MILLSTREAM_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            now.as_nanos() as u64 | 1
        });
        println!("{name}: MILLSTREAM_SEED={seed}");
        Random(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound
    }
}

/// Forks one or two children that randomly allocate, free, publish, claim and pack parcels, and kills them after a
/// while.
pub(crate) fn kills() -> usize {
    let mut random = Random::seeded("random kills");
    let Random(seed) = random;
    let mut killed = 0;
    while killed < KILLS * stress() {
        let stage = Stage::new(8 + random.below(17));
        let children: Vec<_> = (0..1 + random.below(2))
            .map(|_| {
                let seed = random.below(u64::MAX) | 1;
                fork(|| work(&stage, seed))
            })
            .collect();
        let moment = Instant::now() + Duration::from_nanos(random.below(400_000));
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        for &child in &children {
            // SAFETY: the process is this one's own child and not reaped yet, so no other process has its number.
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
fn work(stage: &Stage, seed: u64) {
    let mut random = Random(seed);
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
