//! `millstream stream`: a program of streams in one line, checked before it runs.
//!
//! - [`args`]: the command line;
//! - `picture`: a mistake, shown in the text;
//! - `explain`: the table of clocks and bounds.

pub(crate) mod args;
mod explain;
mod picture;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use millstream_command::screen::out;
use millstream_stream::Running;
use millstream_stream::text::{Inputs, Problem, Value, parse};

use self::args::StreamArgs;

/// The run ended early.
const ENDED_EARLY: u8 = 1;
/// The program was refused.
const REFUSED: u8 = 2;
/// Standard output could not be written.
const NOT_WRITTEN: u8 = 4;

/// The bytes of output that are written at once.
const WRITE_BYTES: usize = 64 << 10;

/// `millstream stream`.
pub(crate) fn stream(args: &StreamArgs) -> ExitCode {
    ExitCode::from(run(args).unwrap_or_else(|problem| {
        out::complain_page(&picture::of(&args.program, &problem));
        REFUSED
    }))
}

fn run(args: &StreamArgs) -> Result<u8, Problem> {
    let inputs = if args.file.is_empty() { Inputs::standard() } else { Inputs::files(args.file.clone()) };
    let program = parse(&args.program, &inputs)?;
    if args.explain {
        let proof = program.check()?;
        return Ok(match out::print(&explain::table(&program.graph(), &proof)) {
            Ok(()) => 0,
            Err(error) => not_written(&error),
        });
    }
    Ok(print_values(program.run()?))
}

/// Prints every value on a line.
#[expect(clippy::disallowed_methods, reason = "the values are the user's own data and go out as they are")]
fn print_values(mut running: Running<Value>) -> u8 {
    let stdout = io::stdout().lock();
    let at_once = stdout.is_terminal();
    let mut out = BufWriter::with_capacity(WRITE_BYTES, stdout);
    let mut line = Vec::new();
    loop {
        let value = match running.next() {
            Ok(Some(value)) => value,
            Ok(None) => return written(out.flush(), 0),
            Err(error) => {
                let status = written(out.flush(), ENDED_EARLY);
                out::complain(format!("error: {error}"));
                return status;
            }
        };
        line.clear();
        value.print(&mut line);
        line.push(b'\n');
        let wrote = out.write_all(&line).and_then(|()| if at_once { out.flush() } else { Ok(()) });
        if wrote.is_err() {
            return written(wrote, 0);
        }
    }
}

/// The exit status after a write; a reader that goes away has what it wanted.
fn written(wrote: io::Result<()>, status: u8) -> u8 {
    match wrote {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => not_written(&error),
        _ => status,
    }
}

fn not_written(error: &io::Error) -> u8 {
    out::complain(format!("error: cannot write to standard output: {error}"));
    NOT_WRITTEN
}
