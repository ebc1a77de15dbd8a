//! The Python package: built, installed into its own virtual environment, and tested.
//!
//! The package stands outside the workspace, so that everything else builds without Python. A machine without an
//! interpreter, or before `cargo xtask setup`, leaves the step out and says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{Passed, cargo, run};
use crate::tools::Tool;

/// The folder of the package.
pub(crate) const PACKAGE: &str = "bindings/python";

pub(crate) fn check(root: &Path) -> Result<Passed, String> {
    let tools = [Tool::python(root), Tool::python_package(root, "maturin"), Tool::python_package(root, "numpy")];
    if let Some(missing) = tools.iter().find(|tool| !tool.is_there()) {
        return Ok(Passed::Without(missing.missing()));
    }
    let environment = Environment::of(root);
    let manifest = format!("--manifest-path={PACKAGE}/Cargo.toml");
    run(Command::new(cargo()).args(["fmt", &manifest, "--check"]).current_dir(root))?;
    let mut clippy = Command::new(cargo());
    clippy.args(["clippy", &manifest, "--target-dir=target/python", "--", "-D", "warnings"]);
    run(clippy.env("PYO3_PYTHON", environment.interpreter()).current_dir(root))?;
    let mut install = environment.python();
    install.args(["-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--force-reinstall"]);
    run(install.arg(PACKAGE).envs(build_settings(root)).current_dir(root))?;
    let mut test = environment.python();
    test.args(["-m", "unittest", "discover", "--start-directory"]).arg(format!("{PACKAGE}/tests"));
    run(test.current_dir(root))?;
    let mypy = Tool::python_package(root, "mypy");
    if !mypy.is_there() {
        return Ok(Passed::Without(mypy.missing()));
    }
    // The type hints and the package itself agree.
    run(environment.python().args(["-m", "mypy.stubtest", "millstream"]).current_dir(root))?;
    Ok(Passed::Whole)
}

/// Builds the package with debug assertions, in its own target folder.
fn build_settings(root: &Path) -> [(&'static str, PathBuf); 2] {
    [("CARGO_TARGET_DIR", root.join("target/python")), ("MATURIN_PEP517_ARGS", PathBuf::from("--profile=dev"))]
}

/// A virtual environment with the build tool.
pub(crate) struct Environment {
    pub(crate) folder: PathBuf,
}

impl Environment {
    /// The program that checks for the oldest Python whose stable interface has everything the package uses.
    pub(crate) const IS_RECENT: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

    pub(crate) fn of(root: &Path) -> Self {
        Self { folder: root.join("target/python/venv") }
    }

    pub(crate) fn interpreter(&self) -> String {
        self.folder.join("bin/python").display().to_string()
    }

    /// The environment's interpreter, with the environment's programs first in its path.
    pub(crate) fn python(&self) -> Command {
        let mut python = Command::new(self.interpreter());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.folder.join("bin")].into_iter().chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(folders) {
            python.env("PATH", path);
        }
        python
    }
}
