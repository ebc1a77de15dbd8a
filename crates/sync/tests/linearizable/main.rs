//! Recorded runs of every concurrent structure of this crate, checked for linearizability. For each structure a twin
//! with a mistake must fail the same check. `MILLSTREAM_STRESS=n` makes the runs n times longer; with
//! `MILLSTREAM_PICTURES=folder` the counter-examples are drawn there.
#![cfg(all(feature = "std", not(loom)))]

#[path = "../support/decided.rs"]
mod decided;
#[path = "../support/recorded.rs"]
mod recorded;
#[path = "../support/sources.rs"]
mod sources;
#[path = "../support/verdict.rs"]
mod verdict;

mod containers;
mod counters;
mod eventcounts;
mod locks;
mod percpu;
mod snapshot;
