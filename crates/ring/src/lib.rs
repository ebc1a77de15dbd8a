//! Rings that do not collapse when threads outnumber cores.
//!
//! A ring passes values in order, from thread to thread or from process to process. Millstream's own engine uses one,
//! at the gate through which units enter. The queues of its stages are lists under a mutex, because a grant takes from
//! several resources at once (`engine/state.rs` of `millstream-flow` gives the full reason).
//!
//! | I want | see |
//! | --- | --- |
//! | to send values from any number of threads to one or several others | [`channel`] |
//! | a graph of consumers that share events written in place: the disruptor | [`graph`] |
//! | a ring between two processes, either of which may crash | [`shared`] |
//! | to wait for several channels at once | [`WaitSet`] |
//! | to choose between latency and CPU | [`WaitStrategy`] |
//! | to know how claims and completions work | [`sequencer`] |
//!
//! ```
//! use millstream_ring::channel;
//!
//! let (sender, receiver) = channel::mpsc(1024);
//! std::thread::scope(|scope| {
//!     scope.spawn(move || (1..=10).for_each(|n| sender.send(n).unwrap()));
//!     assert_eq!(receiver.iter().sum::<u64>(), 55);
//! });
//! ```

pub mod channel;
mod contained;
pub mod graph;
#[cfg(all(test, loom))]
mod model;
mod options;
mod padded;
mod primitive;
pub mod sequencer;
// A model cannot map a file, so a build with loom compiles this module only for its own models.
#[cfg(all(target_os = "linux", any(not(loom), test)))]
pub mod shared;
mod slots;
mod wait;

pub use options::Options;
pub use wait::{WaitSet, WaitStrategy};
