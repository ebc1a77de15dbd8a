//! The libraries build with the oldest toolchain that the manifest promises.

use std::path::Path;
use std::process::Command;

use crate::step::{Passed, run};
use crate::tools::{Tool, oldest_version};

/// Checks the libraries with the oldest toolchain, if that is installed.
pub(crate) fn check(root: &Path) -> Result<Passed, String> {
    let tool = Tool::oldest_rust(root)?;
    if !tool.is_there() {
        return Ok(Passed::Without(tool.missing()));
    }
    // Through rustup: the cargo that runs this program belongs to another toolchain. The package re-exports every library.
    let mut check = Command::new("rustup");
    check.args(["run", &oldest_version(root)?, "cargo", "check", "--target-dir=target/msrv"]);
    run(check.args(["--package=millstream", "--all-features"]).current_dir(root))?;
    Ok(Passed::Whole)
}
