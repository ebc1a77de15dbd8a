//! The stand-in for a program: it produces the result that the case defines for the program and its arguments.
//!
//! The stand-in is a process, as the program would be, so standard input, output, files, time limits and exit statuses
//! are handled as in a real run. Several results for the same arguments are used one after the other; the last one is
//! then repeated.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use millstream_command::screen::out;
use millstream_runner::file::cases::Program;
use millstream_runner::stand_ins::bytes_differ;
use rustix::stdio;

use super::args::StandInArgs;
use super::trial::{Papers, write_files};
use crate::shell_word::quoted;

/// Exit status for a program that the case does not define: the status of a program that a shell does not find.
const NOT_FOUND: u8 = 127;

/// Produces the result that the case defines, and exits with its status.
pub(crate) fn stand_in(args: &StandInArgs) -> ExitCode {
    ExitCode::from(play(args).unwrap_or_else(|error| {
        out::complain(format!("the stand-in has failed: {error}"));
        NOT_FOUND
    }))
}

fn play(args: &StandInArgs) -> io::Result<u8> {
    let papers = Papers::at(&args.trial);
    let case = papers.case()?;
    let is_run_so = |program: &Program| {
        let words = program.run.iter().map(String::as_bytes);
        words.eq(args.words.iter().map(|word| word.as_bytes()))
    };
    let fitting: Vec<usize> = (0..case.programs.len()).filter(|index| is_run_so(&case.programs[*index])).collect();
    let Some(first) = fitting.first().copied() else {
        let lack = format!("the case has no program {}", line(&args.words));
        papers.note_lack(&lack)?;
        out::complain(lack);
        return Ok(NOT_FOUND);
    };
    let runs = papers.programs()?.iter().filter(|(noted, _)| *noted == first).count();
    let given = fitting[runs.min(fitting.len() - 1)];
    papers.note_program(first, given)?;
    let program = &case.programs[given];
    let mut stdin = Vec::new();
    File::from(stdio::stdin().try_clone_to_owned()?).read_to_end(&mut stdin)?;
    if let Some(difference) =
        program.stdin.as_ref().and_then(|expected| bytes_differ("its standard input", expected, &stdin))
    {
        papers.note_lack(&difference)?;
        out::complain_page(&difference);
        return Ok(NOT_FOUND);
    }
    write_files(Path::new(""), &program.files)?;
    File::from(stdio::stdout().try_clone_to_owned()?).write_all(&program.stdout)?;
    File::from(stdio::stderr().try_clone_to_owned()?).write_all(&program.stderr)?;
    Ok(program.status)
}

/// The words as a line for a shell.
fn line(words: &[OsString]) -> String {
    words.iter().map(|word| quoted(word.as_bytes())).collect::<Vec<_>>().join(" ")
}
