//! Per-CPU data, changed without atomic instructions: restartable sequences.
//!
//! A thread that changes its processor's word would need no lock and no atomic instruction if it were never preempted
//! between reading and writing. The kernel (rseq(2), Linux ≥ 4.18) makes up for preemption. A *section* is a short piece
//! of assembly whose last instruction is the only one that changes shared data. If the thread is preempted inside a
//! section, it continues at the section's abort handler, as if the section had never begun.
//!
//! | I want | take |
//! | --- | --- |
//! | words that many threads change and a reader adds up | [`Words`]; for statistics, [`counter`](crate::counter) |
//! | a bag of reusable things | [`Bag`] |
//! | a lock that its holder may lose when it is preempted | [`Revocable`] |
//! | to know whether another thread is running | [`activity`] |
//! | a section of my own | [`rseq_section!`](crate::rseq_section), with [`Area::current`] |
//! | to abort the sections of other threads | [`restart`] |
//!
//! ```
//! use millstream_sync::percpu::Words;
//!
//! let hits = Words::new(1);
//! std::thread::scope(|scope| {
//!     (0..4).for_each(|_| drop(scope.spawn(|| (0..1000).for_each(|_| hits.word(0).add(1)))));
//! });
//! assert_eq!(hits.word(0).copies().sum::<u64>(), 4000);
//! ```
//!
//! # Fallback
//! [`Words`], [`Bag`] and [`Revocable`] work everywhere with the same results: where a thread has no [`Area`], and
//! after four aborted attempts, the operation takes another path, with atomic instructions and on other words. So even
//! a thread that is single-stepped by a debugger, which aborts each of its sections, makes progress.
//!
//! # Source of the idea
//! Paul Turner, Andrew Hunter and Mathieu Desnoyers for the system call; Paul Khuong for its further uses.

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod arch;

mod activity;
mod area;
mod arena;
mod bag;
mod pages;
mod registration;
mod restart;
mod revocable;
pub(crate) mod section;
mod site;
#[cfg(test)]
mod tests;
mod words;

pub use activity::{Activity, activity};
pub use area::{Area, Source};
pub use bag::Bag;
pub(crate) use pages::processors;
pub use restart::{Sections, restart};
pub use revocable::{Ownership, Revocable, Revoked};
pub(crate) use site::Site;
pub use words::{Word, Words};
