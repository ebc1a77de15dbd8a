//! The command as its users meet it: each test runs `millstream` in a folder of its own.

mod support;
mod syscalls;

mod adversity;
mod blocked;
mod control;
mod doctor;
mod each;
mod evidence;
mod evidence_compare;
mod evidence_docs;
mod evidence_functions;
mod evidence_permutation;
mod evidence_runs;
mod faults;
mod fetch;
mod flows;
mod gather;
mod http;
mod killed;
mod memory;
mod metrics;
mod ops;
mod page;
mod retry;
mod run;
mod shown;
mod signals;
mod slab;
mod split;
mod steer;
mod stream;
mod tee;
mod terminal;
mod trace_context;
mod whatif;
