//! Rounds with a fence of each kind.

use std::time::Duration;

use crate::error::Error;
use crate::fence::method::{COUNT, Methods};
use crate::random::Random;

/// The longest random pause before a fence. Without pauses, each fence would begin when the previous fence ended, often
/// right after a tick.
const PAUSE_NS: usize = 200_000;
const SEED: u64 = 0x6665_6e63;

/// The times of each kind in milliseconds, one per round.
pub type Samples = [Vec<f64>; COUNT];

/// Measures `rounds` rounds.
///
/// # Errors
/// Fails if a fence fails.
pub fn sample(methods: &Methods, rounds: usize) -> Result<Samples, Error> {
    let mut random = Random::new(SEED);
    let mut samples: Samples = Default::default();
    for _ in 0..rounds {
        let mut order: [usize; COUNT] = std::array::from_fn(|method| method);
        for place in (1..COUNT).rev() {
            order.swap(place, random.below(place + 1));
        }
        for method in order {
            std::thread::sleep(Duration::from_nanos(random.below(PAUSE_NS) as u64));
            samples[method].push(methods.pass(method)?.as_secs_f64() * 1e3);
        }
    }
    Ok(samples)
}
