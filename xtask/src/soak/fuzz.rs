//! The targets of `fuzz/` under libFuzzer.

use std::fs;
use std::process::Command;

use super::{Bench, Part};
use crate::tools::Tool;

/// Each target, and the folders whose files it starts with, in addition to its seeds.
const TARGETS: [(&str, &[&str]); 6] =
    [("control", &[]), ("flow_file", &["flows"]), ("history", &[]), ("http", &[]), ("manifest", &[]), ("slab", &[])];

/// The maximum time of an input, in seconds.
const MAX_SECONDS: u64 = 10;

/// The maximum memory of a target, in MiB.
const MAX_MEMORY_MIB: u64 = 512;

/// Returns a part for each target.
pub(super) fn parts() -> impl Iterator<Item = Part> {
    TARGETS.into_iter().map(|(target, folders)| Part {
        name: target.to_owned(),
        group: "fuzz",
        about: "no input crashes this fuzz target, hangs it, or makes it use too much memory",
        tools: vec![Tool::nightly(), Tool::cargo_fuzz()],
        work: Box::new(|bench| run(bench, target, folders)),
    })
}

fn run(bench: &Bench<'_>, target: &str, folders: &[&str]) -> Result<(), String> {
    let corpus = format!("fuzz/corpus/{target}");
    fs::create_dir_all(bench.root.join(&corpus)).map_err(|error| format!("cannot make {corpus}: {error}"))?;
    // This is rustup's `cargo`, because the `cargo` that runs this program cannot select a toolchain.
    let mut command = Command::new("cargo");
    command.args(["+nightly", "fuzz", "run", "--sanitizer=none", target, &corpus, &format!("fuzz/seeds/{target}")]);
    command.args(folders).args(["--", &format!("-dict=fuzz/dictionaries/{target}")]);
    command.arg(format!("-max_total_time={}", bench.time.as_secs()));
    command.args([format!("-timeout={MAX_SECONDS}"), format!("-rss_limit_mb={MAX_MEMORY_MIB}")]);
    bench.run(&mut command).map_err(|reason| format!("{reason}; the input is in fuzz/artifacts/{target}"))
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
}
