//! The recorder: turns the operations of a test's threads into a [`History`](millstream_history::History), for the
//! checker `millstream-history`.
//!
//! Each thread has a [`Log`] of its own and wraps every operation on the object under test in [`Log::record`]:
//!
//! ```
//! use std::collections::VecDeque;
//! use std::sync::Mutex;
//! use millstream_history::{Kind, Op, Options, check};
//! use millstream_recorder::Recorder;
//!
//! let queue = Mutex::new(VecDeque::new()); // your structure
//! let recorder = Recorder::new();
//! std::thread::scope(|scope| {
//!     for thread in 0..4_u32 {
//!         let (queue, mut log) = (&queue, recorder.log());
//!         scope.spawn(move || for n in 0..1000 {
//!             let value = 1000 * thread + n; // distinct values are decided fastest
//!             log.record(Op::ENQUEUE, value, || queue.lock().unwrap().push_back(value));
//!             if n % 3 > 0 { // a queue that is always nearly empty hides its mistakes
//!                 log.record(Op::DEQUEUE, (), || queue.lock().unwrap().pop_front());
//!             }
//!         });
//!     }
//! });
//! let history = recorder.finish();
//! assert_eq!(check(&history, &Kind::Queue.into(), &Options::default())?.holds(), Some(true));
//! # Ok::<(), millstream_history::CheckError>(())
//! ```
//!
//! | I want | use |
//! | --- | --- |
//! | to record an operation | [`Log::record`]; [`Log::record_as`] if its result needs translating |
//! | to make a long recording without pauses for memory | [`Recorder::room`] |
//! | to preempt threads in the middle of operations | [`Preemption`] |
//! | to record several objects at once | [`Log::on`]: each object has a number, and is checked on its own |
//! | to record an operation that begins in one function and ends in another | [`Log::begin`] and [`Log::end`] |
//! | to keep a recording | `format::write_json` of `millstream-history` |
//!
//! # Why a recording raises no false alarm
//! For some pairs of operations, the history says that one ended before the other began. A recording can cause a false alarm
//! only if such a statement is false. There are four possible causes, and each is prevented:
//!
//! 1. *The processor reorders instructions.* The stamp of a call is read before any access of the operation, and the stamp of a
//!    return after all its accesses, including stores. The modules under `stamp` prove this for each kind of processor. If the
//!    stamp of a return also serves for the thread's next call, it was read before any later access. This has a price: a store
//!    may still be in the store buffer when its operation returns, as in a queue that publishes with a plain release store. The
//!    stamp waits for this store, so a violation that results from the delay is not reported.
//! 2. *The counters of two cores differ.* Messages between the cores, before and after the recording, prove a [bound on the
//!    difference](Recorder::skew). If one operation ended before another began, but by less than this bound, the history treats
//!    the two as overlapping.
//! 3. *Rounding.* Counter ticks are converted to nanoseconds. The bound is increased by the maximum effect of rounding.
//! 4. *Rows are missing.* A full log stops. The history then ends, for all threads, at the moment when the first log was full;
//!    this is sound because a prefix of a linearizable history is linearizable. An operation that panics, or whose thread ends
//!    before it returns, is pending: it may or may not have taken effect.
//!
//! # Cost
//! An operation costs 24 to 27 ns, or 30 ns and more after a pause; see [`Log`]. For each operation, the counter is read after
//! all earlier accesses, the store buffer is drained, and the row is stored into memory that has been touched before. After a
//! pause, the counter is read a second time. Each operation takes 40 bytes of memory. The memory of a finished recording is kept
//! for later recordings, up to 256 MiB.
//!
//! # Assumptions
//! The system is Linux. The counters of the cores run at one constant rate; otherwise the recorder reads the system's monotonic
//! clock, which is slower. During the recording, the set of cores that the process may run on does not grow, and a virtual
//! machine does not move to another host.

mod assemble;
mod cpus;
mod log;
mod memory;
mod preemption;
mod recorded;
mod recorder;
mod rows;
mod skew;
mod stamp;

pub use log::Log;
pub use millstream_history;
pub use preemption::Preemption;
pub use recorded::Recorded;
pub use recorder::Recorder;

/// Compiles and runs the examples of the guide as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/history.md")]
struct Page;
