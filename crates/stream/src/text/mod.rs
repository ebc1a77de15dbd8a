//! Programs as text: `x = lines(); zip(every(x, 2), x)`.
//!
//! A program is a list of definitions, each `NAME = STREAM;`, and a stream at the end.
//!
//! | stream | values |
//! | --- | --- |
//! | `lines()`, `json()`, `csv()`, `records(BYTES)` | those of the next input; `lines("FILE")` those of a file |
//! | `numbers(FIRST, LAST)` | whole numbers |
//! | `map(x, VALUE)`, `filter(x, VALUE)` | computed from `it`; those for which it is true |
//! | `every(x, N)`, `every(x, N, OFFSET)`, `skip(x, N)`, `keep(x, "0(10)")` | some, by their number |
//! | `window(x, N)`, `window(x, N, STEP)` | lists of `N` values |
//! | `scan(x, FIRST, VALUE)`, `reduce(x, FIRST, VALUE)` | the state `acc` after each value; at the end |
//! | `group(x, KEY, FIRST, VALUE)`, with a limit on keys as a fifth | the key and its state after each value |
//! | `repeat(x, N)`, `prefix(x, VALUE, …)` | each several times; some before the first |
//! | `zip(x, y, …)`, `merge(x, y, …)` | lists of one value of each; one of each by turns |
//! | `hold(x, y)`, `align(x, y)` | for each of `y`, the last value of `x`; the one of the same moment, or an empty one |
//! | `buffer(x, N)`, `spill(x, "FOLDER")`, `reread(x)` | the same, with room to wait; from a second reading of the input |
//!
//! `VALUE` is written with `it`, `acc`, numbers, texts in quotes, `it.field`, `it[0]`, `+ - * / %`, `== != < <= > >=`,
//! `and`, `or`, `not`, and the functions `length`, `number`, `contains` and `starts`. Lines and fields of CSV are texts;
//! `number` makes numbers of them. Arithmetic on whole numbers is exact, and fails where 64 bits are too few.
//!
//! ```
//! use millstream_stream::text::{Inputs, parse};
//!
//! let program = parse("x = numbers(1, 6); zip(skip(x, 1), x)", &Inputs::none())?;
//! let mut running = program.run()?;
//! assert_eq!(running.next()?.unwrap().to_string(), "2\t1");
//!
//! let refused = parse("x = numbers(1, 6); zip(every(x, 2), x)", &Inputs::none())?.check().unwrap_err();
//! assert!(refused.help.unwrap().contains("zip(every(x, 2), buffer(x, 100000))"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compile;
mod formula;
mod input;
mod lexer;
mod parser;
mod problem;
mod program;
mod value;
mod ways;

pub use self::input::Inputs;
pub use self::problem::Problem;
pub use self::program::{TextProgram, parse};
pub use self::value::Value;

/// The longest text of a program, in bytes.
pub const MAX_TEXT: usize = 64 << 10;

/// How deep expressions may be nested.
pub const MAX_DEPTH: usize = 200;

/// The most keys of `group` unless it says otherwise.
pub const MAX_KEYS: usize = 1 << 16;
