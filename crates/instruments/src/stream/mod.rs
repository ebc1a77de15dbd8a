//! `millstream stream`: a program of streams in one line, checked before it runs.
//!
//! - [`args`]: the command line;
//! - `picture`: a mistake, shown in the text;
//! - `explain`: the table of clocks and bounds;
//! - `output`: the values, in whole lines;
//! - `ending`: the signals that end the program.

pub(crate) mod args;
mod ending;
mod explain;
mod output;
mod picture;

use std::io;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::rc::Rc;

use millstream_command::screen::out;
use millstream_stream::Running;
use millstream_stream::text::{Inputs, Problem, Value, parse};

use self::args::StreamArgs;
use self::output::Output;

/// The run ended early.
const ENDED_EARLY: u8 = 1;
/// The program was refused.
const REFUSED: u8 = 2;
/// Standard output could not be written.
const NOT_WRITTEN: u8 = 4;

/// The number of steps of the program between two checks for a signal, while it prints nothing.
const STEPS: u64 = 4096;

/// `millstream stream`.
pub(crate) fn stream(args: &StreamArgs) -> ExitCode {
    ExitCode::from(run(args).unwrap_or_else(|problem| {
        out::complain_page(&picture::of(&args.program, &problem));
        REFUSED
    }))
}

fn run(args: &StreamArgs) -> Result<u8, Problem> {
    let inputs = if args.file.is_empty() { Inputs::standard() } else { Inputs::files(args.file.clone()) };
    if args.explain {
        let program = parse(&args.program, &inputs)?;
        let proof = program.check()?;
        return Ok(match out::print(&explain::table(&program.graph(), &proof)) {
            Ok(()) => 0,
            Err(error) => not_written(&error),
        });
    }
    let output = match Output::new() {
        Ok(output) => Rc::new(output),
        Err(error) => {
            out::complain(format_args!("error: cannot handle signals: {error}"));
            return Ok(ENDED_EARLY);
        }
    };
    let before = Rc::clone(&output);
    let program = parse(&args.program, &inputs.before_waits(move || before.before_wait()))?;
    Ok(print_values(program.run()?, &output))
}

/// Prints every value on a line.
fn print_values(mut running: Running<Value>, output: &Output) -> u8 {
    let mut wrote = Ok(());
    loop {
        let ended = running.for_each_within(&mut { STEPS }, |value| match output.line(|line| value.print(line)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                wrote = Err(error);
                ControlFlow::Break(())
            }
        });
        match ended {
            _ if wrote.is_err() => return written(wrote, 0),
            Ok(false) => output.obey(),
            Ok(true) => return written(output.flush(), 0),
            Err(error) => {
                if let Some(unwritten) = output.failed() {
                    return written(Err(unwritten), 0);
                }
                let status = written(output.flush(), ENDED_EARLY);
                out::complain(format!("error: {error}"));
                return status;
            }
        }
    }
}

/// Returns the exit status after a write. It is not an error if the reader has gone away.
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
