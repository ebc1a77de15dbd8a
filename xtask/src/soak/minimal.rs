//! The oldest versions of dependencies that the manifests promise: the libraries build with them.

use std::process::Command;

use super::{Bench, Part};
use crate::tools::Tool;

const FOLDER: &str = "target/minimal";

pub(super) fn part() -> Part {
    Part {
        name: "minimal".to_owned(),
        group: "minimal",
        about: "the libraries build with the oldest dependencies that the manifests allow",
        tools: vec![Tool::nightly()],
        work: Box::new(|bench| {
            let folder = bench.root.join(FOLDER);
            std::fs::create_dir_all(&folder).map_err(|error| format!("{FOLDER}: {error}"))?;
            bench.run(cargo(bench).args(["generate-lockfile", "-Zdirect-minimal-versions"]))?;
            let mut check = cargo(bench);
            check.args(["check", "--locked", "--package=millstream", "--all-features"]);
            bench.run(check.arg(format!("--target-dir={FOLDER}")))
        }),
    }
}

/// Returns a command of cargo with a separate lock file. It is rustup's `cargo`, because the `cargo` that runs this
/// program cannot select a toolchain.
fn cargo(bench: &Bench<'_>) -> Command {
    let list = bench.root.join(FOLDER).join("Cargo.lock");
    let mut cargo = Command::new("cargo");
    cargo.args(["+nightly", "-Zlockfile-path", "--config"]);
    cargo.arg(format!("resolver.lockfile-path='{}'", list.display()));
    cargo
}
