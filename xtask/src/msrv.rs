//! The oldest toolchain that the manifest promises, `rust-version`. No dependency requires a newer one, the workspace of the
//! Python package promises the same version, and everything published builds with it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::step::cargo;
use crate::tools::{oldest_version, version_of};

/// The manifest of a separate workspace, which cannot inherit the version from this one.
const PYTHON: &str = "bindings/python/Cargo.toml";

/// The packages to build: the first re-exports every library, and the second and the last contain all commands.
const BUILT: [&str; 4] = ["millstream", "millstream-cli", "millstream-c", "millstream-barrierd"];

/// Compares the versions in the manifests of the workspace and of its dependencies. The build with the oldest toolchain
/// is a part of the soak.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let oldest = oldest_version(root)?;
    let manifest = fs::read_to_string(root.join(PYTHON)).map_err(|error| format!("{PYTHON}: {error}"))?;
    if version_of(&manifest) != Some(&oldest) {
        return Err(format!("{PYTHON} must have `rust-version = \"{oldest}\"`, as Cargo.toml has"));
    }
    let newer = newer(&metadata(root)?, &oldest);
    if !newer.is_empty() {
        return Err(format!("these dependencies ask for more than Rust {oldest}:\n  {}", newer.join("\n  ")));
    }
    Ok(())
}

/// Returns the command with which the oldest toolchain builds everything that is published.
///
/// # Errors
/// Returns an error if the workspace's manifest does not name the toolchain.
pub(crate) fn build(root: &Path) -> Result<Command, String> {
    // The command goes through rustup, because the cargo that runs this program belongs to another toolchain. One build
    // serves all packages: separate builds would compile a shared dependency once for each set of its features.
    let mut check = Command::new("rustup");
    check.args(["run", &oldest_version(root)?, "cargo", "check", "--target-dir=target/msrv", "--all-features"]);
    check.args(BUILT.map(|package| format!("--package={package}")));
    Ok(check)
}

/// Returns cargo's description of all packages, as JSON.
pub(crate) fn metadata(root: &Path) -> Result<String, String> {
    let mut command = Command::new(cargo());
    command.args(["metadata", "--format-version=1", "--all-features", "--locked"]).current_dir(root);
    let output = command.output().map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// Returns the packages that require a later version, as "FOLDER: VERSION". In the metadata, the `manifest_path` of a
/// package precedes its `rust_version`.
fn newer(metadata: &str, oldest: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut folder = "";
    for part in metadata.split("\"manifest_path\":\"").skip(1) {
        let (path, rest) = part.split_once('"').unwrap_or((part, ""));
        folder = path.strip_suffix("/Cargo.toml").and_then(|path| path.rsplit('/').next()).unwrap_or(folder);
        let asked = rest.split_once("\"rust_version\":\"").and_then(|(_, version)| version.split('"').next());
        found.extend(asked.filter(|asked| numbers(asked) > numbers(oldest)).map(|asked| format!("{folder}: {asked}")));
    }
    found
}

fn numbers(version: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = version.split('.').map(|number| number.parse().unwrap_or(0)).collect();
    numbers.resize(3, 0);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_that_ask_for_more_are_named() {
        let package = |folder: &str, version: &str| {
            format!("{{\"name\":\"x\",\"manifest_path\":\"/r/{folder}/Cargo.toml\",\"rust_version\":{version}}}")
        };
        let metadata = [
            package("old-1.0", "\"1.56\""),
            package("silent-2.0", "null"),
            package("same-0.1", "\"1.88.0\""),
            package("new-3.1", "\"1.89\""),
            package("newer-0.2", "\"1.100\""),
        ]
        .join(",");
        assert_eq!(newer(&metadata, "1.88"), ["new-3.1: 1.89", "newer-0.2: 1.100"]);
    }

    #[test]
    fn the_packages_exist() {
        let members = crate::members::all(crate::root()).unwrap();
        for package in BUILT {
            assert!(members.iter().any(|member| member.package == package), "{package}");
        }
    }
}
