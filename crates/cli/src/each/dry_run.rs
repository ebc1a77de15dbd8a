//! `each --dry-run`: the command line of every program, none of which runs.
//!
//! Lines are quoted for a shell, so that `| sh` runs them and a reader sees where an argument ends.

use std::io;

use crate::shell_word::quoted;
use millstream_command::screen::{out, text};
use millstream_runner::file::FlowFile;
use millstream_runner::file::model::{Condition, ExecSpec, OpSpec};
use millstream_runner::file::template::{Field, RenderError, Template};
use millstream_runner::ops::is_stale;
use millstream_runner::record::Record;

/// The words of a program's command line, quoted.
fn words(argv: &[Template], unit: &Record) -> Result<Vec<String>, RenderError> {
    let mut words = Vec::new();
    for word in argv {
        match unit.items().filter(|_| word.is_only(&Field::Items)) {
            Some(items) => words.extend(items.map(quoted)),
            None => words.push(quoted(&word.render(unit)?)),
        }
    }
    Ok(words)
}

/// Prints a line for each unit.
///
/// # Errors
/// The errors of standard output.
pub(super) fn print(flow: &FlowFile, units: impl Iterator<Item = Record>) -> io::Result<()> {
    let program = flow.stages.iter().find_map(|stage| match &stage.op {
        OpSpec::Exec(ExecSpec { argv, shell, .. }) => Some((argv, *shell)),
        _ => None,
    });
    let (argv, shell) = program.expect("a stage of such a flow runs the program");
    let stale = flow.stages.iter().find_map(|stage| match &stage.op {
        OpSpec::Filter { when: Condition::Stale { target, than } } => Some((target, than)),
        _ => None,
    });
    out::print_with(|out| {
        for unit in units {
            if let Some(fault) = &unit.rare.fault {
                out.write_all(format!("# {}\n", text::printable(fault)).as_bytes())?;
                continue;
            }
            let is_due = stale.map_or(Ok(true), |(target, than)| is_stale(target, than, &unit));
            match is_due {
                Ok(true) => {}
                Ok(false) => continue,
                Err(failure) => {
                    out.write_all(format!("# {}\n", text::printable(failure.message())).as_bytes())?;
                    continue;
                }
            }
            let words = words(argv, &unit);
            let line = match words {
                Ok(words) if shell => format!("sh -c {} sh {}\n", words[0], words[1..].join(" ")),
                Ok(words) => format!("{}\n", words.join(" ")),
                Err(error) => format!("# {}: {error}\n", text::printable(&String::from_utf8_lossy(unit.text()))),
            };
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    })
}
