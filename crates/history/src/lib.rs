//! A linearizability checker that terminates.
//!
//! A concurrent object is *linearizable* (Herlihy and Wing 1990) if each operation seems to take effect at one moment
//! between its call and its return, the linearization point. Record the calls and answers of your threads, and
//! [`check`] decides whether such moments exist. If they do, it returns an order of the operations; if not, it returns
//! a few operations that no order explains.
//!
//! ```
//! use millstream_history::format::{Format, read};
//! use millstream_history::{Options, Verdict, check};
//!
//! let recorded = r#"
//!     {"process":0,"op":"enqueue","in":1,"call":0,"return":10}
//!     {"process":0,"op":"enqueue","in":2,"call":20,"return":30}
//!     {"process":1,"op":"dequeue","out":2,"call":25,"return":40}
//!     {"process":2,"op":"dequeue","out":1,"call":50,"return":60}
//! "#;
//! let history = read(recorded.as_bytes(), Format::Json, None)?;
//! let verdict = check(&history, &"queue".parse()?, &Options::default())?;
//! let Verdict::Fails(example) = verdict else { panic!("1 came first and was passed over") };
//! assert_eq!(example.operations, [0, 1, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which part do I want?
//!
//! | you have | use |
//! | --- | --- |
//! | threads in your own test | the crate `millstream-recorder`, whose recordings are histories |
//! | a file of JSON lines, of Jepsen or of etcd | [`format`](mod@format), or the command `millstream history check` |
//! | operations in your program | [`Builder`] |
//! | an object of a common kind | [`check`] with a [`Kind`] |
//! | an object of your own | [`check_spec`] with a [`Spec`] |
//! | a condition other than linearizability | [`consistency`] |
//! | a verdict to visualise | [`timeline`] |
//!
//! # How long does it take?
//!
//! The problem is NP-complete in general. Histories whose values are all different are easier. For registers, sets,
//! allocators and mutexes, and for unbounded queues, stacks and priority queues, such histories are decided in
//! near-linear time: a million operations take about a second. So use distinct values in your test wherever possible.
//! All other histories go to a general search. Its worst case is exponential in the number of overlapping operations.
//! [`Options`] limits its time and memory; at a limit, the verdict is [`Verdict::Unknown`], with the search's progress.
//!
//! # Pending operations
//!
//! An operation that has returned took effect before its return. A pending operation has not returned, and may or may
//! not have taken effect. The same is true of an operation whose outcome is unknown ([`Status::Info`]), even after its
//! caller has continued. A failed operation ([`Status::Fail`]) took no effect.

#![forbid(unsafe_code)]

// The tests of the procedures and those of the public checker share one oracle.
#[cfg(test)]
extern crate self as millstream_history;

mod budget;
mod builder;
mod check;
mod explain;
mod history;
mod model;
mod monitor;
mod operation;
mod part;
mod quoted;
mod search;
mod split;
mod value;
mod verdict;

pub mod consistency;
#[cfg(feature = "formats")]
pub mod format;
pub mod spec;
pub mod timeline;

pub use budget::Options;
pub use builder::{Builder, Contradiction};
pub use check::{CheckError, check, check_spec};
pub use history::{History, PENDING};
pub use model::{Kind, Model, UnknownModel};
pub use operation::{Op, Operation, Status};
pub use spec::{Call, Spec};
pub use value::{Datum, Value, Values};
pub use verdict::{Counterexample, Limit, Prefix, Progress, Verdict, Witness};
