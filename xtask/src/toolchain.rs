//! The parts of the toolchain that the checks need beside the compiler.

use std::process::{Command, Stdio};

use crate::step::cargo;

/// A cargo subcommand and the rustup component that provides it.
const COMPONENTS: [(&str, &str); 2] = [("fmt", "rustfmt"), ("clippy", "clippy")];

/// Installs the missing components through rustup, or says which to install by hand.
pub(crate) fn ensure_components() -> Result<(), String> {
    for (subcommand, component) in COMPONENTS {
        if works(subcommand) {
            continue;
        }
        println!("== `cargo {subcommand}` is missing: rustup component add {component}");
        let added =
            Command::new("rustup").args(["component", "add", component]).status().is_ok_and(|status| status.success());
        if !added || !works(subcommand) {
            return Err(format!(
                "`cargo {subcommand}` is missing and `rustup component add {component}` did not \
                 install it; install {component} for this toolchain and try again"
            ));
        }
    }
    Ok(())
}

fn works(subcommand: &str) -> bool {
    Command::new(cargo())
        .args([subcommand, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
