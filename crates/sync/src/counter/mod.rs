//! Statistics at negligible cost: threads add to the word of their processor, and a reader adds up all words.
//!
//! | I want to know | type | memory |
//! | --- | --- | --- |
//! | how many, from anywhere | [`Counter`], a static or a field | 8 bytes per processor |
//! | the same from a hot loop | an [`Adder`] of that counter | none beyond the counter's |
//! | the same for the price of a local variable | a [`Local`] of that counter | 128 bytes for each local held at one time |
//! | how many there are now | [`Gauge`] | 8 bytes per processor |
//! | the largest, the smallest | [`Maximum`], [`Minimum`] | 8 bytes per processor |
//! | how they are distributed | [`Histogram`] | a page per processor |
//! | the total over several processes | [`SharedCounters`] | a page per processor for up to 512 counters |
//!
//! ```
//! use millstream_sync::counter::Counter;
//!
//! static REQUESTS: Counter = Counter::new();
//!
//! std::thread::scope(|scope| {
//!     for _ in 0..4 {
//!         scope.spawn(|| (0..1000).for_each(|_| REQUESTS.increment()));
//!     }
//! });
//! assert_eq!(REQUESTS.sum(), 4000); // no addition is ever lost
//! ```
//!
//! # Why not one word?
//! A word that several cores write moves between their caches, and each move takes 25 to 70 ns. An atomic addition
//! costs that much as soon as two cores add. A plain addition is no faster, because the word still moves, and it loses
//! updates: half of them if two threads do nothing but add. It loses many even if additions are rare, because a thread
//! that is preempted between load and store writes back a value that is a time slice old. Alexandra Fedorova's
//! *Treacherous shared counters* describes a storage engine that ran at a quarter of its speed because of such
//! statistics.
//!
//! So each processor has its own word ([`percpu`](crate::percpu)): additions need no atomic instruction, and none is
//! lost. Where the kernel has no restartable sequences, the threads add atomically to as many words as there are
//! processors; the results are the same.
//!
//! # What a sum means
//! Additions are not ordered with any other access: a counter is a statistic, not a message. A sum contains each
//! addition that happened before it (by a join, a lock, a channel), and may or may not contain additions that run
//! concurrently. So a sum is exact once all adding threads are done. With additions only, a later sum is never smaller.
//!
//! # When not to use it
//! When each addition needs to know the total (a ticket, a limit, a reference count), use an atomic word. Also use an
//! atomic word when there are few additions and many sums: a sum reads twice as many words as there are processors.
//!
//! # Sources
//! Fedorova's article above; Dave Dice, Yossi Lev and Mark Moir, *Scalable statistics counters* (SPAA 2013), for how
//! much racy counters lose.

mod adder;
mod extreme;
mod gauge;
mod histogram;
mod local;
mod shards;
mod shared_counters;
mod total;

pub use adder::Adder;
pub use extreme::{Maximum, Minimum};
pub use gauge::Gauge;
pub use histogram::{Distribution, Histogram};
pub use local::Local;
pub use shared_counters::{SharedCounters, SharedError};
pub use total::Counter;
