//! Streams in constant space.
//!
//! A stream that forks and joins again is the classic trap of stream libraries: if one path is slower than the other,
//! values pile up at the join. The program then grows until memory is full or, with bounded buffers, hangs. Buffers
//! hide the mistake for small inputs, so tests pass. This crate checks every program before it runs. Either each queue
//! has a proven bound, the smallest possible, or the program is refused. The refusal names the fork, the join, the
//! rates of both paths, and the ways out.
//!
//! ```
//! use millstream_stream::{CheckError, Error, Program};
//!
//! // Pairs moving averages with values: the averages begin two values late.
//! let program = Program::new();
//! let x = program.iter("x", [3.0, 6.0, 9.0, 12.0, 15.0]).share();
//! let average = x.windows(3, 1).map(|window| window.iter().sum::<f64>() / 3.0);
//! let pairs = average.zip(&x);
//! assert_eq!(pairs.check()?.edges().iter().map(|bound| bound.values).max(), Some(3));
//! let pairs: Result<Vec<(f64, f64)>, _> = pairs.run()?.values().collect();
//! assert_eq!(pairs?, [(6.0, 3.0), (9.0, 6.0), (12.0, 9.0)]);
//!
//! // Pairs every other value with every value: no buffer is enough.
//! let program = Program::new();
//! let x = program.iter("x", 1_u64..).share();
//! let Err(Error::Check(CheckError::Refused(refusal))) = x.every(2).zip(&x).run() else { unreachable!() };
//! assert_eq!(
//!     refusal.to_string(),
//!     "`zip` joins two paths from `x` at different rates: 1 of 2 against 1 of 1; after n values of `x`, n/2 values wait; \
//!      no buffer is enough"
//! );
//! assert_eq!(refusal.overflows_at(1_000_000), Some(2_000_001));
//! # Ok::<(), millstream_stream::Error>(())
//! ```
//!
//! A stream with one reader is a [`Chain`]: the compiler makes one loop of its source and its operators, which is as fast as a
//! hand-written loop. [`Chain::share`] turns it into a [`Stream`], which several operators may read. Every fork is therefore
//! visible in the program.
//!
//! | I want | look at |
//! | --- | --- |
//! | to write a program in Rust | [`Program`] for sources, [`Chain`] and [`Stream`] for operators |
//! | to run it | [`Stream::run`], [`Running`] |
//! | to write a program as a line of text | [`text`] |
//! | to read the proof | [`check`](mod@check) |
//! | to check a graph of my own | [`graph::Graph`], [`check::check`] |
//! | the definition of a clock | [`clock`] |
//!
//! The theory: a data-flow program with bounded buffers is a Kahn network (Kahn, 1974), in which the order of execution
//! never changes a result. Its rates obey balance equations (Lee and Messerschmitt, 1987), here with phases
//! (cyclo-static data flow: Bilsen, Engels, Lauwereins and Peperstraete, 1996) and ultimately periodic clocks (Lucy-n:
//! Mandel, Plateau and Pouzet, 2010).

#[cfg(test)]
extern crate self as millstream_stream;

mod build;
pub mod check;
pub mod clock;
mod fuse;
pub mod graph;
mod net;
mod run;
pub mod text;

pub use build::{Chain, Error, Program, Stream};
pub use check::CheckError;
pub use fuse::Fused;
pub use run::{Part, Report, RunError, Running, Stored, Values};

/// Runs the example of the crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
