//! Tests of the command as a user sees it. Each test runs `millstream` in a folder of its own.

mod support;
mod syscalls;

mod adversity;
#[cfg(feature = "http")]
mod authority;
mod blocked;
mod cases;
mod closed_streams;
mod control;
mod copies;
mod doctor;
mod each;
mod evidence;
mod evidence_compare;
mod evidence_docs;
mod evidence_functions;
mod evidence_permutation;
mod evidence_runs;
mod explain;
mod faults;
mod fetch;
#[cfg(feature = "http")]
mod fibers;
mod flows;
mod gather;
mod http;
mod joins;
mod killed;
mod memory;
mod metrics;
mod ops;
mod page;
mod prometheus;
mod readmit;
mod recorded;
mod retry;
mod run;
mod shown;
mod signals;
mod slab;
mod split;
mod steer;
mod stream;
mod streams;
mod tee;
mod terminal;
mod top;
mod trace_context;
mod whatif;
