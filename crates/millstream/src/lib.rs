//! Millstream: staged execution for one machine.
//!
//! The crate contains no code: it re-exports the libraries, each behind the feature of the same name:
//!
//! | module | contents |
//! | --- | --- |
//! | `flow` (default) | the staged execution engine |
//! | `ring` | the disruptor, bounded channels on it, and rings between two processes |
//! | `fiber` | fibers with guarded stacks, under three threading models (Linux) |
//! | `slab` | a slab of shared memory that survives `kill -9` |
//! | `stream` | streams in constant space |
//! | `sync` | event counts, hazard pointers and epochs, counters, per-CPU data, locks |
//! | `fence` | asymmetric fences |
//! | `csm` | confidence sequences, stopping rules and exact tests |
//! | `history` | the linearizability checker |
//! | `recorder` | the recorder of histories for it |

#[cfg(feature = "csm")]
pub use millstream_csm as csm;
#[cfg(feature = "fence")]
pub use millstream_fence as fence;
#[cfg(feature = "fiber")]
pub use millstream_fiber as fiber;
#[cfg(feature = "flow")]
pub use millstream_flow as flow;
#[cfg(feature = "history")]
pub use millstream_history as history;
#[cfg(feature = "recorder")]
pub use millstream_recorder as recorder;
#[cfg(feature = "ring")]
pub use millstream_ring as ring;
#[cfg(feature = "slab")]
pub use millstream_slab as slab;
#[cfg(feature = "stream")]
pub use millstream_stream as stream;
#[cfg(feature = "sync")]
pub use millstream_sync as sync;
