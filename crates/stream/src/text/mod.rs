//! Programs as text: `x = lines(); zip(every(x, 2), x)`.
//!
//! A program is a list of definitions, each `NAME = STREAM;`, and a stream at the end.
//!
//! | stream | values |
//! | --- | --- |
//! | `lines()`, `json()`, `csv()`, `records(BYTES)` | the values of the next input or, with `lines("FILE")`, of a file |
//! | `numbers(FIRST, LAST)` | whole numbers |
//! | `map(x, VALUE)`, `filter(x, VALUE)` | `VALUE` computed from each `it`; the values for which `VALUE` is true |
//! | `every(x, N)`, `every(x, N, OFFSET)`, `skip(x, N)`, `keep(x, "0(10)")` | some values, selected by position |
//! | `window(x, N)`, `window(x, N, STEP)` | lists of `N` values |
//! | `scan(x, FIRST, VALUE)`, `reduce(x, FIRST, VALUE)` | the state `acc` after each value; at the end |
//! | `group(x, KEY, FIRST, VALUE)`, with a limit on keys as a fifth | the key and its state after each value |
//! | `repeat(x, N)`, `prefix(x, VALUE, …)` | each value several times; some values before the first |
//! | `zip(x, y, …)`, `merge(x, y, …)` | lists of one value of each stream; one value of each in turn |
//! | `hold(x, y)`, `align(x, y)` | for each value of `y`, the latest value of `x`; the value of `x` at that moment, or an empty value |
//! | `buffer(x, N)`, `spill(x, "FOLDER")`, `reread(x)` | the same values, with room to wait in memory; on disk; from a second reading of the input |
//!
//! `VALUE` consists of `it`, `acc`, numbers such as 7 and 2.5, texts in quotes, `it.field`, `it[0]`, `+ - * / %`,
//! `== != < <= > >=`, `and`, `or`, `not`, and the functions `length`, `number`, `contains` and `starts`. Lines and
//! fields of CSV are texts; `number` converts them to numbers. Arithmetic on whole numbers is exact, and fails if a
//! result exceeds 64 bits.
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
mod json;
mod lexer;
mod parser;
mod place;
mod plain;
mod problem;
mod program;
mod rows;
mod value;
mod ways;

pub use self::input::Inputs;
pub use self::problem::Problem;
pub use self::program::{Checked, TextProgram, parse};
pub use self::value::Value;

/// The maximum length of a program's text, in bytes.
pub const MAX_TEXT: usize = 64 << 10;

/// The maximum depth of nested expressions.
pub const MAX_DEPTH: usize = 200;

/// The default maximum number of keys of `group`.
pub const MAX_KEYS: usize = 1 << 16;
