//! Published packages are complete: each has both licences, a README, and the metadata that a registry shows.

use std::fs;
use std::path::Path;

use crate::members::{self, Member};

/// The licences. Both require that their text accompany every copy.
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// A package outside the workspace, which is published to another registry.
const PYTHON: &str = "bindings/python";

/// The beginnings of lines that every manifest must have.
const LINES: [&str; 5] =
    ["description = \"", "license.workspace", "repository.workspace", "keywords = [", "categories = ["];

/// The beginnings of lines that the manifest of a library must also have, so that its docs show every feature and
/// system.
const DOCS: [&str; 3] = ["[package.metadata.docs.rs]", "all-features = true", "targets = ["];

/// Fails when a published package lacks a licence, its README or one of these lines.
///
/// # Errors
/// Names everything that is missing.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let mut missing = Vec::new();
    let members = published(root)?;
    for member in &members {
        missing.extend(lacks(root, member)?);
    }
    missing.extend(licences(root, &root.join(PYTHON))?);
    if missing.is_empty() {
        println!("   {} packages and {PYTHON}", members.len());
        return Ok(());
    }
    Err(format!("published packages are incomplete:\n  {}", missing.join("\n  ")))
}

/// Returns the members that are published.
///
/// # Errors
/// Returns an error if a manifest cannot be read.
pub(crate) fn published(root: &Path) -> Result<Vec<Member>, String> {
    let mut published = Vec::new();
    for member in members::all(root)? {
        if !read(&member.folder.join("Cargo.toml"))?.lines().any(|line| line == "publish = false") {
            published.push(member);
        }
    }
    Ok(published)
}

fn lacks(root: &Path, member: &Member) -> Result<Vec<String>, String> {
    let mut lacks = licences(root, &member.folder)?;
    let folder = member.folder.strip_prefix(root).unwrap_or(&member.folder).display();
    if !member.folder.join("README.md").is_file() {
        lacks.push(format!("{folder} has no README.md"));
    }
    let manifest = read(&member.folder.join("Cargo.toml"))?;
    let docs: &[&str] = if member.has_library() { &DOCS } else { &[] };
    for start in LINES.iter().chain(docs) {
        if !manifest.lines().any(|line| line.starts_with(start)) {
            lacks.push(format!("{folder}/Cargo.toml has no line `{start}…`"));
        }
    }
    Ok(lacks)
}

/// Returns the licences that a folder lacks, or that differ from those of the root.
fn licences(root: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let mut lacks = Vec::new();
    for licence in LICENCES {
        let text = read(&root.join(licence))?;
        if !read(&folder.join(licence)).is_ok_and(|found| found == text) {
            let folder = folder.strip_prefix(root).unwrap_or(folder).display();
            lacks.push(format!("{folder}/{licence} is not the root's: `ln -sf ../../{licence} {folder}/` links it"));
        }
    }
    Ok(lacks)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_complete() {
        check(crate::root()).unwrap();
    }

    #[test]
    fn what_a_package_lacks_is_named() {
        let root = crate::root();
        let member = members::all(root).unwrap().into_iter().find(|member| member.short == "xtask").unwrap();
        let lacks = lacks(root, &member).unwrap().join("\n");
        assert!(lacks.contains("xtask/LICENSE-MIT is not the root's: `ln -sf"), "{lacks}");
        assert!(lacks.contains("xtask has no README.md") && lacks.contains("no line `keywords = […`"), "{lacks}");
        assert!(!lacks.contains("docs.rs"), "{lacks}");
        assert!(!published(root).unwrap().iter().any(|member| member.short == "xtask"));
    }
}
