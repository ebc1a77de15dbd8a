//! The tools that the steps need in addition to cargo and a C compiler. Only `cargo xtask setup` installs tools; the
//! message of [`Tool::missing`] names the command.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::bare;
use crate::python::Environment;
use crate::step::cargo;

/// A tool, and the command that installs it.
pub(crate) struct Tool {
    name: String,
    /// The command that installs this tool.
    install: Vec<String>,
    /// A command that succeeds if the tool is installed.
    test: Vec<String>,
    /// The `xtask` command that installs this tool and others.
    setup: &'static str,
}

impl Tool {
    fn new(name: impl Into<String>, install: Vec<String>, test: Vec<String>) -> Self {
        Tool { name: name.into(), install, test, setup: "cargo xtask setup" }
    }

    /// Marks a tool that only `setup --soak` installs.
    fn for_soak(self) -> Self {
        Tool { setup: "cargo xtask setup --soak", ..self }
    }

    pub(crate) fn rustfmt() -> Self {
        Tool::new("rustfmt", words("rustup component add rustfmt"), vec![cargo(), "fmt".into(), "--version".into()])
    }

    pub(crate) fn clippy() -> Self {
        Tool::new("clippy", words("rustup component add clippy"), vec![cargo(), "clippy".into(), "--version".into()])
    }

    /// Returns the target without a standard library.
    pub(crate) fn bare_target() -> Self {
        let target = bare::TARGET;
        let folder = format!("rustc --print target-libdir --target {target}");
        Tool::new(target, words(&format!("rustup target add {target}")), exists(&folder, ""))
    }

    /// Returns the virtual environment of the Python package.
    pub(crate) fn python(root: &Path) -> Self {
        let environment = Environment::of(root);
        let mut install = words("python3 -m venv --clear");
        install.push(environment.folder.display().to_string());
        let test = vec![environment.interpreter(), "-c".into(), Environment::IS_RECENT.into()];
        Tool::new("a virtual environment of python3, 3.11 or later,", install, test)
    }

    /// Returns a package in that environment.
    pub(crate) fn python_package(root: &Path, package: &str) -> Self {
        let python = Environment::of(root).interpreter();
        let install = [&python, "-m", "pip", "install", "--quiet", package].map(str::to_owned).to_vec();
        Tool::new(package, install, vec![python, "-c".into(), format!("import {package}")])
    }

    /// Returns the oldest toolchain that builds the libraries.
    ///
    /// # Errors
    /// Returns an error if the workspace's manifest does not name it.
    pub(crate) fn oldest_rust(root: &Path) -> Result<Self, String> {
        let version = oldest_version(root)?;
        let install = words(&format!("rustup toolchain install {version} --profile minimal"));
        let test = words(&format!("rustup run {version} rustc --version"));
        Ok(Tool::new(format!("Rust {version}"), install, test).for_soak())
    }

    /// Returns the toolchain of the sanitizer and of libFuzzer, with the source of the standard library, which the
    /// sanitizer needs.
    pub(crate) fn nightly() -> Self {
        let install = words("rustup toolchain install nightly --profile minimal --component rust-src");
        let source = exists("rustup run nightly rustc --print sysroot", "/lib/rustlib/src/rust/library/std");
        Tool::new("a nightly toolchain with rust-src", install, source).for_soak()
    }

    pub(crate) fn cargo_fuzz() -> Self {
        let install = words("cargo install cargo-fuzz --locked");
        Tool::new("cargo-fuzz", install, words("cargo fuzz --version")).for_soak()
    }

    pub(crate) fn cargo_semver_checks() -> Self {
        let install = words("cargo install cargo-semver-checks --locked");
        Tool::new("cargo-semver-checks", install, words("cargo semver-checks --version")).for_soak()
    }

    pub(crate) fn is_there(&self) -> bool {
        let (program, args) = self.test.split_first().expect("a command is not empty");
        let mut command = Command::new(program);
        command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// Returns a sentence that says that the tool is missing, and names the command that installs it.
    pub(crate) fn missing(&self) -> String {
        format!("{} is missing; `{}` installs it, `{}` everything", self.name, self.command(), self.setup)
    }

    /// Installs the tool, unless it is installed already.
    fn install(&self) -> Result<(), String> {
        if self.is_there() {
            println!("   {}: there", self.name);
            return Ok(());
        }
        println!("   $ {}", self.command());
        let (program, args) = self.install.split_first().expect("a command is not empty");
        let installed = Command::new(program).args(args).status().is_ok_and(|status| status.success());
        if installed && self.is_there() {
            Ok(())
        } else {
            Err(format!("`{}` did not install {}", self.command(), self.name))
        }
    }

    fn command(&self) -> String {
        self.install.join(" ")
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Returns a command that succeeds if the command `print` prints a folder in which `below` exists.
fn exists(print: &str, below: &str) -> Vec<String> {
    vec!["sh".to_owned(), "-c".to_owned(), format!("test -d \"$({print}){below}\"")]
}

/// Returns the version of `rust-version` in the workspace's manifest.
pub(crate) fn oldest_version(root: &Path) -> Result<String, String> {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).map_err(|error| format!("Cargo.toml: {error}"))?;
    version_of(&manifest).map(str::to_owned).ok_or_else(|| "Cargo.toml has no `rust-version`".to_owned())
}

/// Returns the `rust-version` of a manifest.
pub(crate) fn version_of(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'))
}

/// Installs the tools of `cargo xtask test`; with `--soak` also those of `cargo xtask soak`, and the oldest toolchain.
///
/// # Errors
/// Names all tools that could not be installed.
pub(crate) fn setup(args: &[String], root: &Path) -> Result<(), String> {
    let mut tools = vec![
        Tool::rustfmt(),
        Tool::clippy(),
        Tool::bare_target(),
        Tool::python(root),
        Tool::python_package(root, "maturin"),
        Tool::python_package(root, "numpy"),
        Tool::python_package(root, "mypy"),
        Tool::python_package(root, "hypothesis"),
    ];
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {}
        ["--soak"] => {
            tools.extend([Tool::oldest_rust(root)?, Tool::nightly(), Tool::cargo_fuzz(), Tool::cargo_semver_checks()]);
        }
        _ => return Err("usage: cargo xtask setup [--soak]".to_owned()),
    }
    let failures: Vec<String> = tools.iter().filter_map(|tool| tool.install().err()).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n       ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_its_command() {
        let tool = Tool::new("a plough", words("rustup component add plough"), words("no-such-program --version"));
        assert!(!tool.is_there());
        let message = tool.missing();
        assert!(
            message.contains("a plough is missing") && message.contains("`rustup component add plough`"),
            "{message}"
        );
    }

    #[test]
    fn a_tool_is_there_if_its_test_succeeds() {
        assert!(Tool::new("cargo", Vec::new(), vec![cargo(), "--version".into()]).is_there());
    }

    #[test]
    fn the_manifest_names_the_oldest_toolchain() {
        assert!(oldest_version(crate::root()).unwrap().starts_with("1."));
    }
}
