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
//! | a long recording without pauses for memory | [`Recorder::room`] |
//! | threads that are preempted in the middle of operations | [`Preemption`] |
//! | several objects in one recording | [`Log::on`]: each number is an object, checked alone |
//! | an operation that begins in one function and ends in another | [`Log::begin`] and [`Log::end`] |
//! | to keep a recording | `format::write_json` of `millstream-history` |
//!
//! # Why a recording raises no false alarm
//! An alarm is false if the history says that "a ended before b began" and that is not so. Four causes are possible.
//!
//! 1. *The processor reorders.* The stamp of a call is read before any access of the operation, and the stamp of a
//!    return after all its accesses, stores included: the module of each machine under `stamp` has the argument. The
//!    price is that if a store is still in the store buffer when its operation returns (a queue that publishes with a
//!    plain release store), the stamp waits for it, so violations that this delay causes are not reported. The stamp of
//!    a return often serves as that of the thread's next call, and was read before any later access, too.
//! 2. *The counters of two cores differ.* The [bound on their difference](Recorder::skew) is proved by messages between
//!    the cores, before and after the recording; the history treats two operations as overlapping if one ended less
//!    than that before the other began.
//! 3. *Rounding.* Counter ticks become nanoseconds; the skew grows by the maximum effect of rounding.
//! 4. *Rows are missing.* A full log stops, and the history ends, for all threads, at the moment when the first log was
//!    full: a prefix of a linearizable history is linearizable. An operation that panics, or whose thread ends in the
//!    middle, is pending: it may or may not have taken effect.
//!
//! # Cost
//! An operation costs a reading of the counter that waits for earlier accesses, the draining of the store buffer,
//! stores into memory that was touched before, and after a pause a second reading: 24 to 27 ns, or 30 and more after a
//! pause; see [`Log`]. Memory: 40 bytes per operation; memory of a finished recording is kept for later ones, up to 256
//! MiB.
//!
//! # Assumptions
//! Linux. The counters of the cores run at one constant rate (otherwise the recorder reads the system's monotonic
//! clock, which is slower). During the recording no core is added to those that the process may run on, and the virtual
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

/// The introduction, whose example is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/history.md")]
struct Page;
