//! `cargo xtask soak`: libFuzzer over the targets of `fuzz/`, each for some minutes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A target and, beside its seeds, the folders whose files it begins with.
const TARGETS: [(&str, &[&str]); 4] = [("control", &[]), ("flow_file", &["flows"]), ("http", &[]), ("manifest", &[])];

const DEFAULT_MINUTES: u64 = 1;

/// No input may take longer, in seconds.
const TIMEOUT_S: u64 = 10;

/// No target may hold more, in MiB.
const MEMORY_MIB: u64 = 512;

/// Builds the targets in `args`, or all of them, and runs one after the other.
///
/// # Errors
/// What is missing, or the target that crashed, hung, or held too much.
pub(crate) fn soak(args: &[String], root: &Path) -> Result<(), String> {
    let (minutes, targets) = chosen(args)?;
    check_tools()?;
    for (target, folders) in targets {
        let corpus = format!("fuzz/corpus/{target}");
        fs::create_dir_all(root.join(&corpus)).map_err(|error| format!("cannot make {corpus}: {error}"))?;
        let mut command = fuzz();
        command.args(["run", "--sanitizer=none", target, &corpus, &format!("fuzz/seeds/{target}")]).args(folders);
        command.args([
            "--",
            &format!("-dict=fuzz/dictionaries/{target}"),
            &format!("-max_total_time={}", minutes * 60),
        ]);
        command.args([format!("-timeout={TIMEOUT_S}"), format!("-rss_limit_mb={MEMORY_MIB}")]);
        println!("== {target}, {minutes} min: {command:?}");
        let status = command.current_dir(root).status().map_err(|error| format!("could not start cargo: {error}"))?;
        if !status.success() {
            return Err(format!("{target} ended with {status}; the input is in fuzz/artifacts/{target}"));
        }
    }
    Ok(())
}

type Target = (&'static str, &'static [&'static str]);

fn chosen(args: &[String]) -> Result<(u64, Vec<Target>), String> {
    let mut minutes = DEFAULT_MINUTES;
    let mut targets = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--minutes" {
            let value = args.next().and_then(|value| value.parse().ok()).filter(|value| *value > 0);
            minutes = value.ok_or("--minutes takes a whole number from 1")?;
            continue;
        }
        let target = TARGETS.iter().find(|(name, _)| name == arg);
        targets.push(*target.ok_or_else(|| format!("unknown target `{arg}`; the targets are {}", names()))?);
    }
    if targets.is_empty() {
        targets.extend(TARGETS);
    }
    Ok((minutes, targets))
}

fn names() -> String {
    TARGETS.map(|(name, _)| name).join(", ")
}

/// `cargo +nightly fuzz`, through rustup's `cargo`: the one that runs this program knows no other toolchain.
fn fuzz() -> Command {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "fuzz"]);
    command
}

fn check_tools() -> Result<(), String> {
    let works = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !works(Command::new("cargo").args(["+nightly", "--version"])) {
        return Err(
            "libFuzzer needs a nightly toolchain: `rustup toolchain install nightly --profile minimal`".to_owned()
        );
    }
    if !works(fuzz().arg("--version")) {
        return Err("`cargo fuzz` is missing: `cargo install cargo-fuzz --locked`".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_target_of_the_folder_is_soaked_and_has_seeds_and_words() {
        let fuzz = crate::root().join("fuzz");
        let found: BTreeSet<String> = fs::read_dir(fuzz.join("fuzz_targets"))
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(found, TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect());
        for (name, folders) in TARGETS {
            assert!(fuzz.join("dictionaries").join(name).is_file() && fuzz.join("seeds").join(name).is_dir(), "{name}");
            assert!(folders.iter().all(|folder| crate::root().join(folder).is_dir()), "{name}");
        }
    }

    #[test]
    fn targets_and_minutes_are_read_in_any_order() {
        let chosen = |args: &[&str]| chosen(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>());
        assert_eq!(chosen(&[]).unwrap(), (DEFAULT_MINUTES, TARGETS.to_vec()));
        assert_eq!(chosen(&["http", "--minutes", "3"]).unwrap(), (3, vec![TARGETS[2]]));
        assert!(chosen(&["--minutes", "0"]).unwrap_err().contains("from 1"));
        assert!(chosen(&["htpt"]).unwrap_err().contains("control, flow_file"));
    }
}
