//! Checks the parts that need no operating system without the standard library: their test runs here, and they build
//! for a machine without an operating system.

use std::path::Path;
use std::process::Command;

use crate::step::cargo;

/// A target without a standard library, so that no use of it can go unnoticed.
const TARGET: &str = "x86_64-unknown-none";

const PARTS: [&str; 2] = ["--package=millstream-sync", "--no-default-features"];

/// Runs the test of the parts, and builds them for [`TARGET`] or says why this machine cannot.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    run(root, Command::new(cargo()).arg("test").args(PARTS).arg("--test=reclaim_bare"))?;
    let has_target =
        Command::new("rustup").args(["target", "add", TARGET]).status().is_ok_and(|status| status.success());
    if !has_target {
        println!("   skipped for {TARGET}: `rustup target add {TARGET}` does not install it");
        return Ok(());
    }
    let target = format!("--target={TARGET}");
    run(root, Command::new(cargo()).arg("check").args(PARTS).arg(target).env("RUSTFLAGS", "-D warnings"))
}

fn run(root: &Path, command: &mut Command) -> Result<(), String> {
    println!("   $ {command:?}");
    let status = command.current_dir(root).status().map_err(|error| format!("could not start {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}
