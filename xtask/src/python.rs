//! The Python package: built, installed into its own virtual environment, and tested.
//!
//! The package stands outside the workspace, so that everything else builds without Python. Here, too, a machine
//! without the required tools (an interpreter, `venv`, the build tool) is no failure: the step names the missing one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::cargo;

/// The check for the oldest Python whose stable interface has everything the package uses.
const OLDEST: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

/// The folder of the package.
const PACKAGE: &str = "bindings/python";

pub(crate) fn check(root: &Path) -> Result<(), String> {
    let environment = match Environment::prepare(root) {
        Ok(environment) => environment,
        Err(reason) => {
            println!("   skipped: {reason}");
            return Ok(());
        }
    };
    let manifest = format!("--manifest-path={PACKAGE}/Cargo.toml");
    run(Command::new(cargo()).args(["fmt", &manifest, "--check"]).current_dir(root))?;
    let mut clippy = Command::new(cargo());
    clippy.args(["clippy", &manifest, "--target-dir=target/python", "--", "-D", "warnings"]);
    run(clippy.env("PYO3_PYTHON", environment.program("python")).current_dir(root))?;
    let mut install = environment.python();
    install.args(["-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--force-reinstall"]);
    run(install.arg(PACKAGE).envs(build_settings(root)).current_dir(root))?;
    let mut test = environment.python();
    run(test
        .args(["-m", "unittest", "discover", "--start-directory"])
        .arg(format!("{PACKAGE}/tests"))
        .current_dir(root))
}

/// Builds the package with debug assertions, in its own target folder.
fn build_settings(root: &Path) -> [(&'static str, PathBuf); 2] {
    [("CARGO_TARGET_DIR", root.join("target/python")), ("MATURIN_PEP517_ARGS", PathBuf::from("--profile=dev"))]
}

/// A virtual environment with the build tool.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Finds the environment or makes it; the error names the missing tool of this machine.
    fn prepare(root: &Path) -> Result<Self, String> {
        let environment = Self { folder: root.join("target/python/venv") };
        if !succeeds(&mut environment.python(), &["-c", OLDEST]) {
            if !succeeds(&mut Command::new("python3"), &["-c", OLDEST]) {
                return Err("found no python3 of version 3.11 or later".to_owned());
            }
            let folder = environment.folder.display().to_string();
            if !succeeds(&mut Command::new("python3"), &["-m", "venv", "--clear", &folder]) {
                return Err("`python3 -m venv` does not work; on Debian, install python3-venv".to_owned());
            }
        }
        environment.ensure("maturin")?;
        // Without numpy, its tests are skipped, and this message says so.
        let _ = environment.ensure("numpy").inspect_err(|reason| println!("   {reason}; its tests are skipped"));
        Ok(environment)
    }

    fn ensure(&self, package: &str) -> Result<(), String> {
        if succeeds(&mut self.python(), &["-c", &format!("import {package}")])
            || succeeds(&mut self.python(), &["-m", "pip", "install", "--quiet", package])
        {
            Ok(())
        } else {
            Err(format!("{package} cannot be installed with pip; is there a network?"))
        }
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// The environment's interpreter, with the environment's programs first in its path.
    fn python(&self) -> Command {
        let mut python = Command::new(self.program("python"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.folder.join("bin")].into_iter().chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(folders) {
            python.env("PATH", path);
        }
        python
    }
}

/// Whether the command succeeds; its output does not matter.
fn succeeds(command: &mut Command, args: &[&str]) -> bool {
    command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a command whose failure fails the step.
fn run(command: &mut Command) -> Result<(), String> {
    let line = std::iter::once(command.get_program()).chain(command.get_args());
    let line: Vec<_> = line.map(|word| word.to_string_lossy().into_owned()).collect();
    let line = line.join(" ");
    println!("   $ {line}");
    let status = command.status().map_err(|error| format!("could not start `{line}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` ended with {status}")) }
}
