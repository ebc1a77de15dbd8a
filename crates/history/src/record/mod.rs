//! The recorder: what a test's threads did, as a [`History`](crate::History) that can be checked.
//!
//! Each thread has a [`Log`] of its own and wraps every operation on the object under test in [`Log::record`]:
//!
//! ```
//! use std::collections::VecDeque;
//! use std::sync::Mutex;
//! use millstream_history::{Kind, Op, Options, check, record::Recorder};
//!
//! let queue = Mutex::new(VecDeque::new()); // yours
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
//! | to record an operation | [`Log::record`]; [`Log::record_as`] when its result needs translating |
//! | no pause for memory in a long recording | [`Recorder::room`] |
//! | threads that are stopped in the middle of operations | [`Preemption`] |
//! | several objects in one recording | [`Log::on`]: each number is an object, checked by itself |
//! | an operation that begins in one function and ends in another | [`Log::begin`] and [`Log::end`] |
//! | to keep a recording | [`format::write_json`](crate::format::write_json) |
//!
//! # Why a recording raises no false alarm
//! An alarm is false when the history says "a ended before b began" and that is not so. Four things could make it say so.
//!
//! 1. *The processor reorders.* The stamp of a call is read before any access of the operation, that of a return after all of
//!    them, its stores included: see the module of each machine under `stamp`. The price: a store that is still on its way when its
//!    operation returns (a queue that publishes with a plain release store) is waited for, and so is never reported. The return of
//!    a thread's last operation, which often serves as the stamp of a call, was read before any access that follows it, too.
//! 2. *The counters of two cores differ.* The [bound on their difference](Recorder::skew) is measured by messages between the
//!    cores, which proves it, before and after the recording; the history takes operations of which one ended less than
//!    that before the other began as concurrent.
//! 3. *Rounding.* Counter ticks become nanoseconds; the skew grows by what rounding can do.
//! 4. *Something is missing.* A log that is full stops, and the history ends, for all threads, at the moment when the first log
//!    was full: beginnings of histories without fault have no fault. An operation that panics, or whose thread
//!    ends in the middle, is pending: it may or may not have had its effect.
//!
//! # Cost
//! A reading of the counter that waits for what precedes it, the drained store buffer, stores into memory that was touched before, and
//! after a pause a second reading: 24 to 27 ns, 30 and more after a pause, see [`Log`]. Memory: 40 bytes an operation, and what was recorded into
//! once is kept for the recordings to come, up to 256 MiB.
//!
//! # Assumptions
//! Linux. The counters of the cores run at one constant rate (otherwise the system's monotonic clock is read, which is
//! slower); no core is added to those that the process may run on and no virtual machine moves to another host while the recording lasts.

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
pub use preemption::Preemption;
pub use recorded::Recorded;
pub use recorder::Recorder;

/// The newcomer's page, whose example runs.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/history.md")]
struct Page;
