//! `millstream init`: an example to begin with.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use millstream_command::screen::out::{self, complain};
use millstream_command::screen::shown;
use millstream_runner::file::cases;

use crate::args::InitArgs;
use crate::run::{NOT_WRITTEN, WRONG};

/// The flows that come with the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Example {
    /// Run programs over the files of a folder
    Commands,
    /// Fetch URLs, a few at a time from each host
    Fetch,
    /// Sort lines of JSON into a file for each service
    Lines,
    /// Smooth the measurements in CSV files
    Series,
    /// Archive a folder: hash, compress, and store each content once
    Archive,
    /// Check such an archive
    Verify,
    /// Restore such an archive
    Unarchive,
}

impl Example {
    fn name(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Fetch => "fetch",
            Self::Lines => "lines",
            Self::Series => "series",
            Self::Archive => "archive",
            Self::Verify => "verify",
            Self::Unarchive => "unarchive",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Commands => include_str!("../flows/commands.toml"),
            Self::Fetch => include_str!("../flows/fetch.toml"),
            Self::Lines => include_str!("../flows/lines.toml"),
            Self::Series => include_str!("../flows/series.toml"),
            Self::Archive => include_str!("../flows/archive.toml"),
            Self::Verify => include_str!("../flows/verify.toml"),
            Self::Unarchive => include_str!("../flows/unarchive.toml"),
        }
    }

    /// The example's cases, for `millstream test`.
    fn cases(self) -> &'static str {
        match self {
            Self::Commands => include_str!("../flows/commands.test.toml"),
            Self::Fetch => include_str!("../flows/fetch.test.toml"),
            Self::Lines => include_str!("../flows/lines.test.toml"),
            Self::Series => include_str!("../flows/series.test.toml"),
            Self::Archive => include_str!("../flows/archive.test.toml"),
            Self::Verify => include_str!("../flows/verify.test.toml"),
            Self::Unarchive => include_str!("../flows/unarchive.test.toml"),
        }
    }

    /// A text of the example, with `file` as the name of the flow file in its comments.
    fn written_to(self, text: &str, file: &Path) -> String {
        text.replace(&format!("flows/{}.toml", self.name()), &shown::path(file).to_string())
    }
}

/// Writes the example, or lists the examples, and gives the exit status.
pub(crate) fn init(args: &InitArgs) -> ExitCode {
    let Some(example) = args.example else { return printed(out::print(&list())) };
    let file = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.toml", example.name())));
    if file.as_os_str() == "-" {
        return printed(out::print(example.text()));
    }
    let cases = cases::beside(&file);
    // Both paths are checked before either file is written, so an example is never written in part.
    if let Some(there) = [&file, &cases].into_iter().find(|path| path.symlink_metadata().is_ok()) {
        return is_there(there);
    }
    for (path, text) in [(&file, example.text()), (&cases, example.cases())] {
        if let Err(status) = write_new(path, &example.written_to(text, &file)) {
            return status;
        }
    }
    let (file, cases) = (shown::path(&file), shown::path(&cases));
    complain(format!(
        "wrote {file}; its first lines say how to run it, `millstream plan {file}` what it will do, and `millstream test {file}` \
         runs it on {cases}"
    ));
    ExitCode::SUCCESS
}

fn is_there(path: &Path) -> ExitCode {
    complain(format!("error: {} is there already; `-o FILE` writes another", shown::path(path)));
    ExitCode::from(WRONG)
}

/// Writes a file that does not exist yet; on failure, prints the reason and returns the exit status.
fn write_new(path: &Path, text: &str) -> Result<(), ExitCode> {
    let written = File::options().write(true).create_new(true).open(path);
    written.and_then(|mut new| new.write_all(text.as_bytes())).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            return is_there(path);
        }
        complain(format!("error: cannot write {}: {error}", shown::path(path)));
        ExitCode::from(NOT_WRITTEN)
    })
}

fn printed(printed: io::Result<()>) -> ExitCode {
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format!("error: cannot write to standard output: {error}"));
            ExitCode::from(NOT_WRITTEN)
        }
    }
}

fn list() -> String {
    let mut list = "`millstream init EXAMPLE` writes EXAMPLE.toml, a flow with comments to begin with:\n".to_owned();
    for example in Example::value_variants() {
        let about = example.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
        list += &format!("  {:<10}{}\n", example.name(), about.unwrap_or_default());
    }
    list
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::{Example, list};
    use millstream_runner::file::cases;

    #[test]
    fn every_example_is_listed_and_is_a_flow_that_knows_its_name() {
        for example in Example::value_variants() {
            assert!(list().contains(&format!("  {} ", example.name())), "{}", list());
            let text = example.written_to(example.text(), "some/where.toml".as_ref());
            assert!(
                text.contains("millstream run some/where.toml") && !text.contains(&format!("flows/{}", example.name()))
            );
            let flow = millstream_runner::file::parse::parse("example".as_ref(), &text, &[])
                .unwrap_or_else(|error| panic!("{}", error.render()));
            let text = example.written_to(example.cases(), "some/where.toml".as_ref());
            assert!(text.contains("millstream test some/where.toml"));
            cases::parse("example".as_ref(), &text, &flow).unwrap_or_else(|error| panic!("{}", error.render()));
        }
    }
}
