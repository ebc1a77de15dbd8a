//! Data of which each processor has its own, changed without atomic instructions: restartable sequences.
//!
//! A thread that changes its processor's word needs no lock and no atomic instruction, unless it is preempted
//! between reading and writing. The kernel (rseq(2), Linux ≥ 4.18) helps: if that happens inside of a *section*, a short
//! piece of assembly whose last instruction is the only one that changes anything, the thread goes on at the
//! section's abort handler, and it is as if nothing had happened.
//!
//! | I want | take |
//! | --- | --- |
//! | words that many threads change and somebody adds up | [`Words`]; for statistics, [`counter`](crate::counter) |
//! | a bag of things that are used again | [`Bag`] |
//! | a lock whose holder loses it when it is preempted | [`Revocable`] |
//! | to know whether another thread runs | [`activity`] |
//! | sections on memory of my own | [`raw`] |
//! | a section of my own | [`rseq_section!`](crate::rseq_section), with [`Area::current`] |
//! | to abort the sections of others | [`restart`] |
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
//! # Where the kernel cannot, and when it never lets one finish
//! Everything here but [`raw`] works everywhere with the same results: where a thread has no [`Area`], and after
//! [`ATTEMPTS`](raw::ATTEMPTS) aborted attempts, another way is taken, with atomic instructions and on other words. So a thread that
//! is single-stepped by a debugger, which aborts each of its sections, gets on as well.
//!
//! # Source of the idea
//! Paul Turner, Andrew Hunter and Mathieu Desnoyers, whose system call it is; Paul Khuong, on what else it is good for.

#[cfg_attr(target_arch = "x86_64", path = "x86_64/mod.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64/mod.rs")]
mod arch;

mod activity;
mod area;
mod arena;
mod bag;
mod own;
mod pages;
pub mod raw;
mod remote;
mod revocable;
mod site;
mod source;
mod thread;
mod words;

pub use activity::{Activity, activity};
pub use arch::SIGNATURE;
pub use area::{Area, Source};
pub use bag::Bag;
pub use pages::processors;
pub use remote::{Sections, restart};
pub use revocable::{Ownership, Revocable, Revoked};
pub(crate) use site::Site;
pub use words::{MAX_WORDS, Word, Words};
