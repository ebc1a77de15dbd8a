//! Balls and bins: how full are all bins together when the first one is full?
//!
//! Balls fall uniformly and independently into `m` bins that hold `c` balls each. The *fill* is the number of balls
//! thrown, the last one included, over the `m c` places when some bin becomes full for the first time. It says how
//! much of its memory a hash table of large fixed bins can use before it must grow; the question, and the picture of
//! answers over a grid of bins and capacities, are Paul Khuong's.
//!
//! | task | take | cost of a trial, 1000 bins of 30 000 |
//! | --- | --- | --- |
//! | draw the fill, fast | [`Poissonised`] | microseconds |
//! | throw every ball, and trust only the generator | [`Direct`] | tens of milliseconds |
//!
//! Both draw from the same distribution, and tests compare them. The trials are independent and identically
//! distributed, so whether a claim such as "the fill reaches 98 % at least three times in four" holds is a question for
//! a [`Driver`](crate::Driver), which says when enough trials have been made:
//!
//! ```
//! use millstream_csm::bins::{Bins, Poissonised};
//! use millstream_csm::random::Random;
//! use millstream_csm::{Claim, Driver, Progress, Setup, Verdict};
//!
//! let bins = Bins::new(1000, 30_000)?;
//! let mut sampler = Poissonised::new(bins);
//! let mut random = Random::seeded(1);
//! let mut driver = Driver::new(&Setup::new(Claim::AtLeast(0.75), 1e-6))?;
//! let status = driver.run(|| bins.fill(sampler.balls(&mut random)) >= 0.98, |_| ());
//! assert_eq!(status.progress, Progress::Decided(Verdict::Holds));
//! # Ok::<(), millstream_csm::Error>(())
//! ```

mod direct;
mod layout;
mod poisson;
mod poissonised;

pub use direct::Direct;
pub use layout::Bins;
pub use poissonised::Poissonised;
