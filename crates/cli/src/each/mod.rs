//! `millstream each`: one program for each of many items, without a flow file.
//!
//! The options and the program's words become the text of a flow file ([`flow_text`]), which is then read and run like
//! any other, or saved by `--save`. So a command line that has grown too long can become an equivalent file.

mod dry_run;
mod flow_text;
mod script;
mod words;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use self::words::{Command, WordsError};
use crate::args::{EachArgs, FlowArgs, RunArgs};
use crate::run;
use crate::shell_word::quoted;
use millstream_command::screen::out::{self, complain};
use millstream_command::screen::shown;
use millstream_runner::file::{self, FlowError};
use millstream_runner::source::{self, SourceError};

/// The name of the flow's text in errors and reports.
const NAME: &str = "millstream each";

/// The reason why no program was run.
#[derive(Debug, thiserror::Error)]
enum EachError {
    /// The program's words make no sense.
    #[error(transparent)]
    Words(#[from] WordsError),
    /// The equivalent flow is refused.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The items cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The flow file cannot be written.
    #[error("--save {}: {error}", shown::path(path))]
    Save {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        error: std::io::Error,
    },
    /// The programs cannot be listed.
    #[error("cannot write to standard output: {0}")]
    Print(std::io::Error),
}

/// Runs the program for each item, and gives the exit status.
pub(crate) fn each(args: &EachArgs) -> ExitCode {
    match prepare(args) {
        Ok(Some(run)) => run::run(&run),
        Ok(None) => ExitCode::from(run::ALL_RETIRED),
        Err(EachError::Flow(error)) => {
            out::complain_page(&error.render());
            ExitCode::from(run::WRONG)
        }
        Err(EachError::Print(error)) => {
            complain(format!("error: {}", EachError::Print(error)));
            ExitCode::from(run::NOT_WRITTEN)
        }
        Err(error) => {
            complain(format!("error: {error}"));
            ExitCode::from(run::WRONG)
        }
    }
}

/// The run that the arguments describe. `None` if they ask for something other than a run; that has been done already.
fn prepare(args: &EachArgs) -> Result<Option<RunArgs>, EachError> {
    let command = Command::read(&args.words, args.takes(), args.shell)?;
    let source = flow_text::Source::of(args, &command)?;
    if matches!(&source, flow_text::Source::Items(items) if items.is_empty()) {
        // An empty list may be a mistake, for example a pattern of the shell that matches no file. So it is reported.
        if !args.output.quiet {
            complain("no items follow `:::`: there is nothing to do");
        }
        return Ok(None);
    }
    let text = flow_text::of(args, &command, &source);
    let name = PathBuf::from(NAME);
    // A mistake is reported before anything is saved.
    let mut flow = file::parse::parse(&name, &text, &[])?;
    let inputs = source.inputs();
    flow.bind_inputs(&inputs)?;
    if let Some(path) = &args.save {
        save(path, &text).map_err(|error| EachError::Save { path: path.clone(), error })?;
        complain(format!(
            "saved; `millstream run {}{}` does the same",
            quoted(path.as_os_str().as_encoded_bytes()),
            source.usage()
        ));
        return Ok(None);
    }
    if args.dry_run {
        let units = source::open(&flow, &inputs, &Arc::default())?;
        dry_run::print(&flow, units).map_err(EachError::Print)?;
        return Ok(None);
    }
    if source.reads_stdin() && std::io::stdin().is_terminal() && !args.output.quiet {
        complain("items are read from this terminal, one per line; `::: ITEM…` after the program names them instead");
    }
    Ok(Some(RunArgs {
        flow: FlowArgs {
            flow: name,
            text: Some(text),
            param: Vec::new(),
            inflight: None,
            memory: args.memory,
            workers: None,
        },
        input: inputs,
        dry_run: None,
        halt: None,
        set: Vec::new(),
        dead_letters: args.dead_letters.clone(),
        output: args.output.clone(),
    }))
}

/// Writes a flow file that does not exist yet.
fn save(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = std::fs::File::options().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}
