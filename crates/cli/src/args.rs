//! The command line.

mod each;
mod flow;
mod page;
mod running;
mod values;
mod whatif;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};
use millstream_command::screen::look::Look;
use millstream_command::screen::{out, text};
use millstream_runner::file::{REFERENCE, suggest};

pub(crate) use self::each::{EachArgs, Takes};
pub(crate) use self::flow::{FlowArgs, InitArgs, OutputArgs, PlanArgs, RetryArgs, RunArgs};
pub(crate) use self::page::PageArgs;
pub(crate) use self::running::{ExplainArgs, FibersArgs, SetArgs, StatusArgs, TopArgs};
pub(crate) use self::whatif::WhatIfArgs;
use crate::cases::args::{StandInArgs, TestArgs, TrialArgs};
use crate::families::by_family;
use crate::run::{NOT_WRITTEN, WRONG};

/// The end of `millstream plan -h`.
const PLAN_STATUS: &str = "\
Exit status:
  0  the flow can run
  2  the flow file or the arguments are wrong
  4  the plan could not be written";

/// The end of `millstream plan --help`, which shows a flow file with every key. A test parses that file.
fn plan_help() -> String {
    let status = concat!(
        "Exit status:\n",
        "  0  the flow can run\n",
        "  2  the flow file or the arguments are wrong\n",
        "  4  the plan could not be written\n\n",
        "A flow file, with every key there is:\n\n",
    );
    format!("{status}{REFERENCE}")
}

/// The end of `millstream init --help`.
const INIT_STATUS: &str = "\
Exit status:
  0  the file was written
  2  a file of this name is there already
  4  the file could not be written";

/// The end of `millstream status --help`.
const STATUS_STATUS: &str = "\
Exit status:
  0  the status was printed
  2  there is no such run, or it does not answer
  4  the status could not be written";

/// The end of `millstream top --help`.
const TOP_STATUS: &str = "\
Exit status:
  0  the screen was left, by a key or by a signal
  2  there is no such run, or standard output is no terminal
  4  the terminal could not be used";

/// The end of `millstream explain --help`.
const EXPLAIN_HELP: &str = "\
Examples:
  millstream explain fetch-4711 17
  millstream explain fetch host:example.org
  millstream explain fetch disk --json

Exit status:
  0  the explanation was printed
  2  there is no such unit or key now, or no such run, or it does not answer
  4  the explanation could not be written";

/// Runs staged flows over files, URLs and records.
///
/// A flow file (TOML) names a source of units and the stages they pass through. Each stage's queue acquires what a unit
/// needs (tokens, a slot at a host, bytes of memory) before a thread is spent on it, so no resource runs out and no
/// thread is blocked.
#[derive(Debug, Parser)]
#[command(
    name = "millstream",
    version,
    max_term_width = 100,
    propagate_version = true,
    after_help = "`millstream COMMAND --help` shows a command's examples and its exit statuses."
)]
pub(crate) struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a flow to the end of its source.
    ///
    /// Progress and the report go to standard error; standard output belongs to the stages. `millstream plan --help` shows how a
    /// flow file is written.
    Run(RunArgs),
    /// Check a flow, and show its graph, bounds, needs and largest use of memory, without running it.
    ///
    /// Nothing is run and nothing is written. A flow that could deadlock, or whose file contains a mistake, is refused
    /// with exit status 2; the message gives the position, the reason and the remedy.
    #[command(after_help = PLAN_STATUS, after_long_help = plan_help())]
    Plan(PlanArgs),
    /// Run one program for each of many items, without a flow file.
    ///
    /// Items are lines of standard input, files below a folder, or words after `:::`. The item takes the place of `{}`
    /// in the arguments; if none contains `{}`, the item is added as the last argument. No shell sees the item.
    Each(Box<EachArgs>),
    /// Write a flow file to begin with.
    ///
    /// Without EXAMPLE, lists the examples.
    #[command(after_help = INIT_STATUS)]
    Init(InitArgs),
    /// Run flows on their cases, and compare the outcome with the expected one.
    ///
    /// Each case runs in a temporary folder. The stand-ins that it defines replace programs and the responses of
    /// servers, so the case reaches neither the network nor other files.
    Test(TestArgs),
    /// Run the units of a file of dead letters again.
    ///
    /// The flow, its parameters, INPUTs, caps and folder are those of the run in which the units failed; each unit
    /// starts over at the first stage. A flow file that has changed since then is refused, unless `--changed` is given.
    Retry(RetryArgs),
    /// Show the state of a running flow.
    #[command(after_help = STATUS_STATUS)]
    Status(StatusArgs),
    /// Watch running flows on the whole terminal, and change them.
    ///
    /// Shows what limits a run, what its units wait for, stage by stage and resource by resource, and the last five minutes; `?`
    /// lists the keys. Every change is shown before it is made, and recorded in the run's report.
    #[command(after_help = TOP_STATUS)]
    Top(TopArgs),
    /// Say why a unit of a running flow does not move, or which units hold a resource.
    ///
    /// A unit is named by its number, as dead letters name it; a resource by its name, and a key as `host:example.org`.
    #[command(after_help = EXPLAIN_HELP)]
    Explain(ExplainArgs),
    /// Show the fibers of a running flow: how many there are, how deep their stacks are, and which ones have delayed
    /// others.
    ///
    /// `--dump` shows all fibers, in groups: the fibers of a group are in the same stage and wait in the same call. For
    /// each group it shows what the fibers wait for, for how long, their units, and how much of their stacks was used.
    #[command(after_help = STATUS_STATUS)]
    Fibers(FibersArgs),
    /// Change a running flow: its caps, tokens, rates and workers.
    Set(SetArgs),
    /// Predict how a traced run would have gone under other settings.
    ///
    /// The trace comes from `millstream run --trace FILE`. The engine replays the trace in simulated time, first with
    /// the settings of the run. If this replay misses the measured time by more than 5 %, the command refuses to
    /// answer. Without SETTINGs, the command shows which settings would help.
    Whatif(WhatIfArgs),
    /// Show a finished run on the page of `run --page`, from its trace, events or report.
    ///
    /// The engine replays a trace (`millstream run --trace FILE`) in simulated time to find out what its units waited
    /// for, and again whenever a slider moves. Events (`--events FILE`) show what ran when; a report (`--report
    /// FILE.json`) shows the totals and the failures. The page is served on 127.0.0.1 until ^C.
    Page(PageArgs),
    /// A command that runs no flow.
    #[command(flatten)]
    Instrument(millstream_instruments::Command),
    /// Run the flow of a case. Only `millstream test` starts this command.
    #[command(hide = true)]
    Trial(TrialArgs),
    /// Produce the result that a case defines for a program. Only the flow of the case starts this command.
    #[command(hide = true)]
    StandIn(StandInArgs),
    /// End the programs of a run that was killed. Only a run starts this command.
    #[command(hide = true)]
    Supervise {
        /// The mark in the environment of the programs.
        mark: String,
    },
}

/// Reads the command line.
///
/// # Errors
/// The command line is wrong or asks for help. The message or the help has been printed, and the error is the exit
/// status.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| {
        // clap's errors contain colour sequences and quote words of the command line. A quoted word may contain such
        // sequences too, and in the error nothing distinguishes them from clap's own. So the words are also parsed in
        // their printable form. This second attempt fails in the same way, but its error quotes only printable text.
        let words: Vec<String> =
            std::env::args_os().map(|word| text::printable(&word.to_string_lossy()).into()).collect();
        let shown = by_family(Cli::command()).try_get_matches_from(&words).err();
        let shown = shown.filter(|shown| shown.kind() == error.kind());
        told(&with_near_command(shown.unwrap_or(error), words.into_iter().skip(1)))
    })
}

fn told(error: &clap::Error) -> ExitCode {
    let look = if error.use_stderr() { Look::of_stderr() } else { Look::of_stdout() };
    let text = error.render();
    let page = if look.is_some_and(|look| look.color) { text.ansi().to_string() } else { text.to_string() };
    if error.use_stderr() {
        out::complain_page(&page);
    } else if let Err(error) = out::print(&page) {
        out::complain(format!("error: cannot write to standard output: {error}"));
        return ExitCode::from(NOT_WRITTEN);
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(WRONG))
}

/// Suggests the command that a mistyped one was probably meant to be, if clap suggests none: clap does not recognise
/// two swapped letters.
fn with_near_command(mut error: clap::Error, words: impl Iterator<Item = String>) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand).cloned() else { return error };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    let top = Cli::command();
    let mut family = &top;
    for word in words {
        family = family.find_subcommand(word).unwrap_or(family);
    }
    let names = family.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    if let Some(near) = suggest::closest(&typed, names) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near.to_owned()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Cli, Command, with_near_command};

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_states_its_own_exit_statuses() {
        let mut helps = Vec::new();
        after_helps(&Cli::command(), "", &mut helps);
        let (_, own) = helps.pop().expect("the command itself comes last");
        assert!(!own.contains("Exit status"), "{own}");
        let states = |path: &str| helps.iter().any(|(other, help)| other == path && help.contains("Exit status"));
        for (command, _) in &helps {
            let family = format!("{} ", command.trim_end().rsplit_once(' ').expect("of a family").0);
            // A command that only groups others, as `history` does, need not state an exit status.
            let leads_on = helps.iter().any(|(other, _)| other != command && other.starts_with(command.as_str()));
            assert!(states(command) || states(&family) || leads_on, "{command}");
        }
    }

    /// Every command, with the text that its help shows after the options.
    fn after_helps(command: &clap::Command, path: &str, found: &mut Vec<(String, String)>) {
        let path = format!("{path}{} ", command.get_name());
        let said = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            after_helps(inner, &path, found);
        }
        found.push((path, said));
    }

    #[test]
    fn paragraphs_of_help_are_broken_by_the_terminal_alone() {
        let mut helps = Vec::new();
        after_helps(&Cli::command(), "", &mut helps);
        for (command, help) in helps {
            let lines: Vec<&str> = help.lines().collect();
            for pair in lines.windows(2) {
                let prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
                // A paragraph must be one line of the text, so two successive lines may not both start at the left
                // margin. The lines below a heading are indented.
                assert!(!(prose(pair[0]) && prose(pair[1])), "{command}: `{}` and `{}`", pair[0], pair[1]);
            }
        }
    }

    #[test]
    fn a_mistyped_command_is_shown_with_the_right_one() {
        for (line, near) in [
            (&["rnu"][..], "'run'"),
            (&["sttaus"], "'status'"),
            (&["dcotor"], "'doctor'"),
            (&["csm", "pwoer"], "'power'"),
        ] {
            let typed = std::iter::once("millstream").chain(line.iter().copied());
            let error = Cli::try_parse_from(typed).unwrap_err();
            let said = with_near_command(error, line.iter().map(ToString::to_string)).to_string();
            assert!(said.contains(near), "{said}");
        }
        let error = Cli::try_parse_from(["millstream", "frobnicate"]).unwrap_err();
        assert!(!with_near_command(error, std::iter::empty()).to_string().contains("similar"));
    }

    #[test]
    fn run_takes_inputs_and_parameters_in_any_order() {
        let cli =
            Cli::try_parse_from(["millstream", "run", "f.toml", "-p", "out=a=b", "in", "--memory", "32MiB"]).unwrap();
        let Command::Run(run) = cli.command else { panic!("not run") };
        assert_eq!(run.flow.param, [("out".to_owned(), "a=b".to_owned())]);
        assert_eq!(run.input, ["in"]);
        assert_eq!(run.flow.memory, Some(32 << 20));
    }

    #[test]
    fn senseless_values_are_refused() {
        for wrong in [
            &["run", "f.toml", "-p", "out"][..],
            &["run", "f.toml", "--inflight", "0"],
            &["run", "f.toml", "--memory", "0"],
            &["run", "f.toml", "--memory", "lots"],
            &["run", "f.toml", "--workers", "0"],
            &["run", "f.toml", "--report", "report.pdf"],
            &["set", "socket"],
            &["plan"],
        ] {
            let line = std::iter::once(&"millstream").chain(wrong);
            assert!(Cli::try_parse_from(line).is_err(), "{wrong:?}");
        }
    }
}
