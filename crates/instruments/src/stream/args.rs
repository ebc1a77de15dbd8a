//! The command line of `millstream stream`.

use std::path::PathBuf;

use clap::Args;

/// The end of `millstream stream --help`.
const EXAMPLES: &str = "\
Examples:
  millstream stream 'x = lines(); zip(skip(x, 1), x)' names.txt
  millstream stream 'filter(csv(), number(it.size) > 1000)' files.csv
  millstream stream 'x = json(); reduce(map(x, it.bytes), 0, acc + it)' < log.jsonl
  millstream stream 'x = lines(); zip(map(window(x, 3, 1), it[0]), x)' --explain

A program is a list of definitions, each `NAME = STREAM;`, and a stream at the end, whose values are printed: texts \
as they are, lists with tabs between their values, and values with fields as JSON, where U+FFFD replaces bytes that are \
not UTF-8. Numbers are 64-bit integers or floats.

Streams:
  lines() json() csv() records(BYTES)   the next FILE, or standard input; lines(\"FILE\") names one
  numbers(FIRST, LAST)                  whole numbers
  map(x, VALUE) filter(x, VALUE)        computed from `it`; those for which VALUE is true
  every(x, N[, OFFSET]) skip(x, N)      every Nth; all but the first N
  keep(x, \"0(10)\")                      those at the 1s of a binary word, whose part in parentheses repeats
  window(x, N[, STEP])                  lists of N values
  scan(x, FIRST, VALUE)                 `acc` after each value; reduce gives it at the end
  group(x, KEY, FIRST, VALUE[, KEYS])   the key and its `acc` after each value
  repeat(x, N) prefix(x, VALUE, …)      each N times; some before the first
  zip(x, y, …) merge(x, y, …)           lists of one of each; one of each by turns
  hold(x, y) align(x, y)                for each of y, the last of x; the x at the same moment
  buffer(x, N) spill(x, \"DIR\")          room for N values to wait; room on disk
  reread(x)                             the same from a second reading of its files

Values: `it`, `acc`, 7, 2.5, \"text\", `it.field`, `it[0]`, + - * / %, == != < <= > >=, and or not, length(v), number(v), contains(v, v), \
starts(v, v).

A stream that is used twice and joined again needs room for the values that wait. The program runs in constant space, with the room that \
`--explain` shows, or it is refused: then the message shows the two paths, how fast the gap between them grows, and what to write instead.

Output into a pipe or a file is written whenever the input pauses, so `tail -f LOG | millstream stream … | …` shows each line as it \
comes. On SIGINT or SIGTERM, the program still prints all lines that it has computed, each of them whole, if their reader takes them \
within two seconds. A second signal ends it at once.

Exit status, unless a signal ends it:
  0  every value was printed
  1  the run ended early: an input is wrong, a buffer was too small, or a disk was full; the values printed before are correct
  2  the program was refused, or the arguments are wrong
  4  standard output could not be written";

/// `millstream stream`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StreamArgs {
    /// The program, such as `x = lines(); zip(skip(x, 1), x)`.
    #[arg(value_name = "EXPR")]
    pub program: String,
    /// The inputs, in order, of those sources in EXPR that name no file [default: standard input, for one source].
    pub file: Vec<PathBuf>,
    /// Show clocks, rates and bounds, and read nothing.
    #[arg(long)]
    pub explain: bool,
}
