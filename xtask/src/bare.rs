//! Checks hazard pointers, which need no operating system: runs their test without the standard library, and builds their crate
//! for a machine without an operating system.

use std::path::Path;
use std::process::Command;

use crate::step::{Passed, cargo, run};
use crate::tools::Tool;

/// A target that has no standard library, so that any use of it fails the build.
pub(crate) const TARGET: &str = "x86_64-unknown-none";

const PARTS: [&str; 2] = ["--package=millstream-sync", "--no-default-features"];

/// Runs the test, and builds the crate for [`TARGET`] if this target is installed.
pub(crate) fn check(root: &Path) -> Result<Passed, String> {
    run(Command::new(cargo()).arg("test").args(PARTS).arg("--test=reclaim_bare").current_dir(root))?;
    let target = Tool::bare_target();
    if !target.is_there() {
        return Ok(Passed::Without(target.missing()));
    }
    let target = format!("--target={TARGET}");
    let mut build = Command::new(cargo());
    build.arg("check").args(PARTS).arg(target).env("RUSTFLAGS", "-D warnings").current_dir(root);
    run(&mut build)?;
    Ok(Passed::Whole)
}
