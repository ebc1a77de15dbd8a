//! The Python package: builds a wheel, installs it into its own virtual environment, and tests it.
//!
//! The package is outside the workspace, so that everything else builds without Python. Without an interpreter, or
//! before `cargo xtask setup`, the step is skipped with a message.

use std::fs;
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
    let wheel = wheel(root, &environment)?;
    let mut install = environment.python();
    install.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--force-reinstall"]);
    run(install.arg(wheel).current_dir(root))?;
    let mut test = environment.python();
    test.args(["-m", "unittest", "discover", "--start-directory"]).arg(format!("{PACKAGE}/tests"));
    run(test.current_dir(root))?;
    let mypy = Tool::python_package(root, "mypy");
    if !mypy.is_there() {
        return Ok(Passed::Without(mypy.missing()));
    }
    // This checks that the type hints agree with the package itself.
    let mut stubtest = environment.python();
    stubtest.args(["-m", "mypy.stubtest", "millstream", "--ignore-unused-allowlist", "--allowlist"]);
    run(stubtest.arg(format!("{PACKAGE}/tests/stubtest-allowlist")).current_dir(root))?;
    Ok(Passed::Whole)
}

/// Builds the wheel, with debug assertions, in its own target folder. The wheel's name says that it works with every
/// supported Python, and on every Linux with at least some version of the C library.
fn wheel(root: &Path, environment: &Environment) -> Result<PathBuf, String> {
    let folder = root.join("target/python/wheels");
    // Remove the wheels of earlier runs, so that the code below finds only the new wheel.
    drop(fs::remove_dir_all(&folder));
    let mut build = environment.python();
    build.args(["-m", "maturin", "build", "--quiet", "--profile=dev", "--manifest-path"]);
    build.arg(format!("{PACKAGE}/Cargo.toml")).arg("--out").arg(&folder);
    run(build.env("CARGO_TARGET_DIR", root.join("target/python")).current_dir(root))?;
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    match names.as_slice() {
        [name] if name.contains(TAGS) => Ok(folder.join(name)),
        names => Err(format!("expected a wheel with the tags {TAGS}…, found {names:?} in {}", folder.display())),
    }
}

/// The tags of a wheel in its name: the oldest Python, the stable interface, and the policy of the C library.
const TAGS: &str = "-cp311-abi3-manylinux_2_";

/// A virtual environment with the build tool.
pub(crate) struct Environment {
    pub(crate) folder: PathBuf,
}

impl Environment {
    /// A program that succeeds if Python is recent enough, which means that its stable interface has everything that
    /// the package uses.
    pub(crate) const IS_RECENT: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

    pub(crate) fn of(root: &Path) -> Self {
        Self { folder: root.join("target/python/venv") }
    }

    pub(crate) fn interpreter(&self) -> String {
        self.folder.join("bin/python").display().to_string()
    }

    /// Returns the environment's interpreter, with the environment's programs first in its path.
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
