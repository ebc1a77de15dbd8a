//! The Python package as users get it: a wheel is built from the source archive, and passes the tests on every
//! installed Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Bench, Part};
use crate::python::{Environment, PACKAGE};
use crate::tools::Tool;

const FOLDER: &str = "target/python-soak";

/// The minor numbers of the versions to try. The first is that of `python3.11`, whose stable interface the wheel uses.
const MINORS: std::ops::Range<u32> = 11..30;

pub(super) fn part(root: &Path) -> Part {
    Part {
        name: "python".to_owned(),
        group: "python",
        about: "the Python source archive makes a wheel, which passes the tests on every Python from 3.11 on",
        tools: vec![Tool::python(root), Tool::python_package(root, "maturin")],
        work: Box::new(run),
    }
}

fn run(bench: &Bench<'_>) -> Result<(), String> {
    let folder = bench.root.join(FOLDER);
    // Remove the archives of earlier runs, so that the code below finds only the new one.
    drop(fs::remove_dir_all(&folder));
    let environment = Environment::of(bench.root);
    let target = bench.root.join("target/python");
    let mut archive = environment.python();
    archive.args(["-m", "maturin", "sdist", "--manifest-path"]).arg(format!("{PACKAGE}/Cargo.toml"));
    bench.run(archive.arg("--out").arg(&folder).env("CARGO_TARGET_DIR", &target))?;
    let mut wheel = environment.python();
    wheel.args(["-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--wheel-dir"]).arg(&folder);
    bench.run(wheel.arg(the_only(&folder, "tar.gz")?).env("CARGO_TARGET_DIR", &target))?;
    let wheel = the_only(&folder, "whl")?;
    for python in MINORS.map(|minor| format!("python3.{minor}")).filter(|python| is_there(python)) {
        let environment = folder.join(&python);
        bench.run(Command::new(&python).args(["-m", "venv"]).arg(&environment))?;
        let python = environment.join("bin/python");
        let mut install = Command::new(&python);
        bench.run(install.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]).arg(&wheel))?;
        let mut test = Command::new(&python);
        bench.run(test.args(["-m", "unittest", "discover", "--start-directory"]).arg(format!("{PACKAGE}/tests")))?;
    }
    Ok(())
}

/// Returns the only file of the folder with this ending.
fn the_only(folder: &Path, ending: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let file = files.find(|file| file.to_string_lossy().ends_with(ending));
    file.ok_or_else(|| format!("{} has no file that ends with {ending}", folder.display()))
}

fn is_there(python: &str) -> bool {
    Command::new(python).arg("--version").output().is_ok_and(|output| output.status.success())
}
